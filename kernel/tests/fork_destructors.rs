//! What a destructor forks that a panic runs inside of a fork: a cancel or a deadline that unwound it would be raised
//! in the destructor, and the program would be aborted.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use tools::{Latch, runtime, until, watch};
use weald_kernel::{Runtime, Wait, fork};

/// Runs `code` when it is dropped, and then tells that it has returned.
struct AtDrop<F: Fn()>(F, mpsc::Sender<()>);

impl<F: Fn()> Drop for AtDrop<F> {
    fn drop(&mut self) {
        (self.0)();
        self.1.send(()).unwrap();
    }
}

/// Where the code panics that holds the destructor.
#[derive(Clone, Copy)]
enum Place {
    FirstHalf,
    SecondHalf,
    Body,
    Part,
}

const PLACES: [Place; 4] = [
    Place::FirstHalf,
    Place::Body,
    Place::SecondHalf,
    Place::Part,
];

impl Place {
    fn run(self, code: impl FnOnce() + Send) {
        match self {
            Place::FirstHalf => drop(fork::join(code, || ())),
            Place::SecondHalf => drop(fork::join(|| (), code)),
            Place::Body => fork::scope(|_| code()),
            Place::Part => fork::scope(|scope| scope.spawn(code)),
        }
    }
}

fn parts_wait(ends: &Latch) {
    fork::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| ends.clone().wait());
        }
    });
}

/// A second half waits, and so does the half of its own that it joins.
fn halves_wait(ends: &Latch) {
    let wait = || ends.clone().wait();
    let begun = AtomicUsize::new(0);
    let both_wait = || {
        let begins = || begun.fetch_add(1, Ordering::SeqCst);
        fork::join(
            || {
                (
                    begins(),
                    until(|| begun.load(Ordering::SeqCst) == 2),
                    wait(),
                )
            },
            || (begins(), wait()),
        )
    };
    fork::join(|| until(|| begun.load(Ordering::SeqCst) == 2), both_wait);
}

/// Whether the destructor waits for its second half, for which it holds its thread. Nobody else does, unless the
/// destructor is in a half or a part that another thread may run.
fn joins(runtime: &Runtime) -> bool {
    runtime.metrics().announced > 0
}

/// A destructor forks such work at each of the places; the work is over once the latch opens. The cancel, or the
/// deadline, comes meanwhile, as soon as so many wait and `is_forked` is true.
fn ends_meanwhile(
    (workers, waiters): (usize, usize),
    (fork, places): (fn(&Latch), &[Place]),
    is_forked: impl Fn(&Runtime) -> bool,
    cancels: bool,
) {
    for &place in places {
        let _watch = watch();
        let (runtime, (sender, returned)) = (runtime(workers), mpsc::channel());
        let ends = Latch::default();
        let awaited = ends.clone();
        let job = runtime.spawn(async move {
            let panics = move || {
                let _guard = AtDrop(|| fork(&awaited), sender);
                panic!("an ordinary panic");
            };
            place.run(panics);
        });
        until(|| ends.waiters() == waiters && is_forked(&runtime));
        match cancels {
            true => {
                job.cancel();
                ends.open();
                assert!(runtime.block_on(job).is_err());
            }
            false => {
                runtime.shutdown(Duration::from_millis(10));
                ends.open();
            }
        }
        assert!(returned.recv().is_ok(), "the destructor was unwound");
    }
}

#[test]
fn a_cancel_unwinds_no_scope_of_a_destructor_that_a_panic_runs() {
    ends_meanwhile((2, 4), (parts_wait, &PLACES), |_| true, true);
}

#[test]
fn a_deadline_unwinds_no_scope_of_a_destructor_that_a_panic_runs() {
    ends_meanwhile((2, 4), (parts_wait, &PLACES), |_| true, false);
}

#[test]
fn a_cancel_unwinds_no_half_for_which_a_destructor_waits_that_a_panic_runs() {
    ends_meanwhile((3, 2), (halves_wait, &PLACES[..2]), joins, true);
}

#[test]
fn a_deadline_unwinds_no_half_for_which_a_destructor_waits_that_a_panic_runs() {
    ends_meanwhile((3, 2), (halves_wait, &PLACES[..2]), joins, false);
}

/// Two halves that wait for each other, so that one is stolen; both fork again.
fn forks_that_meet() {
    let (first, second) = (Latch::default(), Latch::default());
    fork::join(
        || {
            first.open();
            fork::join(|| second.clone().wait(), || ());
        },
        || {
            first.clone().wait();
            fork::join(|| (), || second.open());
        },
    );
}

/// What is stolen of a cancelled job is cancelled from the start.
#[test]
fn a_destructor_that_a_panic_runs_in_a_cancelled_job_forks() {
    for place in PLACES {
        let _watch = watch();
        let (runtime, (sender, returned)) = (runtime(2), mpsc::channel());
        let (begun, is_cancelled) = (Latch::default(), Arc::new(AtomicBool::new(false)));
        let (begins, sees) = (begun.clone(), is_cancelled.clone());
        let job = runtime.spawn(async move {
            let panics = move || {
                let _guard = AtDrop(|| (0..10).for_each(|_| forks_that_meet()), sender);
                begins.open();
                until(|| sees.load(Ordering::SeqCst));
                panic!("an ordinary panic");
            };
            place.run(panics);
        });
        runtime.block_on(begun);
        job.cancel();
        is_cancelled.store(true, Ordering::SeqCst);
        assert!(runtime.block_on(job).is_err());
        assert!(returned.recv().is_ok(), "the destructor was unwound");
    }
}

/// The panic is caught, and the job goes on: a cancel reaches what it forks then, at the same places of the deque.
#[test]
fn a_cancel_reaches_what_is_forked_after_such_a_panic() {
    let _watch = watch();
    let (runtime, (sender, returned)) = (runtime(2), mpsc::channel());
    let ends = Latch::default();
    let awaited = ends.clone();
    let job = runtime.spawn(async move {
        let goes_on = move || {
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let _guard = AtDrop(forks_that_meet, sender);
                panic!("an ordinary panic");
            }));
            assert!(caught.is_err());
            let wait = || awaited.clone().wait();
            fork::join(wait, wait);
        };
        Place::FirstHalf.run(goes_on);
    });
    until(|| ends.waiters() == 2);
    job.cancel();
    assert!(runtime.block_on(job).is_err());
    assert!(returned.recv().is_ok());
}
