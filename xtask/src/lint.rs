//! The routine `cargo xtask lint`: programs of others that check the repository, each at one version.
//!
//! A program that cannot be had skips its step with a sentence, so that the routine works offline.

use std::process::{Command, ExitCode};

use crate::checkout::{Checkout, run, succeeds};
use crate::steps::{Outcome, Tally, Verdict};
use crate::tools::{DENY, LYCHEE, TYPOS, Tool};

/// Runs every step and prints the count.
pub fn lint(checkout: &Checkout) -> ExitCode {
    let mut tally = Tally::default();
    tally.step("spelling", || with(checkout, &TYPOS, run));
    tally.step("words", || {
        let arguments = ["--isolated", "--config", ".ci/words.toml"];
        with(checkout, &TYPOS, |typos| run(typos.args(arguments)))
    });
    tally.step("dependencies", || {
        with(checkout, &DENY, |deny| {
            run(deny.args(["check", "bans", "licenses", "sources"]))
        })
    });
    tally.step("advisories", || advisories(checkout));
    tally.step("links", || {
        let arguments = ["--offline", "--no-progress", "--include-fragments", "."];
        with(checkout, &LYCHEE, |lychee| run(lychee.args(arguments)))
    });
    tally.step("interfaces", || {
        let sentence =
            "Nothing is published yet; cargo-semver-checks needs a version to compare with.";
        Ok(Verdict::Skipped(sentence.to_owned()))
    });
    tally.finish()
}

/// Runs a tool as `work` says, or skips the step if the tool cannot be had.
fn with(
    checkout: &Checkout,
    tool: &Tool,
    work: impl FnOnce(&mut Command) -> Result<(), String>,
) -> Outcome {
    match tool.command(checkout) {
        Ok(mut command) => work(&mut command).map(|()| Verdict::Passed),
        Err(sentence) => Ok(Verdict::Skipped(sentence)),
    }
}

fn advisories(checkout: &Checkout) -> Outcome {
    let mut fetch = match DENY.command(checkout) {
        Ok(command) => command,
        Err(sentence) => return Ok(Verdict::Skipped(sentence)),
    };
    fetch.args(["fetch", "db"]);
    if !succeeds(fetch) {
        let sentence = "The database of advisories is on GitHub and could not be fetched.";
        return Ok(Verdict::Skipped(sentence.to_owned()));
    }
    with(checkout, &DENY, |deny| {
        run(deny.args(["check", "--disable-fetch", "advisories"]))
    })
}
