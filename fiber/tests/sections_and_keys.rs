//! Sections that no cancel ends, keys that are made at run time, and yields that only stay or only steal.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/on_workers.rs"]
mod on_workers;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    cell::{Cell, RefCell},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use on_workers::on_workers;
use tools::watch;
use weald_fiber::{self as thread, CancelShield, JoinError, Key, Prefer, yield_to};
use weald_kernel::{Runtime, spawn};
use weald_sync::oneshot;

#[test]
fn a_cancel_waits_until_the_section_ends() {
    on_workers(1, || {
        let log = Arc::new(Mutex::new(Vec::new()));
        let logs = log.clone();
        let worker = thread::spawn(move || {
            let note = |what| logs.lock().unwrap().push(what);
            let section = CancelShield::begin();
            let inner = CancelShield::begin();
            thread::park();
            note("in the section");
            drop(inner);
            thread::yield_now();
            note("still in the section");
            drop(section);
            thread::yield_now();
            note("after the cancel");
        });
        thread::yield_now();
        worker.cancel();
        thread::yield_now();
        assert!(log.lock().unwrap().is_empty() && !worker.is_finished());
        worker.thread().unpark();
        assert!(matches!(worker.join(), Err(JoinError::Cancelled)));
        assert_eq!(
            *log.lock().unwrap(),
            ["in the section", "still in the section"]
        );
    });
}

#[test]
fn sections_may_end_in_any_order() {
    on_workers(1, || {
        let log = Arc::new(Mutex::new(Vec::new()));
        let logs = log.clone();
        let worker = thread::spawn(move || {
            let first = CancelShield::begin();
            let second = CancelShield::begin();
            thread::park();
            drop(first);
            thread::yield_now();
            logs.lock().unwrap().push("in the second");
            drop(second);
            thread::yield_now();
            logs.lock().unwrap().push("after both");
        });
        thread::yield_now();
        worker.cancel();
        worker.thread().unpark();
        assert!(matches!(worker.join(), Err(JoinError::Cancelled)));
        assert_eq!(*log.lock().unwrap(), ["in the second"]);
    });
}

#[test]
fn each_key_has_a_value_of_its_own_in_each_thread_even_after_the_key_is_gone() {
    struct Counts(Arc<Mutex<u32>>);
    impl Drop for Counts {
        fn drop(&mut self) {
            *self.0.lock().unwrap() += 1;
        }
    }
    on_workers(1, || {
        let dropped = Arc::new(Mutex::new(0));
        let keys: Vec<_> = (0..10_usize)
            .map(|first| Key::new(move || Cell::new(first)))
            .collect();
        let keys = Arc::new(keys);
        let threads: Vec<_> = (0..3_usize)
            .map(|me| {
                let (keys, dropped) = (keys.clone(), dropped.clone());
                thread::spawn(move || {
                    let counted = Key::new(move || Counts(dropped.clone()));
                    counted.with(|_| ());
                    drop(counted);
                    for (at, key) in keys.iter().enumerate() {
                        assert_eq!(key.with(|value| value.replace(100 * me + at)), at);
                        thread::yield_now();
                    }
                    keys.iter().map(|key| key.with(Cell::get)).sum::<usize>()
                })
            })
            .collect();
        for (me, thread) in threads.into_iter().enumerate() {
            assert_eq!(thread.join().unwrap(), 1000 * me + 45);
        }
        assert_eq!(*dropped.lock().unwrap(), 3);
    });
    let key = Key::new(|| RefCell::new(0));
    assert!(key.try_with(|_| ()).is_err(), "no thread of Weald");
}

#[test]
fn a_yield_that_only_steals_runs_no_job_of_its_own_worker_and_one_that_stays_does() {
    on_workers(1, || {
        yield_to(Prefer::LocalOnly);
        let ran = Arc::new(AtomicBool::new(false));
        let runs = ran.clone();
        let other = thread::spawn(move || runs.store(true, Ordering::Relaxed));
        yield_to(Prefer::StealOnly);
        assert!(!ran.load(Ordering::Relaxed));
        yield_to(Prefer::LocalOnly);
        assert!(ran.load(Ordering::Relaxed));
        other.join().unwrap();
    });
}

#[test]
fn a_yield_without_a_job_to_run_is_a_point_of_cancelling() {
    on_workers(1, || {
        let me = Arc::new(Mutex::new(None::<thread::JoinHandle<()>>));
        let own = me.clone();
        let went_on = Arc::new(AtomicBool::new(false));
        let goes_on = went_on.clone();
        let spins = thread::spawn(move || {
            thread::park();
            own.lock().unwrap().as_ref().unwrap().cancel();
            yield_to(Prefer::StealOnly);
            goes_on.store(true, Ordering::Relaxed);
        });
        let unparks = spins.thread().clone();
        *me.lock().unwrap() = Some(spins);
        thread::yield_now();
        unparks.unpark();
        thread::yield_now();
        let thread = me.lock().unwrap().take().unwrap();
        let ended = thread.join();
        assert!(matches!(ended, Err(JoinError::Cancelled)));
        assert!(!went_on.load(Ordering::Relaxed));
    });
}

/// A test runtime has one worker, and no monitor that would take it from a thread which does not let go.
#[test]
fn a_loop_of_yields_that_find_nothing_lets_others_run() {
    let _watch = watch();
    for prefer in [Prefer::LocalOnly, Prefer::StealOnly] {
        Runtime::test(1).block_on(async move {
            let looping = thread::spawn(move || {
                let (sends, mut receives) = oneshot::channel();
                let flag = Arc::new(AtomicBool::new(false));
                let sets = flag.clone();
                spawn(async move {
                    receives.receive().await.unwrap();
                    sets.store(true, Ordering::Release);
                })
                .detach();
                thread::yield_now();
                // What another thread wakes comes to the worker only when that looks around.
                std::thread::spawn(move || sends.send(()).unwrap())
                    .join()
                    .unwrap();
                while !flag.load(Ordering::Acquire) {
                    yield_to(prefer);
                }
            });
            looping.await.unwrap();
        });
    }
}
