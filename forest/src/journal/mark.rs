//! The marks of a journal: how far it has got at each level, and the futures that wait for that.
//!
//! Waiters are sorted by their positions. Whoever raises a mark wakes those that it reaches, outside the lock.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::contract::Durability;
use crate::level::{Level, Position};
use crate::wake::wake;

/// How far a journal has got. A tool for those who write one; a clone is the same.
#[derive(Clone, Default)]
pub struct Marks(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    buffered: Position,
    durable: Position,
    has_failed: bool,
    /// Wakers by position and by the number of the waiter.
    waiting: BTreeMap<(Position, u64), (Level, Waker)>,
    next: u64,
}

impl State {
    fn reached(&self, level: Level) -> Position {
        match level {
            Level::Accepted => Position(u128::MAX),
            Level::Buffered => self.buffered,
            Level::Durable => self.durable,
        }
    }
}

impl Marks {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last position that has this level. What was accepted has the first level by that.
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
        let due: Vec<_> = state
            .waiting
            .range(..=(state.buffered, u64::MAX))
            .filter(|((position, _), (level, _))| *position <= state.reached(*level))
            .map(|(key, _)| *key)
            .collect();
        let due: Vec<_> = due
            .iter()
            .filter_map(|key| state.waiting.remove(key))
            .collect();
        drop(state);
        due.into_iter().for_each(|(_, waker)| wake(Some(waker)));
    }

    /// No mark is raised any more: what waits, and what has not reached its level, is unknown.
    pub fn fail(&self) {
        let mut state = self.state();
        state.has_failed = true;
        let all = std::mem::take(&mut state.waiting);
        drop(state);
        all.into_values().for_each(|(_, waker)| wake(Some(waker)));
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
        if this.position <= state.reached(this.level) {
            return Poll::Ready(Durability::Reached);
        }
        if state.has_failed {
            return Poll::Ready(Durability::Unknown);
        }
        let number = *this.number.get_or_insert_with(|| {
            state.next += 1;
            state.next
        });
        let old = state
            .waiting
            .insert((this.position, number), (this.level, waker));
        drop(state);
        drop(old);
        Poll::Pending
    }
}

impl Drop for When {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let old = self.marks.state().waiting.remove(&(self.position, number));
            drop(old); // After the lock, because a foreign waker's drop may do anything.
        }
    }
}
