//! The results as one self-contained page: no script, no other file, readable on a phone.
//!
//! This file turns results into what the template needs. The template holds all text and styles; `bars` and
//! `lines` draw; every number in a chart is also in a table.

mod bars;
mod chart;
mod lines;
mod section;
mod svg;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use askama::Template;

use crate::alternate::RowResult;
use crate::error::Error;
use crate::rivals::Missing;
use crate::system::System;
use crate::table;
use section::{Columns, Overview, Section};

/// What a page is built from.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// All rows.
    pub results: &'a [RowResult],
    /// All measured systems, Weald first.
    pub systems: &'a [System],
    /// The rivals that could not be measured.
    pub missing: &'a [Missing],
    /// The command that repeats the bench.
    pub command: &'a str,
    /// Whether all rows are there.
    pub has_ended: bool,
    /// The sentence for a machine on which much else has run.
    pub busy: Option<&'a str>,
}

/// One measured system, for the list of systems.
struct SystemLine {
    name: String,
    version: String,
    call: String,
    note: String,
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    machine: Vec<(&'static str, String)>,
    verdicts: table::Verdicts,
    summary: Vec<Overview>,
    columns: Columns,
    rows: usize,
    has_ended: bool,
    busy: Option<&'a str>,
    sections: Vec<Section>,
    systems: Vec<SystemLine>,
    missing: &'a [Missing],
    command: &'a str,
}

/// Held while a page takes the place of the one before.
static WRITING: Mutex<()> = Mutex::new(());

/// Writes the page to a file, which holds either the page of before or this one at any moment. What is no file, such as
/// a pipe, gets only the page that has all rows.
pub fn write(source: Source<'_>, path: &Path) -> Result<(), Error> {
    // A link stays.
    let at = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let written = if at.exists() && !at.is_file() {
        if !source.has_ended {
            return Ok(());
        }
        // Not while pages are kept as they are: a pipe without a reader would hold that up.
        std::fs::write(at, render(source)?)
    } else {
        let text = render(source)?;
        let _writing = writing();
        replace(&at, &text)
    };
    written.map_err(Error::file("write", path))
}

/// Whether the page in a file can be replaced by another one.
///
/// # Errors
/// If the file cannot be written to.
pub fn check(path: &Path) -> Result<(), Error> {
    let opened = std::fs::OpenOptions::new().append(true).open(path);
    opened.map(drop).map_err(Error::file("write", path))
}

/// Keeps pages as they are. A thread that is about to end the program holds this.
pub fn writing() -> MutexGuard<'static, ()> {
    WRITING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = path.with_file_name(name);
    std::fs::write(&part, text)?;
    let put = std::fs::rename(&part, path);
    put.inspect_err(|_| {
        // What failed is the renaming, and that is told.
        let _left = std::fs::remove_file(&part);
    })
}

/// The page as text.
pub fn render(source: Source<'_>) -> Result<String, Error> {
    let summary = section::summary(source.results);
    let page = Page {
        machine: crate::machine::describe(),
        verdicts: table::verdicts(source.results),
        columns: Columns::of(&summary),
        summary,
        rows: source.results.len(),
        has_ended: source.has_ended,
        busy: source.busy,
        sections: section::sections(source.results),
        systems: source.systems.iter().map(line).collect(),
        missing: source.missing,
        command: source.command,
    };
    page.render()
        .map_err(|error| Error::Render(error.to_string()))
}

/// The call as a user would type it, with the shortest form of the program's name.
fn line(system: &System) -> SystemLine {
    let mut argv = system.program.argv.clone();
    if let Some(program) = argv.first_mut() {
        let short = Path::new(program.as_str())
            .file_name()
            .map(|name| name.to_string_lossy());
        *program = short.map_or_else(String::new, std::borrow::Cow::into_owned);
    }
    SystemLine {
        name: system.name.clone(),
        version: system.version.clone(),
        call: argv.join(" "),
        note: system.note.trim().to_owned(),
    }
}
