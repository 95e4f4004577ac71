//! A process that was forked has none of the runtime's threads: it may drop the runtime, which ends nothing, and is
//! told that it cannot use it.

#![allow(
    unsafe_code,
    reason = "the standard library forks only to execute another program"
)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    any::Any,
    future::pending,
    mem::ManuallyDrop,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    process,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tools::{runtime, until, watch};
use weald_kernel::{Runtime, ShutdownReport, Wait, spawn, spawn_local};

/// What a wait says in a forked process.
const SENTENCE: &str = "start a runtime here, or call exec";

/// One test at a time: a forked process that panics takes locks of the standard library, which no other thread of this
/// program may hold at the fork.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Forks the process. Zero in the new one, which must end by [`end_with`].
fn fork() -> libc::pid_t {
    // SAFETY: the new process has only the calling thread, and ends itself. Its allocator works, since the C library
    // sees to that; no other thread holds the locks that a panic takes.
    let forked = unsafe { libc::fork() };
    assert!(forked >= 0, "the system forks no process");
    forked
}

/// Ends the process after `code`: with the status 0, or with 1 if that panics.
fn end_with(code: impl FnOnce()) -> ! {
    let ended = catch_unwind(AssertUnwindSafe(code));
    // SAFETY: it runs nothing of this program.
    unsafe { libc::_exit(i32::from(ended.is_err())) }
}

/// What the system says of the end of a process that was forked.
fn end_of(forked: libc::pid_t) -> i32 {
    let mut end = 0;
    // SAFETY: it is written to a number of the right size.
    let ended = unsafe { libc::waitpid(forked, &raw mut end, 0) };
    assert_eq!(ended, forked);
    end
}

/// The status with which a process that was forked ends.
fn status_of(forked: libc::pid_t) -> i32 {
    let end = end_of(forked);
    assert!(libc::WIFEXITED(end), "{end}");
    libc::WEXITSTATUS(end)
}

/// The status with which a process that was forked ends after `code`: 0, or 1 if that panics.
fn in_forked_process(code: impl FnOnce()) -> i32 {
    match fork() {
        0 => end_with(code),
        forked => status_of(forked),
    }
}

/// Ends a process that drops it, unless it is the one that created it.
struct OfProcess(u32);

impl Drop for OfProcess {
    fn drop(&mut self) {
        if self.0 != process::id() {
            // SAFETY: it runs nothing of this program.
            unsafe { libc::_exit(2) };
        }
    }
}

/// A runtime with a job that waits for ever, and holds what only this process may drop.
fn with_waiting_job() -> Runtime {
    let runtime = runtime(1);
    let held = OfProcess(process::id());
    runtime
        .spawn(async move {
            let _held = held;
            pending::<()>().await;
        })
        .detach();
    until(|| runtime.waits().jobs.len() == 1);
    runtime
}

#[test]
fn a_runtime_that_is_dropped_or_shut_down_in_a_forked_process_ends_nothing() {
    let _watch = watch();
    let dropped = with_waiting_job();
    let _alone = alone();
    let ends = [false, true].map(|shuts_down| {
        // The copy of the new process.
        // SAFETY: each process has one runtime and uses it once: the new one here, and ends; this one below.
        let runtime = unsafe { std::ptr::read(&raw const dropped) };
        let runtime = ManuallyDrop::new(runtime);
        in_forked_process(|| {
            let runtime = ManuallyDrop::into_inner(runtime);
            match shuts_down {
                true => assert_eq!(runtime.shutdown(Duration::ZERO), ShutdownReport::default()),
                false => drop(runtime),
            }
        })
    });
    assert_eq!(ends, [0, 0]);
    assert_eq!(dropped.block_on(dropped.spawn(async { 1 })).unwrap(), 1);
}

#[test]
fn a_wait_in_a_forked_process_panics_with_a_sentence() {
    let _watch = watch();
    let _alone = alone();
    let runtime = runtime(1);
    let status = in_forked_process(|| assert_that_it_panics(|| runtime.block_on(pending())));
    assert_eq!(status, 0);
}

/// Panics unless this wait panics with the sentence.
fn assert_that_it_panics(wait: impl FnOnce()) {
    assert_is_sentence(catch_unwind(AssertUnwindSafe(wait)).unwrap_err());
}

fn assert_is_sentence(payload: Box<dyn Any + Send>) {
    let text = payload.downcast_ref::<&str>();
    assert!(text.unwrap().contains(SENTENCE));
}

#[test]
fn a_wait_in_a_process_that_a_job_has_forked_panics_with_a_sentence() {
    let _watch = watch();
    let _alone = alone();
    let runtime = runtime(1);
    let forks = runtime.spawn(async {
        let other = spawn(pending::<()>());
        in_forked_process(|| assert_that_it_panics(|| other.wait().unwrap()))
    });
    assert_eq!(runtime.block_on(forks).unwrap(), 0);
}

/// Its thread would go on with the jobs of the other process.
#[test]
fn a_process_that_a_job_has_forked_is_aborted_when_the_job_panics_there() {
    let _watch = watch();
    let _alone = alone();
    let runtime = runtime(1);
    let forks = runtime.spawn(async {
        match fork() {
            0 => panic!("on purpose"),
            forked => end_of(forked),
        }
    });
    let end = runtime.block_on(forks).unwrap();
    assert!(libc::WIFSIGNALED(end), "{end}");
    assert_eq!(libc::WTERMSIG(end), libc::SIGABRT);
}

/// The new process goes on in the loop of its `block_on`, whose local jobs are the other process's.
#[test]
fn a_future_of_block_on_that_forks_and_awaits_panics_and_drops_no_local_job_there() {
    let _watch = watch();
    let _alone = alone();
    let runtime = runtime(1);
    let parent = process::id();
    let held = OfProcess(parent);
    let waits = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(async {
            let local = spawn_local(async move {
                let _held = held;
                pending::<()>().await;
            });
            local.unwrap().detach();
            match fork() {
                0 => pending().await,
                forked => forked,
            }
        })
    }));
    match waits {
        Ok(forked) => assert_eq!(status_of(forked), 0),
        Err(payload) if process::id() == parent => resume_unwind(payload),
        Err(payload) => end_with(|| assert_is_sentence(payload)),
    }
}

#[test]
fn a_test_runtime_that_is_dropped_in_a_forked_process_ends_nothing() {
    let _watch = watch();
    let _alone = alone();
    let dropped = Runtime::test(1);
    let held = OfProcess(process::id());
    dropped.block_on(async {
        spawn(async move {
            let _held = held;
            pending::<()>().await;
        })
        .detach();
    });
    // SAFETY: each process has one runtime and drops it once.
    let copy = ManuallyDrop::new(unsafe { std::ptr::read(&raw const dropped) });
    let status = in_forked_process(|| drop(ManuallyDrop::into_inner(copy)));
    assert_eq!(status, 0);
}
