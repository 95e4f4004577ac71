//! The rules of the repository that no other tool checks, one check per file in `tidy/`.
//!
//! - A check reads the loaded repository and returns findings; it prints and changes nothing.
//! - Every check has tests on made-up repositories in its file: some that pass and some that fail.
//! - `lab/rivals` keeps the rules of the other ecosystems; of these it keeps heads and places only.

mod architecture;
mod calls_in_code;
mod finding;
mod graph;
mod modules;
mod paths_in_code;
mod repository;

mod cancel;
mod circles;
mod crates;
mod decisions;
mod english;
mod header;
mod heads;
mod lengths;
mod links;
mod lints;
mod named;
mod places;
mod roots;
mod syntax;
mod types;
mod unsafe_files;
mod widths;
mod words;

#[cfg(test)]
pub(crate) mod made_up;

use std::path::Path;

pub use finding::Finding;
pub(crate) use header::{CRATE, HEADER};
use repository::Repository;

/// Runs every check on the repository at `root` and returns the findings, ordered by place.
///
/// An error is a sentence that says which file could not be read.
pub fn tidy(root: &Path) -> Result<Vec<Finding>, String> {
    let repository = Repository::load(root)?;
    let checks: [fn(&Repository) -> Vec<Finding>; 18] = [
        crates::check,
        circles::check,
        roots::check,
        lints::check,
        named::check,
        heads::check,
        header::check,
        cancel::check,
        decisions::check,
        english::check,
        syntax::check,
        unsafe_files::check,
        types::check,
        lengths::check,
        places::check,
        links::check,
        words::check,
        widths::check,
    ];
    let mut findings: Vec<Finding> = checks.iter().flat_map(|check| check(&repository)).collect();
    findings.sort();
    findings.dedup();
    Ok(findings)
}

/// Describes the import graph of every crate in one line each, or of the crate `only` in full.
///
/// An error is a sentence that says what could not be read.
pub fn graph(root: &Path, only: Option<&str>) -> Result<String, String> {
    graph::describe(&Repository::load(root)?, only)
}

/// The last line of the header `weald.h`, whose other lines are `header`.
///
/// An error is a sentence that says which file could not be read.
pub(crate) fn header_last_line(root: &Path, header: &str) -> Result<String, String> {
    Ok(header::last_line(&Repository::load(root)?, header))
}

/// Lists the files that use `unsafe`, one per line.
///
/// An error is a sentence that says what could not be read.
pub fn unsafe_files(root: &Path) -> Result<String, String> {
    Ok(unsafe_files::list(&Repository::load(root)?))
}

#[cfg(test)]
mod tests {
    use super::made_up::{ARCHITECTURE, MadeUp};
    use super::*;

    #[test]
    fn a_repository_that_keeps_every_rule_has_no_findings() {
        let made_up = MadeUp::sound();
        assert_eq!(tidy(made_up.root()), Ok(vec![]));
    }

    #[test]
    fn findings_of_different_checks_are_ordered_by_place() {
        let made_up = MadeUp::sound();
        made_up.write("kernel/src/zoo.rs", "fn headless() {}\n");
        made_up.write(
            "kernel/src/ant.rs",
            "//! An ant.\n#![allow(unsafe_code)]\nfn f() {}\n",
        );
        let findings = tidy(made_up.root()).expect("the made-up repository can be read");
        let places: Vec<String> = findings
            .iter()
            .map(|f| format!("{}:{}", f.path, f.line))
            .collect();
        assert_eq!(places, ["kernel/src/ant.rs:2", "kernel/src/zoo.rs:1"]);
    }

    #[test]
    fn every_check_is_run() {
        let place = format!("See {}/a.\n", concat!("/wo", "rk"));
        let long = format!("//! A leaf.\n{}", "// Line.\n".repeat(450));
        let circle = ARCHITECTURE.replace("| – | 1 |", "| – | 2 |");
        for (path, text) in [
            ("kernel/src/slab.rs", "fn headless() {}\n"),
            ("kernel/src/slab.rs", "//! A leaf.\nfn fn() {}\n"),
            (
                "kernel/src/slab.rs",
                "//! A leaf.\n#![allow(unsafe_code)]\n",
            ),
            (
                "kernel/src/slab.rs",
                "//! A leaf.\nstruct A;\nmod a { struct A; }\n",
            ),
            ("kernel/src/slab.rs", &long),
            ("ARCHITECTURE.md", &circle),
            ("kernel/Cargo.toml", "[package]\nname = \"weald-kernel\"\n"),
            ("Cargo.toml", "[workspace]\nmembers = [\"kernel\"]\n"),
            ("README.md", "See `kernel/src/gone.rs`.\n"),
            ("README.md", "See `kernel/src/slab.rs` (`gone`).\n"),
            ("kernel/src/lib.rs", "//! The root.\n\nfn f() {}\n"),
            (
                "kernel/src/slab.rs",
                "//! A leaf.\n/// Waits.\npub async fn f() {}\n",
            ),
            ("README.md", "All but for the last.\n"),
            ("README.md", "See [the page](gone.md).\n"),
            ("NOTES.txt", &place),
        ] {
            let made_up = MadeUp::sound();
            made_up.write(path, text);
            let found = tidy(made_up.root()).expect("the made-up repository can be read");
            assert_eq!(found.len(), 1, "{path}: {text}\n{found:#?}");
        }
    }
}
