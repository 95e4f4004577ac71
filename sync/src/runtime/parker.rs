//! Waiting by parking the calling OS thread: for programs without a runtime.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
};

struct ThreadWaker {
    thread: Thread,
    woken: AtomicBool,
}

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // AcqRel: pairs with the swap in `wait`.
        if !self.woken.swap(true, Ordering::AcqRel) {
            self.thread.unpark();
        }
    }
}

/// Polls until it is ready; parks the thread between two polls.
pub(super) fn wait(poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>) {
    let signal = Arc::new(ThreadWaker {
        thread: thread::current(),
        woken: AtomicBool::new(false),
    });
    let waker = Waker::from(signal.clone());
    let mut cx = Context::from_waker(&waker);
    while poll(&mut cx).is_pending() {
        while !signal.woken.swap(false, Ordering::AcqRel) {
            thread::park();
        }
    }
}
