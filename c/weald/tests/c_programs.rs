//! Programs in C and C++, compiled with our header and linked with both libraries, do what the header says.
//!
//! Every function of the header occurs in one of them. The programs check themselves: they end with a sentence and a
//! signal if something is not as it should be. Each test runs outside of units, and in a thread of a runtime with one
//! worker and with two. Without a C++ compiler the programs in C++ are left out.
//!
//! `cargo xtask soak --only c` runs them with `WEALD_C_CHECK=valgrind` and with `WEALD_C_CHECK=address-sanitizer`.

mod harness;

use std::{
    path::Path,
    process::{Command, Output},
};

use harness::{Library, Linked, frames_at, is_watched, start};

const WEALD: Library = Library {
    name: "weald",
    built: "weald_c",
    header: "weald.h",
};

fn run(program: &Path, arguments: &[&str]) -> Output {
    start(program).args(arguments).output().unwrap()
}

/// What is said of units that take long, which on a machine that is busy, and in an emulator, any may seem to; and what
/// the emulator says of a program that a signal ends.
const SAID_OF_TIME: [&str; 6] = [
    "has blocked or computed",
    "holds its thread for more than",
    "has held its OS thread for",
    "has been ending for",
    "of this kind from the same place",
    "qemu: uncaught target signal",
];

/// What else a program has written there.
fn errors(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    let is_of_time = |line: &&str| SAID_OF_TIME.iter().any(|said| line.contains(said));
    let judged = errors.split_inclusive('\n');
    judged.filter(|line| !is_of_time(line)).collect()
}

/// Builds `source` in both ways, and runs it outside of units and in one.
fn check(source: &str) {
    for &linked in Linked::WAYS {
        let Some(program) = WEALD.build(source, linked) else {
            return;
        };
        for place in ["outside", "1", "2"] {
            let output = run(&program, &[place]);
            let errors = errors(&output);
            let ended = output.status;
            assert!(
                ended.success() && errors.is_empty(),
                "{source}, {linked:?}, {place}: {ended}\n{errors}"
            );
        }
    }
}

#[test]
fn processes() {
    check("processes.c");
}

#[test]
fn links() {
    check("links.c");
}

#[test]
fn channels() {
    check("channels.c");
}

#[test]
fn threads() {
    check("threads.c");
}

#[test]
fn locks() {
    check("locks.c");
}

#[test]
fn shared_locks() {
    check("shared_locks.c");
}

#[test]
fn callbacks() {
    check("callbacks.c");
}

#[test]
fn forests() {
    check("forest.c");
}

#[test]
fn versions() {
    check("versions.c");
}

#[test]
fn exceptions() {
    check("exceptions.cpp");
}

#[test]
fn an_exception_that_leaves_a_function_ends_the_program_with_a_sentence() {
    if is_watched() {
        // They report the end.
        return;
    }
    for &linked in Linked::WAYS {
        let Some(program) = WEALD.build("uncaught.cpp", linked) else {
            return;
        };
        let output = run(&program, &["2"]);
        assert!(!output.status.success());
        let (exception, unit) = (
            "weald: an exception has left a function that the library had called; aborting\n",
            "\nweald: the program was aborted in ",
        );
        let errors = errors(&output);
        let rest = errors.strip_prefix(exception);
        assert!(rest.is_some_and(|rest| rest.starts_with(unit)), "{errors}");
    }
}

#[test]
#[cfg_attr(target_feature = "crt-static", ignore = "there is no shared library")]
fn a_debugger_shows_the_frames_of_a_unit_and_no_others() {
    if is_watched() {
        return;
    }
    let Some(program) = WEALD.build("debugger.c", Linked::Shared) else {
        return;
    };
    for function in ["function_of_thread", "function_of_process"] {
        let mut command = Command::new(&program);
        command.arg(function);
        let Some(frames) = frames_at("innermost", &command) else {
            return;
        };
        let begin: Vec<&str> = frames.iter().take(3).map(String::as_str).collect();
        assert_eq!(begin, ["innermost", "middle", function], "{frames:?}");
        let last = frames.last().map(String::as_str);
        assert_eq!(last, Some("weald_kernel_stack_begin"), "{frames:?}");
    }
}

#[test]
#[cfg_attr(target_feature = "crt-static", ignore = "there is no shared library")]
fn the_symbols_of_the_shared_library_have_a_version() {
    WEALD.check_versions();
}

#[test]
fn the_header_declares_what_the_library_has_and_the_programs_call_all_of_it() {
    WEALD.check_header();
}
