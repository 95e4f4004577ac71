//! Jobless runs: code on a stack of its own that is no job before it waits.

#![allow(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    cell::Cell,
    ptr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use weald_kernel::{
    JoblessRun, Runtime, Spawn, Wait, about_to_wait, is_in_job, is_jobless, run_jobless, sleep,
    with_fiber_word, yield_with_stack,
};

const STACK: usize = 64 << 10;

/// What a piece of code has done, in the frame of its creator.
#[derive(Default)]
struct Seen {
    was_jobless: Cell<bool>,
    ended: Cell<bool>,
    nested: Cell<u32>,
}

/// With one worker, which the monitor leaves to its thread however busy the machine is.
fn runtime() -> Runtime {
    let builder = Runtime::builder().workers(1);
    builder
        .stuck_after(Duration::from_secs(1000))
        .build()
        .unwrap()
}

/// Runs `act` as a fiber that migrates, on a runtime with one worker.
fn in_fiber<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> T {
    let runtime = runtime();
    runtime.block_on(async {
        // SAFETY: the code of these tests keeps nothing that depends on the OS thread.
        let fiber = unsafe { Spawn::new().spawn_migrating_fiber(STACK, act) };
        fiber.unwrap().await.unwrap()
    })
}

fn run(code: weald_kernel::JoblessCode, seen: &Seen) -> JoblessRun {
    let argument = ptr::from_ref(seen).cast_mut().cast();
    // SAFETY: the code uses `seen`, which outlives it, and nothing that depends on the OS thread.
    unsafe { run_jobless(STACK, (code, argument), ptr::null()) }
}

unsafe fn ends(seen: *mut ()) {
    // SAFETY: the creator waits.
    let seen = unsafe { &*seen.cast::<Seen>() };
    seen.was_jobless.set(is_jobless());
    assert!(is_in_job());
    with_fiber_word(|word| assert!(word.get().is_null())).unwrap();
    seen.ended.set(true);
}

unsafe fn yields_twice(seen: *mut ()) {
    // SAFETY: the creator joins it.
    let seen = unsafe { &*seen.cast::<Seen>() };
    seen.was_jobless.set(is_jobless());
    with_fiber_word(|word| word.set(ptr::from_ref(seen).cast())).unwrap();
    for _ in 0..2 {
        about_to_wait();
        assert!(!is_jobless());
        yield_with_stack();
    }
    with_fiber_word(|word| assert_eq!(word.get(), ptr::from_ref(seen).cast())).unwrap();
    seen.ended.set(true);
}

unsafe fn becomes_a_job_and_ends(seen: *mut ()) {
    about_to_wait();
    // SAFETY: as above.
    unsafe { ends(seen) };
}

/// Each level runs the next one, down to one that yields.
unsafe fn in_depth(seen: *mut ()) {
    // SAFETY: as above.
    let outer = unsafe { &*seen.cast::<Seen>() };
    match outer.nested.get() {
        0 => {
            about_to_wait();
            yield_with_stack();
        }
        nested => {
            let seen = Seen::default();
            seen.nested.set(nested - 1);
            match run(in_depth, &seen) {
                JoblessRun::Ended => {}
                JoblessRun::Job(job) => {
                    about_to_wait();
                    job.wait().unwrap();
                }
                // A look is due, as it may be on a busy machine.
                // SAFETY: `seen` is in this frame, and the call ends before.
                JoblessRun::Refused => unsafe {
                    in_depth(ptr::from_ref(&seen).cast_mut().cast());
                },
            }
            assert!(seen.ended.get());
        }
    }
    outer.ended.set(true);
}

#[test]
fn code_that_does_not_wait_ends_without_a_job() {
    in_fiber(|| {
        let seen = Seen::default();
        // More often than a job may go on without a yield.
        let mut left = 1_000;
        while left > 0 {
            seen.ended.set(false);
            match run(ends, &seen) {
                JoblessRun::Ended => {
                    assert!(seen.ended.get() && seen.was_jobless.get());
                    left -= 1;
                }
                JoblessRun::Refused => {
                    yield_with_stack();
                }
                JoblessRun::Job(_) => panic!("it has waited"),
            }
        }
    });
}

#[test]
fn code_that_waits_becomes_a_job() {
    in_fiber(|| {
        let seen = Seen::default();
        let JoblessRun::Job(job) = run(yields_twice, &seen) else {
            panic!("it waits");
        };
        assert!(seen.was_jobless.get() && !seen.ended.get() && !job.is_finished());
        job.wait().unwrap();
        assert!(seen.ended.get());
    });
}

#[test]
fn code_that_becomes_a_job_may_end_without_having_waited() {
    in_fiber(|| {
        let seen = Seen::default();
        let JoblessRun::Job(job) = run(becomes_a_job_and_ends, &seen) else {
            panic!("it has become a job");
        };
        assert!(seen.ended.get() && job.is_finished());
        job.wait().unwrap();
    });
}

#[test]
fn jobless_runs_nest() {
    for _ in 0..3 {
        in_fiber(|| {
            let seen = Seen::default();
            seen.nested.set(20);
            let JoblessRun::Job(job) = run(in_depth, &seen) else {
                panic!("the innermost one yields");
            };
            job.wait().unwrap();
            assert!(seen.ended.get());
        });
    }
}

#[test]
fn there_is_none_outside_of_jobs() {
    let seen = Seen::default();
    assert!(matches!(run(ends, &seen), JoblessRun::Refused));
    assert!(!is_jobless() && !seen.ended.get());
    about_to_wait();
}

unsafe fn computes(_: *mut ()) {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(1) {}
}

/// Each run counts for the next look, although it may take as long as many.
#[test]
fn runs_that_compute_do_not_hold_timers_up() {
    let runtime = runtime();
    let (runs, over) = (
        Arc::new(AtomicU32::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let (counted, ends) = (runs.clone(), over.clone());
    let creates = move || {
        let seen = Seen::default();
        while !ends.load(Ordering::Relaxed) {
            match run(computes, &seen) {
                JoblessRun::Refused => {
                    yield_with_stack();
                }
                _ => _ = counted.fetch_add(1, Ordering::Relaxed),
            }
        }
    };
    let fiber = runtime.block_on(async {
        // SAFETY: the code keeps nothing that depends on the OS thread.
        unsafe { Spawn::new().spawn_migrating_fiber(STACK, creates) }
    });
    // On the same worker, so that nothing is counted between the timer and its end.
    let sleeps = runtime.spawn(async move {
        let mut most = 0;
        for _ in 0..4 {
            let before = runs.load(Ordering::Relaxed);
            sleep(Duration::from_millis(5)).await;
            most = most.max(runs.load(Ordering::Relaxed) - before);
        }
        over.store(true, Ordering::Relaxed);
        most
    });
    let most = runtime.block_on(sleeps).unwrap();
    runtime.block_on(fiber.unwrap()).unwrap();
    assert!((1..200).contains(&most), "{most} runs in a sleep of 5 ms");
}
