//! All connections of a server: how many there are, the orders to close them, and which have not ended.

use std::{
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
};

use slab::Slab;

use crate::{activity::Activity, ended::Unfinished};

/// The connections of one server.
#[derive(Default)]
pub(crate) struct Registry {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    connections: Slab<Arc<Activity>>,
    draining: bool,
    /// The server, while it waits for fewer connections.
    waiter: Option<Waker>,
}

/// A connection's entry in the registry. Dropping it removes the connection.
pub(crate) struct Entry {
    registry: Arc<Registry>,
    key: usize,
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection. If the server is draining, the connection is ordered to drain at once.
    pub(crate) fn enter(self: &Arc<Self>, activity: &Arc<Activity>) -> Entry {
        let mut table = self.lock();
        let key = table.connections.insert(activity.clone());
        if table.draining {
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
            let mut table = self.lock();
            if table.connections.len() < count {
                return Poll::Ready(());
            }
            let former = table.waiter.replace(cx.waker().clone());
            drop(table);
            drop(former);
            Poll::Pending
        })
        .await;
    }

    /// Orders every connection to close after the request that is in flight. A client that sees one connection closed
    /// finds all others draining: each of their answers says `connection: close`.
    pub(crate) fn drain(&self) {
        self.lock().draining = true;
        let connections = self.all();
        connections
            .iter()
            .for_each(|activity| activity.order_drain());
        connections.iter().for_each(|activity| activity.wake());
    }

    /// Orders every remaining connection to close now, and returns what each was doing.
    pub(crate) fn stop(&self) -> Vec<Unfinished> {
        let remaining = self.all();
        let unfinished = remaining
            .iter()
            .map(|activity| activity.describe())
            .collect();
        remaining.iter().for_each(|activity| activity.order_stop());
        remaining.iter().for_each(|activity| activity.wake());
        unfinished
    }

    fn all(&self) -> Vec<Arc<Activity>> {
        let table = self.lock();
        table
            .connections
            .iter()
            .map(|(_, activity)| activity.clone())
            .collect()
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut table = self.registry.lock();
        let activity = table.connections.remove(self.key);
        let waiter = table.waiter.take();
        drop(table);
        drop(activity);
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}
