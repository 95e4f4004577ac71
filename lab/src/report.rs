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

use askama::Template;

use crate::alternate::RowResult;
use crate::error::Error;
use crate::rivals::Missing;
use crate::system::System;
use crate::table;
use section::Section;

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
    sections: Vec<Section>,
    systems: Vec<SystemLine>,
    missing: &'a [Missing],
    command: &'a str,
}

/// Writes the page to a file.
pub fn write(source: Source<'_>, path: &Path) -> Result<(), Error> {
    std::fs::write(path, render(source)?).map_err(Error::file("write", path))
}

/// The page as text.
pub fn render(source: Source<'_>) -> Result<String, Error> {
    let page = Page {
        machine: crate::machine::describe(),
        verdicts: table::verdicts(source.results),
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
