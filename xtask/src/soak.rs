//! The routine `cargo xtask soak`: stress tests, deeper models and the sanitizers.
//!
//! A stress test has a name that begins with `soak_`. It runs briefly with the other tests, and here
//! for the number of seconds in the variable `WEALD_SOAK`.

use std::process::ExitCode;

use clap::ValueEnum;

use crate::checkout::{Checkout, run, run_and_keep};
use crate::steps::{Outcome, Tally, Verdict};
use crate::{loom, sanitizers};

/// Preemptions that each model explores, one more than `ci` does.
const PREEMPTIONS: u32 = 4;
const PACKAGES: &str =
    "-p weald-forest -p weald-sync -p weald-kernel -p weald-fiber -p weald-process -p weald-net";
/// Seconds of each stress test under AddressSanitizer.
const ADDRESS_SECONDS: u64 = 20;

/// A part of the routine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// The stress tests, for the given minutes in total.
    Stress,
    /// The models under loom, deeper than in `ci`.
    Models,
    /// What can run under Miri.
    Miri,
    /// The tests under ThreadSanitizer.
    ThreadSanitizer,
    /// The tests and the stress tests under AddressSanitizer.
    AddressSanitizer,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Part::Stress => "stress",
            Part::Models => "models, deeper",
            Part::Miri => "Miri",
            Part::ThreadSanitizer => "ThreadSanitizer",
            Part::AddressSanitizer => "AddressSanitizer",
        }
    }

    fn run(self, checkout: &Checkout, minutes: u64) -> Outcome {
        match self {
            Part::Stress => stress(checkout, minutes),
            Part::Models => loom::models(checkout, PREEMPTIONS),
            Part::Miri => sanitizers::miri(checkout),
            Part::ThreadSanitizer => sanitizers::thread_sanitizer(checkout),
            Part::AddressSanitizer => {
                sanitizers::address_sanitizer(checkout, PACKAGES, ADDRESS_SECONDS)
            }
        }
    }
}

/// Runs the parts that `only` names, or all if it names none, the stress tests for `minutes` in total, and prints the
/// count.
pub fn soak(checkout: &Checkout, minutes: u64, only: &[Part]) -> ExitCode {
    let mut tally = Tally::default();
    for part in chosen(only) {
        tally.step(part.name(), || part.run(checkout, minutes));
    }
    tally.finish()
}

/// The parts to run, each once, in the order of the routine.
fn chosen(only: &[Part]) -> impl Iterator<Item = Part> {
    let all = Part::value_variants().iter().copied();
    all.filter(move |part| only.is_empty() || only.contains(part))
}

fn stress(checkout: &Checkout, minutes: u64) -> Outcome {
    let tests = |rest: &str| {
        let line = format!("test --release {PACKAGES} --tests -- soak_ {rest}");
        let mut command = checkout.cargo(&line);
        // Each test program would be optimised as a whole, dozens of times.
        command.env("CARGO_PROFILE_RELEASE_LTO", "off");
        command.env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
        command
    };
    let count = listed(&run_and_keep(&mut tests("--list"))?);
    if count == 0 {
        return Err("There is no stress test: no test has `soak_` in its name.".to_owned());
    }
    let seconds = (minutes * 60 / count).max(1);
    println!("{count} stress tests, {seconds} s each, one after another.");
    let mut stress = tests("--test-threads=1");
    run(stress.env("WEALD_SOAK", seconds.to_string()))?;
    Ok(Verdict::Passed)
}

/// How many tests a `--list` names.
fn listed(output: &str) -> u64 {
    output
        .lines()
        .filter(|line| line.ends_with(": test"))
        .map(|_| 1)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_tests_are_counted() {
        assert_eq!(
            listed("soak_wake: test\ndeep::soak_deque: test\n\n2 tests, 0 benchmarks\n"),
            2
        );
        assert_eq!(listed("\n0 tests, 0 benchmarks\n"), 0);
    }

    #[test]
    fn the_parts_are_those_that_were_named_or_all_each_once() {
        let parts = |only: &[Part]| chosen(only).collect::<Vec<_>>();
        assert_eq!(parts(&[]), Part::value_variants());
        let named = [Part::ThreadSanitizer, Part::Miri, Part::Miri];
        assert_eq!(parts(&named), [Part::Miri, Part::ThreadSanitizer]);
    }
}
