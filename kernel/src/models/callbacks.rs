//! Models of callbacks: exactly one side runs or drops a closure, once; its block is freed once, after the last use.

use crate::{
    sys::{Mutex, lock},
    timer::phase::{PhaseWord, Take},
};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

#[cfg(not(loom))]
use crate::models::loom_on_std as loom;
use loom::{cell::Cell, thread};

/// A callback in its worker's queue, with a handle, and perhaps with an owner.
struct Callback {
    phase: PhaseWord,
    closure: Cell<Option<&'static str>>,
    /// Read by each side before it gives up its claim, written by the side that frees.
    memory: Cell<&'static str>,
    group: Option<Mutex<Group>>,
    /// Whether it is in the worker's list; under the worker's lock.
    is_listed: Mutex<bool>,
    runs: AtomicUsize,
    drops: AtomicUsize,
    frees: AtomicUsize,
}

/// The list of an owner with one callback.
struct Group {
    is_member: bool,
    has_ended: bool,
}

impl Group {
    /// As `Members::remove`.
    fn remove(&mut self) {
        if !self.has_ended {
            assert!(self.is_member);
            self.is_member = false;
        }
    }
}

impl Callback {
    fn new(group: Option<Group>) -> Arc<Callback> {
        Arc::new(Callback {
            phase: PhaseWord::new(),
            closure: Cell::new(Some("closure")),
            memory: Cell::new("in use"),
            group: group.map(Mutex::new),
            is_listed: Mutex::new(true),
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
        if self.phase.is_last() && self.leave_with_last_claim() {
            return self.end_block();
        }
        if self.phase.release() {
            self.free();
        }
    }

    /// As `Group::leave_with_last_claim`; without an owner, whether the claim is the last.
    fn leave_with_last_claim(&self) -> bool {
        let Some(group) = &self.group else {
            return true;
        };
        let mut group = lock(group);
        let is_last = self.phase.is_last();
        if is_last {
            group.remove();
        }
        is_last
    }

    /// As `CallbackPtr::free` with `Group::leave`.
    fn free(&self) {
        if let Some(group) = &self.group {
            lock(group).remove();
        }
        self.end_block();
    }

    fn end_block(&self) {
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
            self.assert_in_use();
            if self.phase.end_and_release() {
                self.free();
            }
            return;
        }
    }

    /// As `run`, for a callback that a foreign thread takes out of the list first.
    fn take_and_run(&self) {
        if std::mem::take(&mut *lock(&self.is_listed)) {
            self.run(1);
        }
    }

    /// As `Handle::cancel` on the worker of the list.
    fn cancel_here(&self) {
        self.assert_in_use();
        let mut is_listed = lock(&self.is_listed);
        let is_taken = *is_listed && self.phase.take_from_list();
        if is_taken {
            *is_listed = false;
        }
        drop(is_listed);
        match is_taken {
            true => self.drop_body(),
            false => self.cancel(),
        }
    }

    /// As `Group::end` with `start::end_taken`, on the worker of the list.
    fn end_owner_here(&self) {
        self.end_owner_and(|| std::mem::take(&mut *lock(&self.is_listed)));
    }

    /// As a worker that finds a cancelled callback in its list.
    fn sweep(&self) {
        let mut is_listed = lock(&self.is_listed);
        let is_found = *is_listed && self.phase.is_taken();
        if is_found {
            *is_listed = false;
        }
        drop(is_listed);
        if is_found {
            self.release();
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
        self.end_owner_and(|| false);
    }

    /// `leaves`: takes the callback out of its list, if it can.
    fn end_owner_and(&self, leaves: impl FnOnce() -> bool) {
        let mut group = lock(self.group.as_ref().unwrap());
        group.has_ended = true;
        let is_claimed = std::mem::take(&mut group.is_member) && self.phase.claim();
        let take = is_claimed.then(|| self.phase.take());
        drop(group);
        if let Some(take) = take {
            if take == Take::Won {
                self.drop_body();
                if leaves() {
                    self.release();
                }
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

fn cancel_here_and_release(callback: &Callback) {
    callback.cancel_here();
    callback.release();
}

/// A cancel that takes the callback out of its list in one step, against a foreign thread that takes it out to run it.
#[test]
fn a_cancel_in_the_own_list_against_a_thread_that_takes_the_callback() {
    loom::model(|| {
        for owned in [false, true] {
            let callback = match owned {
                true => Callback::owned(),
                false => Callback::new(None),
            };
            let sides: [fn(&Callback); 2] = [cancel_here_and_release, Callback::take_and_run];
            let (runs, drops) = race(callback, &sides);
            assert_eq!(runs + drops, 1);
        }
    });
}

/// The same against the owner's end, on the same worker or another one: then the callback stays in its list until the
/// worker finds it.
#[test]
fn a_cancel_in_the_own_list_against_the_owners_end() {
    for end in [Callback::end_owner, Callback::end_owner_here] {
        loom::model(move || {
            let callback = Callback::owned();
            let ending = {
                let callback = callback.clone();
                thread::spawn(move || end(&callback))
            };
            cancel_here_and_release(&callback);
            ending.join().unwrap();
            callback.sweep();
            assert_eq!(callback.end(), (0, 1));
        });
    }
}

/// Two threads cancel through one handle, one of them on the worker of the list.
#[test]
fn a_cancel_in_the_own_list_against_another_cancel() {
    loom::model(|| {
        let callback = Callback::new(None);
        let other = {
            let callback = callback.clone();
            thread::spawn(move || callback.cancel())
        };
        callback.cancel_here();
        other.join().unwrap();
        callback.sweep();
        callback.release();
        assert_eq!(callback.end(), (0, 1));
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
