//! All connections of a server: their number, the orders to close them, which of them have not ended, and which to
//! close when there are too many.
//!
//! A *permit* is held as long as a socket, even after the connection was upgraded and has left the list. The limit is
//! on permits. A connection that was idle gives up its permit with its socket, before the destructor of its clone of
//! the service runs, and stays in the list until that has ended.
//!
//! At the limit the connection that has been idle longest is ordered to drain, so that idle clients never keep new ones
//! out. The order in which connections fall idle is counted and not timed, because nothing here reads a clock. A
//! connection that has been idle for less than [`SHED_AFTER`](crate::connection) has no number yet, and comes last. One
//! that only waits for its client's end comes first.
//!
//! Both are queues, whose entries are looked at only when a connection must go. An entry is stale if its connection no
//! longer has the entry's number. So a connection that gets a request takes no lock, and finding the one that must go
//! takes constant time on average.

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
};

use slab::Slab;

use crate::{activity::Activity, crowd, ended::Unfinished};

/// The connections of one server.
#[derive(Default)]
pub(crate) struct Registry {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    connections: Slab<Arc<Activity>>,
    /// How many permits are held.
    permits: usize,
    /// How many connections only wait for their client's end.
    lingering: usize,
    /// How many numbers were given.
    numbered: u64,
    /// The connections that are idle, longest first, and stale entries.
    idle: Numbered,
    /// The same for those that only wait for their client's end.
    ending: Numbered,
    /// The one that was last ordered to make room, until it has ended.
    ordered: Option<Arc<Activity>>,
    draining: bool,
    /// The server, while it waits for fewer connections.
    waiter: Option<Waker>,
}

/// A connection's entry in the registry. Dropping it removes the connection.
pub(crate) struct Entry {
    registry: Arc<Registry>,
    key: usize,
}

/// A permit under the limit of connections, given back when it is dropped. `None` once it was given back.
pub(crate) struct ConnectionPermit(Option<Arc<Registry>>);

/// Connections in the order of their numbers, each with its key. Numbers are not given twice.
#[derive(Default)]
struct Numbered {
    queue: VecDeque<(usize, u64)>,
    /// How many entries were looked at.
    #[cfg(test)]
    looked: usize,
}

impl Numbered {
    /// Adds a connection, and drops stale entries if they are the majority.
    fn push(&mut self, connections: &Slab<Arc<Activity>>, key: usize, number: u64) {
        const SPARE: usize = 64;
        self.queue.push_back((key, number));
        if self.queue.len() > 2 * connections.len() + SPARE {
            #[cfg(test)]
            {
                self.looked += self.queue.len();
            }
            self.queue
                .retain(|&(key, number)| find(connections, key, number).is_some());
        }
    }

    fn first<'a>(&mut self, connections: &'a Slab<Arc<Activity>>) -> Option<&'a Arc<Activity>> {
        while let Some(&(key, number)) = self.queue.front() {
            #[cfg(test)]
            {
                self.looked += 1;
            }
            if let Some(activity) = find(connections, key, number)
                && activity.can_close()
            {
                return Some(activity);
            }
            self.queue.pop_front();
        }
        None
    }
}

/// The connection that has this number, if one has.
fn find(connections: &Slab<Arc<Activity>>, key: usize, number: u64) -> Option<&Arc<Activity>> {
    let activity = connections.get(key)?;
    (activity.idle_order() == number).then_some(activity)
}

impl Table {
    /// Gives the connection a number, by which it is found when one must go.
    fn number(&mut self, key: usize) {
        self.numbered += 1;
        let activity = &self.connections[key];
        activity.set_idle_order(self.numbered);
        let queue = match activity.is_lingering() {
            true => &mut self.ending,
            false => &mut self.idle,
        };
        queue.push(&self.connections, key, self.numbered);
    }

    /// Orders the connection that is idle longest to drain, unless one that was ordered before is about to close.
    /// Returns the one to wake.
    fn evict(&mut self) -> Option<Arc<Activity>> {
        let is_closing =
            |activity: &Arc<Activity>| activity.can_close() && activity.is_about_to_close();
        if self.ordered.as_ref().is_some_and(is_closing) {
            return None;
        }
        let numbered = match self.ending.first(&self.connections) {
            Some(first) => Some(first),
            None => self.idle.first(&self.connections),
        };
        let first = match numbered {
            Some(first) => first,
            // In a crowd a connection has a number as soon as it is idle.
            None if self.connections.len() > crowd::FEW => return None,
            None => self
                .connections
                .iter()
                .map(|(_, activity)| activity)
                .find(|activity| activity.can_close())?,
        };
        if first.is_about_to_close() {
            return None;
        }
        match first.is_lingering() {
            true => first.order_stop(),
            false => first.order_drain(),
        }
        self.ordered = Some(first.clone());
        self.ordered.clone()
    }
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the table, and wakes the server if it waits: not under the lock, because the waker may be anybody's.
    fn change<R>(&self, change: impl FnOnce(&mut Table) -> R) -> R {
        let mut table = self.lock();
        let result = change(&mut table);
        let waiter = table.waiter.take();
        drop(table);
        if let Some(waiter) = waiter {
            waiter.wake();
        }
        result
    }

    /// Adds a connection. If the server is draining, the connection is ordered to drain at once.
    pub(crate) fn enter(self: &Arc<Self>, activity: &Arc<Activity>) -> (Entry, ConnectionPermit) {
        let mut table = self.lock();
        let key = table.connections.insert(activity.clone());
        table.permits += 1;
        table.number(key);
        if table.draining {
            activity.order_drain();
        }
        let entry = Entry {
            registry: self.clone(),
            key,
        };
        (entry, ConnectionPermit(Some(self.clone())))
    }

    /// Whether fewer than `most` permits are held.
    pub(crate) fn has_room_below(&self, most: usize) -> bool {
        self.lock().permits < most
    }

    /// Waits until fewer than `most` permits are held. Meanwhile, one idle connection after the other is closed.
    pub(crate) async fn room_below(&self, most: usize) {
        self.wait_for(|table| match table.permits < most {
            true => Ok(()),
            false => Err(table.evict()),
        })
        .await;
    }

    /// For a report that there is no room, although there are `most` connections only.
    pub(crate) fn tell_full(&self, most: usize) -> String {
        let mut found = [(0, None), (0, None), (0, None), (0, None)];
        let mut idle = 0;
        let mut left = 0;
        let table = self.lock();
        for (_, activity) in &table.connections {
            if activity.has_left() {
                left += 1;
            } else if let Some(busy) = activity.busy() {
                let (count, one) = &mut found[busy as usize];
                *count += 1;
                one.get_or_insert_with(|| activity.clone());
            } else {
                idle += 1;
            }
        }
        // An upgraded one is no longer in the list, and holds its permit.
        let listed = table.connections.len() - left;
        let upgraded = table.permits.saturating_sub(listed);
        drop(table);
        let [
            (serving, one_serving),
            (reading, one_reading),
            (opening, _),
            (ending, _),
        ] = found;
        let all = [serving, reading, opening, ending, upgraded, idle];
        let (what, remedy) = match all.into_iter().max().unwrap_or_default() {
            n if n == serving => {
                let one = one_serving.map_or_else(String::new, |one| one.describe().to_string());
                (
                    format!("{n} serve requests, one of them `{one}`"),
                    "limit how long requests take",
                )
            }
            n if n == reading => {
                let one = one_reading.and_then(|one| one.peer());
                let one = one.map_or_else(String::new, |peer| format!(", one of them {peer}"));
                (
                    format!("{n} wait for the rest of a request's head from their clients{one}"),
                    "shorten header_timeout",
                )
            }
            n if n == opening => (
                format!("{n} wait for their clones of the service"),
                "find out why the clones take so long",
            ),
            n if n == ending => (
                format!("{n} wait for the destructors of their clones of the service"),
                "find out why the destructors take so long",
            ),
            n if n == upgraded => (
                format!("{n} were upgraded"),
                "limit how long those are used",
            ),
            n => (
                format!("{n} are idle, and the one that is to make room has not ended yet"),
                "find out what keeps the workers busy",
            ),
        };
        format!(
            "new clients wait, because all {most} connections that the server may have are busy: {what}; raise \
             max_connections, or {remedy}"
        )
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

    /// Waits until `look` is content, which is called at each change. Wakes the connection that `look` returns.
    async fn wait_for(&self, look: impl Fn(&mut Table) -> Result<(), Option<Arc<Activity>>>) {
        poll_fn(|cx| {
            // Not under the lock: the waker may be anybody's.
            let waiter = cx.waker().clone();
            let mut table = self.lock();
            let Err(ordered) = look(&mut table) else {
                return Poll::Ready(());
            };
            let former = table.waiter.replace(waiter);
            drop(table);
            drop(former);
            if let Some(ordered) = ordered {
                ordered.wake();
            }
            Poll::Pending
        })
        .await;
    }

    /// Orders every connection to close after the request that is in flight. So when a client sees one connection
    /// closed, all others are draining: each of their answers says `connection: close`.
    pub(crate) fn drain(&self) {
        self.lock().draining = true;
        let connections = self.all();
        connections
            .iter()
            .for_each(|activity| activity.order_drain());
        connections.iter().for_each(|activity| activity.wake());
    }

    /// Orders every remaining connection to close now, and returns what each was doing. Those that linger have sent
    /// their last answer, and a close now would be a reset; they end with their clients, or by their limit.
    pub(crate) fn stop(&self) -> Vec<Unfinished> {
        let mut remaining = self.all();
        remaining.retain(|activity| !activity.is_lingering());
        let unfinished = remaining.iter().map(|activity| activity.describe());
        let unfinished = unfinished.collect();
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
    /// Another permit for this connection, whatever the limit is: it has lost its own, or is about to, and its socket
    /// stays open.
    pub(crate) fn permit(&self) -> ConnectionPermit {
        self.registry.lock().permits += 1;
        ConnectionPermit(Some(self.registry.clone()))
    }

    /// The connection gets its clone of the service. Under the lock, so that it is not asked to make room after that:
    /// it could not, if the clone blocks.
    pub(crate) fn opens(&self) {
        self.registry
            .change(|table| table.connections[self.key].begin_opening());
    }

    /// The connection drops its clone of the service, and holds its permit meanwhile. If it was asked to make room, the
    /// server asks another one: this one cannot, if the destructor blocks.
    pub(crate) fn ends(&self) {
        self.registry
            .change(|table| table.connections[self.key].begin_ending());
    }

    /// The connection has fallen idle.
    pub(crate) fn became_idle(&self) {
        self.registry.change(|table| table.number(self.key));
    }

    /// The connection only waits for its client's end from now on.
    pub(crate) fn lingers(&self) {
        self.registry.change(|table| {
            table.connections[self.key].linger();
            table.number(self.key);
            table.lingering += 1;
        });
    }

    /// The connection was ordered to drain, but has got a request, so another one must make room.
    pub(crate) fn stays(&self) {
        self.registry.change(|_table| ());
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut table = self.registry.lock();
        let activity = table.connections.remove(self.key);
        table.lingering -= usize::from(activity.is_lingering());
        let is_it = |ordered: &mut Arc<Activity>| Arc::ptr_eq(ordered, &activity);
        let ordered = table.ordered.take_if(is_it);
        let waiter = table.waiter.take();
        drop(table);
        activity.forget_waker();
        drop((ordered, activity));
        // Last, because the waker may be anybody's.
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}

impl ConnectionPermit {
    /// Gives the permit back, and with it the place of its connection, which drops its clone of the service next. At
    /// once, so that the server neither takes that connection for one that is about to make room nor counts its permit.
    pub(crate) fn leave(mut self, activity: &Activity) {
        self.give_back(|| {
            activity.begin_ending();
            activity.leave();
        });
    }

    fn give_back(&mut self, leave: impl FnOnce()) {
        if let Some(registry) = self.0.take() {
            registry.change(|table| {
                leave();
                table.permits -= 1;
            });
        }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.give_back(|| ());
    }
}

#[cfg(test)]
mod tests;
