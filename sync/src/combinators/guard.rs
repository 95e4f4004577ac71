//! An event that is created when it is synced.

use crate::event::{Branch, Event, awaitable};

/// The event that `f` returns. Each sync calls `f` before anything is tried. In a choice the guards run from
/// left to right, even if another event turns out to be ready.
///
/// A guard is `Clone` (and `Copy`) if its function is, so it can be synced again.
///
/// ```
/// use weald::sync::{Wait, channel, guard};
///
/// let (sender, receiver) = channel::unbounded();
/// let next = guard(|| receiver.receive());
/// sender.try_send(1)?;
/// sender.try_send(2)?;
/// assert_eq!((next.wait(), next.wait()), (Ok(1), Ok(2)));
/// # Ok::<(), channel::TrySendError<i32>>(())
/// ```
pub fn guard<E: Event, F: FnOnce() -> E>(f: F) -> Guard<F> {
    Guard(f)
}

/// See [`guard`].
#[derive(Clone, Copy, Debug)]
#[must_use = "an event does nothing unless it is synced"]
pub struct Guard<F>(F);

impl<E: Event, F: FnOnce() -> E> Event for Guard<F> {
    type Output = E::Output;
    type Branch = E::Branch;

    #[inline]
    fn open(self) -> E::Branch {
        (self.0)().open()
    }

    #[inline]
    fn conclude(outcome: <E::Branch as Branch>::Output) -> E::Output {
        E::conclude(outcome)
    }
}

awaitable!([E: Event, F: FnOnce() -> E] Guard<F>);
