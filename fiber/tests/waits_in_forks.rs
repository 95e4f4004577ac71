//! Forked halves wait: for an unpark, a turn, a thread, a lock, each other.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::async_yields_async,
    reason = "handles are handed out of a block_on"
)]

#[path = "support/on_workers.rs"]
mod on_workers;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use on_workers::on_workers;
use tools::{Latch, on_each, runtime, until, watch};
use weald_fiber as thread;
use weald_kernel::{Wait, fork};

/// Waits for `future`, and sets `polled` once the future has been polled.
fn wait_signalling<F: Future>(future: F, polled: &AtomicBool) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|cx| {
        let ended = future.as_mut().poll(cx);
        polled.store(true, Ordering::SeqCst);
        ended
    })
    .wait()
}

#[test]
fn a_half_parks_for_its_thread() {
    on_each(|runtime| {
        let parked = Arc::new(AtomicBool::new(false));
        let signals = parked.clone();
        let parks = runtime.block_on(async {
            thread::spawn(move || {
                fork::join(|| wait_signalling(weald_kernel::park(), &signals), || ());
                7
            })
        });
        until(|| parked.load(Ordering::SeqCst));
        parks.thread().unpark();
        assert_eq!(runtime.block_on(parks).unwrap(), 7);
    });
}

#[test]
fn a_half_that_yields_forever_is_cancelled() {
    let _watch = watch();
    for workers in [1, 2, 4] {
        let runtime = runtime(workers);
        let begun = Arc::new(AtomicBool::new(false));
        let signals = begun.clone();
        let yields = runtime.block_on(async {
            thread::spawn(move || {
                let yields = || loop {
                    signals.store(true, Ordering::SeqCst);
                    thread::yield_now();
                };
                fork::join(yields, || ());
            })
        });
        until(|| begun.load(Ordering::SeqCst));
        yields.cancel();
        assert!(runtime.block_on(yields).unwrap_err().is_cancelled());
        let report = runtime.shutdown(Duration::from_secs(20));
        assert!(report.not_stopped.is_empty(), "{report:?}");
    }
}

#[test]
fn a_half_joins_a_thread_that_it_starts() {
    for workers in [1, 2, 4] {
        on_workers(workers, || {
            let starts = || {
                let waits = thread::spawn(|| {
                    thread::yield_now();
                    5
                });
                waits.join().unwrap()
            };
            for _ in 0..20 {
                assert_eq!(fork::join(starts, || 6), (5, 6));
                assert_eq!(fork::join(|| 6, starts), (6, 5));
            }
        });
    }
}

#[test]
fn the_parts_of_a_loop_join_threads_that_they_start() {
    for workers in [1, 2, 4] {
        on_workers(workers, || {
            fork::for_each(0..8, |_| thread::spawn(thread::yield_now).join().unwrap());
        });
    }
}

#[test]
fn a_half_has_a_scope_of_threads() {
    for workers in [1, 2, 4] {
        on_workers(workers, || {
            let mut word = String::from("lent");
            let lends = || {
                thread::scope(|scope| {
                    let borrows = scope.spawn(|| {
                        thread::yield_now();
                        word.push_str(" out");
                    });
                    borrows.join().unwrap();
                });
            };
            fork::join(lends, || ());
            assert_eq!(word, "lent out");
        });
    }
}

/// A thread that already waits, and the latch that ends its wait.
fn started_thread() -> (thread::JoinHandle<u32>, Latch) {
    let latch = Latch::default();
    let waits = latch.clone();
    let started = thread::spawn(move || {
        waits.wait();
        5
    });
    while latch.waiters() == 0 {
        thread::yield_now();
    }
    (started, latch)
}

#[test]
fn a_half_joins_a_thread_that_already_waits() {
    for workers in [1, 2, 4] {
        on_workers(workers, || {
            let (started, latch) = started_thread();
            let joins = || {
                latch.open();
                started.join().unwrap()
            };
            assert_eq!(fork::join(joins, || 6), (5, 6));
            // The other half, which another worker may run, opens the latch; and then also joins the thread.
            let (started, latch) = started_thread();
            assert_eq!(fork::join(|| started.join().unwrap(), || latch.open()).0, 5);
            let (started, latch) = started_thread();
            let joined = fork::join(
                || latch.clone().wait(),
                || {
                    latch.open();
                    started.join().unwrap()
                },
            );
            assert_eq!(joined.1, 5);
        });
    }
}

#[test]
fn halves_lock_a_mutex_whose_owner_waits() {
    on_each(|runtime| {
        let mutex = Arc::new(weald_sync::Mutex::new(0_u64));
        let (go, wanted) = (Latch::default(), Arc::new(AtomicBool::new(false)));
        let (holds, waits) = (mutex.clone(), go.clone());
        let owner = runtime.block_on(async {
            thread::spawn(move || {
                let mut guard = holds.lock().wait();
                waits.wait();
                *guard += 1;
            })
        });
        until(|| go.waiters() == 1);
        let (locks, signals) = (mutex.clone(), wanted.clone());
        let forks = runtime.block_on(async {
            thread::spawn(move || {
                fork::for_each(0..4_u64, |n| *wait_signalling(locks.lock(), &signals) += n);
            })
        });
        until(|| wanted.load(Ordering::SeqCst));
        go.open();
        runtime.block_on(owner).unwrap();
        runtime.block_on(forks).unwrap();
        assert_eq!(*mutex.lock().wait(), 7);
    });
}

#[test]
fn a_first_half_waits_for_the_second_many_times() {
    on_workers(1, || {
        for _ in 0..500 {
            let latch = Latch::default();
            fork::join(|| latch.clone().wait(), || latch.open());
        }
    });
    let _watch = watch();
    let runtime = runtime(1);
    let job = runtime.spawn(async {
        for _ in 0..500 {
            let latch = Latch::default();
            fork::join(|| latch.clone().wait(), || latch.open());
        }
    });
    runtime.block_on(job).unwrap();
}

/// How often a test tries to hit the right moment.
const ROUNDS: usize = 50;

/// Runs `body` as a job on 2 and 4 workers: with one worker, no half is taken while the other computes.
fn on_several(body: impl Fn() + Copy + Send + 'static) {
    let _watch = watch();
    for workers in [2, 4] {
        let runtime = runtime(workers);
        let job = runtime.spawn(async move { body() });
        runtime.block_on(job).unwrap();
    }
}

/// A descendant that computes on top of a waiting join does not keep other workers from the halves that it forks.
#[test]
fn a_descendant_on_top_of_a_join_waits_for_its_own_half() {
    on_several(|| {
        for _ in 0..ROUNDS {
            let latch = Latch::default();
            let [begun, taken] = [(); 2].map(|()| AtomicBool::new(false));
            fork::join(
                || until(|| begun.load(Ordering::SeqCst)),
                || {
                    begun.store(true, Ordering::SeqCst);
                    fork::join(
                        || until(|| taken.load(Ordering::SeqCst)),
                        || {
                            taken.store(true, Ordering::SeqCst);
                            fork::join(|| latch.clone().wait(), || latch.open());
                        },
                    );
                },
            );
        }
    });
}

/// A thread that computes on top of a join counts once, so a free worker takes its half.
#[test]
fn a_descendant_on_top_of_a_join_computes_beside_its_own_half() {
    on_several(|| {
        for _ in 0..ROUNDS {
            let [begun, taken, met] = [(); 3].map(|()| AtomicBool::new(false));
            let descendant = || {
                taken.store(true, Ordering::SeqCst);
                // The test cannot see whether the other join's owner has stopped helping and waits; in most rounds
                // it has by then.
                (0..200).for_each(|_| std::thread::yield_now());
                fork::join(
                    || until(|| met.load(Ordering::SeqCst)),
                    || met.store(true, Ordering::SeqCst),
                );
            };
            fork::join(
                || until(|| begun.load(Ordering::SeqCst)),
                || {
                    begun.store(true, Ordering::SeqCst);
                    fork::join(|| until(|| taken.load(Ordering::SeqCst)), descendant);
                },
            );
        }
    });
}

#[test]
fn descendants_on_top_of_two_joins_wait_for_halves_of_each_other() {
    on_several(|| {
        for _ in 0..ROUNDS {
            let (first, second) = (Latch::default(), Latch::default());
            let [begun, taken, taken_too] = [(); 3].map(|()| AtomicBool::new(false));
            let below = || {
                taken_too.store(true, Ordering::SeqCst);
                fork::join(|| first.clone().wait(), || first.open());
                second.open();
            };
            fork::join(
                || until(|| begun.load(Ordering::SeqCst)),
                || {
                    begun.store(true, Ordering::SeqCst);
                    fork::join(
                        || until(|| taken.load(Ordering::SeqCst)),
                        || {
                            taken.store(true, Ordering::SeqCst);
                            let waits = || {
                                until(|| taken_too.load(Ordering::SeqCst));
                                second.clone().wait();
                            };
                            fork::join(waits, below);
                        },
                    );
                },
            );
        }
    });
}
