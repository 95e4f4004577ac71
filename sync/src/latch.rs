//! A latch: it is set once, with a value, and stays set. Any number of waits end then.

use std::{
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use crate::{
    event::{Branch, Enrolled, Won},
    queue::{
        list::project,
        offer::{OfferNode, Offers},
        spin_lock::SpinLock,
        ticket::Ticket,
    },
    runtime::reason::{Kind, Reason},
};

/// A latch. Setting it stores the value first, then the flag in the state.
pub(crate) struct Latch<V> {
    value: OnceLock<V>,
    state: SpinLock<LatchState>,
}

struct LatchState {
    is_set: bool,
    waiters: Offers<()>,
}

impl<V> Latch<V> {
    pub(crate) fn new() -> Latch<V> {
        Latch {
            value: OnceLock::new(),
            state: SpinLock::new(LatchState {
                is_set: false,
                waiters: Offers::new(),
            }),
        }
    }

    /// The value, once it is stored.
    pub(crate) fn value(&self) -> Option<&V> {
        self.value.get()
    }

    pub(crate) fn value_mut(&mut self) -> &mut OnceLock<V> {
        &mut self.value
    }

    /// Sets the latch, and wakes all waiters: first those whose wakers are the runtime's, then those of other
    /// executors, each in the order of their arrival. Called once, by a caller that holds no lock.
    pub(crate) fn set(&self, value: V) {
        let is_first = self.value.set(value).is_ok();
        assert!(is_first, "a latch is set once");
        let mut wakers = Vec::new();
        let mut state = self.state.lock();
        state.is_set = true;
        while let Some(accepted) = state.waiters.accept() {
            wakers.extend(accepted.win());
        }
        drop(state);
        crate::queue::wake::wake_all(wakers);
    }
}

/// The wait for a latch.
pub struct LatchWait<V> {
    latch: Arc<Latch<V>>,
    node: OfferNode<()>,
}

impl<V> LatchWait<V> {
    pub(crate) fn new(latch: Arc<Latch<V>>) -> LatchWait<V> {
        LatchWait {
            latch,
            node: OfferNode::with_slot(()),
        }
    }

    fn node(self: Pin<&mut Self>) -> (&Latch<V>, Pin<&mut OfferNode<()>>) {
        project(self, |this| (&*this.latch, &mut this.node))
    }
}

impl<V> Branch for LatchWait<V> {
    type Output = ();

    fn attempt(self: Pin<&mut Self>, _base: u32, _cx: &mut Context<'_>) -> Poll<()> {
        match self.latch.state.lock().is_set {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    fn enrol(
        self: Pin<&mut Self>,
        _base: u32,
        ticket: &Ticket<'_>,
        _cx: &mut Context<'_>,
    ) -> Enrolled<()> {
        let (latch, node) = self.node();
        let mut state = latch.state.lock();
        let Ok(own) = ticket.hold() else {
            return Enrolled::Lost;
        };
        if state.is_set {
            ticket.win(own);
            return Enrolled::Ready(());
        }
        state.waiters.leave(node, ticket);
        Enrolled::Waits
    }

    /// Takes the lock, so that the partner that won for this wait has finished with the latch.
    fn collect(self: Pin<&mut Self>, _won: Won) {
        drop(self.latch.state.lock());
    }

    fn give_back(self: Pin<&mut Self>, _won: Won) {}

    fn settle(self: Pin<&mut Self>, won: Option<u32>) {
        let (latch, node) = self.node();
        if won.is_none() && node.is_bound() {
            latch.state.lock().waiters.remove(node);
        }
    }

    fn reason(&self) -> Reason {
        Reason::new(Kind::IVar, &*self.latch)
    }
}
