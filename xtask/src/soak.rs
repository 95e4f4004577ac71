//! The routine `cargo xtask soak`: stress tests, deeper models and AddressSanitizer.
//!
//! A stress test has a name that begins with `soak_`. It runs briefly with the other tests, and here
//! for the number of seconds in the variable `WEALD_SOAK`.

use std::process::ExitCode;

use crate::checkout::{Checkout, run, run_and_keep};
use crate::loom;
use crate::steps::{Outcome, Tally, Verdict};

/// Preemptions that each model explores, one more than `ci` does.
const PREEMPTIONS: u32 = 4;
const PACKAGES: &str =
    "-p weald-forest -p weald-sync -p weald-kernel -p weald-fiber -p weald-process -p weald-net";
const PLATFORM: &str = "x86_64-unknown-linux-gnu";
const SANITIZER: &str = "-Zsanitizer=address --cfg weald_plain_alloc";

/// Runs every step, the stress tests for `minutes` in total, and prints the count.
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

/// Runs the tests with every memory access checked, with the system's allocator in place of the kernel's pools.
fn address_sanitizer(checkout: &Checkout) -> Outcome {
    if !checkout.has_toolchain("nightly") {
        let sentence =
            "AddressSanitizer needs a nightly toolchain: `rustup toolchain install nightly`.";
        return Ok(Verdict::Skipped(sentence.to_owned()));
    }
    let line = format!("+nightly test {PACKAGES} --target {PLATFORM}");
    let mut command = checkout.build_apart(checkout.cargo(&line), "asan", SANITIZER);
    // Some leaks are deliberate: the payload of a panic, whose destructor may panic as well. The tests
    // count drops to show that nothing else leaks.
    command.env(
        "ASAN_OPTIONS",
        "detect_leaks=0:detect_stack_use_after_return=0",
    );
    // Without optimisation the frames are so large that deep recursion overflows the stacks of the tests.
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
