//! Models of callbacks: exactly one side runs or drops a closure, once; its block is freed once, after the last use.
//! Callbacks that foreign threads start are taken once, and no worker sleeps while some have arrived.

#![allow(unsafe_code)]

use crate::{
    biased_lock::{BiasedLock, Lease},
    queue::sleepers::{Before, Sleepers},
    sys::{Mutex, lock},
    timer::{
        arrivals::{Arrivals, Pushed},
        entry::EntryPtr,
        phase::{PhaseWord, Take},
    },
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Waker,
};

#[cfg(not(loom))]
use crate::models::loom_on_std as loom;
use loom::{cell::Cell, sync::Notify, thread};

/// A callback in its worker's queue, with a handle, and perhaps with an owner.
struct Callback {
    phase: PhaseWord,
    closure: Cell<Option<&'static str>>,
    /// Read by each side before it gives up its claim, written by the side that frees.
    memory: Cell<&'static str>,
    group: Option<Mutex<Group>>,
    runs: AtomicUsize,
    drops: AtomicUsize,
    frees: AtomicUsize,
}

/// The list of an owner with one callback.
struct Group {
    is_member: bool,
    has_ended: bool,
}

impl Callback {
    fn new(group: Option<Group>) -> Arc<Callback> {
        Arc::new(Callback {
            phase: PhaseWord::new(),
            closure: Cell::new(Some("closure")),
            memory: Cell::new("in use"),
            group: group.map(Mutex::new),
            runs: AtomicUsize::new(0),
            drops: AtomicUsize::new(0),
            frees: AtomicUsize::new(0),
        })
    }

    fn owned() -> Arc<Callback> {
        Callback::new(Some(Group {
            is_member: true,
            has_ended: false,
        }))
    }

    fn assert_in_use(&self) {
        assert_eq!(self.memory.get(), "in use");
    }

    /// As `CallbackPtr::drop_body`.
    fn drop_body(&self) {
        assert_eq!(self.closure.take(), Some("closure"));
        self.drops.fetch_add(1, Ordering::Relaxed);
    }

    /// As `CallbackPtr::release`.
    fn release(&self) {
        self.assert_in_use();
        if self.phase.release() {
            self.free();
        }
    }

    /// As `CallbackPtr::free` with `Group::leave`.
    fn free(&self) {
        if let Some(group) = &self.group {
            let mut group = lock(group);
            if !group.has_ended {
                assert!(group.is_member);
                group.is_member = false;
            }
        }
        self.assert_in_use();
        assert_eq!(self.closure.get(), None, "the closure is still there");
        self.memory.set("freed");
        self.frees.fetch_add(1, Ordering::Relaxed);
    }

    /// As `Runner::run` with `finish_run`, for a callback of this many rounds.
    fn run(&self, rounds: usize) {
        for round in 1..=rounds {
            self.assert_in_use();
            let is_unshared = self.group.is_none() && self.phase.is_unshared();
            if !is_unshared && !self.phase.begin() {
                return self.release();
            }
            assert_eq!(self.closure.get(), Some("closure"));
            self.runs.fetch_add(1, Ordering::Relaxed);
            if round < rounds && (is_unshared || self.phase.again()) {
                continue;
            }
            self.closure.take();
            if is_unshared {
                return self.free();
            }
            self.phase.end();
            return self.release();
        }
    }

    /// As `cell::discard`: the runtime has stopped.
    fn discard(&self) {
        self.assert_in_use();
        if self.phase.take() == Take::Won {
            self.drop_body();
        }
        self.release();
    }

    /// As `Handle::cancel`.
    fn cancel(&self) {
        self.assert_in_use();
        if self.phase.take() == Take::Won {
            self.drop_body();
        }
    }

    /// As `Group::end` with `start::end_taken`.
    fn end_owner(&self) {
        let mut group = lock(self.group.as_ref().unwrap());
        group.has_ended = true;
        let is_claimed = std::mem::take(&mut group.is_member) && self.phase.claim();
        let take = is_claimed.then(|| self.phase.take());
        drop(group);
        if let Some(take) = take {
            if take == Take::Won {
                self.drop_body();
            }
            self.release();
        }
    }

    /// Once every side has ended: checks that nothing is left. Returns how often the callback ran, and how often it
    /// was dropped instead.
    fn end(&self) -> (usize, usize) {
        assert_eq!(self.frees.load(Ordering::Relaxed), 1, "not freed once");
        let drops = self.drops.load(Ordering::Relaxed);
        assert!(drops <= 1);
        (self.runs.load(Ordering::Relaxed), drops)
    }
}

/// Runs `sides` concurrently, then returns [`Callback::end`].
fn race(callback: Arc<Callback>, sides: &[fn(&Callback)]) -> (usize, usize) {
    let (first, others) = sides.split_first().unwrap();
    let others: Vec<_> = others
        .iter()
        .map(|side| {
            let (callback, side) = (callback.clone(), *side);
            thread::spawn(move || side(&callback))
        })
        .collect();
    first(&callback);
    for other in others {
        other.join().unwrap();
    }
    callback.end()
}

fn cancel_and_release(callback: &Callback) {
    callback.cancel();
    callback.release();
}

/// Without an owner, a callback either runs or is dropped by its cancel, never both and never neither.
#[test]
fn a_firing_against_a_cancel() {
    loom::model(|| {
        let sides: [fn(&Callback); 2] = [|callback| callback.run(1), cancel_and_release];
        let (runs, drops) = race(Callback::new(None), &sides);
        assert_eq!(runs + drops, 1);
    });
}

/// Once its handle is dropped, only the scheduler has a claim to the callback, and later rounds write no phase.
#[test]
fn rounds_against_a_dropped_handle() {
    loom::model(|| {
        let sides: [fn(&Callback); 2] = [|callback| callback.run(2), Callback::release];
        assert_eq!(race(Callback::new(None), &sides), (2, 0));
    });
}

/// A cancel ends the rounds: after the present one, or instead of the next.
#[test]
fn rounds_against_a_cancel() {
    loom::model(|| {
        let callback = Callback::new(None);
        let runner = {
            let callback = callback.clone();
            thread::spawn(move || callback.run(3))
        };
        callback.cancel();
        let had = callback.runs.load(Ordering::Relaxed);
        callback.release();
        runner.join().unwrap();
        let (runs, _) = callback.end();
        assert!(runs <= had + 1, "{runs} rounds, {had} of them before");
    });
}

/// The owner's end against the firing and a cancel: one of the three gets the closure.
#[test]
fn a_firing_against_a_cancel_and_the_owners_end() {
    loom::model(|| {
        let sides: [fn(&Callback); 3] = [
            |callback| callback.run(1),
            cancel_and_release,
            Callback::end_owner,
        ];
        let (runs, drops) = race(Callback::owned(), &sides);
        assert_eq!(runs + drops, 1);
    });
}

/// The owner's end against two rounds, while the handle is dropped.
#[test]
fn rounds_against_the_owners_end() {
    loom::model(|| {
        let sides: [fn(&Callback); 3] = [
            |callback| callback.run(2),
            Callback::end_owner,
            Callback::release,
        ];
        let (runs, drops) = race(Callback::owned(), &sides);
        assert!(runs + drops >= 1 && runs <= 2);
    });
}

/// A runtime that stops drops the closure, unless a cancel or the owner's end comes first.
#[test]
fn a_shutdown_against_a_cancel_and_the_owners_end() {
    loom::model(|| {
        let sides: [fn(&Callback); 3] =
            [Callback::discard, cancel_and_release, Callback::end_owner];
        assert_eq!(race(Callback::owned(), &sides), (0, 1));
    });
}

/// A worker, and the callbacks that foreign threads start there.
struct ForeignStarts {
    lock: BiasedLock<()>,
    arrivals: Arrivals,
    sleepers: Sleepers<Arc<Notify>>,
}

impl ForeignStarts {
    fn new() -> (Arc<ForeignStarts>, Lease) {
        let (lock, lease) = BiasedLock::new(());
        let worker = ForeignStarts {
            lock,
            arrivals: Arrivals::new(),
            sleepers: Sleepers::new(1),
        };
        (Arc::new(worker), lease)
    }

    /// As `start::arm_remotely`. False if the runtime has ended.
    fn start(&self, callback: EntryPtr) -> bool {
        match self.arrivals.push(callback) {
            Pushed::Arrived => {
                if let Some(sleeper) = self.sleepers.take_sleeper_of(0) {
                    sleeper.notify();
                }
                true
            }
            Pushed::Closed => false,
        }
    }

    /// As `search::fire_due` with `WorkerCore::admit`.
    fn look(&self, lease: Lease) -> usize {
        // SAFETY: *owner*: this thread has the lease, or had it.
        let _core = unsafe { self.lock.enter(lease) }.unwrap();
        self.arrivals.take().map(free).count()
    }

    /// Looks, and sleeps in between, until it had this many.
    fn look_until(&self, lease: Lease, wanted: usize) -> usize {
        let parking = Arc::new(Notify::new());
        let mut searching = self.sleepers.start_search();
        let mut had = 0;
        while had < wanted {
            assert!(std::mem::replace(&mut searching, true));
            match self.look(lease) {
                0 => self.sleep(&parking),
                more => had += more,
            }
        }
        had
    }

    /// As `sleep::sleep`.
    fn sleep(&self, parking: &Arc<Notify>) {
        self.sleepers.prepare(0, parking.clone(), Before::Searching);
        if self.arrivals.is_empty() {
            while self.sleepers.is_asleep(0) {
                parking.wait();
            }
        }
        self.sleepers.retract(0);
    }
}

fn pending() -> EntryPtr {
    EntryPtr::new(0, 1, Waker::noop().clone())
}

fn free(entry: EntryPtr) {
    // SAFETY: the entry was just taken off, and no other thread knows it.
    unsafe { entry.free() };
}

/// Two foreign threads start callbacks while the worker goes to sleep: it gets both in the end.
#[test]
fn no_worker_sleeps_while_callbacks_have_arrived() {
    loom::model(|| {
        let (worker, lease) = ForeignStarts::new();
        let starters = [(); 2].map(|()| {
            let worker = worker.clone();
            thread::spawn(move || assert!(worker.start(pending())))
        });
        assert_eq!(worker.look_until(lease, 2), 2);
        for starter in starters {
            starter.join().unwrap();
        }
    });
}

/// The system stops a foreign thread between its push and its wake-up: the worker gets that callback, too, with the next
/// that arrives.
#[test]
fn a_callback_arrives_behind_a_thread_that_was_stopped_before_its_wake_up() {
    loom::model(|| {
        let (worker, lease) = ForeignStarts::new();
        let starter = {
            let worker = worker.clone();
            thread::spawn(move || {
                assert_eq!(worker.arrivals.push(pending()), Pushed::Arrived);
                assert!(worker.start(pending()));
            })
        };
        assert_eq!(worker.look_until(lease, 2), 2);
        starter.join().unwrap();
    });
}

/// A callback that arrives while the runtime ends is dropped by the thread that closes the arrivals, or stays with
/// the thread that starts it.
#[test]
fn a_callback_that_arrives_while_the_runtime_ends_is_dropped_once() {
    loom::model(|| {
        let (worker, lease) = ForeignStarts::new();
        let starter = {
            let worker = worker.clone();
            thread::spawn(move || {
                let callback = pending();
                let is_taken = worker.start(callback);
                if !is_taken {
                    free(callback);
                }
                usize::from(is_taken)
            })
        };
        let mut had = worker.look(lease);
        let core = worker.lock.enter_foreign();
        had += worker.arrivals.close().map(free).count();
        drop(core);
        assert_eq!(had, starter.join().unwrap());
        assert!(worker.arrivals.is_closed() && worker.arrivals.is_empty());
    });
}
