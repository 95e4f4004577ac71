//! Each thread has its own value of a key, which is dropped before the thread's join returns.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/on_workers.rs"]
mod on_workers;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{cell::RefCell, sync::Mutex};

use on_workers::on_workers;
use weald_fiber::{self as thread, AccessError, LocalKey};

#[test]
fn values_stay_each_threads_own_across_waits() {
    static WORDS: LocalKey<RefCell<Vec<u32>>> = LocalKey::new(Default::default);
    on_workers(1, || {
        let threads: Vec<_> = (0..10)
            .map(|me| {
                thread::spawn(move || {
                    for round in 0..10 {
                        WORDS.with(|words| words.borrow_mut().push(me * 10 + round));
                        thread::yield_now();
                    }
                    WORDS.with(RefCell::take)
                })
            })
            .collect();
        for (me, handle) in (0..).zip(threads) {
            let words: Vec<u32> = (me * 10..me * 10 + 10).collect();
            assert_eq!(handle.join().unwrap(), words);
        }
    });
}

#[test]
fn locals_are_dropped_the_latest_first_before_a_join_returns() {
    static LOG: Mutex<Vec<&str>> = Mutex::new(Vec::new());
    struct Logs(&'static str);
    impl Drop for Logs {
        fn drop(&mut self) {
            thread::yield_now();
            LOG.lock().unwrap().push(self.0);
        }
    }
    static FIRST: LocalKey<Logs> = LocalKey::new(|| Logs("first"));
    static SECOND: LocalKey<Logs> = LocalKey::new(|| {
        FIRST.with(|_| ());
        Logs("second")
    });
    on_workers(1, || {
        thread::spawn(|| SECOND.with(|_| ())).join().unwrap();
        assert_eq!(*LOG.lock().unwrap(), ["second", "first"]);
    });
}

#[test]
fn there_are_no_locals_outside_of_threads_or_in_their_destructors() {
    static KEY: LocalKey<u32> = LocalKey::new(|| 1);
    static SEEN: Mutex<Option<Result<u32, AccessError>>> = Mutex::new(None);
    struct Looks;
    impl Drop for Looks {
        fn drop(&mut self) {
            *SEEN.lock().unwrap() = Some(KEY.try_with(|value| *value));
        }
    }
    static LOOKS: LocalKey<Looks> = LocalKey::new(|| Looks);
    assert_eq!(KEY.try_with(|value| *value), Err(AccessError));
    on_workers(1, || {
        thread::spawn(|| LOOKS.with(|_| ())).join().unwrap();
        assert_eq!(*SEEN.lock().unwrap(), Some(Err(AccessError)));
    });
}

#[test]
fn a_value_that_its_own_initialiser_uses_is_created_once() {
    static KEY: LocalKey<u32> = LocalKey::new(|| match DEPTH.with(|depth| depth.replace(1)) {
        0 => KEY.with(|inner| *inner) + 100,
        _ => 7,
    });
    static DEPTH: LocalKey<std::cell::Cell<u32>> = LocalKey::new(Default::default);
    on_workers(1, || {
        thread::spawn(|| {
            assert_eq!(KEY.with(|value| *value), 7);
            assert_eq!(KEY.with(|value| *value), 7);
        })
        .join()
        .unwrap();
    });
}
