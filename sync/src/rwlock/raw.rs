//! The state of a read-write lock and its steps; what is guarded lies elsewhere.
//!
//! Invariants, whenever the inner lock is free:
//! - There are readers, or one writer, or nobody.
//! - The first who waits, if its wait goes on, could not enter now.

use std::pin::Pin;

use crate::{
    event::{Enrolled, Entry},
    lock::Lock,
    offer::{OfferNode, Offers},
    reason::{Kind, Name, Reason},
    serve::{Served, serve},
};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Read,
    Write,
}

/// One who waits.
pub(super) struct Want {
    mode: Mode,
}

/// A read-write lock without a value.
pub(super) struct Raw(Lock<State>);

struct State {
    /// How many read; `WRITER` if one writes.
    inside: u32,
    name: Name,
    waiters: Offers<Want>,
}

const WRITER: u32 = u32::MAX;

impl Want {
    pub(super) fn new(mode: Mode) -> Want {
        Want { mode }
    }
}

impl Raw {
    pub(super) fn new(name: Name) -> Raw {
        Raw(Lock::new(State {
            inside: 0,
            name,
            waiters: Offers::new(),
        }))
    }

    /// Enters if that is possible now, past nobody who waits.
    pub(super) fn try_enter(&self, mode: Mode) -> bool {
        self.0.lock().try_enter(mode)
    }

    pub(super) fn enrol(
        &self,
        mode: Mode,
        node: Pin<&mut OfferNode<Want>>,
        entry: &Entry<'_>,
    ) -> Enrolled<()> {
        let mut state = self.0.lock();
        let Ok(own) = entry.hold() else {
            return Enrolled::Lost;
        };
        if state.try_enter(mode) {
            entry.win(own);
            return Enrolled::Ready(());
        }
        state.waiters.leave(node, entry);
        drop(own);
        Enrolled::Waits
    }

    /// Called by one who is inside in this mode.
    pub(super) fn leave(&self, mode: Mode) {
        let mut state = self.0.lock();
        match mode {
            Mode::Read => state.inside -= 1,
            Mode::Write => state.inside = 0,
        }
        serve(state, State::admit);
    }

    /// Called by the writer, who reads from now on.
    pub(super) fn downgrade(&self) {
        let mut state = self.0.lock();
        state.inside = 1;
        serve(state, State::admit);
    }

    /// One who waits gives up; those behind it may be able to enter now.
    pub(super) fn retract(&self, node: Pin<&mut OfferNode<Want>>) {
        let mut state = self.0.lock();
        state.waiters.remove(node);
        serve(state, State::admit);
    }

    pub(super) fn reason(&self) -> Reason {
        let name = self.0.lock().name;
        Reason::new(Kind::RwLock, self).named(name)
    }
}

impl State {
    fn try_enter(&mut self, mode: Mode) -> bool {
        let enters = is_open(self.inside, mode) && self.waiters.first().is_none();
        if enters {
            self.enter(mode);
        }
        enters
    }

    /// The rule: the first who waits enters, if that is possible.
    fn admit(&mut self) -> Served {
        let inside = self.inside;
        let accepted = self.waiters.accept_if(|want| is_open(inside, want.mode))?;
        let mode = accepted.slot.mode;
        let waker = accepted.win();
        self.enter(mode);
        Some(waker)
    }

    fn enter(&mut self, mode: Mode) {
        match mode {
            Mode::Read => self.inside += 1,
            Mode::Write => self.inside = WRITER,
        }
    }
}

/// Whether one more may enter, beside those inside.
fn is_open(inside: u32, mode: Mode) -> bool {
    match mode {
        // One below the writer's number; so many guards were forgotten, or memory is full of them.
        Mode::Read => inside < WRITER - 1,
        Mode::Write => inside == 0,
    }
}
