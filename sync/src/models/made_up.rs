//! How models wait: a future on a loom thread, a future by hand, and a choice of two events.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

use loom::sync::Notify;

use crate::{
    event::{Branch, Enrolled, Entry, Waiting},
    reason::Reason,
};

struct Signal(Notify);

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.0.notify();
    }
}

/// Waits for a future on the calling loom thread.
pub(super) fn wait<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let signal = Arc::new(Signal(Notify::new()));
    let waker = Waker::from(Arc::clone(&signal));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        signal.0.wait();
    }
}

/// A future that was polled once and waits, for another poll by [`wait`] or to be dropped.
pub(super) fn begun<F: Future>(future: F) -> Pin<Box<F>> {
    let mut future = Box::pin(future);
    let waker = Waker::from(Arc::new(Signal(Notify::new())));
    let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending(), "it has to wait");
    future
}

/// Polls a future once, and drops it. Some if it was ready.
pub(super) fn once<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Signal(Notify::new())));
    match future.as_mut().poll(&mut Context::from_waker(&waker)) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// A choice of two events; numbers of bases are those of the branches.
pub(super) struct Either<A, B>(Pin<Box<A>>, Pin<Box<B>>);

/// What a choice yields.
#[derive(Debug, PartialEq)]
pub(super) enum Chosen<A, B> {
    First(A),
    Second(B),
}

/// Waits for one of two events.
pub(super) fn either<A: Branch, B: Branch>(a: Waiting<A>, b: Waiting<B>) -> Waiting<Either<A, B>> {
    use crate::event::Event;
    Waiting::new(Either(Box::pin(a.open()), Box::pin(b.open())))
}

impl<A: Branch, B: Branch> Either<A, B> {
    fn map<X, Y>(first: Enrolled<X>, other: Option<Enrolled<Y>>) -> Enrolled<Chosen<X, Y>> {
        match (first, other) {
            (Enrolled::Ready(output), _) => Enrolled::Ready(Chosen::First(output)),
            (_, Some(Enrolled::Ready(output))) => Enrolled::Ready(Chosen::Second(output)),
            (Enrolled::Lost, _) | (_, Some(Enrolled::Lost)) => Enrolled::Lost,
            _ => Enrolled::Waits,
        }
    }
}

impl<A: Branch, B: Branch> Branch for Either<A, B> {
    type Output = Chosen<A::Output, B::Output>;

    fn bases(&self) -> u32 {
        2
    }

    fn attempt(mut self: Pin<&mut Self>, base: u32, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match base {
            0 => self.0.as_mut().attempt(0, cx).map(Chosen::First),
            _ => self.1.as_mut().attempt(0, cx).map(Chosen::Second),
        }
    }

    fn enrol(
        mut self: Pin<&mut Self>,
        base: u32,
        entry: &Entry<'_>,
        cx: &mut Context<'_>,
    ) -> Enrolled<Self::Output> {
        match base {
            0 => Self::map(self.0.as_mut().enrol(0, entry, cx), None),
            _ => Self::map(Enrolled::Waits, Some(self.1.as_mut().enrol(0, entry, cx))),
        }
    }

    fn again(
        mut self: Pin<&mut Self>,
        base: u32,
        entry: &Entry<'_>,
        cx: &mut Context<'_>,
    ) -> Enrolled<Self::Output> {
        match base {
            0 => Self::map(self.0.as_mut().again(0, entry, cx), None),
            _ => Self::map(Enrolled::Waits, Some(self.1.as_mut().again(0, entry, cx))),
        }
    }

    fn is_polled(&self) -> bool {
        self.0.is_polled() || self.1.is_polled()
    }

    fn collect(mut self: Pin<&mut Self>, base: u32) -> Self::Output {
        match base {
            0 => Chosen::First(self.0.as_mut().collect(0)),
            _ => Chosen::Second(self.1.as_mut().collect(0)),
        }
    }

    fn give_back(mut self: Pin<&mut Self>, base: u32) {
        match base {
            0 => self.0.as_mut().give_back(0),
            _ => self.1.as_mut().give_back(0),
        }
    }

    fn settle(mut self: Pin<&mut Self>, won: Option<u32>) {
        self.0.as_mut().settle(won.filter(|base| *base == 0));
        self.1.as_mut().settle(won.filter(|base| *base == 1));
    }

    fn reason(&self) -> Reason {
        self.0.reason()
    }
}
