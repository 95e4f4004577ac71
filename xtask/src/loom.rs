//! The models: the tests of the kernel that loom runs through every interleaving.
//!
//! Each is a file `kernel/tests/loom_*.rs` that is empty without `--cfg loom`; a file that ran no
//! test is an error, because a model that never runs proves nothing.

use std::fs;
use std::path::Path;

use crate::checkout::{Checkout, run_and_keep};
use crate::steps::{Outcome, Verdict};

const FOLDER: &str = "kernel/tests";
const CONDITION: &str = "#![cfg(loom)]";

/// Runs every model with so many preemptions.
pub fn models(checkout: &Checkout, preemptions: u32) -> Outcome {
    for name in names(checkout.root())? {
        let line = format!("test -p weald-kernel --release --test {name}");
        let mut command = checkout.build_apart(checkout.cargo(&line), "loom", "--cfg loom");
        let output = run_and_keep(command.env("LOOM_MAX_PREEMPTIONS", preemptions.to_string()))?;
        if tests_passed(&output) == 0 {
            return Err(format!(
                "{FOLDER}/{name}.rs ran no model; give it a test or take it out."
            ));
        }
    }
    Ok(Verdict::Passed)
}

/// The names of the test files that hold models, in order.
fn names(root: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(root.join(FOLDER))
        .into_iter()
        .flatten()
        .flatten();
    let files = entries.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("loom_") && name.ends_with(".rs")
    });
    let mut names = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}.", file.display()))?;
        let name = file
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if !text.lines().any(|line| line == CONDITION) {
            return Err(format!(
                "{FOLDER}/{name}.rs has no line `{CONDITION}`; add it."
            ));
        }
        names.push(name);
    }
    if names.is_empty() {
        return Err(format!(
            "There is no model; {FOLDER} has no file `loom_*.rs`."
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

    #[test]
    fn models_are_found_by_name_in_order() {
        let made_up = MadeUp::new(&[
            ("kernel/tests/loom_wake.rs", "#![cfg(loom)]\n"),
            ("kernel/tests/loom_deque.rs", "//! Models.\n#![cfg(loom)]\n"),
            ("kernel/tests/order.rs", ""),
        ]);
        let expected = ["loom_deque", "loom_wake"].map(str::to_owned).to_vec();
        assert_eq!(names(made_up.root()), Ok(expected));
    }

    #[test]
    fn no_model_at_all_is_an_error() {
        for path in ["kernel/tests/order.rs", "kernel/src/lib.rs"] {
            let found = names(MadeUp::new(&[(path, "")]).root());
            assert!(found.is_err_and(|sentence| sentence.contains("There is no model")));
        }
    }

    #[test]
    fn a_model_that_runs_without_loom_is_an_error() {
        let found = names(MadeUp::new(&[("kernel/tests/loom_a.rs", "// #![cfg(loom)]\n")]).root());
        assert!(found.is_err_and(|sentence| sentence.contains("loom_a.rs has no line")));
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
