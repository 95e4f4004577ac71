//! State that a child hands over to its successor.
//!
//! A start function has a [`Handover`], and each child that it starts claims the state. However the child ends, the
//! state returns when the child drops it. That is before anyone is told of the end, and so before the same supervisor
//! starts the successor. (Another supervisor may start a successor earlier; then its claim fails.) At most one child
//! has the state at a time.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use weald_kernel::Unit;

/// The place where a child leaves its state for its successor. Clones are the same place.
///
/// ```
/// # weald::Runtime::test(1).block_on(async {
/// use weald::process::{ChildSpec, Handover, Inbox, Name, Strategy, Supervisor, monitor};
///
/// static COUNTER: Name<u32> = Name::new("counter");
///
/// let total = Handover::new();
/// let kept = total.clone();
/// let counter = ChildSpec::process("counter", move |mut inbox: Inbox<u32>| {
///     let mut total = kept.claim(|| 0).unwrap();
///     COUNTER.register(&inbox.pid()).unwrap();
///     async move {
///         loop {
///             let number = inbox.receive().await;
///             assert_ne!(number, 0);
///             *total += number;
///         }
///     }
/// });
/// let supervisor = Supervisor::new(Strategy::OneForOne).child(counter).start().await?;
/// let first = COUNTER.registered().await.unwrap();
/// let down = monitor(&first);
/// first.send(40);
/// first.send(0);
/// down.await;
/// COUNTER.registered().await.unwrap();
/// supervisor.stop().await;
/// assert_eq!(*total.claim(|| 0).unwrap(), 40);
/// # Ok::<(), weald::process::StartError>(())
/// # }).unwrap();
/// ```
pub struct Handover<T>(Arc<Mutex<Kept<T>>>);

struct Kept<T> {
    left: Option<Left<T>>,
    is_claimed: bool,
}

struct Left<T> {
    state: T,
    by_panic: bool,
}

/// The state is claimed: the child that has it has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("another child has the state; it is left when that child has ended")]
pub struct Claimed;

/// The state in the hands of the running child. Dropping it leaves the state for the successor.
pub struct Estate<T> {
    /// None once it is discarded, or left.
    state: Option<T>,
    by_panic: bool,
    place: Arc<Mutex<Kept<T>>>,
}

fn lock<T>(place: &Mutex<Kept<T>>) -> MutexGuard<'_, Kept<T>> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> Handover<T> {
    /// A place without a state.
    pub fn new() -> Handover<T> {
        Handover(Arc::new(Mutex::new(Kept {
            left: None,
            is_claimed: false,
        })))
    }

    /// The state that the predecessor has left; if there is none, the one that `first` makes. `first` must not use the
    /// place.
    ///
    /// # Errors
    /// If another child has the state.
    pub fn claim(&self, first: impl FnOnce() -> T) -> Result<Estate<T>, Claimed> {
        let left = {
            let mut place = lock(&self.0);
            if std::mem::replace(&mut place.is_claimed, true) {
                return Err(Claimed);
            }
            place.left.take()
        };
        // Made before `first` is called, so that its panic gives the claim back.
        let mut estate = Estate {
            by_panic: left.as_ref().is_some_and(|left| left.by_panic),
            state: left.map(|left| left.state),
            place: self.0.clone(),
        };
        if estate.state.is_none() {
            estate.state = Some(first());
        }
        Ok(estate)
    }
}

impl<T> Estate<T> {
    /// Whether the predecessor left the state because it panicked, so that the state may be half changed. The state may
    /// also be half changed if the predecessor waited in the middle of a change, and was told to end there.
    pub fn was_left_by_panic(&self) -> bool {
        self.by_panic
    }

    /// Leaves nothing: the successor begins anew.
    pub fn discard(mut self) {
        self.state = None;
    }
}

impl<T> Drop for Estate<T> {
    fn drop(&mut self) {
        let by_panic = Unit::is_panicking();
        let left = self.state.take().map(|state| Left { state, by_panic });
        let mut place = lock(&self.place);
        place.left = left;
        place.is_claimed = false;
    }
}

impl<T> Deref for Estate<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.state
            .as_ref()
            .expect("it is there until it is dropped")
    }
}

impl<T> DerefMut for Estate<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.state
            .as_mut()
            .expect("it is there until it is dropped")
    }
}

impl<T> Default for Handover<T> {
    fn default() -> Handover<T> {
        Handover::new()
    }
}

impl<T> Clone for Handover<T> {
    fn clone(&self) -> Handover<T> {
        Handover(self.0.clone())
    }
}

impl<T> fmt::Debug for Handover<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handover")
            .field("is_claimed", &lock(&self.0).is_claimed)
            .finish_non_exhaustive()
    }
}

impl<T: fmt::Debug> fmt::Debug for Estate<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Estate").field(&self.state).finish()
    }
}
