//! Reads the arguments of `durable`. Wrong ones end the program with exit code 2.

use std::collections::BTreeMap;
use std::path::PathBuf;

use common::bad_usage;

use crate::store::Level;

/// How much is written, and how.
pub(crate) struct Call {
    pub(crate) writers: usize,
    pub(crate) commits: usize,
    pub(crate) level: Level,
    /// The directory in which a directory for the store is made.
    pub(crate) above: PathBuf,
    pub(crate) workers: usize,
}

impl Call {
    pub(crate) fn parse(arguments: &[String], version: &str) -> Self {
        let Some((workload, pairs)) = arguments.split_first() else {
            bad_usage("No workload is given: call it as durable key=value ..., or with --version.")
        };
        if workload == "--version" {
            println!("{version}");
            std::process::exit(0);
        }
        if workload != "durable" {
            bad_usage(&format!(
                "The workload `{workload}` is unknown: this rival does `durable`."
            ));
        }
        let mut keys = BTreeMap::new();
        for pair in pairs {
            match pair.split_once('=') {
                Some((key, value)) => keys.insert(key, value),
                None => bad_usage(&format!(
                    "The argument `{pair}` is not of the form key=value."
                )),
            };
        }
        let call = Self {
            writers: count(&mut keys, "writers"),
            commits: count(&mut keys, "commits"),
            level: match keys.remove("level") {
                Some("buffered") => Level::Buffered,
                Some("durable") => Level::Durable,
                _ => bad_usage("The key `level` takes buffered or durable."),
            },
            above: keys
                .remove("dir")
                .map_or_else(std::env::temp_dir, PathBuf::from),
            workers: count(&mut keys, "workers"),
        };
        if let Some(key) = keys.keys().next() {
            bad_usage(&format!(
                "The key `{key}` does not belong here: leave it out."
            ));
        }
        call
    }
}

fn count(keys: &mut BTreeMap<&str, &str>, key: &str) -> usize {
    match keys.remove(key).map(str::parse) {
        Some(Ok(number)) if number > 0 => number,
        _ => bad_usage(&format!(
            "The key `{key}` takes a whole number of at least 1."
        )),
    }
}
