//! `weald bench`: from the command line to printed figures.
//!
//! Steps: check the arguments; find and build the rivals; run the bench; print each row, and write the page anew, as
//! soon as a row is finished.

mod page;
mod shown;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use weald_lab::alternate::{RowResult, TIME_IS_OVER};
use weald_lab::bench::{self, Options};
use weald_lab::error::Error;
use weald_lab::plan::Level;
use weald_lab::rivals::{self, Found, Places};
use weald_lab::system::{System, WEALD, this_program};
use weald_lab::{limit, workload};

use crate::args::Bench;
use crate::interrupt;
use crate::output::complain;
use crate::progress::Progress;
use page::Page;
use shown::{Form, Shown};

/// The bounds of the table and of a quick bench without rivals, with a rest for what is not measured.
const A_MINUTE: Duration = Duration::from_secs(55);
const TWO_MINUTES: Duration = Duration::from_secs(115);

pub(crate) fn run(args: &Bench) -> Result<ExitCode, Error> {
    let options = options(args)?;
    interrupt::listen()?;
    let command = command(args);
    // Better to learn now than hours later that the page cannot be written.
    let mut page = Page::begin(args.report.as_deref(), &command)?;
    let progress = Progress::new(args.color);
    let Found {
        systems: rivals,
        missing,
    } = find_rivals(args, &progress)?;
    let program = this_program()?;
    let own = [System::weald(&program), System::limit(&program)];
    let systems: Vec<System> = own.into_iter().chain(rivals).collect();
    page.measures(&systems, &missing);

    let mut shown = Shown::new(&progress, form(args, options.level), page);
    shown.heading()?;
    let results = bench::run(&options, &systems, &mut shown)?;
    progress.end();
    shown.end(&results)?;
    Ok(if own_failed(&results) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn form(args: &Bench, level: Level) -> Form {
    match (args.json, level) {
        (true, _) => Form::Records,
        (false, Level::Glance) => Form::Table,
        (false, _) => Form::Rows,
    }
}

fn options(args: &Bench) -> Result<Options, Error> {
    let level = match (args.quick, args.full || !args.only.is_empty()) {
        (true, _) => Level::Quick,
        (_, true) => Level::Full,
        _ => Level::Glance,
    };
    let only = args
        .only
        .iter()
        .map(|name| workload::find(name))
        .collect::<Result<_, _>>()?;
    let (workers, runs, timeout) = (args.workers, args.runs, args.timeout);
    let within = match (args.within, &args.rivals, level) {
        (None, None, Level::Glance) => Some(A_MINUTE),
        (None, None, Level::Quick) => Some(TWO_MINUTES),
        (asked, ..) => asked,
    };
    Ok(Options {
        within,
        level,
        only,
        workers,
        runs,
        timeout,
    })
}

fn find_rivals(args: &Bench, progress: &Progress) -> Result<Found, Error> {
    let Some(names) = &args.rivals else {
        return Ok(Found::default());
    };
    let names: Vec<String> = names
        .iter()
        .filter(|name| !name.is_empty())
        .cloned()
        .collect();
    let usual = Places::usual();
    let places = Places {
        sources: args.rivals_dir.clone().unwrap_or(usual.sources),
        out: args.rivals_out.clone().unwrap_or(usual.out),
    };
    let found = rivals::assemble(&places, &names, &mut |step| progress.step(step))?;
    for missing in &found.missing {
        progress.hide_while(|| {
            complain(&format!(
                "{} is left out. {}",
                missing.name, missing.sentence
            ))
        });
    }
    Ok(found)
}

/// The command that repeats this bench, in a checkout.
fn command(args: &Bench) -> String {
    let mut words = vec!["cargo run --release -- bench".to_owned()];
    let mut flag = |given: bool, word: String| {
        if given {
            words.push(word);
        }
    };
    flag(args.quick, "--quick".to_owned());
    flag(args.full, "--full".to_owned());
    flag(
        !args.only.is_empty(),
        format!("--only {}", args.only.join(",")),
    );
    flag(
        args.workers.is_some(),
        format!("--workers {}", args.workers.unwrap_or_default()),
    );
    flag(
        args.runs.is_some(),
        format!("--runs {}", args.runs.unwrap_or_default()),
    );
    if let Some(names) = &args.rivals {
        let list = names.join(",");
        flag(
            true,
            if list.is_empty() {
                "--rivals".into()
            } else {
                format!("--rivals={list}")
            },
        );
    }
    if let Some(within) = args.within {
        flag(true, format!("--within {}", within.as_secs_f64()));
    }
    let page = args
        .report
        .as_ref()
        .and_then(|path| path.file_name())
        .map(PathBuf::from);
    flag(
        page.is_some(),
        format!("--report {}", page.unwrap_or_default().display()),
    );
    words.join(" ")
}

/// Whether Weald or a limit program failed in some row. Rivals may fail, and what the bench had no time for has not.
fn own_failed(results: &[RowResult]) -> bool {
    let cells = results.iter().flat_map(|result| &result.cells);
    cells
        .filter(|cell| [WEALD, limit::NAME].contains(&cell.system.as_str()))
        .filter_map(|cell| cell.trouble.as_deref())
        .any(|trouble| trouble != TIME_IS_OVER)
}
