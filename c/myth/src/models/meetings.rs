//! Models of the barrier, where all pass and one of them is told that it came last, and of the unconditional wait,
//! where nobody takes their own signal.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

use loom::{cell::Cell, thread};

use super::made_up::Shared;
use crate::{barrier::Barrier, uncond::Uncond};

#[test]
fn two_threads_meet_twice() {
    loom::model(|| {
        let barrier = Arc::new(Shared(Barrier::new(2).unwrap()));
        let last = Arc::new(AtomicU32::new(0));
        let meet = |barrier: &Shared<Barrier>, last: &AtomicU32| {
            for _ in 0..2 {
                last.fetch_add(u32::from(barrier.0.wait()), Relaxed);
            }
        };
        let (other, also) = (Arc::clone(&barrier), Arc::clone(&last));
        let other = thread::spawn(move || meet(&other, &also));
        meet(&barrier, &last);
        other.join().unwrap();
        assert_eq!(last.load(Relaxed), 2);
    });
}

#[test]
fn a_signal_waits_for_another_thread() {
    loom::model(|| {
        let shared = Arc::new(Shared((Uncond::new(), Cell::new(false))));
        let answering = Arc::clone(&shared);
        let answering = thread::spawn(move || {
            let (uncond, has_answered) = &answering.0;
            uncond.wait();
            has_answered.set(true);
            uncond.signal();
        });
        let (uncond, has_answered) = &shared.0;
        uncond.signal();
        uncond.wait();
        assert!(has_answered.get());
        answering.join().unwrap();
    });
}
