//! How a thread waits: until its node in a queue is woken, until a future is ready, or until a deadline.
//!
//! A thread of this library suspends its stack; any other OS thread of the program parks. Only a shutdown cancels a
//! wait ([`crate::runtime::end`]): the wait then unwinds as far as the function that C has called, which ends the
//! thread ([`crate::guard`]).

#![allow(unsafe_code)]
#![cfg_attr(
    all(loom, test),
    allow(unused_imports, reason = "the threads of models wait otherwise")
)]

use std::{
    future::poll_fn,
    mem,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use weald_kernel::{Wait, is_in_job, timeout, wait_until};

use crate::{
    queue::{Node, Queue},
    runtime,
    saved::across,
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

/// Calls `enqueue`, which puts the node into `queue` and returns true, or false if there is no reason to wait; it waits
/// for nothing itself. Waits until the node is woken.
pub(crate) fn wait_in(queue: &Queue, node: &Node, mut enqueue: impl FnMut(&Node) -> bool) {
    let mut enqueued = Enqueued {
        queue,
        node,
        is_in_queue: false,
    };
    #[cfg(not(all(loom, test)))]
    if across(|| {
        wait_until(
            |waker| {
                // SAFETY: *lent*: it is the waker of the job in whose frames the node is.
                unsafe { node.lend_waker(waker) };
                enqueued.is_in_queue = enqueue(node);
                // The wake may come before the end of this call, and is not lost.
                enqueued.is_in_queue
            },
            || node.is_woken(),
        )
    }) {
        // The node is in no queue.
        return mem::forget(enqueued);
    }
    let mut begins = true;
    wait(poll_fn(|cx| enqueued.poll(cx, &mut begins, &mut enqueue)));
}

/// As [`wait_in`], until `deadline` at the latest. None: no deadline.
pub(crate) fn wait_in_until(
    queue: &Queue,
    node: &Node,
    deadline: Option<Instant>,
    enqueue: impl FnMut(&Node) -> bool,
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

async fn woken(mut node: Enqueued<'_>, mut enqueue: impl FnMut(&Node) -> bool) {
    let mut begins = true;
    poll_fn(|cx| node.poll(cx, &mut begins, &mut enqueue)).await;
}

/// Whether the waker of a future is lent ([`Node::lend_waker`]): by models, whose wakers last as long as their waits,
/// so that they run what a thread with a stack of its own does.
const LENDS: bool = cfg!(all(loom, test));

/// A node that may be in a queue. When it is dropped, it is in none: it takes itself out, or waits for whoever has.
struct Enqueued<'a> {
    queue: &'a Queue,
    node: &'a Node,
    is_in_queue: bool,
}

impl Enqueued<'_> {
    /// The first poll, which `begins`, calls `enqueue`.
    fn poll(
        &mut self,
        cx: &Context<'_>,
        begins: &mut bool,
        enqueue: &mut impl FnMut(&Node) -> bool,
    ) -> Poll<()> {
        let is_over = match mem::take(begins) {
            false => self.node.is_woken(),
            true => {
                match LENDS {
                    // SAFETY: *lent*: see `LENDS`.
                    true => unsafe { self.node.lend_waker(cx.waker()) },
                    false => self.node.set_waker(cx.waker()),
                }
                self.is_in_queue = enqueue(self.node);
                !self.is_in_queue
            }
        };
        match is_over {
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
        self.node.until_woken();
    }
}
