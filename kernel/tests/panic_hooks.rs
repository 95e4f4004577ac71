//! A panic hook that waits: its OS thread is held, so that a panic of another job there does not end the program.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/blocker.rs"]
mod blocker;
#[path = "support/tools.rs"]
mod tools;

use std::{
    io::Read,
    os::unix::net::UnixStream,
    panic::catch_unwind,
    process::Command,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Waker},
    time::Duration,
};

use blocker::Blocker;
use tools::{runtime, until, watch};
use weald_kernel::{
    Done, Interest, IoSource, JoinError, Runtime, Spawn, Unparker, block_on, park, sleep, spawn,
    spawn_local, yield_now,
};

const CHILD: &str = "WEALD_CHILD";
const BURST: &str = "many jobs panic at once";
const FOREIGN: &str = "on a foreign thread";
const TEST_RUNTIME: &str = "beside another panic on a test runtime";
const ENDLESS: &str = "for a job on a test runtime";
const BESIDE_DESCRIPTOR: &str =
    "for a job on a test runtime beside one that waits for a descriptor";

/// The hook is the program's, so each case runs in a process of its own. Does nothing in an ordinary run.
#[test]
fn child() {
    let Ok(what) = std::env::var(CHILD) else {
        return;
    };
    match &*what {
        BURST => burst_of_hooks(),
        FOREIGN => panic_beside_a_hook_on_a_foreign_thread(),
        TEST_RUNTIME => panics_beside_a_hook_on_a_test_runtime(),
        ENDLESS | BESIDE_DESCRIPTOR => {
            wait_in_a_hook_for_a_job_of_a_test_runtime(what == BESIDE_DESCRIPTOR);
        }
        _ => panic_beside_a_hook_in_a_job(what.contains("before")),
    }
    println!("survived");
}

fn panic_beside_a_hook_in_a_job(set_before: bool) {
    // Long enough for a wait to look whether it may let other jobs run, which takes a backtrace.
    let set = || {
        std::panic::set_hook(Box::new(|_| block_on(sleep(Duration::from_millis(250)))));
    };
    let before = set_before.then(set);
    let runtime = runtime(1);
    if before.is_none() {
        set();
    }
    // Its stack is suspended on the worker's thread, where the other job panics before it.
    let later = runtime.spawn(async {
        block_on(sleep(Duration::from_millis(5)));
        panic!("later");
    });
    let first = runtime.spawn(async { panic!("first") });
    assert!(runtime.block_on(first).unwrap_err().is_panic());
    assert!(runtime.block_on(later).unwrap_err().is_panic());
}

/// The hook makes a local job of the foreign thread runnable, and then waits there. That job panics, so the wait must
/// not run it; the waits after the hook must.
fn panic_beside_a_hook_on_a_foreign_thread() {
    static LATER: OnceLock<Unparker> = OnceLock::new();
    static BEGUN: AtomicBool = AtomicBool::new(false);
    std::panic::set_hook(Box::new(|info| {
        let later = LATER.get().expect("it was spawned");
        if info.payload().downcast_ref::<&str>() == Some(&"first") {
            later.unpark();
            block_on(sleep(Duration::from_millis(100)));
            assert!(!BEGUN.load(Ordering::Relaxed));
        }
    }));
    runtime(1).block_on(async {
        let later = async {
            LATER.set(Unparker::current().unwrap()).unwrap();
            park().await;
            BEGUN.store(true, Ordering::Relaxed);
            panic!("later");
        };
        let later = spawn_local(later).unwrap();
        while LATER.get().is_none() {
            yield_now().await;
        }
        assert!(catch_unwind(|| panic!("first")).is_err());
        assert!(!BEGUN.load(Ordering::Relaxed));
        assert!(later.await.unwrap_err().is_panic());
        assert!(BEGUN.load(Ordering::Relaxed));
    });
}

/// Many more jobs panic than there are threads, and each hook blocks. They are of one kind, so that the first ones make
/// it suspect, and all others run on.
fn burst_of_hooks() {
    static BLOCKER: OnceLock<Blocker> = OnceLock::new();
    let blocker = BLOCKER.get_or_init(Blocker::default);
    std::panic::set_hook(Box::new(|_| BLOCKER.get().expect("it is made").block()));
    let runtime = Runtime::builder()
        .workers(2)
        .spare_threads(8)
        .build()
        .unwrap();
    let jobs: Vec<_> = (0..100)
        .map(|_| runtime.spawn(async { panic!("on purpose") }))
        .collect();
    until(|| blocker.begun() >= 7);
    for _ in 0..1_000 {
        let other = runtime.spawn(async { yield_now().await });
        runtime.block_on(other).unwrap();
    }
    assert!(blocker.begun() < 10, "{} have a thread", blocker.begun());
    blocker.open();
    for job in jobs {
        assert!(runtime.block_on(job).unwrap_err().is_panic());
    }
}

/// While the hook of the first one waits, the second one is due.
fn panics_beside_a_hook_on_a_test_runtime() {
    std::panic::set_hook(Box::new(|_| block_on(sleep(Duration::from_millis(100)))));
    Runtime::test(3).block_on(async {
        let first = spawn(async { panic!("first") });
        let second = spawn(async {
            sleep(Duration::from_millis(10)).await;
            panic!("second")
        });
        let ended: [Result<(), JoinError>; 2] = [first.await, second.await];
        assert!(
            ended
                .iter()
                .all(|end| end.as_ref().is_err_and(JoinError::is_panic))
        );
        assert!(catch_unwind(|| panic!("in the main future")).is_err());
    });
}

fn wait_in_a_hook_for_a_job_of_a_test_runtime(beside_descriptor: bool) {
    std::panic::set_hook(Box::new(|_| {
        block_on(async { spawn(async {}).await.unwrap() })
    }));
    Runtime::test(3).block_on(async move {
        // Nothing is ever written.
        let (_ours, theirs) = UnixStream::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        let source = IoSource::new(theirs).unwrap();
        if beside_descriptor {
            let mut cx = Context::from_waker(Waker::noop());
            let read = |mut io: &UnixStream| io.read(&mut [0; 8]).map(Done::Maybe);
            let polled = source.poll_operate(Interest::Read, &mut cx, read);
            assert!(polled.is_pending());
        }
        let fails = Spawn::new()
            .name("fails")
            .spawn(async { panic!("on purpose") });
        let _failed: Result<(), JoinError> = fails.await;
    });
}

#[test]
fn a_panic_beside_a_hook_that_waits_on_a_test_runtime_ends_its_job_only() {
    survives(TEST_RUNTIME);
}

#[test]
fn a_hook_that_waits_for_a_job_of_a_test_runtime_ends_the_program_with_a_sentence() {
    let _watch = watch();
    for case in [ENDLESS, BESIDE_DESCRIPTOR] {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["child", "--exact", "--nocapture"])
            .env(CHILD, case)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&child.stderr);
        assert!(!child.status.success());
        let sentence = "weald: the panic hook waits for another job, or for a second for a descriptor, for `fails` spawned at kernel/tests/panic_hooks.rs:";
        assert!(errors.contains(sentence), "{errors}");
    }
}

fn survives(what: &str) {
    let _watch = watch();
    for _ in 0..3 {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["child", "--exact", "--nocapture"])
            .env(CHILD, what)
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&child.stdout);
        let errors = String::from_utf8_lossy(&child.stderr);
        assert!(output.contains("survived"), "{output}\n{errors}");
    }
}

#[test]
fn a_panic_beside_a_hook_that_waits_ends_its_job_only() {
    survives("the hook is set before the runtime starts");
    survives("the hook is set after the runtime has started");
}

#[test]
fn a_panic_of_a_local_job_beside_a_hook_that_waits_ends_its_job_only() {
    survives(FOREIGN);
}

#[test]
fn more_hooks_that_block_than_spare_threads_stop_no_other_kind() {
    survives(BURST);
}
