//! A thread that forks may hold a lock of `std`. So while its parts compute elsewhere, nothing else runs on its OS
//! thread. While the parts wait, others do run there, because the parts may wait for one of them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::async_yields_async,
    reason = "handles are handed out of a block_on"
)]

#[path = "../../kernel/tests/support/reports.rs"]
mod reports;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use reports::{collect_reports, reports};
use tools::{Latch, runtime, until, watch};
use weald_fiber as thread;
use weald_kernel::{Runtime, Wait, fork, spawn_local};

/// How often a test tries to hit the right moment.
const ROUNDS: usize = 50;

/// A waiting thread that is pinned to the OS thread of the test.
struct Neighbour {
    /// Ends the wait.
    latch: Latch,
    begun: Arc<AtomicBool>,
    /// Returns whether the lock was free when the thread resumed.
    handle: thread::JoinHandle<bool>,
}

impl Neighbour {
    /// A neighbour on the caller's OS thread.
    fn new(lock: &Arc<Mutex<u32>>) -> Neighbour {
        loop {
            let (neighbour, at) = Neighbour::anywhere(lock);
            if at == std::thread::current().id() {
                return neighbour;
            }
            neighbour.latch.open();
            neighbour.handle.join().unwrap();
        }
    }

    /// A neighbour on any OS thread, and that OS thread.
    fn anywhere(lock: &Arc<Mutex<u32>>) -> (Neighbour, std::thread::ThreadId) {
        let (latch, begun) = (Latch::default(), Arc::new(AtomicBool::new(false)));
        let at = Arc::new(Mutex::new(None));
        let (waits, begins, wants, records) =
            (latch.clone(), begun.clone(), lock.clone(), at.clone());
        let handle = thread::spawn(move || {
            *records.lock().unwrap() = Some(std::thread::current().id());
            waits.wait();
            begins.store(true, Ordering::SeqCst);
            wants.try_lock().is_ok()
        });
        while latch.waiters() == 0 {
            thread::yield_now();
        }
        let at = at.lock().unwrap().take().unwrap();
        (
            Neighbour {
                latch,
                begun,
                handle,
            },
            at,
        )
    }
}

/// Whether the monitor has reported that the thread of that name holds its OS thread.
fn is_reported_to_hold(name: &str) -> bool {
    reports("weald::monitor", name).iter().any(|report| {
        report.level == tracing::Level::WARN && report.text.contains("holds its OS thread")
    })
}

/// Runs `body` as a thread of that name on two workers, so that the other one may take what it forks.
fn on_two(name: &'static str, body: impl FnOnce() + Send + 'static) {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(2);
    let started = runtime.block_on(async { thread::Builder::new().name(name).spawn(body) });
    runtime.block_on(started.unwrap()).unwrap();
}

/// While a part computes, a neighbour of its owner wants a lock. The part ends when the owner is reported to hold its
/// OS thread.
fn holds_while_a_part_computes(
    name: &'static str,
    fork: fn(&(dyn Fn() + Sync), &(dyn Fn() + Sync)),
) {
    on_two(name, move || {
        let (lock, taken) = (Arc::new(Mutex::new(0)), AtomicBool::new(false));
        let Neighbour {
            latch,
            begun,
            handle,
        } = Neighbour::new(&lock);
        let guard = lock.lock().unwrap();
        fork(
            &|| {
                until(|| taken.load(Ordering::SeqCst));
                latch.open();
            },
            &|| {
                taken.store(true, Ordering::SeqCst);
                until(|| is_reported_to_hold(name) || begun.load(Ordering::SeqCst));
            },
        );
        drop(guard);
        assert!(handle.join().unwrap(), "it resumed while the lock was held");
        assert!(is_reported_to_hold(name));
    });
}

/// A part, taken by another worker, joins a neighbour of its owner.
fn gives_way_to_what_a_part_waits_for(fork: fn(&(dyn Fn() + Sync), &(dyn Fn() + Sync))) {
    on_two("the forker", move || {
        for _ in 0..5 {
            let Neighbour { latch, handle, .. } = Neighbour::new(&Arc::default());
            let (taken, handle) = (AtomicBool::new(false), Mutex::new(Some(handle)));
            fork(&|| until(|| taken.load(Ordering::SeqCst)), &|| {
                let joins = handle.lock().unwrap().take().unwrap();
                taken.store(true, Ordering::SeqCst);
                latch.open();
                joins.join().unwrap();
            });
        }
    });
}

fn join(first: &(dyn Fn() + Sync), second: &(dyn Fn() + Sync)) {
    fork::join(first, second);
}

fn scope(body: &(dyn Fn() + Sync), part: &(dyn Fn() + Sync)) {
    fork::scope(|scope| {
        scope.spawn(part);
        body();
    });
}

#[test]
fn a_join_holds_its_os_thread_while_a_half_computes() {
    holds_while_a_part_computes("the joiner", join);
}

#[test]
fn a_scope_holds_its_os_thread_while_a_part_computes() {
    holds_while_a_part_computes("the owner of a scope", scope);
}

#[test]
fn a_join_gives_way_to_what_a_half_waits_for() {
    gives_way_to_what_a_part_waits_for(join);
}

#[test]
fn a_scope_gives_way_to_what_a_part_waits_for() {
    gives_way_to_what_a_part_waits_for(scope);
}

/// A foreign thread may hold a lock of `std` across a join, and a job that is pinned to the thread may want it.
#[test]
fn a_join_of_a_foreign_thread_runs_nothing_that_is_pinned_to_it() {
    let _watch = watch();
    let runtime = runtime(2);
    let lock = Arc::new(Mutex::new(0));
    for _ in 0..ROUNDS {
        let wants = lock.clone();
        let holds = &lock;
        let is_free = runtime.block_on(async move {
            let local = spawn_local(async move { wants.try_lock().is_ok() }).unwrap();
            let taken = AtomicBool::new(false);
            let guard = holds.lock().unwrap();
            fork::join(
                || until(|| taken.load(Ordering::SeqCst)),
                || {
                    taken.store(true, Ordering::SeqCst);
                    // The test cannot see whether the owner waits; in most rounds it does by then.
                    (0..100).for_each(|_| std::thread::yield_now());
                },
            );
            drop(guard);
            local.await.unwrap()
        });
        assert!(is_free, "it ran while the lock was held");
    }
}

#[test]
fn a_foreign_thread_gives_way_to_what_its_parts_wait_for() {
    for fork in [join, scope] {
        let _watch = watch();
        let runtime = runtime(2);
        for _ in 0..5 {
            runtime.block_on(async {
                let local = spawn_local(async { 5 }).unwrap();
                let (taken, local) = (AtomicBool::new(false), Mutex::new(Some(local)));
                fork(&|| until(|| taken.load(Ordering::SeqCst)), &|| {
                    let joins = local.lock().unwrap().take().unwrap();
                    taken.store(true, Ordering::SeqCst);
                    assert_eq!(joins.wait().unwrap(), 5);
                });
            });
        }
    }
}

/// The part is suspended on the OS thread that joins the half, and the half cannot resume before the thread that
/// runs nested in it.
#[test]
fn a_half_that_joins_a_fresh_thread_lets_its_joiners_know_that_it_waits() {
    let _watch = watch();
    let builder = Runtime::builder().workers(3);
    let runtime = builder
        .stuck_after(Duration::from_secs(3600))
        .build()
        .unwrap();
    for _ in 0..ROUNDS / 5 {
        let stolen = Arc::new(AtomicBool::new(false));
        let part_begun = Arc::new(AtomicBool::new(false));
        let (left, part) = (Latch::default(), Latch::default());
        let occupies = {
            let (busy, ended) = (Latch::default(), part_begun.clone());
            let begun = busy.clone();
            let job = runtime.spawn(async move {
                begun.open();
                while !ended.load(Ordering::SeqCst) {
                    std::hint::spin_loop();
                }
            });
            runtime.block_on(busy);
            job
        };
        let job = {
            let (left, part) = (left.clone(), part.clone());
            runtime.spawn(async move {
                let resumes = left.clone();
                let thread = move || {
                    fork::join(
                        || until(|| part_begun.load(Ordering::SeqCst)),
                        || {
                            part_begun.store(true, Ordering::SeqCst);
                            resumes.open();
                            part.wait();
                        },
                    );
                };
                fork::join(
                    || {
                        until(|| stolen.load(Ordering::SeqCst));
                        left.wait();
                    },
                    || {
                        stolen.store(true, Ordering::SeqCst);
                        thread::spawn(thread).join().unwrap();
                    },
                );
            })
        };
        let joins = || {
            let waits = runtime.waits();
            let reasons = waits.jobs.iter().filter_map(|waiting| waiting.reason);
            let texts = reasons.map(|reason| reason.to_string());
            let joins = texts.filter(|text| text.contains("another job's end"));
            joins.count()
        };
        // The owner of the half, and the thread that the half runs.
        until(|| part.waiters() > 0 && joins() >= 2);
        part.open();
        runtime.block_on(job).unwrap();
        runtime.block_on(occupies).unwrap();
    }
}

#[test]
fn halves_of_a_fresh_thread_that_is_joined_in_a_fork_run_beside_each_other() {
    let _watch = watch();
    let runtime = runtime(2);
    let meet = |here: &AtomicBool, there: &AtomicBool| {
        here.store(true, Ordering::SeqCst);
        until(|| there.load(Ordering::SeqCst));
    };
    let thread = move || {
        let (left, right) = (AtomicBool::new(false), AtomicBool::new(false));
        fork::join(|| meet(&left, &right), || meet(&right, &left));
    };
    let job = runtime.spawn(async move {
        fork::join(|| thread::spawn(thread).join().unwrap(), || ());
    });
    runtime.block_on(job).unwrap();
}
