//! Models of timers: an entry is freed once, by one side, and its waker is taken once or dropped.

#![allow(unsafe_code)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Wake, Waker},
};

use loom::{cell::Cell, thread};

use crate::{
    biased_lock::{BiasedLock, Lease},
    scheduler::workers::search,
    timer::{
        entry::{EntryPtr, EntryState, TimerOwes},
        wheel::Wheel,
    },
};

/// An entry without a wheel. loom watches the cells: freeing must come after all that others do.
struct Entry {
    state: EntryState,
    waker: Cell<Option<&'static str>>,
    /// Read by each side before it gives up its claim, written by the side that frees.
    memory: Cell<&'static str>,
    frees: AtomicUsize,
    wakes: AtomicUsize,
}

impl Entry {
    fn new() -> Arc<Entry> {
        Arc::new(Entry {
            state: EntryState::new(),
            waker: Cell::new(Some("waker")),
            memory: Cell::new("in use"),
            frees: AtomicUsize::new(0),
            wakes: AtomicUsize::new(0),
        })
    }

    fn assert_in_use(&self) {
        assert_eq!(self.memory.get(), "in use");
    }

    fn free(&self) {
        self.assert_in_use();
        self.memory.set("freed");
        self.waker.take();
        self.frees.fetch_add(1, Ordering::Relaxed);
    }

    /// The worker's side, as `search::expire` and `search::fire` do it.
    fn expire_and_fire(&self) {
        self.assert_in_use();
        if self.state.expire() == TimerOwes::Free {
            return self.free();
        }
        let waker = self.waker.take();
        match self.state.fire() {
            TimerOwes::Wake => {
                assert_eq!(waker, Some("waker"));
                self.wakes.fetch_add(1, Ordering::Relaxed);
            }
            owes => {
                assert_eq!(owes, TimerOwes::Free);
                self.free();
            }
        }
    }

    /// The future's side, as `Sleep::disarm` does it when it cannot unlink the entry.
    fn cancel(&self) {
        self.assert_in_use();
        match self.state.cancel() {
            TimerOwes::Free => self.free(),
            owes => assert_eq!(owes, TimerOwes::Nothing),
        }
    }

    fn counts(&self) -> (usize, usize) {
        (
            self.frees.load(Ordering::Relaxed),
            self.wakes.load(Ordering::Relaxed),
        )
    }
}

/// A cancel against the firing: one side frees the entry, after the other's last access, and the waker
/// is woken at most once.
#[test]
fn a_cancel_against_the_firing_frees_the_entry_once() {
    loom::model(|| {
        let entry = Entry::new();
        let worker = {
            let entry = entry.clone();
            thread::spawn(move || entry.expire_and_fire())
        };
        entry.cancel();
        worker.join().unwrap();
        let (frees, wakes) = entry.counts();
        assert_eq!(frees, 1);
        assert!(wakes <= 1);
    });
}

/// A poll that finds the entry fired against the firing: the future then frees it, and the waker was
/// moved out before.
#[test]
fn a_poll_against_the_firing_frees_what_has_fired() {
    loom::model(|| {
        let entry = Entry::new();
        let worker = {
            let entry = entry.clone();
            thread::spawn(move || entry.expire_and_fire())
        };
        if entry.state.has_fired() {
            entry.cancel();
        }
        worker.join().unwrap();
        if entry.counts().0 == 0 {
            entry.cancel();
        }
        assert_eq!(entry.counts(), (1, 1));
    });
}

/// A waker that counts; as long as it exists it holds a reference.
struct Counting(AtomicUsize);

impl Wake for Counting {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A wheel behind a gate, with one entry due at tick 1.
struct Timers {
    gate: BiasedLock<(Wheel, Cell<usize>)>,
    entry: EntryPtr,
    /// What the entry's waker counts in.
    wakes: Arc<Counting>,
}

impl Timers {
    fn new() -> (Arc<Timers>, Lease) {
        let wakes = Arc::new(Counting(AtomicUsize::new(0)));
        let entry = EntryPtr::new(0, 1, Waker::from(wakes.clone()));
        let mut wheel = Wheel::new();
        wheel.insert(entry);
        let (gate, lease) = BiasedLock::new((wheel, Cell::new(0)));
        (Arc::new(Timers { gate, entry, wakes }), lease)
    }

    /// As `time::remove_here` and `Sleep::disarm` do it on the wheel's own worker.
    fn disarm(&self, lease: Lease) {
        // SAFETY: the future, for which this stands, has not given up its claim.
        let entry = unsafe { self.entry.get() };
        let is_linked = self.gate.enter(lease).is_ok_and(|mut inside| {
            inside.1.set(inside.1.get() + 1);
            let is_linked = entry.state.is_linked();
            if is_linked {
                inside.0.remove(self.entry);
            }
            is_linked
        });
        if is_linked {
            // SAFETY: it was unlinked inside the gate.
            return unsafe { self.entry.free() };
        }
        match entry.state.cancel() {
            // SAFETY: the state just said so.
            TimerOwes::Free => unsafe { self.entry.free() },
            owes => assert_eq!(owes, TimerOwes::Nothing),
        }
    }

    /// As `monitor::take_overdue` does it, at tick `now`.
    fn advance_outside(&self, now: u64) {
        let mut due = Vec::new();
        let mut inside = self.gate.enter_foreign();
        inside.1.set(inside.1.get() + 1);
        if inside.0.next_tick().is_some_and(|tick| tick <= now) {
            let mut take = |entry| due.push(entry);
            inside.0.advance(now, usize::MAX, &mut take);
        }
        let wakers = search::expire(&due);
        drop(inside);
        let _cancelled = search::fire(&due, wakers);
    }

    /// The entry is out of the wheel, and gave its waker up; how often that was woken.
    fn end(&self) -> usize {
        assert_eq!(self.gate.enter_foreign().0.pending(), 0);
        assert_eq!(
            Arc::strong_count(&self.wakes),
            1,
            "the waker was lost, or dropped twice"
        );
        self.wakes.0.load(Ordering::Relaxed)
    }
}

/// The holder unlinks an entry inside the gate while an foreign advances the wheel: the entry leaves
/// the wheel once, and its waker is woken or dropped, once.
#[test]
fn an_unlinking_against_an_foreign_that_advances() {
    loom::model(|| {
        let (timers, lease) = Timers::new();
        let foreign = {
            let timers = timers.clone();
            thread::spawn(move || timers.advance_outside(1))
        };
        timers.disarm(lease);
        foreign.join().unwrap();
        assert!(timers.end() <= 1);
    });
}

/// As above, while a take-over ends the future's tenure: it then cancels the entry from outside, and
/// whoever advances the wheel last frees it.
#[test]
fn a_cancel_after_a_take_over_against_an_foreign_that_advances() {
    loom::model(|| {
        let (timers, old) = Timers::new();
        let foreign = {
            let timers = timers.clone();
            thread::spawn(move || {
                timers.gate.enter_foreign().revoke();
                timers.advance_outside(1);
            })
        };
        timers.disarm(old);
        foreign.join().unwrap();
        timers.advance_outside(1);
        assert!(timers.end() <= 1);
    });
}
