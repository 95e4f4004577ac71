//! Negative acknowledgements: an event learns that another one was chosen.
//!
//! A nack is enabled when its sync has ended and none of the base events under its `with_nack` was chosen.
//! Either another event was chosen, or the sync was given up: it was dropped before its first poll or later,
//! by a cancel, a kill or a panic, including a panic of a later guard while the events were opened. A nack is
//! never enabled if one of its base events was chosen, whatever the functions of [`wrap`](crate::Event::wrap)
//! do then.

use std::{pin::Pin, sync::Arc};

use super::layer::Layer;
use crate::{
    combinators::pinned::Both,
    event::{Branch, Event, awaitable},
    latch::{Latch, LatchWait},
};

/// The event that `f` returns, as with [`guard`](crate::guard). `f` gets an event, the nack, that becomes ready
/// if and when this event loses: when another event of the same sync was chosen, or the sync was given up. So
/// a server can learn that its client no longer wants an answer.
///
/// If a sync is dropped after a partner ended it, and before its unit is polled again, it counts as given up,
/// and its nacks are enabled.
///
/// ```
/// use weald::sync::{Event, Wait, always, choose, never, with_nack};
///
/// let mut nack = None;
/// let event = with_nack(|lost| {
///     nack = Some(lost);
///     never()
/// });
/// assert_eq!(choose((event, always(1))).wait(), 1);
/// nack.expect("the guard ran").wait();
/// ```
pub fn with_nack<E: Event, F: FnOnce(Nack) -> E>(f: F) -> WithNack<F> {
    WithNack(f)
}

/// See [`with_nack`].
#[derive(Clone, Copy, Debug)]
#[must_use = "an event does nothing unless it is synced"]
pub struct WithNack<F>(F);

/// The event that is ready once another event was chosen; it stays ready. Any number of clones.
#[derive(Clone)]
#[must_use = "an event does nothing unless it is synced"]
pub struct Nack(Arc<Latch<()>>);

/// Sets the latch when it is dropped, unless its event was chosen.
pub struct Signal {
    latch: Arc<Latch<()>>,
    stage: SignalStage,
}

#[derive(Clone, Copy, PartialEq)]
enum SignalStage {
    Open,
    Chosen,
    Lost,
}

impl Nack {
    /// Whether it is ready.
    pub fn is_enabled(&self) -> bool {
        self.0.value().is_some()
    }
}

impl Signal {
    fn end(&mut self, stage: SignalStage) {
        if self.stage == SignalStage::Open {
            self.stage = stage;
            if stage == SignalStage::Lost {
                self.latch.set(());
            }
        }
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        self.end(SignalStage::Lost);
    }
}

impl<E: Event, F: FnOnce(Nack) -> E> Event for WithNack<F> {
    type Output = E::Output;
    type Branch = Both<E::Branch, Signal>;

    fn open(self) -> Self::Branch {
        // First, so that the signal is also given if the function panics, or its event while it is opened.
        let signal = Signal {
            latch: Arc::new(Latch::new()),
            stage: SignalStage::Open,
        };
        let event = (self.0)(Nack(Arc::clone(&signal.latch)));
        Both::new(event.open(), signal)
    }

    fn conclude(outcome: <E::Branch as Branch>::Output) -> E::Output {
        E::conclude(outcome)
    }
}

impl<B: Branch> Layer for Both<B, Signal> {
    type Inner = B;
    type Output = B::Output;

    fn inner(&self) -> &B {
        self.pinned()
    }

    fn inner_mut(self: Pin<&mut Self>) -> Pin<&mut B> {
        self.parts().0
    }

    fn output(self: Pin<&mut Self>, inner: B::Output) -> B::Output {
        inner
    }

    fn settled(self: Pin<&mut Self>, chosen: bool) {
        self.parts().1.end(match chosen {
            true => SignalStage::Chosen,
            false => SignalStage::Lost,
        });
    }

    fn adds_to_settling(&self) -> bool {
        true
    }
}

impl Event for Nack {
    type Output = ();
    type Branch = LatchWait<()>;

    fn open(self) -> LatchWait<()> {
        LatchWait::new(self.0)
    }

    fn conclude((): ()) {}
}

awaitable!([E: Event, F: FnOnce(Nack) -> E] WithNack<F>);
awaitable!([] Nack);

impl std::fmt::Debug for Nack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Nack").field(&self.is_enabled()).finish()
    }
}
