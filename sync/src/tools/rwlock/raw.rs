//! The state of a read-write lock and its steps, without the guarded value.
//!
//! Invariants, whenever the inner lock is free:
//! - There are readers, or one writer, or neither.
//! - The first waiter, if its wait has not ended, could not enter now.

use std::pin::Pin;

use crate::{
    event::Enrolled,
    queue::{
        offer::{OfferNode, Offers},
        serve::{Served, serve},
        spin_lock::SpinLock,
        ticket::Ticket,
    },
    runtime::{
        holders,
        reason::{Kind, Name, Reason},
        unit,
    },
};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// A waiter.
#[derive(Clone, Copy)]
pub(super) struct RwLockWaiter {
    mode: Access,
    /// Its unit; set when it begins to wait.
    unit: usize,
}

/// A read-write lock without a value.
pub(super) struct RawRwLock(SpinLock<RwLockState>);

struct RwLockState {
    /// How many read; `WRITER` if one writes.
    inside: u32,
    name: Name,
    /// The unit that writes, if one does.
    writer: usize,
    waiters: Offers<RwLockWaiter>,
}

const WRITER: u32 = u32::MAX;

impl RwLockWaiter {
    pub(super) fn new(mode: Access) -> RwLockWaiter {
        RwLockWaiter { mode, unit: 0 }
    }
}

impl RawRwLock {
    pub(super) fn new(name: Name) -> RawRwLock {
        RawRwLock(SpinLock::new(RwLockState {
            inside: 0,
            name,
            writer: 0,
            waiters: Offers::new(),
        }))
    }

    /// Enters if that is possible now without passing a waiter.
    pub(super) fn try_enter(&self, mode: Access) -> bool {
        self.0.lock().try_enter(mode)
    }

    pub(super) fn enrol(
        &self,
        mode: Access,
        mut node: Pin<&mut OfferNode<RwLockWaiter>>,
        ticket: &Ticket<'_>,
    ) -> Enrolled<()> {
        let mut state = self.0.lock();
        let Ok(own) = ticket.hold() else {
            return Enrolled::Lost;
        };
        if state.try_enter(mode) {
            ticket.win(own);
            return Enrolled::Ready(());
        }
        state.waiters.value(node.as_mut()).slot.unit = unit::current();
        state.waiters.leave(node, ticket);
        drop(own);
        state.note_holder();
        Enrolled::Waits
    }

    /// Ends an access. Called by the unit that has it.
    pub(super) fn leave(&self, mode: Access) {
        let mut state = self.0.lock();
        match mode {
            Access::Read => state.inside -= 1,
            Access::Write => state.inside = 0,
        }
        serve(state, RwLockState::admit);
    }

    /// Turns the writer into a reader. Called by the writer.
    pub(super) fn downgrade(&self) {
        let mut state = self.0.lock();
        state.inside = 1;
        serve(state, RwLockState::admit);
    }

    /// A waiter gives up; those behind it may be able to enter now.
    pub(super) fn retract(&self, node: Pin<&mut OfferNode<RwLockWaiter>>) {
        let mut state = self.0.lock();
        state.waiters.remove(node);
        state.note_holder();
        serve(state, RwLockState::admit);
    }

    pub(super) fn reason(&self) -> Reason {
        let state = self.0.lock();
        Reason::new(Kind::RwLock, &*state).named(state.name)
    }
}

impl RwLockState {
    fn try_enter(&mut self, mode: Access) -> bool {
        let enters = is_open(self.inside, mode) && self.waiters.first().is_none();
        if enters {
            self.enter(mode, unit::current());
        }
        enters
    }

    /// The rule: the first waiter enters, if that is possible.
    fn admit(&mut self) -> Served {
        let inside = self.inside;
        let mut accepted = self.waiters.accept_if(|want| is_open(inside, want.mode))?;
        let RwLockWaiter { mode, unit } = *accepted.slot();
        let waker = accepted.win();
        self.enter(mode, unit);
        self.note_holder();
        Some(waker)
    }

    fn enter(&mut self, mode: Access, unit: usize) {
        match mode {
            Access::Read => self.inside += 1,
            Access::Write => (self.inside, self.writer) = (WRITER, unit),
        }
    }

    /// Notes the lock's holder for reports, while a unit waits for the lock.
    fn note_holder(&self) {
        if self.waiters.is_empty() {
            return holders::forget(self);
        }
        // An odd number belongs to a thread.
        let is_unit = self.inside == WRITER && self.writer.is_multiple_of(2);
        holders::note(self, is_unit.then_some(self.writer));
    }
}

/// Whether one more may enter, with `inside` as it is.
fn is_open(inside: u32, mode: Access) -> bool {
    match mode {
        // The number of readers must stay below `WRITER`. It can come near only by forgotten guards.
        Access::Read => inside < WRITER - 1,
        Access::Write => inside == 0,
    }
}
