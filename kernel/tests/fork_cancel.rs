//! Cancelling a job that forks: the cancel reaches both halves, wherever they run, and leaves nothing behind.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tools::{Drops, Latch, on_each, runtime, until, watch};
use weald_kernel::{
    CancelShield, JoinError, Wait,
    fork::{join, scope},
};

/// Calls its closure when it is dropped.
struct AtDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for AtDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Two halves that wait for each other, so that one is stolen; both fork again.
fn forks_that_meet() {
    let (first, second) = (Latch::default(), Latch::default());
    join(
        || {
            first.open();
            join(|| second.clone().wait(), || ());
        },
        || {
            first.clone().wait();
            join(|| (), || second.open());
        },
    );
}

fn fork_for_ever() {
    loop {
        join(|| {}, || {});
    }
}

fn is_cancelled<T>(ended: &Result<T, JoinError>) -> bool {
    matches!(ended, Err(JoinError::Cancelled))
}

#[test]
fn a_cancel_ends_waits_in_both_halves() {
    let _watch = watch();
    let runtime = runtime(2);
    let (latch, drops) = (Latch::default(), Drops::default());
    let job = {
        let (latch, drops) = (latch.clone(), drops.clone());
        runtime.spawn(async move {
            let half = || {
                let _token = drops.token();
                latch.clone().wait();
            };
            join(half, half);
        })
    };
    // Both have started, so one of them was stolen.
    until(|| latch.waiters() == 2);
    job.cancel();
    assert!(is_cancelled(&runtime.block_on(job)));
    assert_eq!((drops.made(), drops.count()), (2, 2));
}

#[test]
fn a_cancel_reaches_a_half_of_a_stolen_half() {
    let _watch = watch();
    let runtime = runtime(3);
    let latch = Latch::default();
    let job = {
        let latch = latch.clone();
        runtime.spawn(async move {
            let wait = || latch.clone().wait();
            join(wait, || join(wait, wait));
        })
    };
    until(|| latch.waiters() == 3);
    job.cancel();
    assert!(is_cancelled(&runtime.block_on(job)));
}

#[test]
fn a_cancel_ends_halves_that_compute_at_their_next_fork() {
    fn forever(rounds: &AtomicUsize) {
        loop {
            rounds.fetch_add(1, Ordering::Relaxed);
            join(|| {}, || {});
        }
    }
    on_each(|runtime| {
        let rounds = Arc::new(AtomicUsize::new(0));
        let job = {
            let rounds = rounds.clone();
            runtime.spawn(async move {
                join(|| forever(&rounds), || forever(&rounds));
            })
        };
        until(|| rounds.load(Ordering::Relaxed) > 1000);
        job.cancel();
        assert!(is_cancelled(&runtime.block_on(job)));
    });
}

#[test]
fn a_cancel_drops_a_half_that_has_not_started() {
    let _watch = watch();
    let runtime = runtime(1);
    let (drops, begun) = (Drops::default(), Arc::new(AtomicUsize::new(0)));
    let ran = Arc::new(AtomicUsize::new(0));
    let job = {
        let (drops, begun, ran) = (drops.clone(), begun.clone(), ran.clone());
        runtime.spawn(async move {
            let token = drops.token();
            let first = || loop {
                begun.store(1, Ordering::SeqCst);
                join(|| {}, || {});
            };
            join(first, move || {
                let _token = token;
                ran.fetch_add(1, Ordering::SeqCst);
            });
        })
    };
    until(|| begun.load(Ordering::SeqCst) == 1);
    job.cancel();
    assert!(is_cancelled(&runtime.block_on(job)));
    assert_eq!((drops.count(), ran.load(Ordering::SeqCst)), (1, 0));
}

#[test]
fn a_job_that_was_cancelled_before_it_forks_unwinds_at_its_next_fork() {
    on_each(|runtime| {
        let begun = Arc::new(AtomicUsize::new(0));
        let job = {
            let begun = begun.clone();
            runtime.spawn(async move {
                // The first forks of a thread check for a cancel anyway.
                for _ in 0..100 {
                    join(|| {}, || {});
                }
                begun.store(1, Ordering::SeqCst);
                until(|| begun.load(Ordering::SeqCst) == 2);
                join(|| {}, || {});
                begun.store(3, Ordering::SeqCst);
            })
        };
        until(|| begun.load(Ordering::SeqCst) == 1);
        job.cancel();
        begun.store(2, Ordering::SeqCst);
        assert!(is_cancelled(&runtime.block_on(job)));
        assert_eq!(begun.load(Ordering::SeqCst), 2);
    });
}

/// Each of its forks is a root fork.
#[test]
fn a_cancel_ends_a_job_that_forks_again_and_again() {
    on_each(|runtime| {
        let rounds = Arc::new(AtomicUsize::new(0));
        let job = {
            let rounds = rounds.clone();
            runtime.spawn(async move {
                loop {
                    rounds.fetch_add(1, Ordering::Relaxed);
                    join(|| {}, || {});
                }
            })
        };
        until(|| rounds.load(Ordering::Relaxed) > 1000);
        job.cancel();
        assert!(is_cancelled::<()>(&runtime.block_on(job)));
    });
}

#[test]
fn a_job_that_was_cancelled_before_it_forks_unwinds_at_a_wait_in_a_half() {
    on_each(|runtime| {
        let (latch, begun) = (Latch::default(), Arc::new(AtomicUsize::new(0)));
        let job = {
            let (latch, begun) = (latch.clone(), begun.clone());
            runtime.spawn(async move {
                begun.store(1, Ordering::SeqCst);
                until(|| begun.load(Ordering::SeqCst) == 2);
                join(|| latch.clone().wait(), || latch.clone().wait());
            })
        };
        until(|| begun.load(Ordering::SeqCst) == 1);
        job.cancel();
        begun.store(2, Ordering::SeqCst);
        assert!(is_cancelled(&runtime.block_on(job)));
    });
}

/// While the first half computes, the only worker takes nothing. While the destructor waits, a thread takes the oldest
/// half that it may take, until it has the destructor's.
fn cancel_beside_a_half_that_has_not_begun(unwind: impl Fn() + Send + Sync + 'static) {
    let _watch = watch();
    let runtime = runtime(1);
    let (drops, steps) = (Drops::default(), Arc::new(AtomicUsize::new(0)));
    let ran = Arc::new(AtomicUsize::new(0));
    let job = {
        let (drops, steps, ran) = (drops.clone(), steps.clone(), ran.clone());
        runtime.spawn(async move {
            let token = drops.token();
            let first = || {
                let _guard = AtDrop(|| {
                    forks_that_meet();
                    steps.store(3, Ordering::SeqCst);
                });
                steps.store(1, Ordering::SeqCst);
                until(|| steps.load(Ordering::SeqCst) == 2);
                unwind();
            };
            join(first, move || {
                let _token = token;
                ran.store(1, Ordering::SeqCst);
            });
        })
    };
    until(|| steps.load(Ordering::SeqCst) == 1);
    job.cancel();
    steps.store(2, Ordering::SeqCst);
    assert!(is_cancelled(&runtime.block_on(job)));
    assert_eq!((steps.load(Ordering::SeqCst), drops.count()), (3, 1));
    assert_eq!(ran.load(Ordering::SeqCst), 0);
}

#[test]
fn no_half_begins_that_an_unwinding_at_a_fork_drops() {
    cancel_beside_a_half_that_has_not_begun(fork_for_ever);
}

#[test]
fn no_half_begins_that_an_unwinding_at_a_wait_drops() {
    cancel_beside_a_half_that_has_not_begun(|| Latch::default().wait());
}

/// The job waits in a destructor, so there is room for one more to compute. This takes a half of the stolen half, which
/// has not noticed the cancel yet.
#[test]
fn a_cancel_reaches_what_is_stolen_while_it_unwinds_the_job_that_forked_first() {
    let _watch = watch();
    let runtime = runtime(2);
    let (latch, steps) = (Latch::default(), Arc::new(AtomicUsize::new(0)));
    let job = {
        let (latch, steps) = (latch.clone(), steps.clone());
        runtime.spawn(async move {
            let first = || {
                let _guard = AtDrop(|| latch.clone().wait());
                until(|| steps.load(Ordering::SeqCst) == 2);
                fork_for_ever();
            };
            let of_stolen = || {
                let _guard = AtDrop(|| steps.store(3, Ordering::SeqCst));
                fork_for_ever();
            };
            join(first, || {
                let computes = || {
                    steps.store(1, Ordering::SeqCst);
                    until(|| steps.load(Ordering::SeqCst) == 3);
                    latch.open();
                };
                join(computes, of_stolen);
            });
        })
    };
    until(|| steps.load(Ordering::SeqCst) == 1);
    job.cancel();
    steps.store(2, Ordering::SeqCst);
    assert!(is_cancelled(&runtime.block_on(job)));
}

/// The part notices the cancel before the scope's owner does. Both are in the same root fork, because of the join.
#[test]
fn a_destructor_forks_while_the_cancel_of_a_part_unwinds_its_scope() {
    let _watch = watch();
    let runtime = runtime(2);
    let (latch, drops) = (Latch::default(), Drops::default());
    let ended = Arc::new(AtomicUsize::new(0));
    let job = {
        let (latch, drops, ended) = (latch.clone(), drops.clone(), ended.clone());
        runtime.spawn(async move {
            let first = || {
                let _guard = AtDrop(|| {
                    forks_that_meet();
                    ended.store(1, Ordering::SeqCst);
                });
                scope(|scope| {
                    scope.spawn(|| {
                        let _token = drops.token();
                        latch.clone().wait();
                    });
                    until(|| drops.count() == 1);
                });
            };
            join(first, || ());
        })
    };
    until(|| latch.waiters() == 1);
    job.cancel();
    assert!(is_cancelled(&runtime.block_on(job)));
    assert_eq!(ended.load(Ordering::SeqCst), 1);
}

/// The shield ends before the fork does, so the cancel that then unwinds the first half ends the second.
#[test]
fn a_half_that_was_stolen_under_a_shield_is_cancelled_with_the_first() {
    let _watch = watch();
    let runtime = runtime(2);
    let (first, second) = (Latch::default(), Latch::default());
    let (of_first, of_second) = (first.clone(), second.clone());
    let job = runtime.spawn(async move {
        join(
            || {
                let shield = CancelShield::begin();
                until(|| of_second.waiters() == 1);
                drop(shield);
                of_first.clone().wait();
            },
            || of_second.clone().wait(),
        );
    });
    until(|| first.waiters() == 1);
    job.cancel();
    assert!(is_cancelled(&runtime.block_on(job)));
}
