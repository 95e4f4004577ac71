//! The routine `cargo xtask soak`: the longer proofs, run before a promise is called kept.
//!
//! Stress tests are those whose names begin with `soak_`. They run briefly among the other tests,
//! and here for as many seconds as the variable `WEALD_SOAK` says.

use std::process::ExitCode;

use crate::checkout::{Checkout, run, run_and_keep};
use crate::loom;
use crate::steps::{Outcome, Tally, Verdict};

/// Preemptions that each model explores, one more than in `ci`.
const PREEMPTIONS: u32 = 4;
const PACKAGES: &str =
    "-p weald-forest -p weald-sync -p weald-kernel -p weald-fiber -p weald-process -p weald-net";
const PLATFORM: &str = "x86_64-unknown-linux-gnu";
const SANITIZER: &str = "-Zsanitizer=address --cfg weald_plain_alloc";

/// Runs every step, the stress tests for so many minutes together, and prints the count.
pub fn soak(checkout: &Checkout, minutes: u64) -> ExitCode {
    let mut tally = Tally::default();
    tally.step("stress", || stress(checkout, minutes));
    tally.step("models, deeper", || loom::models(checkout, PREEMPTIONS));
    tally.step("AddressSanitizer", || address_sanitizer(checkout));
    tally.finish()
}

fn stress(checkout: &Checkout, minutes: u64) -> Outcome {
    let tests = |rest: &str| {
        checkout.cargo(&format!(
            "test --release {PACKAGES} --tests -- soak_ {rest}"
        ))
    };
    let count = listed(&run_and_keep(&mut tests("--list"))?);
    if count == 0 {
        return Err("There is no stress test; none has a name with `soak_`.".to_owned());
    }
    let seconds = (minutes * 60 / count).max(1);
    println!("{count} stress tests, {seconds} s each, one after the other.");
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

/// Runs the tests with every access to memory checked; the kernel's pools stand aside for it.
fn address_sanitizer(checkout: &Checkout) -> Outcome {
    if !checkout.has_toolchain("nightly") {
        let sentence =
            "AddressSanitizer needs a nightly toolchain: `rustup toolchain install nightly`.";
        return Ok(Verdict::Skipped(sentence.to_owned()));
    }
    let line = format!("+nightly test {PACKAGES} --target {PLATFORM}");
    let mut command = checkout.build_apart(checkout.cargo(&line), "asan", SANITIZER);
    // What is leaked on purpose (payloads of panics, whose destructors may panic, too) is no finding; that
    // nothing else is left the tests show by counting drops.
    command.env(
        "ASAN_OPTIONS",
        "detect_leaks=0:detect_stack_use_after_return=0",
    );
    // Without any optimisation its frames are so large that deep recursions do not fit the stacks of the tests.
    command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    let output = run_and_keep(&mut command)?;
    match loom::tests_passed(&output) {
        0 => Err("No test ran under AddressSanitizer.".to_owned()),
        _ => Ok(Verdict::Passed),
    }
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
}
