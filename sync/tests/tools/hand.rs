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

/// A future that a test polls by hand.
pub(crate) struct Hand<F> {
    future: Pin<Box<F>>,
    wakes: Arc<Count>,
}

/// A future to poll by hand.
pub(crate) fn hand<F: Future>(future: F) -> Hand<F> {
    Hand {
        future: Box::pin(future),
        wakes: Arc::default(),
    }
}

/// A future that was polled once, and waits.
pub(crate) fn waiting<F: Future>(future: F) -> Hand<F> {
    let mut hand = hand(future);
    assert!(hand.poll().is_pending(), "the wait ended too early");
    assert_eq!(hand.wakes(), 0, "the wait was woken too early");
    hand
}

impl<F: Future> Hand<F> {
    pub(crate) fn poll(&mut self) -> Poll<F::Output> {
        let waker = Waker::from(Arc::clone(&self.wakes));
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }

    /// How often the wait was woken.
    pub(crate) fn wakes(&self) -> usize {
        self.wakes.0.load(Ordering::Relaxed)
    }

    /// [`wakes`](Hand::wakes), after the end of the future.
    pub(crate) fn keep_wakes(&self) -> Box<dyn Fn() -> usize> {
        let wakes = Arc::clone(&self.wakes);
        Box::new(move || wakes.0.load(Ordering::Relaxed))
    }

    /// The output, after exactly one wake.
    pub(crate) fn woken(mut self) -> F::Output {
        assert_eq!(self.wakes(), 1, "the wait is woken exactly once");
        self.now()
    }

    /// The output, which must be ready.
    pub(crate) fn now(&mut self) -> F::Output {
        match self.poll() {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("the wait is not ready"),
        }
    }

    /// Asserts that it still waits, and was not woken.
    pub(crate) fn still_waits(&mut self) {
        assert_eq!(self.wakes(), 0, "the wait was woken too early");
        assert!(self.poll().is_pending(), "the wait ended too early");
    }
}
