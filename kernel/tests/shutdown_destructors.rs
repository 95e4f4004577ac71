//! A shutdown while destructors block, compute, or wait for each other: it ends, and names what holds a thread.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::async_yields_async, reason = "a block_on returns handles")]

#[path = "support/blocker.rs"]
mod blocker;
#[path = "support/tools.rs"]
mod tools;

use std::{
    future::pending,
    io::{Read, Write},
    os::unix::net::UnixStream,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use blocker::Blocker;
use tools::{Latch, runtime, until, watch};
use weald_kernel::{
    Done, Interest, IoSource, Runtime, ShutdownReport, Spawn, Wait, block_in_place, sleep,
};

/// Calls a closure when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Starts a job that waits for ever and holds a value whose destructor is `destructor`, and waits until it has begun.
fn spawn_with(runtime: &Runtime, name: &'static str, destructor: impl FnMut() + Send + 'static) {
    let begun = Arc::new(AtomicUsize::new(0));
    let (guard, begins) = (OnDrop(destructor), begun.clone());
    let named = Spawn::new().name(name);
    let job = async move {
        let _guard = guard;
        begins.fetch_add(1, Ordering::SeqCst);
        pending::<()>().await;
    };
    runtime.block_on(async { named.spawn(job).detach() });
    until(|| begun.load(Ordering::SeqCst) == 1);
}

fn names(report: &ShutdownReport) -> Vec<&str> {
    let names = report.not_stopped.iter();
    let mut names: Vec<_> = names.filter_map(|job| job.name.as_deref()).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_shutdown_leaves_destructors_that_block_behind_and_names_them() {
    let _watch = watch();
    for workers in [1, 2] {
        let (runtime, blocker, drops) = (runtime(workers), Blocker::default(), Arc::default());
        spawn_two_that_block(&runtime, &blocker, &drops);
        let report = runtime.shutdown(Duration::from_millis(50));
        let names = names(&report);
        // The third one may have had no turn.
        assert!(
            names.contains(&"one") && names.contains(&"two"),
            "{names:?}"
        );
        blocker.open();
        until(|| drops.load(Ordering::SeqCst) == 3);
    }
}

#[test]
fn destructors_that_block_hold_up_no_other_in_a_shutdown() {
    let _watch = watch();
    for workers in [1, 2] {
        let (runtime, blocker, drops) = (runtime(workers), Blocker::default(), Arc::default());
        spawn_two_that_block(&runtime, &blocker, &drops);
        let report = thread::scope(|scope| {
            let shutdown = scope.spawn(|| runtime.shutdown(Duration::from_secs(3_600)));
            until(|| blocker.begun() == 2 && drops.load(Ordering::SeqCst) == 1);
            blocker.open();
            shutdown.join().unwrap()
        });
        assert_eq!(names(&report), [""; 0]);
        assert_eq!(drops.load(Ordering::SeqCst), 3);
    }
}

/// Two jobs whose destructors block, and behind them one whose destructor does not. They count in `drops`.
fn spawn_two_that_block(runtime: &Runtime, blocker: &Blocker, drops: &Arc<AtomicUsize>) {
    for name in ["one", "two", "none"] {
        let (blocker, drops) = (blocker.clone(), drops.clone());
        spawn_with(runtime, name, move || {
            if name != "none" {
                blocker.block();
            }
            drops.fetch_add(1, Ordering::SeqCst);
        });
    }
}

/// More than there are spare threads, so that some have no turn before the runtime stops.
#[test]
fn a_shutdown_ends_although_more_destructors_block_than_there_are_threads() {
    let _watch = watch();
    let runtime = Runtime::builder().workers(1).spare_threads(2);
    let (runtime, blocker) = (runtime.build().unwrap(), Blocker::default());
    let dropped = Arc::new(AtomicUsize::new(0));
    for _ in 0..8 {
        let (blocker, dropped) = (blocker.clone(), dropped.clone());
        let destructor = move || {
            blocker.block();
            dropped.fetch_add(1, Ordering::SeqCst);
        };
        spawn_with(&runtime, "blocks", destructor);
    }
    let report = runtime.shutdown(Duration::from_millis(50));
    // There are three threads, and that of the shutdown.
    let names = names(&report);
    assert!(!names.is_empty() && names.iter().all(|name| *name == "blocks"));
    assert!(
        names.len() <= 4 && names.len() + report.left == 8,
        "{report:?}"
    );
    blocker.open();
    until(|| dropped.load(Ordering::SeqCst) == 8);
}

#[test]
fn a_destructor_that_waits_for_what_another_job_holds_does_not_hang_a_shutdown() {
    let _watch = watch();
    let (runtime, latch, dropped) = (runtime(1), Latch::default(), Arc::default());
    let (waits, counts) = (latch.clone(), Arc::<AtomicUsize>::clone(&dropped));
    let waits = move || {
        waits.clone().wait();
        counts.fetch_add(1, Ordering::SeqCst);
    };
    spawn_with(&runtime, "waits", waits);
    spawn_with(&runtime, "opens", move || latch.open());
    let report = runtime.shutdown(Duration::from_secs(10));
    assert_eq!(names(&report), [""; 0]);
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

/// A job ends whose output has this `destructor`, once nobody has a handle to it: else the handle would drop the
/// output.
fn ends_unjoined(runtime: &Runtime, destructor: impl FnMut() + Send + 'static) {
    let has_no_handle = Latch::default();
    let waits = has_no_handle.clone();
    let job = async move {
        waits.await;
        OnDrop(destructor)
    };
    runtime.block_on(async { Spawn::new().name("has ended").spawn(job).detach() });
    has_no_handle.open();
}

/// Its future is gone, so it is not a live job.
#[test]
fn a_job_whose_output_blocks_when_it_is_dropped_is_named() {
    let _watch = watch();
    let (runtime, blocker) = (runtime(1), Blocker::default());
    let blocks = blocker.clone();
    ends_unjoined(&runtime, move || blocks.block());
    until(|| blocker.begun() == 1 && runtime.metrics().detached == 1);
    let report = runtime.shutdown(Duration::from_millis(50));
    assert_eq!(names(&report), ["has ended"]);
    blocker.open();
}

/// As above, but the destructor announces that it blocks, or nobody could take the worker from it.
#[test]
fn a_job_whose_output_holds_its_thread_unwatched_is_named() {
    let _watch = watch();
    for announces in [true, false] {
        let spare = usize::from(announces) * 8;
        let runtime = Runtime::builder().workers(1).spare_threads(spare);
        let (runtime, blocker) = (runtime.build().unwrap(), Blocker::default());
        let blocks = blocker.clone();
        let destructor = move || match announces {
            true => block_in_place(|| blocks.block()),
            false => blocks.block(),
        };
        ends_unjoined(&runtime, destructor);
        until(|| blocker.begun() == 1);
        let report = runtime.shutdown(Duration::from_millis(50));
        assert_eq!(names(&report), ["has ended"]);
        blocker.open();
    }
}

/// One after another, as no thread is spare: each lets the next one begin, after a while or when the shutdown has
/// returned.
#[test]
fn many_short_destructors_do_not_delay_a_shutdown_beyond_its_deadline() {
    let _watch = watch();
    let runtime = Runtime::builder().workers(1).spare_threads(0);
    let (runtime, jobs) = (runtime.build().unwrap(), 2_000);
    let (dropped, is_over) = (Arc::new(AtomicUsize::new(0)), Blocker::default());
    for _ in 0..jobs {
        let (dropped, is_over) = (dropped.clone(), is_over.clone());
        spawn_with(&runtime, "short", move || {
            is_over.block_for(Duration::from_millis(10));
            dropped.fetch_add(1, Ordering::SeqCst);
        });
    }
    // Holds the only worker, so that the shutdown's own thread ends the jobs.
    let blocker = Blocker::default();
    let blocks = blocker.clone();
    let blocks = async move { blocks.block() };
    runtime.block_on(async { Spawn::new().name("holder").spawn(blocks).detach() });
    until(|| blocker.begun() == 1);
    let report = runtime.shutdown(Duration::from_millis(20));
    assert!(dropped.load(Ordering::SeqCst) < jobs);
    assert!(names(&report).contains(&"holder") && report.left > 1);
    is_over.open();
    blocker.open();
    until(|| dropped.load(Ordering::SeqCst) == jobs);
}

/// No thread can take the worker over, so that nobody would run the jobs that the caller has cancelled.
#[test]
fn a_job_that_holds_the_only_worker_drops_its_runtime_at_once() {
    let _watch = watch();
    let runtime = Runtime::builder().workers(1).spare_threads(0);
    let runtime = runtime.shutdown_deadline(Duration::from_secs(3_600));
    let runtime = Arc::new(std::sync::Mutex::new(Some(runtime.build().unwrap())));
    let (own, dropped) = (runtime.clone(), Arc::new(AtomicUsize::new(0)));
    let counts = dropped.clone();
    let lock = runtime.lock().unwrap();
    let count = move || _ = counts.fetch_add(1, Ordering::SeqCst);
    spawn_with(lock.as_ref().unwrap(), "waits", count);
    let drops_runtime = async move { drop(own.lock().unwrap().take()) };
    lock.as_ref().unwrap().spawn(drops_runtime).detach();
    drop(lock);
    until(|| dropped.load(Ordering::SeqCst) == 1);
}

/// The stop falls into the poll, so that no round of the wait sees it begin.
#[test]
fn a_wait_in_a_destructor_looks_again_once_the_runtime_has_stopped() {
    let _watch = watch();
    let (runtime, blocker, dropped) = (runtime(1), Blocker::default(), Arc::default());
    let (blocks, counts) = (blocker.clone(), Arc::<AtomicUsize>::clone(&dropped));
    spawn_with(&runtime, "waits", move || {
        let mut polls = 0;
        let looks_twice = std::future::poll_fn(|_| {
            polls += 1;
            if polls == 1 {
                blocks.block();
                return std::task::Poll::Pending;
            }
            std::task::Poll::Ready(())
        });
        looks_twice.wait();
        counts.fetch_add(1, Ordering::SeqCst);
    });
    let report = runtime.shutdown(Duration::from_millis(50));
    assert_eq!(names(&report), ["waits"]);
    blocker.open();
    until(|| dropped.load(Ordering::SeqCst) == 1);
}

/// The workers serve timers and descriptors for as long as a destructor waits for them.
#[test]
fn a_destructor_that_says_goodbye_over_a_socket_gets_its_answer() {
    let _watch = watch();
    let (runtime, answered) = (runtime(1), Arc::new(AtomicUsize::new(0)));
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    theirs.set_nonblocking(true).unwrap();
    let source = runtime.block_on(async { IoSource::new(theirs).unwrap() });
    let counts = answered.clone();
    spawn_with(&runtime, "says goodbye", move || {
        // Longer than a shutdown takes in which everything waits.
        sleep(Duration::from_millis(30)).wait();
        source.get_ref().write_all(b"bye").unwrap();
        let read = |mut io: &UnixStream| io.read(&mut [0; 8]).map(Done::Maybe);
        let read = source.operate(Interest::Read, read).wait().unwrap();
        counts.fetch_add(read, Ordering::SeqCst);
    });
    thread::spawn(move || {
        ours.read_exact(&mut [0; 3]).unwrap();
        ours.write_all(b"bye").unwrap();
    });
    let report = runtime.shutdown(Duration::from_secs(3_600));
    assert_eq!(names(&report), [""; 0]);
    assert_eq!(answered.load(Ordering::SeqCst), 3);
}
