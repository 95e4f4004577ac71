//! Models of the list of fork deques: no two threads have one claimed at a time, a walk sees only complete ones, and
//! either a claimer or a walk sees the other.

use std::sync::Arc;

#[cfg(not(loom))]
use crate::models::loom_on_std as loom;
use loom::{cell::Cell, thread};

use crate::{
    fork::in_use::InUse,
    sys::{AtomicBool, Ordering, barrier},
};

/// A made-up thing. Two claimers of one at a time, or two that are not ordered, are a data race.
struct Thing {
    number: usize,
    claims: Cell<usize>,
    is_complete: AtomicBool,
}

impl Thing {
    fn new(number: usize) -> Thing {
        Thing {
            number,
            claims: Cell::new(0),
            // Relaxed: the list publishes it.
            is_complete: AtomicBool::new(true),
        }
    }

    /// What its claimer does with it.
    fn count(&self) {
        self.claims.set(self.claims.get() + 1);
    }
}

// SAFETY: only a claimer uses the cell, and loom checks that.
#[allow(unsafe_code)]
unsafe impl Sync for Thing {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Send for Thing {}

/// Two threads claim, use and give back, while one more is claimed: a chunk has two places, so one of them may need a
/// second chunk.
#[test]
fn claimers_beside_each_other() {
    loom::model(|| {
        let list = Arc::new(InUse::new());
        let own = list.claim(Thing::new);
        own.count();
        let other = {
            let list = list.clone();
            thread::spawn(move || {
                let thing = list.claim(Thing::new);
                thing.count();
                list.give_back(thing.number);
            })
        };
        let thing = list.claim(Thing::new);
        thing.count();
        list.give_back(thing.number);
        list.give_back(own.number);
        other.join().unwrap();
        assert_eq!(list.iter().count(), 0);
    });
}

/// A thing is claimed, given back and claimed again while another thread walks.
#[test]
fn a_walk_beside_claims() {
    loom::model(|| {
        let list = Arc::new(InUse::new());
        let walker = {
            let list: Arc<InUse<Thing>> = list.clone();
            thread::spawn(move || {
                for thing in list.iter() {
                    assert!(thing.is_complete.load(Ordering::Relaxed));
                }
            })
        };
        for _ in 0..2 {
            let thing = list.claim(Thing::new);
            thing.count();
            list.give_back(thing.number);
        }
        walker.join().unwrap();
        let thing = list.claim(Thing::new);
        assert_eq!(thing.number, 0, "it is used again");
    });
}

/// As a root fork that begins, against a cancel or a worker that is about to sleep: each tells the other by a word, and
/// one of them sees it.
#[test]
fn a_claimer_and_a_walk_do_not_miss_each_other() {
    loom::model(|| {
        let list = Arc::new(InUse::new());
        let is_walking = Arc::new(AtomicBool::new(false));
        let walker = {
            let (list, is_walking): (Arc<InUse<Thing>>, _) = (list.clone(), is_walking.clone());
            thread::spawn(move || {
                is_walking.store(true, Ordering::Relaxed);
                barrier::full();
                list.iter().count()
            })
        };
        let _thing = list.claim(Thing::new);
        barrier::full();
        let sees = is_walking.load(Ordering::Relaxed);
        let seen = walker.join().unwrap();
        assert!(sees || seen == 1);
    });
}
