//! Models of the slot: no value ends while a thread has it, and none outlives all its holders.
//!
//! A slot has four shares here, so that two loads make the second buy.

use loom::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use crate::{Shared, Slot};

/// A value with data that is not atomic, so that loom finds a read of it that races with its end.
struct Value(Cell<u32>, Arc<AtomicUsize>);

// SAFETY: that looks and the end are ordered is what the models show; loom's cell fails otherwise.
#[allow(unsafe_code)]
unsafe impl Sync for Value {}

impl Value {
    fn new(number: u32, alive: &Arc<AtomicUsize>) -> Shared<Self> {
        alive.fetch_add(1, Ordering::Relaxed);
        Shared::new(Self(Cell::new(number), Arc::clone(alive)))
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        self.0.set(u32::MAX);
        self.1.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One thread loads, another one stores twice.
#[test]
fn a_load_against_stores() {
    loom::model(|| {
        let alive = Arc::new(AtomicUsize::new(0));
        let slot = Arc::new(Slot::new(Value::new(0, &alive)));
        let theirs = Arc::clone(&slot);
        let loads = thread::spawn(move || {
            let first = theirs.load();
            let second = theirs.load();
            assert!(first.0.get() <= second.0.get() && second.0.get() <= 2);
        });
        slot.store(Value::new(1, &alive));
        slot.store(Value::new(2, &alive));
        loads.join().unwrap();
        assert_eq!(slot.load().0.get(), 2);
        assert_eq!(alive.load(Ordering::Relaxed), 1);
        drop(slot);
        assert_eq!(alive.load(Ordering::Relaxed), 0);
    });
}

/// Two threads load so often that both buy, while the value is replaced and comes again.
#[test]
fn purchases_against_a_store_and_a_return() {
    loom::model(|| {
        let alive = Arc::new(AtomicUsize::new(0));
        let first = Value::new(1, &alive);
        let slot = Arc::new(Slot::new(first.clone()));
        let threads = [(); 2].map(|()| {
            let slot = Arc::clone(&slot);
            thread::spawn(move || {
                let held = [slot.load(), slot.load()];
                assert!(held.iter().all(|value| (1..=2).contains(&value.0.get())));
            })
        });
        slot.store(Value::new(2, &alive));
        slot.store(first);
        for thread in threads {
            thread.join().unwrap();
        }
        drop(slot);
        assert_eq!(alive.load(Ordering::Relaxed), 0);
    });
}

/// Two threads have the last shares that may be given, and have bought none yet: a third load waits for a purchase.
#[test]
fn a_load_when_all_shares_are_given() {
    loom::model(|| {
        let alive = Arc::new(AtomicUsize::new(0));
        let slot = Arc::new(Slot::new(Value::new(1, &alive)));
        let held = slot.load();
        let threads = [(); 2].map(|()| {
            let slot = Arc::clone(&slot);
            thread::spawn(move || assert_eq!(slot.load().0.get(), 1))
        });
        assert_eq!(slot.load().0.get(), 1);
        for thread in threads {
            thread.join().unwrap();
        }
        drop(slot);
        assert_eq!((held.0.get(), alive.load(Ordering::Relaxed)), (1, 1));
        drop(held);
        assert_eq!(alive.load(Ordering::Relaxed), 0);
    });
}
