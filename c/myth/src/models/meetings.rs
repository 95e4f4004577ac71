//! A model of the barrier: all pass, and one of them is told that it came last.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

use loom::thread;

use super::made_up::Shared;
use crate::barrier::Barrier;

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
