//! The models: tests of the kernel, of `sync`, `memory` and `c/myth` that loom runs through every interleaving.
//!
//! They are the files `src/models/*.rs` of those crates, here built with `--cfg loom`. A file whose tests did not run
//! is an error, because a model that never runs proves nothing.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::checkout::Checkout;
use crate::steps::{Outcome, Verdict};

/// A crate with models.
#[derive(Clone, Copy)]
pub(crate) struct Modelled {
    package: &'static str,
    folder: &'static str,
}

pub(crate) const KERNEL: Modelled = Modelled {
    package: "weald-kernel",
    folder: "kernel/src/models",
};
pub(crate) const MEMORY: Modelled = Modelled {
    package: "weald-memory",
    folder: "memory/src/models",
};
pub(crate) const MYTH: Modelled = Modelled {
    package: "weald-myth",
    folder: "c/myth/src/models",
};
pub(crate) const SYNC: Modelled = Modelled {
    package: "weald-sync",
    folder: "sync/src/models",
};

/// Runs every model of a crate with up to `preemptions`. `run` runs a command and returns its output.
pub(crate) fn models(
    checkout: &Checkout,
    Modelled { package, folder }: Modelled,
    preemptions: u32,
    run: impl FnOnce(&mut Command) -> Result<String, String>,
) -> Outcome {
    let names = names(checkout.root(), folder)?;
    let mut command = tests(checkout, package, "");
    let output = run(command.env("LOOM_MAX_PREEMPTIONS", preemptions.to_string()))?;
    judge(folder, &names, &output)?;
    Ok(Verdict::Passed)
}

/// The command that only builds the models of a crate.
pub(crate) fn build(checkout: &Checkout, Modelled { package, .. }: Modelled) -> Command {
    tests(checkout, package, "--no-run")
}

fn tests(checkout: &Checkout, package: &str, only_build: &str) -> Command {
    let line = format!("test -p {package} --release --lib {only_build} models::");
    checkout.build_apart(checkout.cargo(&line), "loom", "--cfg loom")
}

/// Checks that each file has a test that passed.
fn judge(folder: &str, names: &[String], output: &str) -> Result<(), String> {
    let idle = names.iter().find(|name| !has_run(name, output));
    match idle {
        None => Ok(()),
        Some(name) => Err(format!(
            "{folder}/{name}.rs ran no model; list it in {folder}.rs."
        )),
    }
}

fn has_run(name: &str, output: &str) -> bool {
    let begin = format!("test models::{name}::");
    let mut lines = output.lines();
    lines.any(|line| line.starts_with(&begin) && line.ends_with(" ... ok"))
}

/// The names of the files in a folder that contain models, sorted.
fn names(root: &Path, folder: &str) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(root.join(folder))
        .into_iter()
        .flatten()
        .flatten();
    let mut names = Vec::new();
    let files = entries.map(|entry| entry.path());
    for file in files.filter(|path| path.extension().is_some_and(|end| end == "rs")) {
        let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}.", file.display()))?;
        if text.lines().any(|line| line.trim() == "#[test]") {
            let name = file.file_stem().unwrap_or_default();
            names.push(name.to_string_lossy().into_owned());
        }
    }
    if names.is_empty() {
        return Err(format!(
            "There is no model; {folder} has no file with a test."
        ));
    }
    names.sort();
    Ok(names)
}

/// How many tests passed according to the output of `cargo test`.
pub(crate) fn tests_passed(output: &str) -> usize {
    let results = output
        .lines()
        .filter_map(|line| line.strip_prefix("test result: ok. "));
    results
        .filter_map(|rest| rest.split(' ').next()?.parse::<usize>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::made_up::MadeUp;

    const MODEL: &str = "//! Models.\n\n#[test]\nfn a_model() {}\n";

    #[test]
    fn files_with_models_are_found_in_order() {
        for Modelled { folder, .. } in [KERNEL, SYNC, MEMORY, MYTH] {
            let path = |name: &str| format!("{folder}/{name}.rs");
            let made_up = MadeUp::new(&[
                (&path("wake"), MODEL),
                (&path("deque"), MODEL),
                (&path("made_up"), "//! No model.\n"),
            ]);
            let expected = ["deque", "wake"].map(str::to_owned).to_vec();
            assert_eq!(names(made_up.root(), folder), Ok(expected));
        }
    }

    #[test]
    fn no_model_at_all_is_an_error() {
        for Modelled { folder, .. } in [KERNEL, SYNC, MEMORY, MYTH] {
            for path in [&format!("{folder}/made_up.rs"), "kernel/src/lib.rs"] {
                let made_up = MadeUp::new(&[(path, "//! No model.\n")]);
                let found = names(made_up.root(), folder);
                assert!(found.is_err_and(|sentence| sentence.contains("There is no model")));
            }
        }
    }

    #[test]
    fn the_models_of_one_crate_do_not_count_for_another() {
        let made_up = MadeUp::new(&[("kernel/src/models/wake.rs", MODEL)]);
        assert!(names(made_up.root(), "kernel/src/models").is_ok());
        assert!(names(made_up.root(), "sync/src/models").is_err());
    }

    #[test]
    fn a_file_without_a_model_that_passed_is_an_error() {
        let names = ["deque", "wake"].map(str::to_owned);
        let deque = "test models::deque::a_model ... ok\n";
        let wake = "test models::wake::a_model ... ok\n";
        assert!(judge("folder", &names, &format!("{deque}{wake}")).is_ok());
        let ignored = wake.replace("ok", "ignored");
        for output in ["", deque, &format!("{deque}{ignored}")] {
            let judged = judge("folder", &names, output);
            assert!(judged.is_err_and(|sentence| sentence.contains("ran no model")));
        }
    }

    #[test]
    fn passed_tests_are_counted_over_all_binaries() {
        let output = "test result: ok. 3 passed; 0 failed;\nx\ntest result: ok. 12 passed; 0\n";
        assert_eq!(tests_passed(output), 15);
        assert_eq!(
            tests_passed("test result: FAILED. 3 passed; 1 failed;\n"),
            0
        );
        assert_eq!(tests_passed("test result: ok. 0 passed; 0 failed;\n"), 0);
    }
}
