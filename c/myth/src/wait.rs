//! How a thread waits: until its node in a queue is woken, until a future is ready, or until a deadline.
//!
//! A thread of this library suspends its stack; any other OS thread of the program parks. Only a shutdown cancels a
//! wait ([`crate::runtime::end`]): the wait then unwinds as far as the function that C has called, which ends the
//! thread ([`crate::guard`]).

#![cfg_attr(
    all(loom, test),
    allow(unused_imports, reason = "the threads of models wait otherwise")
)]

use std::{
    future::poll_fn,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use weald_kernel::{Wait, is_in_job, timeout, wait_until};

use crate::{
    queue::{Node, Queue},
    runtime,
    saved::across,
    sys::spin,
};

/// How a wait with a deadline ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The thread was woken, or need not wait.
    Woken,
    /// The deadline passed first.
    TimedOut,
}

/// Waits until `future` is ready.
pub(crate) fn wait<F: Future>(future: F) -> F::Output {
    #[cfg(all(loom, test))]
    return crate::models::made_up::wait(future);
    #[cfg(not(all(loom, test)))]
    across(|| match is_in_job() {
        true => future.wait(),
        false => runtime::get().block_on(future),
    })
}

/// Calls `enqueue`, which puts the node into `queue` and returns true, or false if there is no reason to wait. Waits
/// until the node is woken.
pub(crate) fn wait_in(queue: &Queue, node: &Node, enqueue: impl FnOnce(&Node) -> bool) {
    let mut node = Enqueued {
        queue,
        node,
        is_in_queue: false,
    };
    let mut enqueue = Some(enqueue);
    #[cfg(not(all(loom, test)))]
    if across(|| wait_until(|waker| node.is_over(waker, &mut enqueue))) {
        return;
    }
    wait(poll_fn(|cx| node.poll(cx, &mut enqueue)));
}

/// As [`wait_in`], until `deadline` at the latest. None: no deadline.
pub(crate) fn wait_in_until(
    queue: &Queue,
    node: &Node,
    deadline: Option<Instant>,
    enqueue: impl FnOnce(&Node) -> bool,
) -> Ended {
    let Some(deadline) = deadline else {
        wait_in(queue, node, enqueue);
        return Ended::Woken;
    };
    let left = deadline.saturating_duration_since(Instant::now());
    let enqueued = Enqueued {
        queue,
        node,
        is_in_queue: false,
    };
    let timed = wait(timeout(left, woken(enqueued, enqueue)));
    match timed.is_ok() || node.is_woken() {
        true => Ended::Woken,
        false => Ended::TimedOut,
    }
}

/// Waits for at least `duration`.
pub(crate) fn sleep(duration: Duration) {
    wait(async move { weald_kernel::sleep(duration).await });
}

async fn woken(mut node: Enqueued<'_>, enqueue: impl FnOnce(&Node) -> bool) {
    let mut enqueue = Some(enqueue);
    poll_fn(|cx| node.poll(cx, &mut enqueue)).await;
}

/// A node that may be in a queue. When it is dropped, it is in none: it takes itself out, or waits for whoever has.
struct Enqueued<'a> {
    queue: &'a Queue,
    node: &'a Node,
    is_in_queue: bool,
}

impl Enqueued<'_> {
    /// Whether the wait is over. The first call makes the node ready for `waker`, and calls `enqueue`.
    fn is_over(&mut self, waker: &Waker, enqueue: &mut Option<impl FnOnce(&Node) -> bool>) -> bool {
        let Some(enqueue) = enqueue.take() else {
            return self.node.is_woken();
        };
        self.node.set_waker(waker);
        self.is_in_queue = enqueue(self.node);
        // The wake may come before the end of this call, and is not lost.
        !self.is_in_queue
    }

    fn poll(
        &mut self,
        cx: &Context<'_>,
        enqueue: &mut Option<impl FnOnce(&Node) -> bool>,
    ) -> Poll<()> {
        match self.is_over(cx.waker(), enqueue) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

impl Drop for Enqueued<'_> {
    fn drop(&mut self) {
        if !self.is_in_queue || self.node.is_woken() || self.queue.lock().remove(self.node) {
            return;
        }
        // Whoever has taken it wakes it, behind those that were taken with it: after a few instructions for each, or
        // after user code (a waker of others, what the last reference to a job drops). If that one waits for this
        // worker, the monitor retakes the worker.
        while !self.node.is_woken() {
            spin();
        }
    }
}
