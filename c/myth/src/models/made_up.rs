//! How models wait: a future on a loom thread; and tools that loom threads share.

#![allow(unsafe_code)]

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

use loom::sync::Notify;

struct Notifier(Notify);

impl Wake for Notifier {
    fn wake(self: Arc<Self>) {
        self.0.notify();
    }
}

/// Waits for a future on the calling loom thread.
pub(crate) fn wait<F: Future>(future: F) -> F::Output {
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

/// A tool that threads share, as C shares its memory.
pub(super) struct Shared<T>(pub(super) T);

// SAFETY: the tools are for several threads; those of C promise no such thing to the compiler.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}
