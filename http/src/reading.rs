//! How the body of one request is read: who waits for more of it, and whether anybody does.
//!
//! - Each body has its own, so that one that outlives its request disturbs no other one's reader.
//! - Nobody waits once more has come, read or not; nor once the service's own future has had a round in which
//!   it did not ask again, if it was that future itself that had asked.
//!
//! Called by whoever reads the body, by hyper when there is more, by the service's future, and by the
//! connection, which looks.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Wake, Waker},
};

#[derive(Debug, Default)]
pub(crate) struct Reading {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// The last one who asked, unless it was woken.
    reader: Option<Waker>,
    /// Whether the reader waits for more.
    waits: bool,
    /// Whether anybody asked since the service's last round.
    asked: bool,
    /// How many waits are over.
    over: u32,
}

impl Inner {
    fn end_wait(&mut self) {
        if std::mem::replace(&mut self.waits, false) {
            self.over = self.over.wrapping_add(1);
        }
    }
}

impl Reading {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `reader` is about to ask for more. Returns the waker that hyper shall wake in its place when there
    /// is more, so that from then on it is the reader who takes its time.
    pub(crate) fn ask(self: &Arc<Self>, reader: &Waker) -> Waker {
        // A waker is user code: cloned and dropped outside of the lock.
        let reader = reader.clone();
        let mut inner = self.lock();
        let former = inner.reader.replace(reader);
        inner.waits = true;
        inner.asked = true;
        drop(inner);
        drop(former);
        Waker::from(self.clone())
    }

    /// There is more.
    pub(crate) fn has_more(&self) {
        self.lock().end_wait();
    }

    /// Nobody will ask any more.
    pub(crate) fn leave(&self) {
        let mut inner = self.lock();
        inner.end_wait();
        let reader = inner.reader.take();
        drop(inner);
        drop(reader);
    }

    /// The service's future was polled with `waker`, and waits for something. A future that is polled asks
    /// again for all that it waits for; but not what it polls by way of other wakers.
    pub(crate) fn end_round(&self, waker: &Waker) {
        let mut inner = self.lock();
        let has_asked = std::mem::replace(&mut inner.asked, false);
        let is_reader = |reader: &Waker| reader.will_wake(waker);
        // The reader stays: it is still to be woken when more comes.
        if !has_asked && inner.reader.as_ref().is_some_and(is_reader) {
            inner.end_wait();
        }
    }

    /// Which wait it is that lasts: its number. None if nobody waits.
    pub(crate) fn wait(&self) -> Option<u32> {
        let inner = self.lock();
        inner.waits.then_some(inner.over)
    }
}

impl Wake for Reading {
    fn wake(self: Arc<Self>) {
        let mut inner = self.lock();
        inner.end_wait();
        let reader = inner.reader.take();
        drop(inner);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}
