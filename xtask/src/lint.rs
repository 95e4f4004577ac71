//! The routine `cargo xtask lint`: programs of others that check the repository, each at one version.
//!
//! If a program cannot be installed, its step is skipped with a sentence, so that the routine works
//! offline. Where everything can be had, as in the workflow, a step that is skipped would be a check that never runs: there
//! `--strict` makes it a failure.

use std::process::{Command, ExitCode};

use clap::ValueEnum;

use crate::checkout::{Checkout, run, succeeds};
use crate::steps::{Outcome, Tally, Verdict};
use crate::tools::{DENY, LYCHEE, SEMVER_CHECKS, TYPOS, Tool};

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
    /// Links that lead nowhere.
    Links,
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
            Lint::Links => "links",
            Lint::Interfaces => "interfaces",
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
            Lint::Links => {
                // The templates of pages have links, too, but of a site and not of files.
                let pages = "--offline --no-progress --include-fragments --extensions md .";
                tool(&LYCHEE, &pages.split(' ').collect::<Vec<_>>())
            }
            Lint::Interfaces => interfaces(checkout),
        }
    }
}

/// Which steps may be skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skips {
    /// Each whose program or data cannot be had.
    Any,
    /// Only those that have nothing to do yet.
    Idle,
}

impl Skips {
    /// The outcome of `step`, or a failure if it was skipped and may not be.
    fn judge(self, step: Lint, outcome: Outcome) -> Outcome {
        match outcome {
            Ok(Verdict::Skipped(why)) if self == Skips::Idle && step != Lint::Interfaces => {
                Err(format!("It was skipped, which --strict forbids. {why}"))
            }
            outcome => outcome,
        }
    }
}

/// Runs the steps that `only` names, or all if it names none, and prints the count.
pub fn lint(checkout: &Checkout, only: &[Lint], skips: Skips) -> ExitCode {
    let mut tally = Tally::default();
    for step in Lint::value_variants() {
        if only.is_empty() || only.contains(step) {
            tally.step(step.name(), || skips.judge(*step, step.run(checkout)));
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

    fn skipped() -> Outcome {
        Ok(Verdict::Skipped("It needs a thing.".to_owned()))
    }

    #[test]
    fn a_step_without_its_program_fails_where_none_may_be_missing() {
        for step in Lint::value_variants() {
            assert!(Skips::Any.judge(*step, skipped()).is_ok(), "{step:?}");
            let may_be_skipped = *step == Lint::Interfaces;
            let outcome = Skips::Idle.judge(*step, skipped());
            assert_eq!(outcome.is_ok(), may_be_skipped, "{step:?}");
            let why = outcome.err().unwrap_or_default();
            assert!(
                may_be_skipped || why.ends_with("It needs a thing."),
                "{why}"
            );
            let passed = Skips::Idle.judge(*step, Ok(Verdict::Passed));
            assert!(passed.is_ok(), "{step:?}");
        }
    }
}
