//! `weald forest`: looks into the forest of a directory, even while a program has it open, and brings trees in and out.
//!
//! All commands but `import` only read. Exit codes: see `failure.rs` and the help.

// What goes wrong, and how things are written.
mod failure;
mod form;
mod times;

mod moment;
mod term;
mod text;

// The forest, and its trees at a moment.
mod records;

mod past;

mod opened;

mod recent;

// The commands.
mod history;
mod import_text;
mod nodes;
mod whole;

mod import;

use std::io;
use std::process::ExitCode;

use weald_journal::{MasterKey, Settings};
use weald_lab::error::Error;

use crate::args::forest::{Action, Forest};
use crate::output::complain;
use failure::Failure;
use form::TreeForm;
use import::What;
use opened::Opened;

pub(crate) fn run(args: &Forest) -> Result<ExitCode, Error> {
    let Err(failure) = act(args) else {
        return Ok(ExitCode::SUCCESS);
    };
    let (code, sentence) = failure.told()?;
    // It may have names.
    let lines: Vec<_> = sentence.lines().map(text::name).collect();
    complain(&lines.join("\n"));
    Ok(ExitCode::from(code))
}

fn act(args: &Forest) -> Result<(), Failure> {
    let json = args.json;
    if let Action::Import {
        name,
        from,
        document,
        xml,
        create,
        skip_existing,
    } = &args.command
    {
        let what = What {
            name: name.as_deref(),
            from: from.as_deref(),
            form: TreeForm::of(*document, *xml),
            creates: *create,
            skips: *skip_existing,
            json,
        };
        return import::import(&args.directory, settings(args)?, &what);
    }
    let opened = Opened::open(&args.directory, &settings(args)?)?;
    let left_out = opened.0.stats().unreadable_blobs;
    if left_out > 0 {
        let values = text::count(left_out, "erasable value");
        complain(&format!("{values} cannot be read: shown as erased."));
    }
    match &args.command {
        Action::Ls { prefix } => nodes::list(&opened.0, prefix, json),
        Action::Tree { name, at, depth } => nodes::draw(&opened, (name, at), *depth, json),
        Action::Show { name, at } => nodes::show(&opened, (name, at), json),
        Action::Log { name, node, n } => match (name, node) {
            (Some(name), Some(node)) => history::log_node(&opened, (name, node), *n, json),
            (name, _) => history::log(&opened, name.as_deref(), *n, json),
        },
        Action::Diff { name, from, to } => {
            history::diff(&opened, name, (from, to.as_deref()), json)
        }
        Action::At { moment, name } => nodes::at(&opened, (moment, name.as_deref()), json),
        Action::Find { name, terms, at, n } => {
            nodes::find(&opened, (name, at.as_deref()), (terms, *n), json)
        }
        Action::Check => whole::check(&opened, json),
        Action::Stats => whole::stats(&opened, json),
        Action::Export {
            name,
            at,
            document,
            xml,
        } => {
            let form = TreeForm::of(*document, *xml);
            nodes::export(&opened, (name.as_deref(), at.as_deref()), form)
        }
        Action::Import { .. } => unreachable!("it was done above"),
    }
}

/// The settings of the journal.
fn settings(args: &Forest) -> Result<Settings, Failure> {
    let settings = match args.skip_damaged_values {
        true => Settings::new().skip_damaged_values(),
        false => Settings::new(),
    };
    let Some(file) = &args.master_key else {
        return Ok(settings);
    };
    let key = MasterKey::read(file).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => Failure::Usage(format!("{error}.")),
        _ => Failure::Failed(format!("{} cannot be read: {error}.", file.display())),
    })?;
    Ok(settings.master_key(key))
}
