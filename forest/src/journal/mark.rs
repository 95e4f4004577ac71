//! The marks of a journal in memory: how far it has got at each level, and the futures that wait for that. (A journal
//! on disk also writes a frame that it calls a mark; that one says at the next opening what was durable.)
//!
//! The waiters of a level are in a queue that is sorted by their positions. The thread that raises a mark takes waiters
//! from the front, and wakes them outside the lock. Nearly all come in the order of their positions, so they join at
//! the back.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::contract::Durability;
use crate::level::{Level, Position};
use crate::wake::wake;

/// How far a journal has got. A tool for authors of journals; a clone is the same.
#[derive(Clone, Default)]
pub struct Marks(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    buffered: Position,
    durable: Position,
    has_failed: bool,
    /// The waiters for a buffered position, and those for a durable one.
    waiting: [Row; 2],
    next: u64,
}

/// Wakers by position and by the number of the waiter, in rising order. A waiter that has left has no waker, and no
/// such entry is at the front.
#[derive(Default)]
struct Row(VecDeque<((Position, u64), Option<Waker>)>);

impl Row {
    fn place(&self, key: (Position, u64)) -> usize {
        match self.0.back() {
            Some((last, _)) if *last < key => self.0.len(),
            _ => self.0.partition_point(|(other, _)| *other < key),
        }
    }

    /// Joins, or replaces its waker; returns the former one.
    fn join(&mut self, key: (Position, u64), waker: Waker) -> Option<Waker> {
        let at = self.place(key);
        match self.0.get_mut(at) {
            Some((other, old)) if *other == key => old.replace(waker),
            _ => {
                self.0.insert(at, (key, Some(waker)));
                None
            }
        }
    }

    fn leave(&mut self, key: (Position, u64)) -> Option<Waker> {
        let at = self.place(key);
        let (_, waker) = self.0.get_mut(at).filter(|(other, _)| *other == key)?;
        let waker = waker.take();
        self.clear_front();
        waker
    }

    fn clear_front(&mut self) {
        while let Some((_, None)) = self.0.front() {
            self.0.pop_front();
        }
    }

    /// Takes all up to a position.
    fn take(&mut self, upto: Position, due: &mut Vec<Waker>) {
        let end = self
            .0
            .partition_point(|((position, _), _)| *position <= upto);
        due.extend(self.0.drain(..end).filter_map(|(_, waker)| waker));
        self.clear_front();
    }
}

impl State {
    fn reached(&self, level: Level) -> Position {
        match level {
            Level::Accepted => Position(u128::MAX),
            Level::Buffered => self.buffered,
            Level::Durable => self.durable,
        }
    }

    /// The waiters for a level. Nobody waits for the first level: whatever has a position was accepted.
    fn row(&mut self, level: Level) -> &mut Row {
        &mut self.waiting[usize::from(level == Level::Durable)]
    }
}

impl Marks {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last position that has this level. Whatever has a position was accepted, so for
    /// [`Accepted`](Level::Accepted) it is the last position that there can be.
    pub fn reached(&self, level: Level) -> Position {
        self.state().reached(level)
    }

    /// Everything up to a position has this level now. A mark never goes back, and none is raised after a failure.
    pub fn raise(&self, level: Level, position: Position) {
        let mut state = self.state();
        if state.has_failed {
            return;
        }
        if level == Level::Durable {
            state.durable = state.durable.max(position);
        }
        if level >= Level::Buffered {
            state.buffered = state.buffered.max(position);
        }
        let mut due = Vec::new();
        for level in [Level::Buffered, Level::Durable] {
            let upto = state.reached(level);
            state.row(level).take(upto, &mut due);
        }
        drop(state);
        due.into_iter().for_each(|waker| wake(Some(waker)));
    }

    /// No mark is raised any more: the outcome of every position that has not reached its level is
    /// unknown.
    pub fn fail(&self) {
        let mut state = self.state();
        state.has_failed = true;
        let all = std::mem::take(&mut state.waiting);
        drop(state);
        let all = all.into_iter().flat_map(|row| row.0);
        all.for_each(|(_, waker)| wake(waker));
    }

    /// Waits for [`fail`](Self::fail). Dropping the future loses nothing.
    pub fn when_failed(&self) -> impl Future<Output = ()> + Send + use<> {
        // Nothing reaches this position, so only a failure ends the wait.
        let never = self.when(Position(u128::MAX), Level::Durable);
        async move { _ = never.await }
    }

    /// Whether [`fail`](Self::fail) was called.
    pub fn has_failed(&self) -> bool {
        self.state().has_failed
    }

    /// Waits until a position has a level. Dropping the future loses nothing.
    pub fn when(&self, position: Position, level: Level) -> When {
        When {
            marks: self.clone(),
            position,
            level,
            number: None,
        }
    }
}

impl std::fmt::Debug for Marks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.state();
        write!(
            f,
            "Marks {{ buffered: {:?}, durable: {:?}, has_failed: {} }}",
            state.buffered, state.durable, state.has_failed
        )
    }
}

/// The future of [`Marks::when`].
#[derive(Debug)]
#[must_use = "a future waits when it is awaited"]
pub struct When {
    marks: Marks,
    position: Position,
    level: Level,
    /// The number under which it waits.
    number: Option<u64>,
}

impl Future for When {
    type Output = Durability;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Durability> {
        // Before the lock, because a foreign waker's clone may do anything.
        let waker = cx.waker().clone();
        let this = &mut *self;
        let mut state = this.marks.state();
        let outcome = if this.position <= state.reached(this.level) {
            Some(Durability::Reached)
        } else {
            state.has_failed.then_some(Durability::Unknown)
        };
        if let Some(outcome) = outcome {
            // The thread that raised the mark, or called `fail`, has taken the waker out of the
            // queue.
            this.number = None;
            return Poll::Ready(outcome);
        }
        let number = *this.number.get_or_insert_with(|| {
            state.next += 1;
            state.next
        });
        let old = state.row(this.level).join((this.position, number), waker);
        drop(state);
        drop(old);
        Poll::Pending
    }
}

impl Drop for When {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let key = (self.position, number);
            let old = self.marks.state().row(self.level).leave(key);
            drop(old); // After the lock, because a foreign waker's drop may do anything.
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::task::Wake;

    use super::*;

    /// Counts how often it was woken.
    #[derive(Default)]
    struct Counted(AtomicU64);

    impl Wake for Counted {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A waiter that was polled and not woken, and its counter.
    type Waiting = (When, Arc<Counted>);

    #[test]
    fn each_waiter_is_woken_once_when_its_position_is_reached() {
        let (marks, mut random) = (Marks::default(), 1_u64);
        let mut below = |bound: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) % bound
        };
        let mut all: BTreeMap<u64, (u64, Level, Waiting)> = BTreeMap::new();
        let mut reached = [0; 2];
        for step in 0..5_000 {
            match below(4) {
                0 | 1 => {
                    // Mostly behind the others, and now and then before them.
                    let at = step + 20 - below(20);
                    let level = [Level::Buffered, Level::Durable][usize::from(below(2) == 1)];
                    let counter = Arc::new(Counted::default());
                    let mut when = marks.when(Position(at.into()), level);
                    let waker = Waker::from(Arc::clone(&counter));
                    let polled = Pin::new(&mut when).poll(&mut Context::from_waker(&waker));
                    let is_durable = usize::from(level == Level::Durable);
                    assert_eq!(polled.is_ready(), at <= reached[is_durable]);
                    if polled.is_pending() {
                        all.insert(step, (at, level, (when, counter)));
                    }
                }
                2 => {
                    let keys: Vec<_> = all.keys().copied().collect();
                    if !keys.is_empty() {
                        let at = usize::try_from(below(keys.len() as u64)).unwrap();
                        all.remove(&keys[at]);
                    }
                }
                _ => {
                    let level = [Level::Buffered, Level::Durable][usize::from(below(3) == 0)];
                    let upto = step + below(10);
                    marks.raise(level, Position(upto.into()));
                    reached[0] = reached[0].max(upto);
                    if level == Level::Durable {
                        reached[1] = reached[1].max(upto);
                    }
                    all.retain(|_, (at, level, (_, counter))| {
                        let due = *at <= reached[usize::from(*level == Level::Durable)];
                        assert_eq!(counter.0.load(Ordering::Relaxed), u64::from(due));
                        !due
                    });
                }
            }
        }
        drop(all);
        let state = marks.state();
        assert!(state.waiting.iter().all(|row| row.0.is_empty()));
    }
}
