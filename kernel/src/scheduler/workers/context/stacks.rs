//! The stacks in a thread's context: the one that it runs on, its loop's base, and those that it caches for fibers.

#![allow(unsafe_code)]

use weald_sync::unit::Obstacle;

use crate::scheduler::workers::context::{Context, Left, NO_RUNTIME, PollNotes};
use crate::{
    scheduler::stackful::stack_context::{Base, StackContext},
    stack::{self, Claim, Stack, StackError},
};

impl Context {
    /// The stack of ours on which the thread runs; null on its own.
    #[inline(always)]
    pub(crate) fn stack_context(&self) -> *const StackContext {
        self.stack_context.get()
    }

    /// Sets the stack on which the thread runs; returns the one before.
    #[inline(always)]
    pub(crate) fn set_stack_context(
        &self,
        stack_context: *const StackContext,
    ) -> *const StackContext {
        self.stack_context.replace(stack_context)
    }

    /// Notes whether the thread runs on a stack that cannot be suspended; returns what was noted before.
    pub(crate) fn set_no_stack(&self, is_so: bool) -> bool {
        // SAFETY: the numbers of units are those of `begin_run`.
        unsafe { self.unit().set_obstacle(Obstacle::NO_STACK, is_so) }
    }

    /// The fiber that the loop has polled has switched to another one, which has come back.
    #[cold]
    pub(crate) fn note_other_came_back(&self) {
        self.note(PollNotes::OTHER_CAME_BACK);
    }

    /// Whether that was noted since the poll began. True once.
    pub(crate) fn take_other_came_back(&self) -> bool {
        let noted = self.noted();
        self.set_noted(noted.without_other());
        noted.has_other()
    }

    /// Notes whether the right to run a fiber that migrates was given away since a loop's poll of a fiber began;
    /// returns what was noted before.
    #[inline(always)]
    pub(crate) fn set_given_away(&self, given_away: bool) -> bool {
        self.given_away.replace(given_away)
    }

    /// The running fiber, which migrates, is about to switch to another one, which parks or queues it. The one before
    /// it was settled when the running one resumed.
    #[inline(always)]
    pub(crate) fn leave(&self, left: Left) {
        debug_assert!(
            self.left.get().is_none(),
            "each resumed fiber settles first"
        );
        self.given_away.set(true);
        self.left.set(Some(left));
    }

    /// The fiber that has just switched to the running one, if that is still to be parked or queued.
    #[inline(always)]
    pub(crate) fn take_left(&self) -> Option<Left> {
        self.left.take()
    }

    pub(crate) fn base(&self) -> *const Base<'static> {
        self.base.get()
    }

    /// Sets the base of the loop at work; returns the one before.
    pub(crate) fn set_base(&self, base: *const Base<'static>) -> *const Base<'static> {
        self.base.replace(base)
    }

    /// A cached stack, if it will do for a fiber's claim, which the caller must then forget.
    #[inline(always)]
    pub(crate) fn take_cached_stack(&self, claim: &Claim) -> Option<Stack> {
        let stack = self.cached_stacks.take(claim.class())?;
        claim.spare();
        Some(stack)
    }

    /// A cached stack of `class`, for which there is no claim.
    #[inline(always)]
    pub(crate) fn take_cached_stack_of(&self, class: u32) -> Option<Stack> {
        self.cached_stacks.take(class)
    }

    /// The stack for a fiber's claim. The caller must then forget the claim.
    #[inline(always)]
    pub(crate) fn take_stack(&self, claim: &Claim) -> Result<Stack, StackError> {
        match self.take_cached_stack(claim) {
            Some(stack) => Ok(stack),
            None => stack::take_claimed(claim),
        }
    }

    /// Takes a fiber's stack back.
    #[inline(always)]
    pub(crate) fn give_stack(&self, stack: Stack) {
        // Only a thread that owns a worker caches: it alone reaches the code that gives the cached stacks back.
        let surplus = match self.runtime.get() {
            NO_RUNTIME => Some(stack),
            _ => self.cached_stacks.give(stack),
        };
        if let Some(surplus) = surplus {
            stack::give(surplus);
        }
    }

    /// Gives the cached stacks to the pool.
    pub(crate) fn flush_stack(&self) {
        self.cached_stacks.flush();
    }

    /// The running stack is about to be left for good.
    pub(crate) fn set_abandoned(&self, stack: Stack) {
        self.abandoned.set(Some(stack));
    }

    /// Gives back the stack that was left for good by the switch that led here.
    pub(crate) fn give_abandoned(&self) {
        if let Some(stack) = self.abandoned.take() {
            stack::give(stack);
        }
    }
}
