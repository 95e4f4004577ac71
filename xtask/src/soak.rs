//! The routine `cargo xtask soak`: stress tests, deeper models and the sanitizers.
//!
//! A stress test has a name that begins with `soak_`. It runs briefly with the other tests, and here
//! for the number of seconds in the variable `WEALD_SOAK`.

use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;

use crate::checkout::Checkout;
use crate::installed::installed;
use crate::limited::{self, Interrupt, Limit};
use crate::loom;
use crate::sanitizers::{
    MIRI_KERNEL, MIRI_MEMORY, MIRI_SITES, MIRI_SLOT, MIRI_SYNC, MIRI_TREE, address_sanitizer,
    c_programs, miri, thread_sanitizer,
};
use crate::steps::{Outcome, Tally, Verdict};

/// Preemptions that each model explores, one more than `ci` does.
const PREEMPTIONS: u32 = 4;
const PACKAGES: &str = "-p weald-forest -p weald-journal -p weald-sync -p weald-kernel -p weald-fiber -p weald-process -p weald-net";
/// Seconds of each stress test under AddressSanitizer.
const ADDRESS_SECONDS: u64 = 20;
/// Minutes that the stress tests may take beyond the given ones: their programs begin and end.
const MORE_MINUTES: u64 = 10;

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
    /// The programs in C and C++ under valgrind and AddressSanitizer, and what is installed.
    C,
}

/// A piece of a part, with a limit of its own and a line of its own in the summary.
struct Piece<'a> {
    name: &'static str,
    /// The minutes it may take without its build: some three times as long as on a machine with two cores at rest.
    minutes: u64,
    run: Box<dyn FnOnce(&Limit) -> Outcome + 'a>,
}

impl<'a> Piece<'a> {
    fn new(name: &'static str, minutes: u64, run: impl FnOnce(&Limit) -> Outcome + 'a) -> Self {
        let run = Box::new(run);
        Self { name, minutes, run }
    }
}

impl Part {
    fn pieces(self, checkout: &Checkout, minutes: u64) -> Vec<Piece<'_>> {
        match self {
            Part::Stress => vec![Piece::new("stress", MORE_MINUTES + minutes, move |limit| {
                stress(checkout, minutes, limit)
            })],
            Part::Models => {
                let models = |crate_| {
                    move |limit: &Limit| {
                        limit.build(&mut loom::build(checkout, crate_))?;
                        let run = |command: &mut _| limit.run_and_keep(command);
                        loom::models(checkout, crate_, PREEMPTIONS, run)
                    }
                };
                vec![
                    Piece::new("models of the kernel, deeper", 40, models(loom::KERNEL)),
                    Piece::new("models of sync, deeper", 20, models(loom::SYNC)),
                    Piece::new("models of memory, deeper", 2, models(loom::MEMORY)),
                    Piece::new(
                        "models of MassiveThreads' face, deeper",
                        10,
                        models(loom::MYTH),
                    ),
                ]
            }
            Part::Miri => {
                let miri = |run| move |limit: &Limit| miri(checkout, run, limit);
                vec![
                    Piece::new("Miri: models of the kernel", 20, miri(MIRI_KERNEL)),
                    Piece::new("Miri: sync", 20, miri(MIRI_SYNC)),
                    Piece::new("Miri: lines of waits", 5, miri(MIRI_SITES)),
                    Piece::new("Miri: memory", 20, miri(MIRI_MEMORY)),
                    Piece::new("Miri: slot", 20, miri(MIRI_SLOT)),
                    Piece::new("Miri: tree", 30, miri(MIRI_TREE)),
                ]
            }
            Part::ThreadSanitizer => {
                let tests =
                    |package| move |limit: &Limit| thread_sanitizer(checkout, package, limit);
                vec![
                    Piece::new("ThreadSanitizer: sync", 30, tests("weald-sync")),
                    Piece::new("ThreadSanitizer: kernel", 30, tests("weald-kernel")),
                    Piece::new("ThreadSanitizer: fiber", 20, tests("weald-fiber")),
                    Piece::new("ThreadSanitizer: process", 20, tests("weald-process")),
                    Piece::new("ThreadSanitizer: forest", 30, tests("weald-forest")),
                ]
            }
            Part::AddressSanitizer => {
                let tests = |rest: &str, seconds| {
                    let line = format!("{PACKAGES} {rest}");
                    move |limit: &Limit| address_sanitizer(checkout, &line, seconds, limit)
                };
                let stress = tests("--tests -- soak_ --test-threads=1", Some(ADDRESS_SECONDS));
                vec![
                    Piece::new("AddressSanitizer: tests", 40, tests("", None)),
                    Piece::new("AddressSanitizer: stress", 20, stress),
                ]
            }
            Part::C => pieces_in_c(checkout),
        }
    }
}

fn pieces_in_c(checkout: &Checkout) -> Vec<Piece<'_>> {
    let programs = |tool| move |limit: &Limit| c_programs(checkout, tool, limit);
    vec![
        Piece::new("programs in C: valgrind", 30, programs("valgrind")),
        Piece::new(
            "programs in C: AddressSanitizer",
            10,
            programs("address-sanitizer"),
        ),
        Piece::new("programs in C: installed", 20, move |limit: &Limit| {
            let build = |command: &mut _| limit.build(command).map(drop);
            installed(checkout, build, |command| {
                limit.run_and_keep(command).map(drop)
            })?;
            Ok(Verdict::Passed)
        }),
    ]
}

/// Runs the parts that `only` names, or all if it names none, the stress tests for `minutes` in total. Prints a line
/// for each piece, and the count. Each piece runs, whatever became of the earlier ones, until its limit.
pub fn soak(checkout: &Checkout, minutes: u64, only: &[Part]) -> ExitCode {
    let interrupt = Interrupt::by_signals();
    let pieces: Vec<Piece> = chosen(only)
        .flat_map(|part| part.pieces(checkout, minutes))
        .collect();
    let longest: u64 = pieces.iter().map(|piece| piece.minutes).sum();
    println!(
        "{} pieces, at most {longest} min in total, and for each at most {} of a build.",
        pieces.len(),
        limited::spoken(limited::BUILD)
    );
    let mut tally = Tally::default();
    for piece in pieces {
        let name = format!("{}, at most {} min", piece.name, piece.minutes);
        let limit = Limit::new(Duration::from_secs(60 * piece.minutes), &interrupt);
        tally.step(&name, || (piece.run)(&limit));
    }
    tally.finish()
}

/// The parts to run, each once, in the order of the routine.
fn chosen(only: &[Part]) -> impl Iterator<Item = Part> {
    let all = Part::value_variants().iter().copied();
    all.filter(move |part| only.is_empty() || only.contains(part))
}

fn stress(checkout: &Checkout, minutes: u64, limit: &Limit) -> Outcome {
    let tests = |rest: &str| {
        let packages = format!("{PACKAGES} -p weald-board -p weald-cli");
        let line = format!("test --release {packages} --tests --no-fail-fast -- soak_ {rest}");
        let mut command = checkout.cargo(&line);
        // Each test program would be optimised as a whole, dozens of times.
        command.env("CARGO_PROFILE_RELEASE_LTO", "off");
        command.env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
        command
    };
    let count = listed(&limit.build(&mut tests("--list"))?);
    if count == 0 {
        return Err("There is no stress test: no test has `soak_` in its name.".to_owned());
    }
    let seconds = (minutes * 60 / count).max(1);
    println!("{count} stress tests, {seconds} s each, one after another.");
    let mut stress = tests("--test-threads=1");
    limit.run_and_keep(stress.env("WEALD_SOAK", seconds.to_string()))?;
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
