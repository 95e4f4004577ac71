//! How the body of one request is read: whether a reader waits for more of it, and which.
//!
//! - Each body has its own state, so a body that outlives its request does not disturb the next body's reader.
//! - A wait ends when more of the body arrives, whether or not it is read. If the service's own future started
//!   the wait, it also ends when a poll of that future does not ask for more again.
//!
//! - A body that was dropped before its end is over when hyper goes on without it: it reads what has arrived, and
//!   closes the connection if that is not all.
//!
//! Called by the body's reader, by hyper when more has arrived, by the service's future, and by the
//! connection, which checks for a wait.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Wake, Waker},
    time::Duration,
};

use crate::rate::{Meter, MinRate};

/// The state of the body of one request.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    state: Mutex<ReadState>,
}

#[derive(Debug, Default)]
struct ReadState {
    /// The reader that last asked for more, unless it has been woken.
    reader: Option<Waker>,
    /// Whether the reader waits for more.
    waits: bool,
    /// Whether any reader has asked since the last poll of the service's future.
    asked: bool,
    /// How many waits have ended.
    ended_waits: u32,
    /// Whether the end of the body has arrived.
    has_ended: bool,
    /// Whether the body did not arrive as it should, and its reader was told.
    has_failed: bool,
    /// Whether the body is being dropped, or was.
    dropped: Dropped,
    /// How long readers have waited, and for how many bytes.
    meter: Meter,
}

/// How far the end of the body by a drop has got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Dropped {
    #[default]
    No,
    /// Hyper may not see it yet.
    Begun,
    Done,
}

impl ReadState {
    fn end_wait(&mut self) {
        if std::mem::replace(&mut self.waits, false) {
            self.ended_waits = self.ended_waits.wrapping_add(1);
            self.meter.end_wait();
        }
    }
}

impl Reading {
    fn lock(&self) -> MutexGuard<'_, ReadState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that `reader` is about to ask for more. Returns the waker that hyper must wake instead of
    /// `reader` when more has arrived: it ends the wait, so that from then on the delay is the reader's own.
    pub(crate) fn ask(self: &Arc<Self>, reader: &Waker) -> Waker {
        // Cloning or dropping a waker runs user code, so both happen outside the lock.
        let reader = reader.clone();
        let mut state = self.lock();
        let former = state.reader.replace(reader);
        state.waits = true;
        state.asked = true;
        drop(state);
        drop(former);
        Waker::from(self.clone())
    }

    /// Records that nothing more was there yet, so that time counts from here.
    pub(crate) fn begin_wait(&self) {
        let mut state = self.lock();
        if state.waits {
            state.meter.begin_wait();
        }
    }

    /// Records that more has arrived, with this many bytes.
    pub(crate) fn has_more(&self, bytes: usize) {
        let mut state = self.lock();
        state.end_wait();
        state.meter.add(bytes);
    }

    /// Records that the end of the body has arrived.
    pub(crate) fn end(&self) {
        self.lock().has_ended = true;
    }

    /// Whether the end of the body has arrived.
    pub(crate) fn has_ended(&self) -> bool {
        self.lock().has_ended
    }

    /// Records that the reader was told of an error.
    pub(crate) fn fail(&self) {
        self.lock().has_failed = true;
    }

    /// Whether the body did not arrive as it should.
    pub(crate) fn has_failed(&self) -> bool {
        self.lock().has_failed
    }

    /// How much longer the client may let readers wait.
    pub(crate) fn left(&self, rate: MinRate) -> Duration {
        self.lock().meter.left(rate)
    }

    /// How far the drop of a body has got whose end has not arrived.
    pub(crate) fn dropped_early(&self) -> Dropped {
        let state = self.lock();
        match state.has_ended {
            true => Dropped::No,
            false => state.dropped,
        }
    }

    /// Records that hyper's body was dropped.
    fn depart(&self) {
        self.lock().dropped = Dropped::Done;
    }

    /// Records that the body is about to be dropped: no reader will ask again.
    pub(crate) fn leave(&self) {
        let mut state = self.lock();
        state.dropped = Dropped::Begun;
        state.end_wait();
        let reader = state.reader.take();
        drop(state);
        drop(reader);
    }

    /// Records that a poll of the service's future with `waker` has returned `Pending`. Each poll asks again
    /// for everything the future waits for, except what it polls with wakers of its own.
    pub(crate) fn end_poll(&self, waker: &Waker) {
        let mut state = self.lock();
        let has_asked = std::mem::replace(&mut state.asked, false);
        let is_reader = |reader: &Waker| reader.will_wake(waker);
        // `reader` stays set: it must still be woken when more arrives.
        if !has_asked && state.reader.as_ref().is_some_and(is_reader) {
            state.end_wait();
        }
    }

    /// The number of the current wait, if a reader waits.
    pub(crate) fn wait(&self) -> Option<u32> {
        let state = self.lock();
        state.waits.then_some(state.ended_waits)
    }
}

/// The reading of a body, held by it and dropped after hyper's.
#[derive(Debug)]
pub(crate) struct OwnReading(pub(crate) Arc<Reading>);

impl Drop for OwnReading {
    fn drop(&mut self) {
        self.0.depart();
    }
}

impl Wake for Reading {
    fn wake(self: Arc<Self>) {
        let mut state = self.lock();
        state.end_wait();
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}
