//! How models wait: a future on a loom thread, a future polled by hand, and a choice of two events.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

use loom::sync::Notify;

use crate::{Event, choose};

struct Notifier(Notify);

impl Wake for Notifier {
    fn wake(self: Arc<Self>) {
        self.0.notify();
    }
}

/// Waits for a future on the calling loom thread.
pub(super) fn wait<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let signal = Arc::new(Notifier(Notify::new()));
    let waker = Waker::from(Arc::clone(&signal));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        signal.0.wait();
    }
}

/// A future that was polled once and waits, to be polled by [`wait`] or dropped.
pub(super) fn started<F: Future>(future: F) -> Pin<Box<F>> {
    let mut future = Box::pin(future);
    let waker = Waker::from(Arc::new(Notifier(Notify::new())));
    let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending(), "the future is ready too early");
    future
}

/// Polls a future once, and drops it. Some if it was ready.
pub(super) fn once<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Notifier(Notify::new())));
    match future.as_mut().poll(&mut Context::from_waker(&waker)) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// What a choice yields.
#[derive(Debug, PartialEq)]
pub(super) enum Chosen<A, B> {
    First(A),
    Second(B),
}

/// Waits for one of two events.
pub(super) fn either<A: Event, B: Event>(
    a: A,
    b: B,
) -> impl Future<Output = Chosen<A::Output, B::Output>> {
    choose((a.wrap(Chosen::First), b.wrap(Chosen::Second))).sync()
}
