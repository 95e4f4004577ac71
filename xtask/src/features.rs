//! Checks the Cargo features of the crate `weald`: it and its tests build with none of them, and with each alone,
//! without a warning; a program that has processes only needs few packages; and one that aborts at a panic is refused.

use std::collections::BTreeSet;

use toml::Table;

use crate::checkout::{Checkout, run_and_keep, run_and_quote};

/// How many packages a program with processes only may need, with `weald` itself.
const MOST_PACKAGES: usize = 20;
/// What such a program lists.
const FOR_PROCESSES: &str = "macros,process";

/// Runs the checks; an error is a sentence.
pub fn check(checkout: &Checkout) -> Result<(), String> {
    let path = checkout.root().join("weald/Cargo.toml");
    let manifest = std::fs::read_to_string(&path)
        .map_err(|e| format!("{} could not be read: {e}.", path.display()))?;
    for selection in selections(&manifest)? {
        println!(
            "features: {}",
            if selection.is_empty() {
                "none"
            } else {
                &selection
            }
        );
        // With its tests and examples; what needs more features is left out.
        let lints =
            "--all-targets -- -D warnings -A clippy::unwrap_used -A clippy::async_yields_async";
        run_and_quote(&mut checkout.cargo(&format!(
            "clippy -q -p weald --no-default-features --features={selection} {lints}"
        )))?;
    }
    let tree = run_and_keep(&mut checkout.cargo(&format!(
        "tree -p weald --no-default-features --features {FOR_PROCESSES} -e normal --prefix none"
    )))?;
    judge(&tree)?;
    refuses_abort(checkout)
}

/// A program that is built with `panic = "abort"` says at its start that this cannot be, and ends.
fn refuses_abort(checkout: &Checkout) -> Result<(), String> {
    println!("features: panic = \"abort\" is refused");
    let line = "run -q -p weald-process --example ring --target-dir";
    let mut command = checkout.cargo(line);
    command
        .arg(checkout.target().join("abort"))
        .env("CARGO_PROFILE_DEV_PANIC", "abort");
    let output = command.output();
    let output = output.map_err(|e| format!("{command:?} could not be started: {e}."))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    // `main` shows its error as Debug does.
    match !output.status.success() && errors.contains("PanicAbort") {
        true => Ok(()),
        false => Err(format!(
            "A program with panic = \"abort\" ended with {}, and said: {errors}",
            output.status
        )),
    }
}

/// No feature, and each one alone.
fn selections(manifest: &str) -> Result<Vec<String>, String> {
    let table: Table = manifest
        .parse()
        .map_err(|e| format!("The manifest of weald is malformed: {e}"))?;
    let features = table
        .get("features")
        .and_then(|features| features.as_table());
    let Some(features) = features else {
        return Err("The crate weald has no features; remove this check.".to_owned());
    };
    let named = features.keys().filter(|name| *name != "default").cloned();
    Ok(std::iter::once(String::new()).chain(named).collect())
}

/// Judges the packages that `cargo tree` lists, one on each line, some more than once.
fn judge(tree: &str) -> Result<(), String> {
    let packages: BTreeSet<_> = tree
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    println!(
        "A program with processes only needs {} packages.",
        packages.len()
    );
    if packages.len() > MOST_PACKAGES {
        return Err(format!(
            "A program with processes only needs {} packages, more than {MOST_PACKAGES}: {}.",
            packages.len(),
            packages.into_iter().collect::<Vec<_>>().join(", ")
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_feature_is_checked_alone() {
        let manifest = "[features]\ndefault = [\"net\"]\nnet = []\nhttp = [\"net\"]\n";
        let selections = selections(manifest).expect("it has features");
        assert_eq!(selections, ["", "http", "net"]);
        assert!(super::selections("[package]\n").is_err());
    }

    #[test]
    fn packages_are_counted_once_and_are_too_many_beyond_the_most() {
        let list = |count| {
            let lines =
                (0..count).map(|number| format!("p{number} v1.0.0\np{number} v1.0.0 (*)\n"));
            lines.collect::<String>()
        };
        assert_eq!(judge(&list(MOST_PACKAGES)), Ok(()));
        let sentence = judge(&list(MOST_PACKAGES + 1)).expect_err("one too many");
        assert!(
            sentence.contains("needs 21 packages, more than 20: p0, p1"),
            "{sentence}"
        );
    }
}
