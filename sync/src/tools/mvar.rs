//! The mvar: a place for one value, which is full or empty.
//!
//! - *Put* waits while it is full; *take* waits while it is empty, and empties it.
//! - *Read* is a take of a copy, *swap* a take and a put, each at one instant.
//! - Puts are served in the order of their arrival, and so are takes, reads and swaps; none passes a waiter.
//!   Each step hands the value over, so that no later unit takes it.
//!
//! The user's `clone` makes the copy, and runs under no lock: the value is lent to the reader for that time,
//! and others wait. Rejected: a counted pointer to the value, which costs an allocation for each put.

mod state;

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use crate::{
    event::{Branch, Enrolled, Waiting, Won},
    queue::{list, offer::OfferNode, serve::serve, spin_lock::SpinLock, ticket::Ticket},
    runtime::reason::{Kind, Name, Reason},
};
use state::{MVarState, MVarWaiter, Mode};

/// A place for one value.
///
/// ```
/// use weald::sync::{MVar, Wait};
///
/// let place = MVar::empty();
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         for n in 0..3 {
///             place.put(n).wait();
///         }
///     });
///     let taken = [place.take().wait(), place.take().wait(), place.take().wait()];
///     assert_eq!(taken, [0, 1, 2]);
/// });
/// ```
///
/// There is no poisoning: a value that a panicking unit has taken is gone with it. There is no closing: a wait
/// without a partner does not end.
pub struct MVar<T> {
    state: SpinLock<MVarState<T>>,
}

impl<T> MVar<T> {
    /// A full mvar.
    pub fn new(value: T) -> MVar<T> {
        MVar::with(Name::NONE, Some(value))
    }

    /// An empty mvar.
    pub fn empty() -> MVar<T> {
        MVar::with(Name::NONE, None)
    }

    /// An mvar with a name for reports of what units wait for.
    pub fn named(name: &str, value: Option<T>) -> MVar<T> {
        MVar::with(Name::new(name), value)
    }

    fn with(name: Name, value: Option<T>) -> MVar<T> {
        MVar {
            state: SpinLock::new(MVarState::new(name, value)),
        }
    }

    /// Waits until the mvar is empty, and puts the value there. An event. Cancel-safe in this sense: if the wait
    /// is dropped before it is woken, the value was not put, and is dropped with the wait.
    #[track_caller]
    pub fn put(&self, value: T) -> Waiting<Put<'_, T>> {
        Waiting::here(Put {
            mvar: self,
            node: OfferNode::with_slot(Some(value)),
        })
    }

    /// Puts the value there if the mvar is empty and no put waits.
    ///
    /// # Errors
    /// [`Full`] with the value.
    pub fn try_put(&self, value: T) -> Result<(), Full<T>> {
        let mut value = Some(value);
        let mut state = self.state.lock();
        if state.put(&mut value) {
            serve(state, MVarState::step);
            return Ok(());
        }
        drop(state);
        Err(Full(value.expect("a put that fails keeps its value")))
    }

    /// Waits until the mvar is full, and takes the value. An event. Cancel-safe: a value that was handed to a
    /// wait that is dropped goes to the next waiter, or back.
    #[track_caller]
    pub fn take(&self) -> Waiting<Take<'_, T>> {
        self.want(Mode::Take, None)
    }

    /// Takes the value if there is one. Also none while the value is being copied.
    pub fn try_take(&self) -> Option<T> {
        let mut state = self.state.lock();
        let taken = state.get(Mode::Take, &mut None)?;
        serve(state, MVarState::step);
        Some(taken)
    }

    /// Waits until the mvar is full, replaces the value, and yields the old one. An event. Cancel-safe in this
    /// sense: if the wait is dropped before it is woken, nothing has happened, and the new value is dropped with
    /// it; after that both values are there, the new one first.
    #[track_caller]
    pub fn swap(&self, value: T) -> Waiting<Take<'_, T>> {
        self.want(Mode::Swap, Some(value))
    }

    #[track_caller]
    fn want(&self, mode: Mode<T>, value: Option<T>) -> Waiting<Take<'_, T>> {
        Waiting::here(Take {
            mvar: self,
            mode,
            node: OfferNode::with_slot(MVarWaiter { mode, value }),
        })
    }

    /// Whether the mvar is empty at this moment. A value that is being copied counts as there.
    pub fn is_empty(&self) -> bool {
        !self.state.lock().is_full()
    }

    /// Whether both are the same mvar.
    pub fn same_mvar(&self, other: &MVar<T>) -> bool {
        std::ptr::eq(self, other)
    }

    /// The value.
    pub fn into_inner(self) -> Option<T> {
        self.state.into_inner().into_value()
    }

    /// Copies a value that was handed to a reader, and puts it back.
    fn copy(&self, value: T, clone: fn(&T) -> T) -> T {
        let lent = Lent {
            mvar: self,
            value: Some(value),
        };
        clone(lent.value.as_ref().expect(LENT))
    }

    /// What the user gets for a value that was obtained by `mode`.
    fn yielded(&self, mode: Mode<T>, value: T) -> T {
        match mode {
            Mode::Take | Mode::Swap => value,
            Mode::Read(clone) => self.copy(value, clone),
        }
    }
}

impl<T: Clone> MVar<T> {
    /// Waits until the mvar is full, and yields a copy of the value, which stays. An event. Cancel-safe.
    #[track_caller]
    pub fn read(&self) -> Waiting<Take<'_, T>> {
        self.want(Mode::Read(T::clone), None)
    }

    /// A copy of the value, if there is one. Also none while the value is being copied.
    pub fn try_read(&self) -> Option<T> {
        let value = self.state.lock().get(Mode::Read(T::clone), &mut None)?;
        Some(self.copy(value, T::clone))
    }
}

const LENT: &str = "a reader has the value until it puts it back";

/// The value while a reader copies it. It goes back even if the copying panics.
struct Lent<'a, T> {
    mvar: &'a MVar<T>,
    value: Option<T>,
}

impl<T> Drop for Lent<'_, T> {
    fn drop(&mut self) {
        let value = self.value.take().expect(LENT);
        let mut state = self.mvar.state.lock();
        state.end_loan(value);
        serve(state, MVarState::step);
    }
}

/// The event of [`MVar::put`].
pub struct Put<'a, T> {
    mvar: &'a MVar<T>,
    /// Its slot holds the value until it is put.
    node: OfferNode<Option<T>>,
}

impl<'a, T> Put<'a, T> {
    fn node(self: Pin<&mut Self>) -> (&'a MVar<T>, Pin<&mut OfferNode<Option<T>>>) {
        list::project(self, |this| (this.mvar, &mut this.node))
    }
}

impl<T> Branch for Put<'_, T> {
    type Output = ();

    fn attempt(self: Pin<&mut Self>, _base: u32, _cx: &mut Context<'_>) -> Poll<()> {
        let (mvar, node) = self.node();
        let mut state = mvar.state.lock();
        if !state.put(&mut node.own_value().slot) {
            return Poll::Pending;
        }
        serve(state, MVarState::step);
        Poll::Ready(())
    }

    fn enrol(
        self: Pin<&mut Self>,
        _base: u32,
        ticket: &Ticket<'_>,
        _cx: &mut Context<'_>,
    ) -> Enrolled<()> {
        let (mvar, mut node) = self.node();
        let mut state = mvar.state.lock();
        let Ok(own) = ticket.hold() else {
            return Enrolled::Lost;
        };
        if state.put(&mut node.as_mut().own_value().slot) {
            ticket.win(own);
            serve(state, MVarState::step);
            return Enrolled::Ready(());
        }
        state.puts.leave(node, ticket);
        drop(own);
        Enrolled::Waits
    }

    fn collect(self: Pin<&mut Self>, _won: Won) {}

    /// The value was put.
    fn give_back(self: Pin<&mut Self>, _won: Won) {}

    fn settle(self: Pin<&mut Self>, won: Option<u32>) {
        let (mvar, node) = self.node();
        if won.is_none() && node.is_bound() {
            mvar.state.lock().puts.remove(node);
        }
    }

    fn reason(&self) -> Reason {
        let name = self.mvar.state.lock().name;
        Reason::new(Kind::Put, self.mvar).named(name)
    }
}

/// The event of [`MVar::take`], [`MVar::read`] and [`MVar::swap`].
pub struct Take<'a, T> {
    mvar: &'a MVar<T>,
    mode: Mode<T>,
    /// Its slot holds the new value of a swap, then the value that was handed over.
    node: OfferNode<MVarWaiter<T>>,
}

impl<'a, T> Take<'a, T> {
    fn node(self: Pin<&mut Self>) -> (&'a MVar<T>, Pin<&mut OfferNode<MVarWaiter<T>>>) {
        list::project(self, |this| (this.mvar, &mut this.node))
    }

    fn handed(self: Pin<&mut Self>) -> Option<T> {
        let (mvar, node) = self.node();
        mvar.state.lock().takes.value(node).slot.value.take()
    }
}

impl<T> Branch for Take<'_, T> {
    type Output = T;

    fn attempt(self: Pin<&mut Self>, _base: u32, _cx: &mut Context<'_>) -> Poll<T> {
        let mode = self.mode;
        let (mvar, node) = self.node();
        let mut state = mvar.state.lock();
        let Some(value) = state.get(mode, &mut node.own_value().slot.value) else {
            return Poll::Pending;
        };
        serve(state, MVarState::step);
        Poll::Ready(mvar.yielded(mode, value))
    }

    fn enrol(
        self: Pin<&mut Self>,
        _base: u32,
        ticket: &Ticket<'_>,
        _cx: &mut Context<'_>,
    ) -> Enrolled<T> {
        let mode = self.mode;
        let (mvar, mut node) = self.node();
        let mut state = mvar.state.lock();
        let Ok(own) = ticket.hold() else {
            return Enrolled::Lost;
        };
        if let Some(value) = state.get(mode, &mut node.as_mut().own_value().slot.value) {
            ticket.win(own);
            serve(state, MVarState::step);
            return Enrolled::Ready(mvar.yielded(mode, value));
        }
        state.takes.leave(node, ticket);
        drop(own);
        Enrolled::Waits
    }

    fn collect(self: Pin<&mut Self>, _won: Won) -> T {
        let (mvar, mode) = (self.mvar, self.mode);
        let value = self.handed();
        let value = value.expect("a wait for the value of an mvar ends with the value");
        mvar.yielded(mode, value)
    }

    fn give_back(self: Pin<&mut Self>, _won: Won) {
        let (mvar, mode) = (self.mvar, self.mode);
        // None: `enrol` had obtained the value, and copying it panicked.
        let Some(value) = self.handed() else {
            return;
        };
        let mut state = mvar.state.lock();
        match mode {
            Mode::Take => state.put_back(value),
            Mode::Swap => state.put_behind(value),
            Mode::Read(_) => state.end_loan(value),
        }
        serve(state, MVarState::step);
    }

    fn settle(self: Pin<&mut Self>, won: Option<u32>) {
        let (mvar, node) = self.node();
        if won.is_none() && node.is_bound() {
            mvar.state.lock().takes.remove(node);
        }
    }

    fn reason(&self) -> Reason {
        let name = self.mvar.state.lock().name;
        Reason::new(Kind::Take, self.mvar).named(name)
    }
}

/// The mvar is full. Contains the value that was not put.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the mvar is full: wait with put, or put later")]
pub struct Full<T>(pub T);

impl<T> fmt::Debug for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Full").finish_non_exhaustive()
    }
}

/// An empty mvar.
impl<T> Default for MVar<T> {
    fn default() -> MVar<T> {
        MVar::empty()
    }
}

impl<T> fmt::Debug for MVar<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MVar")
            .field("is_empty", &self.is_empty())
            .finish_non_exhaustive()
    }
}
