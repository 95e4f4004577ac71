//! Where nothing may continue the program ends, even when its last words cannot be written; and they name the unit that
//! aborts.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(unsafe_code)]

use std::{
    fs::File,
    future::pending,
    io::{BufRead, BufReader, Read},
    os::unix::process::ExitStatusExt,
    process::{Command, Stdio, abort},
    sync::mpsc,
};

use weald_kernel::{
    Runtime, Spawn,
    callback::{self, Owner, When},
    wait_to_the_end,
};

const CHILD: &str = "WEALD_TEST_ABORTS";
const ABORTED: i32 = 6;

/// Tells that its frame was left.
struct Lends;

impl Drop for Lends {
    fn drop(&mut self) {
        println!("the frame is left");
    }
}

/// Panics, also while its thread unwinds.
struct Panics;

impl Drop for Panics {
    fn drop(&mut self) {
        panic!("the second panic");
    }
}

/// The tests below run this as a program of its own; an environment variable names what it does.
#[test]
fn child() {
    let Ok(what) = std::env::var(CHILD) else {
        return;
    };
    if what == "lends" {
        // The wait must outlive what the frame lent out, and never ends.
        Runtime::test(1).block_on(async {
            let _lends = Lends;
            wait_to_the_end(pending::<()>(), || ());
        });
    }
    if what == "own handler" {
        // SAFETY: the handler is async-signal-safe.
        unsafe { libc::signal(libc::SIGABRT, own_handler as *const () as usize) };
    }
    let runtime = Runtime::builder().workers(1).build().unwrap();
    if what == "no unit" {
        abort();
    }
    if what == "callback" {
        runtime.block_on(async {
            callback::once(Owner::runtime(), When::Ready, || abort()).detach();
        });
    }
    let code = async move {
        match what.as_str() {
            "second panic" => {
                let _panics = Panics;
                panic!("the first panic");
            }
            "signal" => {
                println!("the job runs");
                let (_sender, never) = mpsc::channel::<()>();
                let _waits = never.recv();
            }
            "callback" => pending().await,
            _ => abort(),
        }
    };
    let job = runtime.block_on(async { Spawn::new().name("the unit").spawn(code) });
    let _ended = runtime.block_on(job);
}

extern "C" fn own_handler(_signal: i32) {
    // SAFETY: `_exit` is async-signal-safe.
    unsafe { libc::_exit(42) };
}

fn run_child(what: &str) -> Command {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["child", "--exact", "--nocapture", "--test-threads=1"]);
    child.env(CHILD, what);
    child
}

/// What the child writes to stderr before it is aborted.
fn last_words(what: &str) -> String {
    let child = run_child(what).output().unwrap();
    assert_eq!(child.status.signal(), Some(ABORTED), "{}", child.status);
    String::from_utf8_lossy(&child.stderr).into_owned()
}

const SENTENCE: &str = "weald: the program was aborted in ";

#[test]
fn a_job_that_aborts_the_program_is_named() {
    let words = last_words("job");
    let named = format!("{SENTENCE}`the unit`, spawned at kernel/tests/aborts.rs:");
    assert_eq!(words.matches(&named).count(), 1, "{words}");
}

#[test]
fn a_job_that_panics_while_it_unwinds_is_named() {
    let words = last_words("second panic");
    assert!(words.contains(&format!("{SENTENCE}`the unit`")), "{words}");
}

#[test]
fn a_callback_that_aborts_the_program_is_named() {
    let words = last_words("callback");
    let named = format!("{SENTENCE}`callback aborts::child::{{{{closure}}}}");
    assert!(words.contains(&named), "{words}");
}

#[test]
fn an_abort_outside_of_units_names_none() {
    let words = last_words("no unit");
    assert!(!words.contains("weald: the program"), "{words}");
}

#[test]
fn a_signal_of_another_process_names_no_unit() {
    let mut child = run_child("signal");
    let mut child = child
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with("the job runs")));
    // SAFETY: a signal to a child that was not waited for.
    unsafe { libc::kill(child.id().cast_signed(), libc::SIGABRT) };
    assert_eq!(child.wait().unwrap().signal(), Some(ABORTED));
    let mut words = String::new();
    child.stderr.unwrap().read_to_string(&mut words).unwrap();
    assert!(!words.contains("weald: the program"), "{words}");
}

#[test]
fn a_programs_own_handler_stays() {
    let child = run_child("own handler").output().unwrap();
    assert_eq!(child.status.code(), Some(42));
}

#[test]
fn no_frame_is_left_that_has_lent_something_out_although_stderr_is_full() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let child = run_child("lends")
        .stderr(Stdio::from(full))
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&child.stdout);
    assert_eq!(
        child.status.signal(),
        Some(ABORTED),
        "{}: {stdout}",
        child.status
    );
    assert!(!stdout.contains("the frame is left"), "{stdout}");
}
