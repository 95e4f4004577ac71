//! One descriptor: its reported readiness, and the waiters for the next event.
//!
//! The word has the readiness in its lowest bits, and the number of events so far above them. Events only set bits. A
//! thread whose operation the system refused clears the direction's bits, unless an event came after the thread read
//! the word: then the operation may have missed what was reported.
//!
//! Why no wake-up is lost: a waiter stores its waker under the lock and looks at the word once more before it
//! releases the lock; a reporter sets the bits, and then takes the wakers under the lock. The second to have the
//! lock sees what the first one did.

use std::task::Waker;

use slab::Slab;

use crate::sys::{AtomicU64, Mutex, Ordering, lock};

/// The direction of an operation on a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Incoming: data, a connection to accept, the end of the stream.
    Read,
    /// Outgoing: room for data, an established connection.
    Write,
}

/// A descriptor's readiness, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Readiness(u64);

impl Readiness {
    pub(crate) const NONE: Readiness = Readiness(0);
    /// Set when reading may succeed; cleared when the system refuses.
    pub(crate) const READ: Readiness = Readiness(1);
    /// Set when writing may succeed; cleared when the system refuses.
    pub(crate) const WRITE: Readiness = Readiness(2);
    /// Set when more follows a short read, without a further event: the end of the stream, because the peer stopped
    /// writing or the connection failed; or what is behind an urgent mark. Cleared when the system refuses to
    /// read.
    pub(crate) const READ_ON: Readiness = Readiness(4);
    /// The same for writing: set when the connection failed.
    pub(crate) const WRITE_ON: Readiness = Readiness(8);
    /// Set when the runtime has stopped; never cleared while the slot is in use.
    pub(crate) const GONE: Readiness = Readiness(16);
    pub(crate) const BOTH: Readiness = Readiness::READ.with(Readiness::WRITE);

    pub(crate) const fn with(self, other: Readiness) -> Readiness {
        Readiness(self.0 | other.0)
    }

    fn intersects(self, other: Readiness) -> bool {
        self.0 & other.0 != 0
    }

    /// The bits of a direction, without `GONE`.
    fn of(interest: Interest) -> Readiness {
        match interest {
            Interest::Read => Readiness::READ.with(Readiness::READ_ON),
            Interest::Write => Readiness::WRITE.with(Readiness::WRITE_ON),
        }
    }

    /// The bit for a direction that is ready.
    pub(crate) fn to(interest: Interest) -> Readiness {
        match interest {
            Interest::Read => Readiness::READ,
            Interest::Write => Readiness::WRITE,
        }
    }

    /// The bit for a direction in which more follows a short transfer.
    fn on(interest: Interest) -> Readiness {
        match interest {
            Interest::Read => Readiness::READ_ON,
            Interest::Write => Readiness::WRITE_ON,
        }
    }
}

/// The bits of the word that hold the readiness.
const READINESS: u64 = 31;
/// One event, as an addend to the word.
const EVENT: u64 = 32;

/// The word at the start of an attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen(u64);

impl Seen {
    /// Whether the runtime had stopped.
    pub(crate) fn is_gone(self) -> bool {
        Readiness(self.0 & READINESS).intersects(Readiness::GONE)
    }

    /// Whether reading or writing may succeed.
    pub(crate) fn is_ready(self, interest: Interest) -> bool {
        let wanted = Readiness::of(interest).with(Readiness::GONE);
        Readiness(self.0 & READINESS).intersects(wanted)
    }
}

/// The waiters for one direction.
#[derive(Default)]
struct Queue {
    /// The waker of the last call of a `poll_…` function.
    polled: Option<Waker>,
    /// The waker of the first future, with the future's number.
    first: Option<(u64, Waker)>,
    /// The wakers of all other futures.
    more: Option<Box<Slab<(u64, Waker)>>>,
}

#[derive(Default)]
struct Waiters {
    read: Queue,
    write: Queue,
    /// How many futures have waited.
    futures: u64,
}

/// Where a future left its waker. An event takes the waker, or [`SourceSlot::leave`] does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaiterKey {
    number: u64,
    place: WaiterPlace,
}

#[derive(Clone, Copy, Debug)]
enum WaiterPlace {
    First,
    More(usize),
}

/// A waiter: the direction, and where its waker is.
pub(crate) struct Waiter<'a> {
    pub(crate) interest: Interest,
    /// Where a future left its waker earlier; none for a `poll_…` function.
    pub(crate) key: Option<&'a mut Option<WaiterKey>>,
}

impl Waiter<'_> {
    /// The same waiter, to be passed once more.
    pub(crate) fn reborrow(&mut self) -> Waiter<'_> {
        Waiter {
            interest: self.interest,
            key: self.key.as_deref_mut(),
        }
    }
}

pub(crate) struct SourceSlot {
    word: AtomicU64,
    waiters: Mutex<Waiters>,
}

impl SourceSlot {
    pub(crate) fn new() -> SourceSlot {
        SourceSlot {
            word: AtomicU64::new(0),
            waiters: Mutex::new(Waiters::default()),
        }
    }

    /// Gives the slot to a descriptor whose readiness is `known`. Called by the slot's only user.
    pub(crate) fn begin(&self, known: Readiness) {
        self.word.store(known.0, Ordering::Release);
    }

    /// Frees the slot. Moves the wakers that are left into `unused`.
    pub(crate) fn end(&self, unused: &mut Vec<Waker>) {
        let mut waiters = lock(&self.waiters);
        for interest in [Interest::Read, Interest::Write] {
            let queue = waiters.queue(interest);
            queue.take_all(unused);
            // A slot lives long; room for many concurrent waiters should not.
            queue.more = None;
        }
    }

    /// The readiness now.
    #[inline]
    pub(crate) fn seen(&self) -> Seen {
        // Acquire: pairs with the update in `set_ready`.
        Seen(self.word.load(Ordering::Acquire))
    }

    /// Reads the word. If the direction is not ready, the waker that `keep` makes is stored, and the direction's next
    /// report wakes it.
    ///
    /// # Errors
    /// If the direction is not ready.
    #[inline]
    pub(crate) fn ready_or_wait(
        &self,
        waiter: Waiter<'_>,
        keep: impl FnOnce() -> Waker,
    ) -> Result<Seen, NotReady> {
        let seen = self.seen();
        match seen.is_ready(waiter.interest) {
            true => Ok(seen),
            // A waker is user code: cloned and dropped outside the lock.
            false => self.wait(waiter, keep()),
        }
    }

    fn wait(&self, waiter: Waiter<'_>, waker: Waker) -> Result<Seen, NotReady> {
        let interest = waiter.interest;
        let mut waiters = lock(&self.waiters);
        let former = waiters.enter(waiter, waker);
        let seen = self.seen();
        drop(waiters);
        drop(former);
        match seen.is_ready(interest) {
            true => Ok(seen),
            false => Err(NotReady),
        }
    }

    /// Removes the waker of a future that no longer waits.
    pub(crate) fn leave(&self, interest: Interest, key: WaiterKey) {
        let mut waiters = lock(&self.waiters);
        let unused = waiters.queue(interest).remove(key);
        drop(waiters);
        drop(unused);
    }

    /// The system refused: the direction is not ready, unless there was an event since `seen`.
    pub(crate) fn refused(&self, interest: Interest, seen: Seen) {
        self.clear(seen, Readiness::of(interest));
    }

    /// The direction is drained: the system would refuse the next operation, unless more follows a short transfer, or
    /// there was an event since `seen`.
    pub(crate) fn drained(&self, interest: Interest, seen: Seen) {
        if !Readiness(seen.0 & READINESS).intersects(Readiness::on(interest)) {
            self.clear(seen, Readiness::of(interest));
        }
    }

    fn clear(&self, seen: Seen, unset: Readiness) {
        let mut word = seen.0;
        loop {
            let cleared = word & !unset.0;
            // Release: after the attempt. Acquire: pairs with another event, or with the other direction's clear.
            let order = (Ordering::AcqRel, Ordering::Acquire);
            match self.word.compare_exchange(word, cleared, order.0, order.1) {
                Ok(_) => return,
                // Another thread cleared bits, but nothing was reported: the refusal still holds.
                Err(now) if now / EVENT == seen.0 / EVENT => word = now,
                Err(_) => return,
            }
        }
    }

    /// The system reports `readiness`. Moves its waiters' wakers into `wakers`.
    pub(crate) fn set_ready(&self, readiness: Readiness, wakers: &mut Vec<Waker>) {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let next = (word | readiness.0).wrapping_add(EVENT);
            // Release: pairs with `seen`.
            let order = (Ordering::AcqRel, Ordering::Relaxed);
            match self
                .word
                .compare_exchange_weak(word, next, order.0, order.1)
            {
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        let mut waiters = lock(&self.waiters);
        for interest in [Interest::Read, Interest::Write] {
            if readiness.intersects(Readiness::of(interest).with(Readiness::GONE)) {
                waiters.queue(interest).take_all(wakers);
            }
        }
    }

    /// Whether there is a waiter.
    pub(crate) fn is_waited_for(&self) -> bool {
        let waiters = lock(&self.waiters);
        !waiters.read.is_empty() || !waiters.write.is_empty()
    }
}

/// The direction is not ready, and the waker was stored.
#[derive(Debug)]
pub(crate) struct NotReady;

impl Waiters {
    fn queue(&mut self, interest: Interest) -> &mut Queue {
        match interest {
            Interest::Read => &mut self.read,
            Interest::Write => &mut self.write,
        }
    }

    /// Stores `waker`; returns the waker that it replaces.
    fn enter(&mut self, waiter: Waiter<'_>, waker: Waker) -> Option<Waker> {
        let number = self.futures + 1;
        let queue = self.queue(waiter.interest);
        match waiter.key {
            None => queue.polled.replace(waker),
            Some(key) => {
                if let Some(place) = key.and_then(|key| queue.place(key)) {
                    return Some(std::mem::replace(place, waker));
                }
                *key = Some(queue.insert(number, waker));
                self.futures = number;
                None
            }
        }
    }
}

impl Queue {
    fn insert(&mut self, number: u64, waker: Waker) -> WaiterKey {
        let place = match self.first {
            None => {
                self.first = Some((number, waker));
                WaiterPlace::First
            }
            Some(_) => WaiterPlace::More(self.more.get_or_insert_default().insert((number, waker))),
        };
        WaiterKey { number, place }
    }

    /// The waker that was stored under `key`, if no event has taken it.
    fn place(&mut self, key: WaiterKey) -> Option<&mut Waker> {
        let entry = match key.place {
            WaiterPlace::First => self.first.as_mut(),
            WaiterPlace::More(index) => self.more.as_mut()?.get_mut(index),
        };
        entry
            .filter(|(number, _)| *number == key.number)
            .map(|(_, waker)| waker)
    }

    fn remove(&mut self, key: WaiterKey) -> Option<Waker> {
        self.place(key)?;
        match key.place {
            WaiterPlace::First => self.first.take().map(|(_, waker)| waker),
            WaiterPlace::More(index) => self.more.as_mut().map(|more| more.remove(index).1),
        }
    }

    #[inline]
    fn take_all(&mut self, wakers: &mut Vec<Waker>) {
        // Mostly there is one waiter or none. To extend the vector by an option would reserve room in both cases.
        if let Some(waker) = self.polled.take() {
            wakers.push(waker);
        }
        if let Some((_, waker)) = self.first.take() {
            wakers.push(waker);
        }
        if let Some(more) = &mut self.more {
            wakers.extend(more.drain().map(|(_, waker)| waker));
        }
    }

    fn is_empty(&self) -> bool {
        self.polled.is_none()
            && self.first.is_none()
            && self.more.as_ref().is_none_or(|more| more.is_empty())
    }
}
