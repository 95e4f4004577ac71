//! The exchanger: two units meet, and swap their values.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use crate::{
    event::{Branch, Enrolled, Waiting, Won},
    queue::{
        list,
        offer::{Met, OfferNode, Offers},
        spin_lock::SpinLock,
        ticket::Ticket,
    },
    runtime::reason::{Kind, Name, Reason},
};

/// A place where units swap values in pairs, in the order of their arrival.
///
/// ```
/// use weald::sync::{Exchanger, Wait};
///
/// let exchanger = Exchanger::new();
/// std::thread::scope(|scope| {
///     scope.spawn(|| assert_eq!(exchanger.exchange("tea").wait(), "coffee"));
///     assert_eq!(exchanger.exchange("coffee").wait(), "tea");
/// });
/// ```
///
/// There is no poisoning and no closing: a wait without a partner does not end. An idle exchanger has 24 bytes.
pub struct Exchanger<T> {
    state: SpinLock<ExchangerState<T>>,
}

struct ExchangerState<T> {
    name: Name,
    /// A slot has the waiter's value, then the partner's.
    waiters: Offers<Option<T>>,
}

impl<T> Exchanger<T> {
    /// An exchanger without waiters.
    pub fn new() -> Exchanger<T> {
        Exchanger::with_name(Name::NONE)
    }

    /// The same, with a name for reports of what units wait for.
    pub fn named(name: &str) -> Exchanger<T> {
        Exchanger::with_name(Name::new(name))
    }

    fn with_name(name: Name) -> Exchanger<T> {
        let state = SpinLock::new(ExchangerState {
            name,
            waiters: Offers::new(),
        });
        Exchanger { state }
    }

    /// Waits for a partner, and swaps values with it. An event. Cancel-safe in this sense: if the wait is dropped
    /// before a partner came, its value is dropped with it. If a partner came, the exchange has happened, and
    /// the partner's value is dropped with the wait.
    #[track_caller]
    pub fn exchange(&self, value: T) -> Waiting<Exchange<'_, T>> {
        Waiting::here(Exchange {
            exchanger: self,
            node: OfferNode::with_slot(Some(value)),
        })
    }

    /// Swaps values with a waiting partner.
    ///
    /// # Errors
    /// [`Alone`] with the value if no partner waits.
    pub fn try_exchange(&self, value: T) -> Result<T, Alone<T>> {
        let mut value = Some(value);
        let waker = self.state.lock().swap(&mut value);
        let value = value.expect(HAS_VALUE);
        let Some(waker) = waker else {
            return Err(Alone(value));
        };
        wake(waker);
        Ok(value)
    }
}

const HAS_VALUE: &str = "a waiting exchange has its value";

impl<T> ExchangerState<T> {
    /// Swaps with the first waiter. None: there is none.
    fn swap(&mut self, value: &mut Option<T>) -> Option<Option<Waker>> {
        let mut partner = self.waiters.accept()?;
        std::mem::swap(partner.slot(), value);
        Some(partner.win())
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        crate::queue::wake::wake(waker);
    }
}

/// The event of [`Exchanger::exchange`].
pub struct Exchange<'a, T> {
    exchanger: &'a Exchanger<T>,
    node: OfferNode<Option<T>>,
}

impl<'a, T> Exchange<'a, T> {
    fn node(self: Pin<&mut Self>) -> (&'a Exchanger<T>, Pin<&mut OfferNode<Option<T>>>) {
        list::project(self, |this| (this.exchanger, &mut this.node))
    }
}

impl<T> Branch for Exchange<'_, T> {
    type Output = T;

    fn attempt(self: Pin<&mut Self>, _base: u32, _cx: &mut Context<'_>) -> Poll<T> {
        let (exchanger, node) = self.node();
        let value = &mut node.own_value().slot;
        let swapped = exchanger.state.lock().swap(value);
        match swapped {
            None => Poll::Pending,
            Some(waker) => {
                wake(waker);
                Poll::Ready(value.take().expect(HAS_VALUE))
            }
        }
    }

    fn enrol(
        self: Pin<&mut Self>,
        _base: u32,
        ticket: &Ticket<'_>,
        _cx: &mut Context<'_>,
    ) -> Enrolled<T> {
        let (exchanger, mut node) = self.node();
        let mut state = exchanger.state.lock();
        let Ok(own) = ticket.hold() else {
            return Enrolled::Lost;
        };
        let value = &mut node.as_mut().own_value().slot;
        let met = state
            .waiters
            .meet(own, ticket, |theirs| std::mem::swap(theirs, value));
        match met {
            Met::Lost => Enrolled::Lost,
            Met::Partner((), waker) => {
                drop(state);
                wake(waker);
                Enrolled::Ready(value.take().expect(HAS_VALUE))
            }
            Met::Nobody(own) => {
                state.waiters.leave(node, ticket);
                drop(own);
                Enrolled::Waits
            }
        }
    }

    fn collect(self: Pin<&mut Self>, _won: Won) -> T {
        let (exchanger, node) = self.node();
        let theirs = exchanger.state.lock().waiters.value(node).slot.take();
        theirs.expect(HAS_VALUE)
    }

    /// The exchange has happened; the partner's value is dropped with the wait.
    fn give_back(self: Pin<&mut Self>, _won: Won) {}

    fn settle(self: Pin<&mut Self>, won: Option<u32>) {
        let (exchanger, node) = self.node();
        if won.is_none() && node.is_bound() {
            exchanger.state.lock().waiters.remove(node);
        }
    }

    fn reason(&self) -> Reason {
        let name = self.exchanger.state.lock().name;
        Reason::new(Kind::Exchange, self.exchanger).named(name)
    }
}

/// No partner waits. Contains the value.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no partner waits at the exchanger: wait with exchange, or try later")]
pub struct Alone<T>(pub T);

impl<T> fmt::Debug for Alone<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alone").finish_non_exhaustive()
    }
}

impl<T> Default for Exchanger<T> {
    fn default() -> Exchanger<T> {
        Exchanger::new()
    }
}

impl<T> fmt::Debug for Exchanger<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchanger").finish_non_exhaustive()
    }
}
