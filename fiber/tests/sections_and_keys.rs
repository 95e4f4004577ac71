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
use weald_fiber::{self as thread, CancelShield, JoinError, Key, Prefer, yield_to};

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
        let spins = thread::spawn(|| {
            loop {
                yield_to(Prefer::StealOnly);
                yield_to(Prefer::Fair);
            }
        });
        thread::yield_now();
        spins.cancel();
        let ended: Result<(), _> = spins.join();
        assert!(matches!(ended, Err(JoinError::Cancelled)));
    });
}
