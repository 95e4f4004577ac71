//! Polling by hand, with wakers that count.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A future in the hand of a test.
pub(crate) struct Hand<F> {
    future: Pin<Box<F>>,
    wakes: Arc<Count>,
}

/// Takes a future into the hand.
pub(crate) fn hand<F: Future>(future: F) -> Hand<F> {
    Hand {
        future: Box::pin(future),
        wakes: Arc::default(),
    }
}

/// A future that was polled once, and waits.
pub(crate) fn waiting<F: Future>(future: F) -> Hand<F> {
    let mut hand = hand(future);
    assert!(hand.poll().is_pending(), "it has to wait");
    assert_eq!(hand.wakes(), 0, "nobody has reason to wake it");
    hand
}

impl<F: Future> Hand<F> {
    pub(crate) fn poll(&mut self) -> Poll<F::Output> {
        let waker = Waker::from(Arc::clone(&self.wakes));
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }

    /// How often it was woken.
    pub(crate) fn wakes(&self) -> usize {
        self.wakes.0.load(Ordering::Relaxed)
    }

    /// What it yields, after exactly one wake.
    pub(crate) fn woken(mut self) -> F::Output {
        assert_eq!(self.wakes(), 1, "it has to be woken once");
        self.now()
    }

    /// What it yields now.
    pub(crate) fn now(&mut self) -> F::Output {
        match self.poll() {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("it has to be ready"),
        }
    }

    /// It still waits, and nobody woke it.
    pub(crate) fn still_waits(&mut self) {
        assert_eq!(self.wakes(), 0, "nobody has reason to wake it");
        assert!(self.poll().is_pending(), "it has to wait");
    }
}
