//! The routine `cargo xtask lint`: programs of others that check the repository, each at one version.
//!
//! If a program cannot be installed, its step is skipped with a sentence, so that the routine works
//! offline. `--strict`, as in the workflow, makes a skipped step a failure.

use std::process::{Command, ExitCode};

use clap::ValueEnum;

use crate::checkout::{Checkout, run, succeeds};
use crate::steps::{Outcome, Skips, Tally, Verdict};
use crate::tools::{DENY, SEMVER_CHECKS, TYPOS, Tool};

/// A step of the routine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Lint {
    /// Misspelled words.
    Spelling,
    /// Words that have another one in their place here.
    Words,
    /// Licences, sources and duplicates of the dependencies.
    Dependencies,
    /// Known weaknesses of the dependencies.
    Advisories,
    /// Changes of public interfaces.
    Interfaces,
}

impl Lint {
    fn name(self) -> &'static str {
        match self {
            Lint::Spelling => "spelling",
            Lint::Words => "words",
            Lint::Dependencies => "dependencies",
            Lint::Advisories => "advisories",
            Lint::Interfaces => "interfaces",
        }
    }

    /// Which skips this step may have: nothing is to be compared before the first release.
    fn skips(self, skips: Skips) -> Skips {
        match self {
            Lint::Interfaces => Skips::Any,
            _ => skips,
        }
    }

    fn run(self, checkout: &Checkout) -> Outcome {
        let tool =
            |tool, arguments: &[&str]| with(checkout, tool, |tool| run(tool.args(arguments)));
        match self {
            Lint::Spelling => tool(&TYPOS, &[]),
            Lint::Words => tool(&TYPOS, &["--isolated", "--config", ".ci/words.toml"]),
            Lint::Dependencies => tool(&DENY, &["check", "bans", "licenses", "sources"]),
            Lint::Advisories => advisories(checkout),
            Lint::Interfaces => interfaces(checkout),
        }
    }
}

/// Runs the steps that `only` names, or all if it names none, and prints the count.
pub fn lint(checkout: &Checkout, only: &[Lint], skips: Skips) -> ExitCode {
    let mut tally = Tally::default();
    for step in Lint::value_variants() {
        if only.is_empty() || only.contains(step) {
            let skips = step.skips(skips);
            tally.step(step.name(), || skips.judge(step.run(checkout)));
        }
    }
    tally.finish()
}

/// Runs a tool as `work` says, or skips the step if the tool cannot be installed.
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

/// Compares the public interfaces with those of the newest release, which is a tag such as `v0.1.0`.
fn interfaces(checkout: &Checkout) -> Outcome {
    let tags = checkout.command("git tag --merged HEAD --sort=-version:refname --list v*.*.*");
    let Some(release) = run_quietly(tags)?.lines().next().map(str::to_owned) else {
        let sentence = "Nothing is released yet; cargo-semver-checks needs a tag such as v0.1.0 to compare with.";
        return Ok(Verdict::Skipped(sentence.to_owned()));
    };
    with(checkout, &SEMVER_CHECKS, |check| {
        run(check.args(["semver-checks", "--workspace", "--baseline-rev", &release]))
    })
}

/// What a command prints.
fn run_quietly(mut command: Command) -> Result<String, String> {
    let output = command.output();
    let output = output.map_err(|e| format!("{command:?} could not be started: {e}."))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_comparison_with_a_release_may_always_be_skipped() {
        for step in Lint::value_variants() {
            assert_eq!(step.skips(Skips::Any), Skips::Any, "{step:?}");
            let may_be_skipped = *step == Lint::Interfaces;
            assert_eq!(
                step.skips(Skips::None) == Skips::Any,
                may_be_skipped,
                "{step:?}"
            );
        }
    }
}
