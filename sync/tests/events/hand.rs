//! A future that is polled by hand, with a waker that counts.

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
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A wait that is polled only by calls of the test.
pub(crate) struct Hand<F: Future> {
    future: Pin<Box<F>>,
    count: Arc<Count>,
}

/// Takes a wait, or an event, which is synced now.
pub(crate) fn hand<F: IntoFuture>(wait: F) -> Hand<F::IntoFuture> {
    Hand {
        future: Box::pin(wait.into_future()),
        count: Arc::default(),
    }
}

impl<F: Future> Hand<F> {
    pub(crate) fn poll(&mut self) -> Poll<F::Output> {
        let waker = Waker::from(Arc::clone(&self.count));
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }

    /// The output, which must be ready.
    pub(crate) fn ready(&mut self) -> F::Output {
        match self.poll() {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("the wait is not ready"),
        }
    }

    pub(crate) fn is_pending(&mut self) -> bool {
        self.poll().is_pending()
    }

    /// How often the wait was woken.
    pub(crate) fn wakes(&self) -> usize {
        self.count.0.load(Ordering::SeqCst)
    }
}

/// Whether an event is ready at once. If not, it is given up.
pub(crate) fn is_ready<F: IntoFuture>(event: F) -> bool {
    hand(event).poll().is_ready()
}
