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
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use weald_kernel::{
    Wait,
    at_once::{AtOnce, wait_at_once, wait_on_until},
    is_in_job, timeout, wait_until,
};

use crate::{
    queue::{Node, Queue},
    runtime,
    saved::{Saved, across},
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
#[inline(always)]
pub(crate) fn wait_in(queue: &Queue, node: &Node, mut enqueue: impl FnMut(&Node) -> bool) {
    let mut enqueued = Enqueued {
        queue,
        node,
        is_in_queue: false,
    };
    #[cfg(not(all(loom, test)))]
    if wait_lent(node, |node| {
        enqueued.is_in_queue = enqueue(node);
        // The wake may come before the end of this call, and is not lost.
        enqueued.is_in_queue
    }) {
        // The node is in no queue.
        return mem::forget(enqueued);
    }
    wait_otherwise(enqueued, &mut enqueue);
}

/// As [`wait_in`], outside of jobs, and where a job waits in another way.
#[inline(never)]
fn wait_otherwise(mut enqueued: Enqueued<'_>, mut enqueue: &mut dyn FnMut(&Node) -> bool) {
    let mut begins = true;
    wait(poll_fn(|cx| enqueued.poll(cx, &mut begins, &mut enqueue)));
}

/// As [`wait_in`], with the waker of the running job, which the node has without a count. False, before any call, where
/// the caller must wait in another way. `enqueue` may have left the node in a queue if this unwinds.
#[inline(always)]
pub(crate) fn wait_lent(node: &Node, mut enqueue: impl FnMut(&Node) -> bool) -> bool {
    match wait_in_frame(node, &mut enqueue) {
        AtOnce::Over => true,
        AtOnce::Resumed if node.is_woken() => true,
        AtOnce::Resumed | AtOnce::Begun => {
            wait_on(node);
            true
        }
        AtOnce::Refused => wait_in_several_frames(node, &mut enqueue),
    }
}

#[inline(never)]
fn wait_on(node: &Node) {
    across(|| wait_on_until(|| node.is_woken()));
}

#[inline(never)]
fn wait_in_several_frames(node: &Node, enqueue: &mut dyn FnMut(&Node) -> bool) -> bool {
    across(|| wait_until(|waker| enqueue(lent_to(node, waker)), || node.is_woken()))
}

/// The commonest wait, with all that it saves, in one frame.
#[inline(never)]
fn wait_in_frame(node: &Node, enqueue: &mut impl FnMut(&Node) -> bool) -> AtOnce {
    let saved = Saved::take_in_frame();
    // SAFETY: this frame is not inlined, and what follows reads thread-locals in frames of its own. What is called puts
    // a node into a queue, and wakes others.
    let begun = unsafe {
        wait_at_once(
            |waker| enqueue(lent_to(node, waker)),
            || saved.restore_in_frame(),
        )
    };
    if matches!(begun, AtOnce::Over | AtOnce::Begun) {
        // A wake may have been a call of the system.
        saved.restore();
    }
    begun
}

/// The node, which has the running job's waker.
#[inline(always)]
fn lent_to<'a>(node: &'a Node, waker: &Waker) -> &'a Node {
    // SAFETY: *lent*: it is the waker of the job in whose frames the node is.
    unsafe { node.lend_waker(waker) };
    node
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
