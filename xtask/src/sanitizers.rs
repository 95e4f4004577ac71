//! The sanitizers, each with its settings and the reason for each setting: Miri, ThreadSanitizer, AddressSanitizer.
//!
//! | sanitizer | finds | runs |
//! |---|---|---|
//! | Miri | undefined behaviour of any kind, on threads that switch by chance | what makes no system call of its own |
//! | ThreadSanitizer | data races | compiled tests, with the standard library instrumented too |
//! | AddressSanitizer | accesses to memory that is not theirs | compiled tests, the stress tests for longer |
//!
//! All need a nightly toolchain, and are skipped with a sentence where it is missing. In all of them each block comes
//! from the system's allocator (`--cfg weald_plain_alloc`), so that they see when it begins and ends.

use std::process::Command;

use crate::checkout::{Checkout, run_and_keep, succeeds};
use crate::loom::tests_passed;
use crate::steps::{Outcome, Verdict};

const PLATFORM: &str = "x86_64-unknown-linux-gnu";
/// Where the standard library's source is, under the root of the toolchain.
const LIBRARY: &str = "lib/rustlib/src/rust/library/Cargo.lock";

/// What a run under Miri needs.
struct MiriRun {
    /// The arguments of `cargo miri test`.
    tests: &'static str,
    /// Flags of Miri.
    flags: &'static str,
}

/// Miri reads the clock and the folder of a property's regressions.
const NO_ISOLATION: &str = "-Zmiri-disable-isolation";

/// What runs under Miri. Strict provenance: no address is turned into a pointer.
const MIRI_RUNS: [MiriRun; 3] = [
    // Without the tests of many nodes, which take hours there.
    MiriRun {
        tests: "-p weald-tree --lib -- --skip many",
        flags: "-Zmiri-strict-provenance",
    },
    // Without the tests that count how often chance takes each branch, which need many rounds.
    MiriRun {
        tests: "-p weald-sync --test tools --test events -- --skip fairness:: \
                --skip a_source_by_reference",
        flags: "-Zmiri-strict-provenance",
    },
    // The models of the protocols, on threads of `std`. The kernel keeps addresses in words, so provenance is not
    // strict. Most of the kernel switches stacks, by instructions that Miri does not execute.
    MiriRun {
        tests: "-p weald-kernel --lib -- models::",
        flags: "-Zmiri-permissive-provenance",
    },
];

/// Runs what can run under Miri.
pub fn miri(checkout: &Checkout) -> Outcome {
    if !succeeds(checkout.cargo("+nightly miri --version")) || !has_library_source(checkout) {
        return missing("Miri", "nightly --component miri,rust-src");
    }
    for MiriRun { tests, flags } in MIRI_RUNS {
        let command = checkout.cargo(&format!("+nightly miri test {tests}"));
        let mut command = checkout.build_apart(command, "miri", "--cfg weald_plain_alloc");
        command.env("MIRIFLAGS", format!("{NO_ISOLATION} {flags}"));
        // A property is some thousand times slower under Miri.
        command.env("PROPTEST_CASES", "4");
        passed(&mut command, "Miri")?;
    }
    Ok(Verdict::Passed)
}

/// `weald_thread_sanitizer`: the kernel announces each switch of stacks (`kernel/src/stack/watchers`).
/// `rustix_use_libc`: ThreadSanitizer follows the C library's functions, and sees no system call that is made without
/// them, such as the write to a descriptor that another thread waits for.
const THREAD: &str = "-Zsanitizer=thread --cfg weald_plain_alloc --cfg weald_thread_sanitizer \
                      --cfg rustix_use_libc";

/// The crates whose tests run under ThreadSanitizer.
const THREAD_PACKAGES: &str =
    "-p weald-forest -p weald-sync -p weald-kernel -p weald-fiber -p weald-process";

/// Runs the tests with every access to memory checked for data races, the stress tests and models included.
pub fn thread_sanitizer(checkout: &Checkout) -> Outcome {
    if !has_library_source(checkout) {
        return missing("ThreadSanitizer", "nightly --component rust-src");
    }
    // Without a standard library that is instrumented, every use of a channel or a lock looks like a race.
    let line = format!(
        "+nightly test -Zbuild-std {THREAD_PACKAGES} --tests --target {PLATFORM} --no-fail-fast"
    );
    let mut command = checkout.build_apart(checkout.cargo(&line), "tsan", THREAD);
    faster_and_smaller_frames(&mut command);
    passed(&mut command, "ThreadSanitizer")
}

const ADDRESS: &str = "-Zsanitizer=address --cfg weald_plain_alloc";

/// Runs the tests of `packages` with every access to memory checked, and then the stress tests, each for `seconds`.
pub fn address_sanitizer(checkout: &Checkout, packages: &str, seconds: u64) -> Outcome {
    if !checkout.has_toolchain("nightly") {
        return missing("AddressSanitizer", "nightly");
    }
    let tests = |rest: &str| {
        let line = format!("+nightly test {packages} --target {PLATFORM} {rest}");
        let mut command = checkout.build_apart(checkout.cargo(&line), "asan", ADDRESS);
        // Some leaks are deliberate: the payload of a panic, whose destructor may panic as well. The tests count drops
        // to show that nothing else leaks. Frames stay on the real stacks, between which the kernel switches.
        command.env(
            "ASAN_OPTIONS",
            "detect_leaks=0:detect_stack_use_after_return=0",
        );
        faster_and_smaller_frames(&mut command);
        command
    };
    passed(&mut tests(""), "AddressSanitizer")?;
    let mut stress = tests("--tests -- soak_ --test-threads=1");
    stress.env("WEALD_SOAK", seconds.to_string());
    passed(&mut stress, "AddressSanitizer")
}

/// Without optimisation the frames are so large that deep recursion overflows the stacks of the tests.
fn faster_and_smaller_frames(command: &mut Command) {
    command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
}

/// Runs tests. At least one must have run.
fn passed(command: &mut Command, sanitizer: &str) -> Outcome {
    match tests_passed(&run_and_keep(command)?) {
        0 => Err(format!("No test ran under {sanitizer}.")),
        count => {
            println!("{count} tests passed under {sanitizer}.");
            Ok(Verdict::Passed)
        }
    }
}

/// Whether the nightly toolchain has the source of the standard library.
fn has_library_source(checkout: &Checkout) -> bool {
    let root = checkout.command("rustc +nightly --print sysroot").output();
    root.is_ok_and(|root| {
        let root = String::from_utf8_lossy(&root.stdout).into_owned();
        std::path::Path::new(root.trim()).join(LIBRARY).exists()
    })
}

fn missing(what: &str, toolchain: &str) -> Outcome {
    let sentence = format!("{what} needs a toolchain: `rustup toolchain install {toolchain}`.");
    Ok(Verdict::Skipped(sentence))
}
