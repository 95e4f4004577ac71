//! Waits whose end a word in their own frame tells (`wait_until`): their wakes are theirs, whatever else the unit waits
//! for before it is suspended.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::async_yields_async,
    reason = "handles are handed out of a block_on"
)]
#![allow(unsafe_code)]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::Waker,
};

use tools::{Latch, runtime, until, watch};
use weald_fiber as thread;
use weald_kernel::{Describe, Wait, WorkKind, describe_job, wait_until};

/// A wait that is over as soon as its job is told that it takes long. Whoever is told waits then, too, which uses up
/// the wake.
#[derive(Default)]
struct OverWhenTold {
    waker: Mutex<Option<Waker>>,
    is_over: AtomicBool,
    other: Latch,
}

impl fmt::Debug for OverWhenTold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OverWhenTold")
    }
}

impl Describe for OverWhenTold {
    fn name(&self) -> String {
        "over when told".to_owned()
    }

    fn takes_long(&self) {
        let Some(waker) = self.waker.lock().unwrap().take() else {
            return;
        };
        self.is_over.store(true, Ordering::SeqCst);
        waker.wake();
        self.other.clone().wait();
    }
}

fn wait_and_be_told(told: &Arc<OverWhenTold>) {
    describe_job(told.clone(), WorkKind::new());
    let enqueue = |waker: &Waker| {
        *told.waker.lock().unwrap() = Some(waker.clone());
        true
    };
    assert!(wait_until(enqueue, || told.is_over.load(Ordering::SeqCst)));
}

#[test]
fn a_wake_is_not_lost_to_a_wait_of_who_is_told_that_it_takes_long() {
    let _watch = watch();
    for migrates in [false, true] {
        let (runtime, told) = (runtime(1), Arc::new(OverWhenTold::default()));
        let waits = told.clone();
        let unit = runtime.block_on(async move {
            let wait = move || wait_and_be_told(&waits);
            match migrates {
                false => thread::spawn(wait),
                // SAFETY: it keeps nothing across a wait that depends on the OS thread.
                true => unsafe { thread::Builder::new().spawn_migrating(wait) }.unwrap(),
            }
        });
        until(|| told.other.waiters() == 1);
        told.other.open();
        runtime.block_on(unit).unwrap();
    }
}
