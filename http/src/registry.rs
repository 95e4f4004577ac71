//! All connections of a server: how many there are, the orders to close them, which have not ended, and which to close
//! when there are too many.
//!
//! A *place* is held as long as a socket, also after the connection was upgraded and has left the list. The limit is on
//! places. At the limit the connection that has been idle longest is ordered to drain, so that idle clients never keep
//! new ones out. Connections fall idle in an order, which is counted and not timed, because nothing here reads a clock;
//! one that was idle for less than [`SHED_AFTER`](crate::connection) has no number yet and comes last. One that has
//! nothing left to do but to wait for its client's end comes first.

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
    /// How many places are held.
    places: usize,
    /// How many connections only wait for their client's end.
    lingering: usize,
    /// How often a connection has fallen idle.
    idled: u64,
    draining: bool,
    /// The server, while it waits for fewer connections.
    waiter: Option<Waker>,
}

/// A connection's entry in the registry. Dropping it removes the connection.
pub(crate) struct Entry {
    registry: Arc<Registry>,
    key: usize,
}

/// A place under the limit of connections, given back when it is dropped.
pub(crate) struct Place(Arc<Registry>);

impl Table {
    /// Orders the connection that is idle longest to drain, unless one that was ordered before is about to close.
    /// Returns the one to wake.
    fn evict(&self) -> Option<Arc<Activity>> {
        let idle = self.connections.iter().map(|(_, activity)| activity);
        let mut idle =
            idle.filter(|activity| activity.is_between_requests() || activity.is_lingering());
        if idle.clone().any(|activity| activity.is_about_to_close()) {
            return None;
        }
        let oldest = idle.by_ref().min_by_key(|activity| activity.idle_order())?;
        match oldest.is_lingering() {
            true => oldest.order_stop(),
            false => oldest.order_drain(),
        }
        Some(oldest.clone())
    }
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection, which begins idle. If the server is draining, the connection is ordered to drain at once.
    pub(crate) fn enter(self: &Arc<Self>, activity: &Arc<Activity>) -> (Entry, Place) {
        let mut table = self.lock();
        let key = table.connections.insert(activity.clone());
        table.places += 1;
        table.idled += 1;
        activity.set_idle_order(table.idled);
        if table.draining {
            activity.order_drain();
        }
        let entry = Entry {
            registry: self.clone(),
            key,
        };
        (entry, Place(self.clone()))
    }

    /// Waits until fewer than `most` places are held. Meanwhile, one idle connection after the other is closed.
    pub(crate) async fn room_below(&self, most: usize) {
        self.wait_for(|table| match table.places < most {
            true => Ok(()),
            false => Err(table.evict()),
        })
        .await;
    }

    /// Closes the connection that is idle longest, if there is one.
    pub(crate) fn evict(&self) {
        let evicted = self.lock().evict();
        if let Some(evicted) = evicted {
            evicted.wake();
        }
    }

    /// Waits until no connection is left, apart from those that were upgraded or linger.
    pub(crate) async fn empty(&self) {
        self.wait_for(|table| match table.connections.len() == table.lingering {
            true => Ok(()),
            false => Err(None),
        })
        .await;
    }

    /// Waits until `look`, which is asked at each change, is content. Wakes the connection that it returns.
    async fn wait_for(&self, look: impl Fn(&mut Table) -> Result<(), Option<Arc<Activity>>>) {
        poll_fn(|cx| {
            let mut table = self.lock();
            let Err(ordered) = look(&mut table) else {
                return Poll::Ready(());
            };
            let former = table.waiter.replace(cx.waker().clone());
            drop(table);
            drop(former);
            if let Some(ordered) = ordered {
                ordered.wake();
            }
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
            .filter(|activity| !activity.is_lingering())
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

impl Entry {
    /// The connection has fallen idle.
    pub(crate) fn became_idle(&self) {
        let mut table = self.registry.lock();
        table.idled += 1;
        table.connections[self.key].set_idle_order(table.idled);
        let waiter = table.waiter.take();
        drop(table);
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }

    /// The connection only waits for its client's end from now on.
    pub(crate) fn lingers(&self) {
        let mut table = self.registry.lock();
        table.connections[self.key].linger();
        table.lingering += 1;
        let waiter = table.waiter.take();
        drop(table);
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }

    /// The connection was ordered to drain, but has a request first, so another one must make room.
    pub(crate) fn stays(&self) {
        let waiter = self.registry.lock().waiter.take();
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut table = self.registry.lock();
        let activity = table.connections.remove(self.key);
        table.lingering -= usize::from(activity.is_lingering());
        let waiter = table.waiter.take();
        drop(table);
        activity.forget_waker();
        drop(activity);
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = self.0.lock();
        table.places -= 1;
        let waiter = table.waiter.take();
        drop(table);
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::Future,
        pin::pin,
        sync::{
            Weak,
            atomic::{AtomicUsize, Ordering},
        },
        task::{Context, Wake},
    };

    use super::*;

    /// A job's waker, which keeps the job's description.
    struct OfJob(
        #[allow(dead_code, reason = "only its life counts")] Arc<Activity>,
        AtomicUsize,
    );

    impl Wake for OfJob {
        fn wake(self: Arc<Self>) {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn enter(registry: &Arc<Registry>) -> (Arc<Activity>, Arc<OfJob>, Entry, Place) {
        let activity = Activity::new(None, "a service");
        let waker = Arc::new(OfJob(activity.clone(), AtomicUsize::new(0)));
        activity.set_waker(waker.clone().into());
        let (entry, place) = registry.enter(&activity);
        (activity, waker, entry, place)
    }

    #[test]
    fn the_end_of_a_connection_lets_its_state_go() {
        let registry = Arc::new(Registry::default());
        let (activity, waker, entry, place) = enter(&registry);
        let state: Weak<Activity> = Arc::downgrade(&activity);
        drop((activity, waker, entry, place));
        assert!(state.upgrade().is_none());
    }

    #[test]
    fn one_that_lingers_is_stopped_before_idle_ones_are_closed() {
        let registry = Arc::new(Registry::default());
        let [a, b] = [(); 2].map(|()| enter(&registry));
        b.2.lingers();
        registry.evict();
        assert!(b.0.must_stop() && !a.0.is_draining());
        registry.evict();
        assert!(!a.0.is_draining(), "another one is about to close");
        drop(b);
        registry.evict();
        assert!(a.0.is_draining());
        assert_eq!(registry.lock().lingering, 0);

        let is_empty = || {
            let cx = &mut Context::from_waker(Waker::noop());
            pin!(registry.empty()).poll(cx).is_ready()
        };
        assert!(!is_empty());
        a.2.lingers();
        assert!(is_empty(), "one that lingers is not waited for");
        assert!(registry.stop().is_empty(), "nor reported");
    }

    #[test]
    fn the_one_that_is_idle_longest_is_closed_first_and_one_at_a_time() {
        let registry = Arc::new(Registry::default());
        let [a, b, c] = [(); 3].map(|()| enter(&registry));
        a.2.became_idle();
        // In the order b, c, a; but b has a request.
        b.0.received();
        registry.evict();
        let draining = [&a, &b, &c].map(|(activity, ..)| activity.is_draining());
        assert_eq!(draining, [false, false, true]);
        assert_eq!(c.1.1.load(Ordering::Relaxed), 1, "it is woken");
        registry.evict();
        assert!(!a.0.is_draining(), "another one is about to close");
        drop(c);
        registry.evict();
        assert!(a.0.is_draining());
        assert!(!b.0.is_draining(), "it is busy");
        drop(a);
        registry.evict();
        assert!(!b.0.is_draining());
    }
}
