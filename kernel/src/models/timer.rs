//! Models of timers: one side frees an entry, once, and its waker is taken or dropped, once.

#![allow(unsafe_code)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Wake, Waker},
};

#[cfg(not(loom))]
use crate::models::loom_on_std as loom;
use loom::{cell::Cell, thread};

use crate::{
    biased_lock::{BiasedLock, Lease},
    job::foreign_call::ForeignCalls,
    scheduler::workers::{search, waker},
    timer::{
        arrivals::{Arrivals, Pushed},
        entry::{EntryPtr, EntryState, TimerOwes},
        wheel::Wheel,
    },
};

/// An entry without a wheel. loom watches the cells: the entry must be freed after every access of the other side.
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

    /// The worker's side, as `search::expire` and `search::fire`.
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

    /// The future's side, as `Sleep::disarm` if it cannot unlink the entry.
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

/// A cancel against the firing: one side frees the entry, after the other side's last access, and the waker is woken
/// at most once.
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

/// A poll that may find the entry fired, against the firing: the future frees a fired entry, whose waker was moved out
/// before.
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

/// A waker that counts its wakes. The reference count shows whether it still exists.
struct Counting(AtomicUsize);

impl Wake for Counting {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A wheel in a biased lock, with one entry due at tick 1, or one that has just arrived. The cell counts accesses,
/// which loom watches.
struct Timers {
    core: BiasedLock<(Wheel, Cell<usize>)>,
    arrivals: Arrivals,
    entry: EntryPtr,
    /// The counter of the entry's waker.
    wakes: Arc<Counting>,
}

impl Timers {
    /// The entry is in the wheel.
    fn new() -> (Arc<Timers>, Lease) {
        let (timers, lease) = Timers::arriving();
        Timers::admit(&mut timers.core.enter_foreign(), &timers.arrivals);
        (timers, lease)
    }

    /// A foreign thread has started the entry, as `time::insert`.
    fn arriving() -> (Arc<Timers>, Lease) {
        let wakes = Arc::new(Counting(AtomicUsize::new(0)));
        let entry = EntryPtr::new(0, 1, Waker::from(wakes.clone()));
        let (core, lease) = BiasedLock::new((Wheel::new(), Cell::new(0)));
        let arrivals = Arrivals::new();
        assert_eq!(arrivals.push(entry), Pushed::Arrived);
        let timers = Timers {
            core,
            arrivals,
            entry,
            wakes,
        };
        (Arc::new(timers), lease)
    }

    /// As `WorkerCore::take_arrivals`.
    fn admit((wheel, accesses): &mut (Wheel, Cell<usize>), arrivals: &Arrivals) {
        accesses.set(accesses.get() + 1);
        arrivals.take().for_each(|entry| wheel.insert(entry));
    }

    /// As `time::remove_here` and `Sleep::disarm`, on the wheel's own worker.
    fn disarm(&self, lease: Lease) {
        // SAFETY: the future, which this function stands for, has not given up its claim.
        let entry = unsafe { self.entry.get() };
        // SAFETY: *owner*: this thread has the lease, or had it.
        let is_linked = unsafe { self.core.enter(lease) }.is_ok_and(|mut core| {
            Timers::admit(&mut core, &self.arrivals);
            let is_linked = entry.state.is_linked();
            if is_linked {
                core.0.remove(self.entry);
            }
            is_linked
        });
        if is_linked {
            // SAFETY: the entry was unlinked under the lock.
            return unsafe { self.entry.free() };
        }
        self.cancel();
    }

    /// As `Sleep::disarm`, on a thread that cannot unlink the entry.
    fn cancel(&self) {
        // SAFETY: the future, which this function stands for, has not given up its claim.
        match unsafe { self.entry.get() }.state.cancel() {
            // SAFETY: `TimerOwes::Free` leaves the entry to this side.
            TimerOwes::Free => unsafe { self.entry.free() },
            owes => assert_eq!(owes, TimerOwes::Nothing),
        }
    }

    /// As `overdue::take_overdue`, at tick `now`.
    fn advance_foreign(&self, now: u64) {
        let mut due = Vec::new();
        let mut core = self.core.enter_foreign();
        Timers::admit(&mut core, &self.arrivals);
        if core.0.next_step().is_some_and(|step| step <= now) {
            let mut take = |entry| due.push(entry);
            core.0.advance(now, usize::MAX, &mut take);
        }
        let wakers = search::expire(&due);
        drop(core);
        let mut calls = ForeignCalls::default();
        let _cancelled = search::fire(&due, wakers, |by, waker| waker::call(by, waker, &mut calls));
    }

    /// Asserts that the entry has left the wheel and released its waker; returns how often the waker was woken.
    fn end(&self) -> usize {
        assert_eq!(self.core.enter_foreign().0.pending(), 0);
        assert_eq!(
            Arc::strong_count(&self.wakes),
            1,
            "the waker was lost, or dropped twice"
        );
        self.wakes.0.load(Ordering::Relaxed)
    }
}

fn unlink_while_a_foreign_thread_advances(timers: fn() -> (Arc<Timers>, Lease)) {
    loom::model(move || {
        let (timers, lease) = timers();
        let foreign = {
            let timers = timers.clone();
            thread::spawn(move || timers.advance_foreign(1))
        };
        timers.disarm(lease);
        foreign.join().unwrap();
        assert!(timers.end() <= 1);
    });
}

/// The owner unlinks an entry while a foreign thread advances the wheel: the entry leaves the wheel once, and its waker
/// is woken or dropped, once.
#[test]
fn an_unlink_against_a_foreign_thread_that_advances() {
    unlink_while_a_foreign_thread_advances(Timers::new);
}

/// As above, while a retake revokes the lease of the future's thread. The future then cancels the entry without the
/// lock, and the thread that advances the wheel last frees it.
#[test]
fn a_cancel_after_a_retake_against_a_foreign_thread_that_advances() {
    loom::model(|| {
        let (timers, old) = Timers::new();
        let foreign = {
            let timers = timers.clone();
            thread::spawn(move || {
                timers.core.enter_foreign().revoke();
                timers.advance_foreign(1);
            })
        };
        timers.disarm(old);
        foreign.join().unwrap();
        timers.advance_foreign(1);
        assert!(timers.end() <= 1);
    });
}

/// As the first, while the entry has only arrived: whichever thread comes first links it.
#[test]
fn an_unlink_of_an_arrived_entry_against_a_foreign_thread_that_advances() {
    unlink_while_a_foreign_thread_advances(Timers::arriving);
}

/// The thread that started an entry cancels it, while the worker links it and fires what is due.
#[test]
fn a_cancel_of_an_arrived_entry_against_a_thread_that_advances() {
    loom::model(|| {
        let (timers, _lease) = Timers::arriving();
        let worker = {
            let timers = timers.clone();
            thread::spawn(move || timers.advance_foreign(1))
        };
        timers.cancel();
        worker.join().unwrap();
        assert!(timers.end() <= 1);
    });
}
