//! A job's mailbox: addresses that post typed messages, and the end that receives them.
//!
//! Steps of a message: [`Address::post`] pushes a node on the stack in the job's state word, and makes the
//! job runnable if it listens. The receiver takes the whole stack at once, reverses it, and returns the
//! messages in the order in which they were posted. So messages of one sender keep their order, and a burst
//! costs one atomic exchange.

#![allow(unsafe_code)]

mod backlog;
mod posted;
mod selective;
mod source;

use std::{
    marker::PhantomData,
    ptr::NonNull,
    task::{Context, Poll, Waker},
};

pub use backlog::{LongMailbox, UnreadMailbox};
pub use posted::PostedMessage;
pub use selective::{ReceiveSince, SelectiveReceive};
use weald_sync::{
    reason::{Kind, Reason},
    unit,
};

use crate::{
    api::sync_hooks::note_wait,
    api::unit::Unit,
    job::{
        JobRef,
        chain::{MessageChain, MessageLinks},
        foreign_waker,
        message::{self, MessageNode},
        runnable::Runnable,
        state::{Link, TakenMessages},
        transition::Posted,
    },
    report::JobName,
    scheduler::{
        threads::queue_watch::post_counts,
        workers::{cancel, context, ready::ready_and_true, waker},
    },
};

/// The noted reason while a job waits for its own mailbox.
const RECEIVE: u64 = Reason::unspecified(Kind::Message).to_word();

/// Sends messages `M` to the mailbox of one job, from any thread. A counted reference of 8 bytes.
pub struct Address<M> {
    job: JobRef,
    message: PhantomData<fn(M)>,
}

// SAFETY: an address only moves messages into the mailbox, which needs them to be `Send`; the job's
// header may be used from any thread.
unsafe impl<M: Send> Send for Address<M> {}
// SAFETY: as above.
unsafe impl<M: Send> Sync for Address<M> {}

impl<M> Address<M> {
    /// Whether the job of this mailbox runs the caller.
    pub fn is_of_running_job(&self) -> bool {
        context::again().unit_job() == Some(self.job.ptr())
    }
}

impl<M> Clone for Address<M> {
    fn clone(&self) -> Address<M> {
        Address::new(self.job.clone())
    }
}

impl<M> PartialEq for Address<M> {
    fn eq(&self, other: &Address<M>) -> bool {
        self.job.ptr() == other.job.ptr()
    }
}

impl<M> Eq for Address<M> {}

impl<M> std::hash::Hash for Address<M> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.job.ptr().as_raw().hash(state);
    }
}

impl<M> Address<M> {
    pub(crate) fn new(job: JobRef) -> Address<M> {
        Address {
            job,
            message: PhantomData,
        }
    }

    /// Puts a message into the mailbox. Lock-free; never waits. Safe from any thread.
    ///
    /// # Errors
    /// Returns the message if the mailbox is closed: its job has ended, or has dropped the mailbox.
    // Inlined as far as the message's type matters, so that the message is built in its node.
    #[inline(always)]
    pub fn post(&self, message: M) -> Result<(), M> {
        let link = MessageNode::new(message, self.job.ptr()).into_link();
        // SAFETY: the node is new, and given away unless the state refuses it.
        match unsafe { post_link(&self.job, link) } {
            true => Ok(()),
            // SAFETY: the state refused the node, so it is still owned here.
            false => Err(unsafe { MessageNode::<M>::from_link(link) }.into_value()),
        }
    }

    /// Asks the job to end at its next wait. Does nothing if the job has ended.
    pub fn cancel(&self) {
        cancel::cancel(&self.job);
    }

    /// As [`Address::cancel`], and closes the mailbox at once: the job receives no message that was posted after this.
    pub fn kill(&self) {
        cancel::kill(&self.job);
    }

    /// The job as a unit.
    pub fn unit(&self) -> Unit {
        Unit::new(self.job.clone())
    }

    /// As [`Address::unit`], without a count: the address becomes the unit.
    pub fn into_unit(self) -> Unit {
        Unit::new(self.job)
    }

    /// Whether the job has ended.
    pub fn is_done(&self) -> bool {
        self.job.header().state.is_done()
    }

    /// The job's name in reports.
    pub fn name(&self) -> JobName {
        JobName::of(self.job.header())
    }
}

/// Puts a node into the mailbox of `job`, and makes the job runnable if it listens. False if the mailbox
/// is closed.
///
/// # Safety
/// The node has the mailbox's message type and is in no list. It is given away if the result is true.
#[inline(never)]
unsafe fn post_link(job: &JobRef, link: NonNull<Link>) -> bool {
    // SAFETY: the caller's promise.
    if unsafe { job.header().state.post_to_listener(link.as_ptr()) } {
        // SAFETY: a post to a listener gives the caller the job's runnable.
        return ready_and_true(unsafe { Runnable::new(job.ptr()) });
    }
    // SAFETY: the caller's promise.
    match unsafe { job.header().state.post_to_busy(link.as_ptr()) } {
        true => note_queued(job),
        // SAFETY: the caller's promise.
        false => unsafe { post_link_to_any(job, link) },
    }
}

/// A message was queued behind others, or while the job does something else. Returns true, as [`ready_and_true`] does.
#[inline(always)]
fn note_queued(job: &JobRef) -> bool {
    message::note_queued(job.ptr());
    // A message that wakes its receiver is counted by the run that receives it.
    let operations = unit::with(|unit| {
        unit.count_free();
        unit.operations()
    });
    match post_counts::is_counted(operations) {
        // SAFETY: the caller's reference.
        true => unsafe { backlog::count_post(job.ptr()) },
        false => true,
    }
}

/// [`post_link`] to a job in any state. A function of its own, so that the common cases save no registers for it.
#[cold]
#[inline(never)]
unsafe fn post_link_to_any(job: &JobRef, link: NonNull<Link>) -> bool {
    // SAFETY: the caller's promise.
    match unsafe { job.header().state.post_to_any(link.as_ptr()) } {
        Posted::Queued => note_queued(job),
        // SAFETY: `Posted::Schedule` gives the caller the job's runnable.
        Posted::Schedule => ready_and_true(unsafe { Runnable::new(job.ptr()) }),
        Posted::WakeReceiver => {
            wake_receiver(job);
            true
        }
        Posted::Closed => false,
    }
}

#[cold]
fn wake_receiver(job: &JobRef) {
    let receiver = job.header().extensions.lock().receiver.take();
    // A panic of the receiver's waker must not reach the sender.
    receiver.into_iter().for_each(foreign_waker::wake);
}

/// The receiving end of a mailbox. Each job has at most one. Dropping it closes the mailbox and drops the messages
/// not received.
///
/// Other jobs, other executors and threads in `wait()` may use it too; a job that receives from its own mailbox pays
/// one store to wait.
///
/// A mailbox is invariant in its message type, even in lifetimes:
///
/// ```compile_fail
/// use weald::Mailbox;
///
/// fn shrink<'a>(mailbox: &'a Mailbox<&'static str>) -> &'a Mailbox<&'a str> {
///     mailbox
/// }
/// ```
pub struct Mailbox<M> {
    job: JobRef,
    /// Messages taken from the state word and not yet returned.
    chain: MessageChain<M>,
    /// Invariant: a mailbox also creates addresses, which take `M`.
    message: PhantomData<fn(M) -> M>,
}

// SAFETY: a mailbox owns messages, and moves between threads only if they may.
unsafe impl<M: Send> Send for Mailbox<M> {}
// SAFETY: a shared reference to a mailbox gives no access to its messages.
unsafe impl<M: Send> Sync for Mailbox<M> {}

impl<M> Mailbox<M> {
    pub(crate) fn new(job: JobRef) -> Mailbox<M> {
        Mailbox {
            job,
            chain: MessageChain::new(),
            message: PhantomData,
        }
    }

    /// An address of this mailbox.
    pub fn address(&self) -> Address<M> {
        Address::new(self.job.clone())
    }

    /// The oldest message, once there is one. Costs one reduction of the poll budget. Only the waker of the last
    /// call is woken.
    ///
    /// # Panics
    /// If the mailbox is empty and outlives its job: no message can arrive any longer.
    // Inlined as far as the message's type matters, so that the message is read where it is used.
    #[inline(always)]
    pub fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<M> {
        let links = &mut self.chain.links;
        let link = match links.is_empty() {
            true => poll_empty(&self.job, links, cx),
            // A message behind others: the common case of a mailbox that has many.
            false if links.is_unmarked() && context::here().spend_if_any() => {
                Some(links.pop_unmarked())
            }
            false => poll_links(&self.job, links, cx),
        };
        match link {
            // SAFETY: only `Address<M>` posts to this job, with the same `M`.
            Some(link) => Poll::Ready(unsafe { MessageNode::<M>::from_link(link) }.into_value()),
            None => Poll::Pending,
        }
    }

    /// The oldest message, if there is one now. Never waits.
    pub fn try_receive(&mut self) -> Option<M> {
        if self.chain.links.is_empty() {
            self.refill();
        }
        self.chain.pop()
    }

    fn refill(&mut self) {
        let state = &self.job.header().state;
        let keeps_backlog = !self.chain.links.is_empty() && state.is_long();
        let taken = state.take_messages();
        if keeps_backlog {
            state.set_long();
        }
        // SAFETY: only `Address<M>` posts to this job, with the same `M`.
        let found = unsafe { self.chain.links.append_stack(taken.messages()) };
        backlog::note(&self.job, found, taken);
    }
}

/// The oldest node of the mailbox of `job`; `links`, which is empty, is its chain. If it returns none, the next message
/// wakes the receiver.
// Inlined, because by cargo's default release profile the address of a thread-local comes from a call, over which a
// function of its own would have to save its arguments in each receive (0061).
#[inline(always)]
fn poll_empty(
    job: &JobRef,
    links: &mut MessageLinks,
    cx: &mut Context<'_>,
) -> Option<NonNull<Link>> {
    let taken = job.header().state.take_messages();
    let Some(newest) = NonNull::new(taken.messages()) else {
        // The job itself waits, which is the common case.
        return match listens(job, cx.waker()) {
            true => None,
            false => poll_links(job, links, cx),
        };
    };
    // A single message is the common case: it need not go through the chain.
    // SAFETY: `taken` owns the stack.
    if unsafe { message::is_single(newest) } && context::here().spend_if_any() {
        return Some(newest);
    }
    poll_several(job, links, taken, cx)
}

/// Whether the job itself polls its own mailbox, which is the common case. Then the next message wakes it.
#[inline(never)]
fn listens(job: &JobRef, waker: &Waker) -> bool {
    if !waker::is_of(waker, job.ptr()) {
        return false;
    }
    let here = context::here();
    let runs_here = here.job() == Some(job.ptr());
    if runs_here {
        listen(here, job);
    }
    runs_here
}

/// [`poll_empty`] with several messages, or with a used-up budget. A function of its own, so that the common case saves
/// no registers for it.
#[inline(never)]
fn poll_several(
    job: &JobRef,
    links: &mut MessageLinks,
    taken: TakenMessages,
    cx: &mut Context<'_>,
) -> Option<NonNull<Link>> {
    // SAFETY: `links` is the chain of this mailbox.
    let found = unsafe { links.append_stack(taken.messages()) };
    backlog::note(job, found, taken);
    poll_links(job, links, cx)
}

/// The general case of a receive: a chain with marks, a used-up budget, a foreign receiver, or the wish for several
/// messages.
#[inline(never)]
fn poll_links(
    job: &JobRef,
    links: &mut MessageLinks,
    cx: &mut Context<'_>,
) -> Option<NonNull<Link>> {
    context::with(|here| {
        while links.is_empty() {
            let taken = job.header().state.take_messages();
            // SAFETY: `links` is the chain of this mailbox.
            let found = unsafe { links.append_stack(taken.messages()) };
            backlog::note(job, found, taken);
            if links.is_empty() && register(here, job, cx) {
                return None;
            }
        }
        match here.spend(cx.waker()) {
            true => links.pop(),
            false => None,
        }
    })
}

#[inline(always)]
fn is_own(here: &context::Context, job: &JobRef, cx: &Context<'_>) -> bool {
    here.job() == Some(job.ptr()) && waker::is_of(cx.waker(), job.ptr())
}

#[inline(always)]
fn listen(here: &context::Context, job: &JobRef) {
    here.listen();
    job.header().set_waits_for(RECEIVE);
}

/// Registers the receiver, so that the next message wakes it. False if a message may have come first.
#[inline(always)]
fn register(here: &context::Context, job: &JobRef, cx: &Context<'_>) -> bool {
    if is_own(here, job, cx) {
        listen(here, job);
        return true;
    }
    register_waker(job, cx)
}

#[cold]
fn register_waker(job: &JobRef, cx: &Context<'_>) -> bool {
    note_wait(Reason::unspecified(Kind::Message));
    let header = job.header();
    // Cloned before the lock, and the former one dropped after it: a waker is user code.
    let waker = waker::kept(cx.waker());
    let former = header.extensions.lock().receiver.replace(waker);
    drop(former);
    if header.state.register_receiver() {
        return true;
    }
    assert!(
        !header.state.is_done(),
        "nothing can be received any longer: the job of this mailbox has ended"
    );
    false
}

impl<M> Drop for Mailbox<M> {
    fn drop(&mut self) {
        let stack = self.job.header().state.close_inbox();
        // SAFETY: as in `refill`. The chain then drops its messages.
        unsafe { self.chain.links.append_stack(stack) };
        let receiver = self
            .job
            .header()
            .extensions
            .lock_existing()
            .and_then(|mut p| p.receiver.take());
        drop(receiver);
    }
}

impl<M> std::fmt::Debug for Address<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Address").field(&self.name()).finish()
    }
}

impl<M> std::fmt::Debug for Mailbox<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Mailbox")
            .field(&JobName::of(self.job.header()))
            .finish()
    }
}
