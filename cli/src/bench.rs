//! `weald bench`: from the command line to printed figures.
//!
//! Steps: check the arguments; find and build the rivals; run the bench and print each row as soon as it
//! is finished; write the page.

use std::path::PathBuf;
use std::process::ExitCode;

use weald_lab::alternate::{RowResult, Turn};
use weald_lab::bench::{self, Listener, Options};
use weald_lab::error::Error;
use weald_lab::plan::Level;
use weald_lab::report::{self, Source};
use weald_lab::rivals::{self, Found, Places};
use weald_lab::system::{System, WEALD, this_program};
use weald_lab::{compare, limit, machine, record, table, workload};

use crate::args::Bench;
use crate::interrupt;
use crate::output::{complain, print};
use crate::progress::Progress;

pub(crate) fn run(args: &Bench) -> Result<ExitCode, Error> {
    let options = options(args)?;
    // Better to learn now than hours later that the page cannot be written.
    if let Some(path) = &args.report {
        let probe = std::fs::File::options()
            .create(true)
            .append(true)
            .open(path);
        probe.map_err(Error::file("write", path))?;
    }
    interrupt::listen()?;
    let progress = Progress::new(args.color);
    let Found {
        systems: rivals,
        missing,
    } = find_rivals(args, &progress)?;
    let program = this_program()?;
    let own = [System::weald(&program), System::limit(&program)];
    let systems: Vec<System> = own.into_iter().chain(rivals).collect();

    let mut shown = Shown {
        progress: &progress,
        json: args.json,
        workload: "",
    };
    shown.heading()?;
    let results = bench::run(&options, &systems, &mut shown)?;
    progress.end();
    if !args.json {
        print(&table::legend(&results))?;
        print(&table::closing(&results))?;
    }
    if let Some(path) = &args.report {
        let command = command(args);
        let source = Source {
            results: &results,
            systems: &systems,
            missing: &missing,
            command: &command,
        };
        report::write(source, path)?;
    }
    Ok(if own_failed(&results) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn options(args: &Bench) -> Result<Options, Error> {
    let level = match (args.quick, args.full) {
        (true, _) => Level::Quick,
        (_, true) => Level::Full,
        _ => Level::Usual,
    };
    let only = args
        .only
        .iter()
        .map(|name| workload::find(name))
        .collect::<Result<_, _>>()?;
    let (workers, runs, timeout) = (args.workers, args.runs, args.timeout);
    Ok(Options {
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

/// Whether Weald or a limit program lacks figures in some row. Rivals may lack them.
fn own_failed(results: &[RowResult]) -> bool {
    let cells = results.iter().flat_map(|result| &result.cells);
    cells
        .filter(|cell| [WEALD, limit::NAME].contains(&cell.system.as_str()))
        .any(|cell| cell.trouble.is_some())
}

/// Prints rows and shows progress while the bench runs.
struct Shown<'a> {
    progress: &'a Progress,
    json: bool,
    /// The workload whose remark was printed last.
    workload: &'static str,
}

impl Shown<'_> {
    /// Describes the machine, above its figures. Records are for tools, so `--json` prints nothing else.
    fn heading(&self) -> Result<(), Error> {
        if self.json {
            return Ok(());
        }
        self.progress
            .hide_while(|| print(&format!("{}\n", machine::text())))
    }

    /// Prints the workload's remark once, before its first row.
    fn remark(&mut self, row: &RowResult) -> Result<(), Error> {
        let workload = row.row.workload;
        if workload.name == self.workload || workload.remark.is_empty() {
            return Ok(());
        }
        self.workload = workload.name;
        print(&format!("{}: {}\n\n", workload.name, workload.remark))
    }

    fn rows_as_records(rows: &[RowResult]) -> Result<(), Error> {
        for row in rows {
            for cell in row.cells.iter().filter(|cell| cell.trouble.is_some()) {
                let trouble = cell.trouble.as_deref().unwrap_or_default();
                let (name, params, lane) =
                    (row.row.workload.name, &row.row.params, compare::label(cell));
                complain(&format!("{name} {params}, {lane}: {trouble}"));
            }
            let lines: String = record::records(row)
                .map(|line| line.line() + "\n")
                .collect();
            print(&lines)?;
        }
        Ok(())
    }
}

impl Listener for Shown<'_> {
    fn planned(&mut self, children: usize) {
        self.progress.planned(children);
    }

    fn turn(&mut self, turn: Turn<'_>) -> Result<(), Error> {
        self.progress.turn(turn);
        Ok(())
    }

    fn finished(&mut self, rows: &[RowResult]) -> Result<(), Error> {
        let progress = self.progress;
        progress.hide_while(|| {
            if self.json {
                return Self::rows_as_records(rows);
            }
            rows.iter().try_for_each(|row| {
                self.remark(row)?;
                print(&format!("{}\n", table::row(row)))
            })
        })
    }
}
