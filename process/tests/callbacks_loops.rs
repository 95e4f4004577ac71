//! Loops and the continuation rule: one test for each row of the promise.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tools::watch;
use weald_kernel::{Runtime, now, sleep};
use weald_process::callback::{self, Handle, pause};

const MS: Duration = Duration::from_millis(1);

/// A list of notes, each with its millisecond of virtual time.
#[derive(Clone)]
struct Log(Arc<Mutex<Vec<String>>>, std::time::Instant);

impl Log {
    fn new() -> Log {
        Log(Arc::default(), now())
    }

    fn note(&self, what: &str) {
        let time = (now() - self.1).as_millis();
        self.0.lock().unwrap().push(format!("{time} {what}"));
    }

    fn taken(&self) -> String {
        std::mem::take(&mut *self.0.lock().unwrap()).join(", ")
    }
}

/// Runs `start` with a log in virtual time, for `ms`, and returns the notes.
fn noted(ms: u32, start: impl Fn(&Log) -> Vec<Handle>) -> String {
    let _watch = watch();
    let logs: Vec<String> = (0..5)
        .map(|seed| {
            Runtime::test(seed).block_on(async {
                let log = Log::new();
                let handles = start(&log);
                sleep(ms * MS).await;
                for handle in handles {
                    handle.cancel();
                }
                log.taken()
            })
        })
        .collect();
    assert!(logs.iter().all(|log| *log == logs[0]), "{logs:#?}");
    logs[0].clone()
}

#[test]
fn two_spawned_callbacks_go_to_the_end_of_the_queue() {
    let order = noted(1, |log| {
        let [a, b] = ["a", "b"].map(|name| {
            let log = log.clone();
            callback::spawn(move || log.note(name))
        });
        vec![a, b]
    });
    assert_eq!(order, "0 a, 0 b");
}

#[test]
fn after_returns_at_once_and_runs_its_callback_not_before_its_time() {
    let order = noted(20, |log| {
        let (outer, inner) = (log.clone(), log.clone());
        let started = callback::spawn(move || {
            callback::after(10 * MS, move || inner.note("after")).detach();
            outer.note("continues");
        });
        vec![started]
    });
    assert_eq!(order, "0 continues, 10 after");
}

#[test]
fn what_follows_a_sleep_belongs_to_the_sleeper() {
    let order = noted(34, |log| {
        let log = log.clone();
        let blink = callback::repeat(move || {
            log.note("on");
            let log = log.clone();
            pause(10 * MS).then(move || {
                log.note("off");
                pause(5 * MS)
            })
        });
        vec![blink.start()]
    });
    assert_eq!(order, "0 on, 10 off, 15 on, 25 off, 30 on");
}

#[test]
fn a_loop_whose_body_ends_with_a_sleep_waits_for_it() {
    let order = noted(25, |log| {
        let log = log.clone();
        let slow = callback::repeat(move || {
            log.note("round");
            pause(10 * MS)
        });
        vec![slow.start()]
    });
    assert_eq!(order, "0 round, 10 round, 20 round");
}

#[test]
fn a_nested_loop_that_is_started_is_a_task_of_its_own() {
    let order = noted(20, |log| {
        let log = log.clone();
        let outer = callback::for_each(0..2, move |n| {
            log.note(&format!("outer {n}"));
            let log = log.clone();
            let inner = callback::for_each(0..2, move |m| {
                log.note(&format!("inner {n}.{m}"));
                pause(5 * MS)
            });
            inner.start().detach();
        });
        vec![outer.start()]
    });
    assert_eq!(
        order,
        "0 outer 0, 0 inner 0.0, 0 outer 1, 0 inner 1.0, 5 inner 0.1, 5 inner 1.1"
    );
}

#[test]
fn a_nested_loop_that_is_returned_is_awaited() {
    let order = noted(30, |log| {
        let log = log.clone();
        let outer = callback::for_each(0..2, move |n| {
            log.note(&format!("outer {n}"));
            let log = log.clone();
            callback::for_each(0..2, move |m| {
                log.note(&format!("inner {n}.{m}"));
                pause(5 * MS)
            })
        });
        vec![outer.start()]
    });
    assert_eq!(
        order,
        "0 outer 0, 0 inner 0.0, 5 inner 0.1, 10 outer 1, 10 inner 1.0, 15 inner 1.1"
    );
}

#[test]
fn each_round_of_a_loop_goes_to_the_end_of_the_queue() {
    let order = noted(1, |log| {
        let loops = ["a", "b"].map(|name| {
            let log = log.clone();
            let mut left = 3;
            callback::repeat(move || {
                if left > 0 {
                    left -= 1;
                    log.note(name);
                    return pause(Duration::ZERO);
                }
                pause(Duration::from_secs(1))
            })
            .start()
        });
        loops.into()
    });
    assert_eq!(order, "0 a, 0 b, 1 a, 1 b");
}

/// Runs `other` beside a loop whose steps are all alike, and returns the notes of both.
fn beside(other: impl Fn(Log) -> Handle) -> String {
    noted(1, |log| {
        let ticks = log.clone();
        let steps = callback::for_each(0..4, move |n| ticks.note(&format!("tick {n}")));
        vec![other(log.clone()), steps.start()]
    })
}

#[test]
fn while_has_condition_and_body_as_steps_of_their_own() {
    let order = beside(|log| {
        let body = log.clone();
        let mut left = 2;
        let condition = move || {
            log.note("condition");
            left -= 1;
            left >= 0
        };
        callback::repeat_while(condition, move || body.note("body")).start()
    });
    assert_eq!(
        order,
        "0 condition, 0 body, 0 tick 0, 0 condition, 0 body, 0 tick 1, 0 condition, 0 tick 2, 0 tick 3"
    );
}

#[test]
fn do_while_runs_its_body_before_its_condition() {
    let order = beside(|log| {
        let body = log.clone();
        let mut left = 2;
        let condition = move || {
            log.note("condition");
            left -= 1;
            left > 0
        };
        callback::do_while(move || body.note("body"), condition).start()
    });
    assert_eq!(
        order,
        "0 body, 0 condition, 0 tick 0, 0 body, 0 condition, 0 tick 1, 0 tick 2, 0 tick 3"
    );
}

#[test]
fn for_has_its_next_item_and_its_body_as_steps_of_their_own() {
    let order = beside(|log| {
        let steps = log.clone();
        let items = std::iter::successors(Some(0), move |n| {
            steps.note("step");
            (*n < 1).then_some(n + 1)
        });
        callback::for_each(items, move |n| log.note(&format!("body {n}"))).start()
    });
    assert!(order.contains("body 0"), "{order}");
    assert!(order.contains("body 1"), "{order}");
    assert!(!order.contains("body 2"), "{order}");
}

#[test]
fn a_loop_whose_condition_became_false_leaves_nothing_behind() {
    let _watch = watch();
    Runtime::test(3).block_on(async {
        let drops = Arc::new(());
        let held = drops.clone();
        let over = callback::for_each(0..3, move |_| {
            let _held = &held;
        });
        let over = over.start();
        sleep(MS).await;
        assert!(over.is_over());
        assert_eq!(Arc::strong_count(&drops), 1);
    });
}

#[test]
fn a_loop_cancels_itself_between_two_rounds() {
    let _watch = watch();
    Runtime::test(3).block_on(async {
        let rounds = Arc::new(Mutex::new(0));
        let own: Arc<Mutex<Option<Handle>>> = Arc::default();
        let (count, handle) = (rounds.clone(), own.clone());
        let started = callback::repeat(move || {
            *count.lock().unwrap() += 1;
            if let Some(handle) = handle.lock().unwrap().take() {
                assert!(handle.cancel());
            }
        })
        .start();
        *own.lock().unwrap() = Some(started);
        sleep(5 * MS).await;
        assert_eq!(*rounds.lock().unwrap(), 1);
    });
}
