//! Placement: where a job may run, and whether it has frames on a stack.
//!
//! ```text
//!   placement    may run on                        begins with                     ends with
//!   Anywhere     any worker of the runtime         a spawn
//!   Pinned       one thread, for good              a spawn of a future that is not Send
//!   PinnedStack  the thread that suspended it      StackContext::suspend_job       StackContext::resume_job
//!   Migrating    any worker: it resumes the stack  a migrating fiber's first wait  the end of the fiber's code
//! ```
//!
//! The job's header keeps the placement as bits ([`crate::job::body_bit`]), and nothing else does;
//! [`Header::placement`] turns them into one value. On the path of a message one question is enough, and costs one
//! load: whether any worker may run the job (`runs_anywhere`), whether it has frames on a stack (`has_own_stack`),
//! whether that stack is pinned (`pinned_stack`). A `Pinned` or `PinnedStack` job goes to the pinned queue of its
//! thread, never to the queues of a worker ([`crate::scheduler::workers::ready`]).
//!
//! A migrating fiber that waits in the poll of another wait is `PinnedStack` until it resumes.
//!
//! Whether a fiber migrates is what its spawner has promised, which its stack's context keeps; it becomes a placement
//! at the fiber's first wait. Code that walks through all jobs holds no runnable, so it cannot ask for the placement:
//! it asks `is_pinned_to`, or `has_own_stack` where no other thread is left.
//!
//! The safety argument (*suspended*) is at the head of [`crate::job::header`].

#![allow(unsafe_code)]

use std::{any::Any, ptr, sync::Arc};

use crate::{
    job::{Header, body_bit},
    scheduler::stackful::{pinned::PinnedQueue, stack_context::StackContext},
};

/// Where a job may run.
pub(crate) enum Placement<'a> {
    /// On any worker of its runtime.
    Anywhere,
    /// On the thread of this queue only: its future is not `Send`. A pinned job has a queue from its spawn, so this is
    /// `None` for no job that runs.
    Pinned(Option<Arc<PinnedQueue>>),
    /// On the thread that suspended its stack; this is the stack's context. The stack of a fiber may run just now.
    PinnedStack(&'a StackContext),
    /// On any worker, which resumes the job's own stack: a fiber that has waited and may change threads.
    Migrating,
}

impl Header {
    /// Where the job may run. Only the holder of the runnable.
    pub(crate) fn placement(&self) -> Placement<'_> {
        if let Some(context) = self.pinned_stack() {
            return Placement::PinnedStack(context);
        }
        let bits = self.body_bits();
        if bits & body_bit::MIGRATING != 0 {
            return Placement::Migrating;
        }
        if bits & body_bit::PINNED != 0 {
            let queue = self.extensions.lock().pinned.clone();
            return Placement::Pinned(queue.and_then(|queue| queue.downcast().ok()));
        }
        Placement::Anywhere
    }

    /// Whether the job's own stack resumes on any thread. Only the holder of the runnable.
    pub(crate) fn migrates(&self) -> bool {
        matches!(self.placement(), Placement::Migrating)
    }

    /// Whether the calling thread may drop the job's future without running the job: the job has no frames on a stack,
    /// and is not pinned to another thread. Only the holder of the runnable.
    pub(crate) fn may_end_here(&self) -> bool {
        match self.placement() {
            Placement::Anywhere => true,
            Placement::Pinned(queue) => queue.is_none_or(|queue| queue.is_here()),
            Placement::PinnedStack(_) | Placement::Migrating => false,
        }
    }

    /// The context of the job's stack, if that is pinned: it is suspended, or a fiber's. Only the holder of the
    /// runnable.
    #[inline(always)]
    pub(crate) fn pinned_stack(&self) -> Option<&StackContext> {
        // SAFETY: suspended: the context lives at the top of the suspended stack.
        (self.body_bits() & body_bit::PINNED_STACK != 0)
            .then(|| unsafe { &*self.link().cast::<StackContext>() })
    }

    /// The queue of the only thread that may run the job; none if any worker may. Only the holder of the runnable.
    #[inline(always)]
    pub(crate) fn queue_of_its_thread(&self) -> Option<Arc<PinnedQueue>> {
        match self.runs_anywhere() {
            true => None,
            false => self.queue_of_the_only_thread(),
        }
    }

    #[inline(never)]
    fn queue_of_the_only_thread(&self) -> Option<Arc<PinnedQueue>> {
        match self.placement() {
            Placement::Anywhere | Placement::Migrating => None,
            Placement::Pinned(queue) => queue,
            Placement::PinnedStack(context) => {
                let queue = context.pinned();
                // SAFETY: suspended: it came from an `Arc` that the thread keeps.
                unsafe { Arc::increment_strong_count(queue) };
                // SAFETY: the count was just taken.
                Some(unsafe { Arc::from_raw(queue) })
            }
        }
    }

    /// Whether the job's stack is suspended on the thread of the queue `here`. Only the holder of the runnable.
    #[inline(always)]
    pub(crate) fn is_suspended_at(&self, here: *const PinnedQueue) -> bool {
        self.pinned_stack()
            .is_some_and(|context| ptr::eq(context.pinned(), here))
    }

    /// Whether the job was spawned as one that only the thread of `queue` may run. Any thread.
    pub(crate) fn is_pinned_to(&self, queue: &Arc<PinnedQueue>) -> bool {
        let is_it = |other: &Arc<dyn Any + Send + Sync>| {
            ptr::addr_eq(Arc::as_ptr(other), Arc::as_ptr(queue))
        };
        self.body_bits() & body_bit::PINNED != 0
            && self
                .extensions
                .lock_existing()
                .is_some_and(|extensions| extensions.pinned.as_ref().is_some_and(is_it))
    }
}
