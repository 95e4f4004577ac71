//! Programs in C and C++, compiled with our header and linked with both libraries, do what the header says.
//!
//! Every function of the header occurs in one of them. The programs check themselves: they end with a sentence and a
//! signal if something is not as it should be. Without a C++ compiler the programs in C++ are left out.
//!
//! `cargo xtask soak --only c` runs them with `WEALD_C_CHECK=valgrind` and with `WEALD_C_CHECK=address-sanitizer`.

mod harness;

use std::{
    path::Path,
    process::{Command, Output},
};

use harness::{Library, Linked, frames_at, is_emulated, is_watched, is_watched_by, start};

const MYTH: Library = Library {
    name: "myth",
    built: "myth",
    header: "myth/myth.h",
};

/// Runs a program with some number of workers.
fn run(program: &Path, arguments: &[&str], workers: u32) -> Output {
    start(program)
        .args(arguments)
        .env("MYTH_NUM_WORKERS", workers.to_string())
        .output()
        .unwrap()
}

/// Builds `source` in both ways, and runs it on one, two and three workers.
fn check(source: &str, arguments: &[&str]) {
    check_on(&[1, 2, 3], source, arguments);
}

fn check_on(workers: &[u32], source: &str, arguments: &[&str]) {
    for &linked in Linked::WAYS {
        let Some(program) = MYTH.build(source, linked) else {
            return;
        };
        for &workers in workers {
            let output = run(&program, arguments, workers);
            let errors = String::from_utf8_lossy(&output.stderr);
            let ended = output.status;
            assert!(
                ended.success() && errors.is_empty(),
                "{source}, {linked:?}, on {workers} workers: {ended}\n{errors}"
            );
        }
    }
}

#[test]
fn threads() {
    check("threads.c", &[]);
}

#[test]
fn joins_by_threads_of_the_system() {
    check("joins.c", &[]);
}

#[test]
fn a_thread_begins_though_its_creator_computes() {
    check_on(&[2, 3], "computing_creator.c", &[]);
}

#[test]
fn an_end_leaves_no_thread_of_the_system_behind() {
    if is_watched() || is_emulated() {
        // It starts some thousand threads of the system.
        return;
    }
    let Some(program) = MYTH.build("ends.c", Linked::Static) else {
        return;
    };
    // Ends that come to their limit say so, so its errors are not empty.
    let output = run(&program, &[], 2);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}

#[test]
fn more_threads_than_there_are_stacks() {
    if is_watched() || is_emulated() {
        // The program limits its addresses, of which tools need many.
        return;
    }
    check_on(&[2, 3], "refused_stacks.c", &[]);
}

#[test]
fn the_first_call_makes_a_thread_of_main() {
    for call in ["recursive", "errorcheck", "cancel", "worker"] {
        check("first.c", &[call]);
    }
}

#[test]
fn attributes() {
    check("attributes.c", &[]);
}

#[test]
fn locks() {
    check("locks.c", &[]);
}

#[test]
fn spin_locks() {
    check("spin.c", &[]);
}

#[test]
fn meetings() {
    check("meetings.c", &[]);
}

#[test]
fn keys() {
    check("keys.c", &[]);
}

#[test]
fn switches() {
    check("switches.c", &[]);
}

#[test]
fn calls_that_never_switch() {
    check_on(&[1], "never_switch.c", &[]);
}

#[test]
fn quicksort() {
    for way in ["serial", "direct", "structure"] {
        let n = match is_watched_by("valgrind") {
            true => "5000",
            false => "100000",
        };
        check("quicksort.c", &[n, "2", way]);
    }
}

#[test]
fn exceptions() {
    check("exceptions.cpp", &[]);
}

#[test]
fn the_runtime_begins_and_ends_with_the_settings_of_the_environment() {
    for &linked in Linked::WAYS {
        let program = MYTH
            .build("runtime.c", linked)
            .expect("there is a C compiler");
        let output = start(&program)
            .env("MYTH_NUM_WORKERS", "3")
            .env("MYTH_DEF_STKSIZE", "98304")
            .env("MYTH_CPU_LIST", "0-1024")
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && errors.is_empty(),
            "{linked:?}: {errors}"
        );
    }
}

#[test]
fn each_worker_stays_on_its_core() {
    check("bound.c", &[]);
}

#[test]
fn an_exception_that_leaves_a_thread_ends_the_program_with_a_sentence() {
    if is_watched() {
        // They report the end.
        return;
    }
    for &linked in Linked::WAYS {
        let Some(program) = MYTH.build("uncaught.cpp", linked) else {
            return;
        };
        let output = run(&program, &[], 2);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        // What an emulator says stands behind it.
        assert_eq!(
            errors.lines().next(),
            Some("myth: an exception has left the function of a thread; aborting")
        );
    }
}

#[test]
fn a_stack_that_overflows_ends_the_program_with_a_sentence() {
    if is_watched() || is_emulated() {
        // Tools report the end. The emulator ignores that a page is made a guard.
        return;
    }
    let program = MYTH
        .build("overflow.c", Linked::Static)
        .expect("there is a C compiler");
    // The thread runs in the middle of `main`, whose stack it is not. On two workers a thief may make a job of it.
    let units = [
        " in a thread that runs in the middle of another one: in `main`, ",
        " in an unnamed job, ",
    ];
    for (workers, possible) in [(1, &units[..1]), (2, &units[..])] {
        let output = run(&program, &[], workers);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        let is_told =
            |unit| errors.contains(&format!("weald: the stack of 128 KiB overflowed{unit}"));
        assert!(possible.iter().any(is_told), "{errors}");
    }
}

#[test]
#[cfg_attr(target_feature = "crt-static", ignore = "there is no shared library")]
fn a_debugger_shows_the_frames_of_a_thread_and_no_others() {
    if is_watched() {
        return;
    }
    let Some(program) = MYTH.build("debugger.c", Linked::Shared) else {
        return;
    };
    for workers in ["1", "2"] {
        let mut command = Command::new(&program);
        command.env("MYTH_NUM_WORKERS", workers);
        let Some(frames) = frames_at("innermost", &command) else {
            return;
        };
        let begin: Vec<&str> = frames.iter().take(3).map(String::as_str).collect();
        assert_eq!(
            begin,
            ["innermost", "middle", "function_of_thread"],
            "{frames:?}"
        );
        let last = frames.last().map(String::as_str);
        assert_eq!(last, Some("weald_kernel_stack_begin"), "{frames:?}");
    }
}

#[test]
#[cfg_attr(target_feature = "crt-static", ignore = "there is no shared library")]
fn the_symbols_of_the_shared_library_have_a_version() {
    MYTH.check_versions();
}

#[test]
fn the_header_declares_what_the_library_has_and_the_programs_call_all_of_it() {
    MYTH.check_header();
}
