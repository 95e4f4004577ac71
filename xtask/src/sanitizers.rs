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

use crate::checkout::{Checkout, run_and_quote, succeeds};
use crate::limited::Limit;
use crate::loom::tests_passed;
use crate::steps::{Outcome, Verdict};

const PLATFORM: &str = "x86_64-unknown-linux-gnu";
/// Where the standard library's source is, under the root of the toolchain.
const LIBRARY: &str = "lib/rustlib/src/rust/library/Cargo.lock";

/// What a run under Miri needs.
pub(crate) struct MiriRun {
    /// The arguments of `cargo miri test`.
    tests: &'static str,
    /// Flags of Miri.
    flags: &'static str,
}

/// Miri reads the clock and the folder of a property's regressions.
const NO_ISOLATION: &str = "-Zmiri-disable-isolation";

/// The blocks that the trees are made of. Strict provenance: no address is turned into a pointer.
pub(crate) const MIRI_MEMORY: MiriRun = MiriRun {
    tests: "-p weald-memory --lib -- --skip slot::",
    flags: "-Zmiri-strict-provenance",
};
/// The slot keeps its address in a number. A new value comes to the address of the last one as often as possible.
pub(crate) const MIRI_SLOT: MiriRun = MiriRun {
    tests: "-p weald-memory --lib -- slot::",
    flags: "-Zmiri-permissive-provenance -Zmiri-address-reuse-rate=1.0 \
            -Zmiri-address-reuse-cross-thread-rate=1.0 -Zmiri-preemption-rate=0.1 -Zmiri-many-seeds=0..4",
};
/// Without the tests of many nodes, which take hours there.
pub(crate) const MIRI_TREE: MiriRun = MiriRun {
    tests: "-p weald-tree --lib -- --skip many --skip million",
    flags: "-Zmiri-strict-provenance",
};
/// Without the tests that count how often chance takes each branch, which need many rounds. The thread of the alarm,
/// which outlives the tests, counts as a leak.
pub(crate) const MIRI_SYNC: MiriRun = MiriRun {
    tests: "-p weald-sync --test tools --test events -- --skip fairness:: \
            --skip a_source_by_reference --skip choice_is_associative",
    flags: "-Zmiri-strict-provenance -Zmiri-ignore-leaks",
};
/// The table of the lines of waits, which threads share without a lock, and what a noted wait is read from.
pub(crate) const MIRI_SITES: MiriRun = MiriRun {
    tests: "-p weald-sync --lib -- sites:: reason::",
    flags: MIRI_SYNC.flags,
};
/// The models of the protocols, on threads of `std`. The kernel keeps addresses in words, so provenance is not
/// strict. A lazy job is a field of a block, which is found by the address of that field; Stacked Borrows forbid that,
/// Tree Borrows do not. Most of the kernel switches stacks, by instructions that Miri does not execute.
pub(crate) const MIRI_KERNEL: MiriRun = MiriRun {
    tests: "-p weald-kernel --lib -- models::",
    flags: "-Zmiri-permissive-provenance -Zmiri-tree-borrows",
};

/// Runs tests under Miri.
pub(crate) fn miri(
    checkout: &Checkout,
    MiriRun { tests, flags }: MiriRun,
    limit: &Limit,
) -> Outcome {
    if !succeeds(checkout.cargo("+nightly miri --version")) || !has_library_source(checkout) {
        return missing("Miri", "nightly --component miri,rust-src");
    }
    let command = |only_build: &str| {
        let command = checkout.cargo(&format!("+nightly miri test {only_build} {tests}"));
        let mut command = checkout.build_apart(command, "miri", "--cfg weald_plain_alloc");
        command.env("MIRIFLAGS", format!("{NO_ISOLATION} {flags}"));
        // A property is some thousand times slower under Miri.
        command.env("PROPTEST_CASES", "4");
        command
    };
    passed(command, "Miri", limit)
}

/// `weald_thread_sanitizer`: the kernel announces each switch of stacks (`kernel/src/stack/sanitizers`).
/// `rustix_use_libc`: ThreadSanitizer follows the C library's functions, and sees no system call that is made without
/// them, such as the write to a descriptor that another thread waits for.
const THREAD: &str = "-Zsanitizer=thread --cfg weald_plain_alloc --cfg weald_thread_sanitizer \
                      --cfg rustix_use_libc";

/// Checks that what is compiled only for the sanitizers compiles, which needs none of them: the models on threads of
/// `std`, and the hooks of the switches of stacks.
pub(crate) fn check(checkout: &Checkout) -> Result<(), String> {
    let line = "check -p weald-kernel -p weald-sync -p weald-memory --lib --profile test";
    let flags = "--cfg weald_plain_alloc --cfg weald_thread_sanitizer";
    run_and_quote(&mut checkout.build_apart(checkout.cargo(line), "sanitizers", flags))
}

/// Runs the tests of a crate with every access to memory checked for data races, its stress tests and models included.
pub(crate) fn thread_sanitizer(checkout: &Checkout, package: &str, limit: &Limit) -> Outcome {
    if !has_library_source(checkout) {
        return missing("ThreadSanitizer", "nightly --component rust-src");
    }
    // Without a standard library that is instrumented, every use of a channel or a lock looks like a race.
    let command = |only_build: &str| {
        let line = format!(
            "+nightly test -Zbuild-std -p {package} --tests --target {PLATFORM} --no-fail-fast {only_build}"
        );
        let mut command = checkout.build_apart(checkout.cargo(&line), "tsan", THREAD);
        let suppressions = checkout.root().join("xtask/thread_sanitizer.txt");
        command.env(
            "TSAN_OPTIONS",
            format!("suppressions={}", suppressions.display()),
        );
        faster_and_smaller_frames(&mut command);
        command
    };
    passed(command, "ThreadSanitizer", limit)
}

const ADDRESS: &str = "-Zsanitizer=address --cfg weald_plain_alloc";

/// Runs tests of `packages` with every access to memory checked. `rest` are further arguments; each stress test runs
/// for `seconds`, or briefly without it.
pub(crate) fn address_sanitizer(
    checkout: &Checkout,
    tests: &str,
    seconds: Option<u64>,
    limit: &Limit,
) -> Outcome {
    if !checkout.has_toolchain("nightly") {
        return missing("AddressSanitizer", "nightly");
    }
    let command = |only_build: &str| {
        let line = format!("+nightly test {only_build} --target {PLATFORM} --no-fail-fast {tests}");
        let mut command = checkout.build_apart(checkout.cargo(&line), "asan", ADDRESS);
        // Some leaks are deliberate: the payload of a panic, whose destructor may panic as well. The tests count drops
        // to show that nothing else leaks. Frames stay on the real stacks, between which the kernel switches.
        command.env(
            "ASAN_OPTIONS",
            "detect_leaks=0:detect_stack_use_after_return=0",
        );
        if let Some(seconds) = seconds {
            command.env("WEALD_SOAK", seconds.to_string());
        }
        faster_and_smaller_frames(&mut command);
        command
    };
    passed(command, "AddressSanitizer", limit)
}

/// Runs the programs in C and C++ that test the C libraries, watched by `tool`. The sanitizer is that of the C
/// compiler: it sees what the programs do with their own memory and with that of the libraries.
pub(crate) fn c_programs(checkout: &Checkout, tool: &str, limit: &Limit) -> Outcome {
    if tool == "valgrind" && !succeeds(checkout.command("valgrind --version")) {
        let sentence = "valgrind is missing; install it as the system provides it.";
        return Ok(Verdict::Skipped(sentence.to_owned()));
    }
    let command = |only_build: &str| {
        let line = format!("test -p weald-myth -p weald-c --test c_programs {only_build}");
        let mut command = checkout.cargo(&line);
        command.env("WEALD_C_CHECK", tool);
        command
    };
    passed(command, "the programs in C", limit)
}

/// Without optimisation the frames are so large that deep recursion overflows the stacks of the tests.
fn faster_and_smaller_frames(command: &mut Command) {
    command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
}

/// Runs the tests of `command`, once they are built: it gets the argument that only builds them, or none. At least one
/// must have run.
fn passed(command: impl Fn(&str) -> Command, sanitizer: &str, limit: &Limit) -> Outcome {
    limit.build(&mut command("--no-run"))?;
    match tests_passed(&limit.run_and_keep(&mut command(""))?) {
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
