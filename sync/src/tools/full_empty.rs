//! The full/empty lock: a mutex whose value is marked as full or empty, and that is locked at one of the two marks.
//!
//! A mutex guards mark and value, and a condition variable for each mark has those that wait for it. A release notifies
//! one unit that waits for the mark that it leaves. That is enough: the unit that it wakes, or one that was quicker,
//! will release in its turn, and a notification whose wait is dropped goes to the next one.

use std::{
    fmt,
    ops::{Deref, DerefMut},
};

use crate::tools::{
    condvar::Condvar,
    mutex::{Mutex, MutexGuard},
};

/// What the value of a [`FullEmptyLock`] is marked as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mark {
    /// There is nothing for a consumer.
    Empty,
    /// There is something for a consumer.
    Full,
}

/// A value with a mark. One unit at a time may use it, and each unit says at which mark.
///
/// ```
/// use weald::sync::{FullEmptyLock, Mark, Wait};
///
/// let cell = FullEmptyLock::new(Mark::Empty, 0);
/// let sum: u32 = std::thread::scope(|scope| {
///     scope.spawn(|| {
///         for number in 1..=10 {
///             let mut slot = cell.lock_when(Mark::Empty).wait();
///             *slot = number;
///             slot.release_as(Mark::Full);
///         }
///     });
///     (0..10)
///         .map(|_| {
///             let slot = cell.lock_when(Mark::Full).wait();
///             let number = *slot;
///             slot.release_as(Mark::Empty);
///             number
///         })
///         .sum()
/// });
/// assert_eq!(sum, 55);
/// ```
///
/// An [`MVar`](crate::MVar) moves a value in and out; here the value stays, and a unit may change it in place. There is
/// no poisoning.
pub struct FullEmptyLock<T> {
    marked: Mutex<Marked<T>>,
    filled: Condvar,
    emptied: Condvar,
}

struct Marked<T> {
    mark: Mark,
    value: T,
}

/// The right to the value of a [`FullEmptyLock`]. When it is dropped, the mark stays as it is.
#[must_use = "a guard that is dropped at once guards nothing"]
pub struct FullEmptyGuard<'a, T> {
    lock: &'a FullEmptyLock<T>,
    /// Some until the drop.
    marked: Option<MutexGuard<'a, Marked<T>>>,
}

impl<T> FullEmptyLock<T> {
    /// A lock that nobody holds.
    pub fn new(mark: Mark, value: T) -> FullEmptyLock<T> {
        FullEmptyLock {
            marked: Mutex::new(Marked { mark, value }),
            filled: Condvar::new(),
            emptied: Condvar::new(),
        }
    }

    /// Waits until the lock is free and its value is marked as `mark`, and takes it. Cancel-safe: a wait that is
    /// dropped leaves the lock to others.
    pub async fn lock_when(&self, mark: Mark) -> FullEmptyGuard<'_, T> {
        let marked = self.marked.lock().await;
        let other = |marked: &mut Marked<T>| marked.mark != mark;
        self.guard(self.changed_to(mark).wait_while(marked, other).await)
    }

    /// Waits until the lock is free, whatever its mark, and takes it. Cancel-safe, as
    /// [`lock_when`](FullEmptyLock::lock_when).
    pub async fn lock(&self) -> FullEmptyGuard<'_, T> {
        self.guard(self.marked.lock().await)
    }

    /// Takes the lock if it is free now and its value is marked as `mark`.
    pub fn try_lock_when(&self, mark: Mark) -> Option<FullEmptyGuard<'_, T>> {
        let marked = self.marked.try_lock()?;
        (marked.mark == mark).then(|| self.guard(marked))
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.marked.into_inner().value
    }

    fn guard<'a>(&'a self, marked: MutexGuard<'a, Marked<T>>) -> FullEmptyGuard<'a, T> {
        FullEmptyGuard {
            lock: self,
            marked: Some(marked),
        }
    }

    fn changed_to(&self, mark: Mark) -> &Condvar {
        match mark {
            Mark::Full => &self.filled,
            Mark::Empty => &self.emptied,
        }
    }
}

impl<T> FullEmptyGuard<'_, T> {
    /// Marks the value, and releases the lock. Wakes a unit that waits for this mark.
    pub fn release_as(mut self, mark: Mark) {
        self.marked_mut().mark = mark;
    }

    /// What the value is marked as.
    pub fn mark(&self) -> Mark {
        self.marked().mark
    }

    fn marked(&self) -> &Marked<T> {
        self.marked.as_ref().expect(HELD)
    }

    fn marked_mut(&mut self) -> &mut Marked<T> {
        self.marked.as_mut().expect(HELD)
    }
}

const HELD: &str = "a guard holds its lock until it is dropped";

impl<T> Deref for FullEmptyGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.marked().value
    }
}

impl<T> DerefMut for FullEmptyGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.marked_mut().value
    }
}

impl<T> Drop for FullEmptyGuard<'_, T> {
    fn drop(&mut self) {
        let mark = self.mark();
        drop(self.marked.take());
        self.lock.changed_to(mark).notify_one();
    }
}

impl<T: fmt::Debug> fmt::Debug for FullEmptyLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.marked.try_lock() {
            Some(marked) => f
                .debug_struct("FullEmptyLock")
                .field("mark", &marked.mark)
                .field("value", &marked.value)
                .finish(),
            None => f.write_str("FullEmptyLock(<locked>)"),
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for FullEmptyGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
