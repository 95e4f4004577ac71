//! The instances of a service that are cloned for new connections.
//!
//! A service need not be `Sync`, so one thread at a time may clone an instance; and a clone may block, or wait with its
//! stack. So:
//! - an instance is taken while it is cloned, and comes back whatever becomes of the clone;
//! - a connection that took the last one adds one, after it has got its own clone. So if clones are slow, there are
//!   soon as many instances as clones at the same time;
//! - an idle connection that ends gives its own instance back if no other is left. So if as many clones as there are
//!   instances never end, new connections wait only until another one ends.
//!
//! A connection gives up its turn after a while.
//!
//! Called by the jobs of connections ([`accepted`](crate::accepted), [`connection`](crate::connection)).

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use weald_sync::channel::{self, Receiver, Sender};

/// The instances of one server's service.
pub(crate) struct Originals<S> {
    give_back: Sender<S>,
    free: Receiver<S>,
}

/// A connection's wait for an instance that is free.
pub(crate) type Turn<S> = Pin<Box<dyn Future<Output = S> + Send>>;

impl<S: Clone + Send + 'static> Originals<S> {
    pub(crate) fn new(first: S) -> Arc<Originals<S>> {
        let (give_back, free) = channel::unbounded();
        let originals = Originals { give_back, free };
        originals.put(first);
        Arc::new(originals)
    }

    fn put(&self, original: S) {
        // The receiver lives as long as the sender, so it is never closed.
        let _sent = self.give_back.try_send(original);
    }

    /// The instance of a connection that ends.
    pub(crate) fn take_back(&self, instance: S) {
        match self.free.is_empty() {
            true => self.put(instance),
            false => drop(instance),
        }
    }

    /// Takes an instance when one is free. `turn` is none at first, and has the wait for an instance between two calls.
    pub(crate) fn poll_take(
        self: &Arc<Self>,
        turn: &mut Option<Turn<S>>,
        cx: &mut Context<'_>,
    ) -> Poll<Lent<S>> {
        let original = match turn {
            Some(waits) => ready!(waits.as_mut().poll(cx)),
            None => match self.free.try_receive() {
                Ok(original) => original,
                Err(_) => ready!(turn.insert(self.clone().next()).as_mut().poll(cx)),
            },
        };
        *turn = None;
        Poll::Ready(Lent {
            original: Some(original),
            originals: self.clone(),
        })
    }

    fn next(self: Arc<Self>) -> Turn<S> {
        Box::pin(async move {
            let next = self.free.receive().await;
            next.expect("the sender lives as long as the receiver")
        })
    }
}

/// A guard: its instance is given back when the guard is dropped, even by an unwinding.
pub(crate) struct Lent<S: Clone + Send + 'static> {
    original: Option<S>,
    originals: Arc<Originals<S>>,
}

impl<S: Clone + Send + 'static> Lent<S> {
    /// Clones the instance, and gives it back. `None` if the clone panicked, which was reported.
    pub(crate) fn make_clone(mut self) -> Option<S> {
        let is_last = self.originals.free.is_empty();
        let cloned = weald_kernel::catch_panic(|| self.original.clone()).flatten();
        self.give_back();
        if let Some(cloned) = &cloned
            && is_last
            && let Some(another) = weald_kernel::catch_panic(|| cloned.clone())
        {
            self.originals.put(another);
        }
        cloned
    }

    fn give_back(&mut self) {
        if let Some(original) = self.original.take() {
            self.originals.put(original);
        }
    }
}

impl<S: Clone + Send + 'static> Drop for Lent<S> {
    fn drop(&mut self) {
        self.give_back();
    }
}
