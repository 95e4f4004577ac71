//! The ivar: a variable that is written once; from then on any number of units read it.
//!
//! A get that finds it written is one load. The value never moves or changes after the put, so a get returns
//! a reference.

use std::{
    fmt,
    pin::Pin,
    sync::OnceLock,
    task::{Context, Poll},
};

use crate::{
    event::{Branch, Enrolled, Waiting, Won},
    queue::{
        list,
        offer::{OfferNode, Offers},
        serve::{Served, serve},
        spin_lock::SpinLock,
        ticket::Ticket,
    },
    runtime::reason::{Kind, Name, Reason},
};

/// A variable that is written once.
///
/// ```
/// use weald::sync::{IVar, Wait};
///
/// let answer = IVar::new();
/// std::thread::scope(|scope| {
///     scope.spawn(|| answer.put(42));
///     assert_eq!(answer.get().wait(), &42);
/// });
/// assert!(answer.put(43).is_err());
/// ```
///
/// There is no poisoning and no closing: a get of an ivar that is never written does not end. An idle ivar has
/// 24 bytes in addition to its value and the flag that it is written.
pub struct IVar<T> {
    value: OnceLock<T>,
    state: SpinLock<IVarState>,
}

struct IVarState {
    name: Name,
    waiters: Offers<()>,
}

impl<T> IVar<T> {
    /// An empty variable.
    pub fn new() -> IVar<T> {
        IVar::with_name(Name::NONE)
    }

    /// The same, with a name for reports of what units wait for.
    pub fn named(name: &str) -> IVar<T> {
        IVar::with_name(Name::new(name))
    }

    fn with_name(name: Name) -> IVar<T> {
        IVar {
            value: OnceLock::new(),
            state: SpinLock::new(IVarState {
                name,
                waiters: Offers::new(),
            }),
        }
    }

    /// Writes the value, and ends all waits.
    ///
    /// # Errors
    /// [`Full`] with the new value if the ivar was already written.
    pub fn put(&self, value: T) -> Result<(), Full<T>> {
        self.value.set(value).map_err(Full)?;
        serve(self.state.lock(), IVarState::end_wait);
        Ok(())
    }

    /// Waits until the ivar is written. An event. Cancel-safe.
    #[inline]
    #[track_caller]
    pub fn get(&self) -> Waiting<Get<'_, T>> {
        Waiting::here(Get {
            ivar: self,
            node: OfferNode::with_slot(()),
        })
    }

    /// The value, if it was written.
    #[inline]
    pub fn try_get(&self) -> Option<&T> {
        self.value.get()
    }

    /// The value, if it was written.
    pub fn into_inner(self) -> Option<T> {
        self.value.into_inner()
    }

    /// The name, for a tool that contains the ivar.
    pub(crate) fn name(&self) -> Name {
        self.state.lock().name
    }
}

impl IVarState {
    fn end_wait(&mut self) -> Served {
        Some(self.waiters.accept()?.win())
    }
}

/// The event of [`IVar::get`].
pub struct Get<'a, T> {
    ivar: &'a IVar<T>,
    node: OfferNode<()>,
}

const WRITTEN: &str = "a wait for an ivar ends when it is written";

impl<'a, T> Get<'a, T> {
    fn node(self: Pin<&mut Self>) -> (&'a IVar<T>, Pin<&mut OfferNode<()>>) {
        list::project(self, |this| (this.ivar, &mut this.node))
    }
}

impl<'a, T> Branch for Get<'a, T> {
    type Output = &'a T;

    #[inline]
    fn attempt(self: Pin<&mut Self>, _base: u32, _cx: &mut Context<'_>) -> Poll<&'a T> {
        match self.ivar.try_get() {
            Some(value) => Poll::Ready(value),
            None => Poll::Pending,
        }
    }

    fn enrol(
        self: Pin<&mut Self>,
        _base: u32,
        ticket: &Ticket<'_>,
        _cx: &mut Context<'_>,
    ) -> Enrolled<&'a T> {
        let (ivar, node) = self.node();
        let mut state = ivar.state.lock();
        let Ok(own) = ticket.hold() else {
            return Enrolled::Lost;
        };
        // A put that is not seen here takes the lock later, and finds the offer.
        if let Some(value) = ivar.try_get() {
            ticket.win(own);
            return Enrolled::Ready(value);
        }
        state.waiters.leave(node, ticket);
        drop(own);
        Enrolled::Waits
    }

    fn collect(self: Pin<&mut Self>, _won: Won) -> &'a T {
        self.ivar.try_get().expect(WRITTEN)
    }

    fn give_back(self: Pin<&mut Self>, _won: Won) {}

    fn settle(self: Pin<&mut Self>, won: Option<u32>) {
        let (ivar, node) = self.node();
        if won.is_none() && node.is_bound() {
            ivar.state.lock().waiters.remove(node);
        }
    }

    fn reason(&self) -> Reason {
        Reason::new(Kind::IVar, self.ivar).named(self.ivar.name())
    }
}

/// The ivar was already written. Contains the value that was not written.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the ivar was already written: create one ivar for each value")]
pub struct Full<T>(pub T);

impl<T> fmt::Debug for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Full").finish_non_exhaustive()
    }
}

impl<T> Default for IVar<T> {
    fn default() -> IVar<T> {
        IVar::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for IVar<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_get() {
            Some(value) => f.debug_tuple("IVar").field(value).finish(),
            None => f.write_str("IVar(<empty>)"),
        }
    }
}
