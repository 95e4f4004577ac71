//! All connections of a server: how many there are, how they are told to end, which have not.

use std::{
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
};

use slab::Slab;

use crate::{activity::Activity, ended::Unfinished};

#[derive(Default)]
pub(crate) struct Registry {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    connections: Slab<Arc<Activity>>,
    draining: bool,
    /// The server, which waits for fewer connections.
    waiter: Option<Waker>,
}

/// A connection's place; it is free when this is dropped.
pub(crate) struct Entry {
    registry: Arc<Registry>,
    key: usize,
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn enter(self: &Arc<Self>, activity: &Arc<Activity>) -> Entry {
        let mut inner = self.lock();
        let key = inner.connections.insert(activity.clone());
        if inner.draining {
            activity.order_drain();
        }
        Entry {
            registry: self.clone(),
            key,
        }
    }

    /// Waits until there are fewer than `count` connections.
    pub(crate) async fn fewer_than(&self, count: usize) {
        poll_fn(|cx| {
            let mut inner = self.lock();
            if inner.connections.len() < count {
                return Poll::Ready(());
            }
            let former = inner.waiter.replace(cx.waker().clone());
            drop(inner);
            drop(former);
            Poll::Pending
        })
        .await;
    }

    /// Tells every connection to end after the request that is in flight.
    pub(crate) fn drain(&self) {
        self.lock().draining = true;
        self.all()
            .iter()
            .for_each(|activity| activity.order_drain());
    }

    /// Tells every connection that is left to end now, and returns what they did.
    pub(crate) fn stop(&self) -> Vec<Unfinished> {
        let left = self.all();
        let unfinished = left.iter().map(|activity| activity.describe()).collect();
        left.iter().for_each(|activity| activity.order_stop());
        unfinished
    }

    fn all(&self) -> Vec<Arc<Activity>> {
        let inner = self.lock();
        inner
            .connections
            .iter()
            .map(|(_, activity)| activity.clone())
            .collect()
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut inner = self.registry.lock();
        let activity = inner.connections.remove(self.key);
        let waiter = inner.waiter.take();
        drop(inner);
        drop(activity);
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}
