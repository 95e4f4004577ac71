//! The direct switch: a fiber that waits or yields switches to the next fiber, and not to the loop, which would then
//! switch to that one.
//!
//! Only where the loop would do the same: both fibers are pinned to this thread for good, the next one is the first of
//! the pinned queue, and the countdown of the worker (`WorkerCore::take_pinned_in_row`, or `count_pinned_in_row` at a
//! yield) says that nothing else may have the turn and that no look is due. So the order of jobs is that of the loop,
//! and the loop is at work again after as many runs as there are between two looks.
//!
//! ```text
//!   the loop's stack:  [ loop | poll of A ]  waits in its call until any of the fibers comes back
//!   A's stack:         [ A ] ──► B's stack: [ B ] ──► C's stack: [ C ] ──► the loop, which sees that C has come back
//! ```
//!
//! The fiber that waits gives up its right to run before it has left its stack. That is safe because it is pinned:
//! every wake sends it to the queue of this thread, which is still busy.
//!
//! A fiber that migrates does the same, with two differences. The next job is that of the worker's next slot or ring,
//! while nothing is pinned to the thread. And the fiber that resumes parks or queues the one that was left
//! (`Context::settle_left`), because any worker may resume that one as soon as it is parked, and its stack must not be
//! in use then. So a loop may return from a poll of a fiber that another thread has ended meanwhile: it then uses what
//! came back, and nothing of what it polled.
//!
//! The fiber that comes back to the loop may be another one than the loop has polled
//! ([`Fiber::poll`](crate::scheduler::stackful::fiber)). The loop then has the right to run that one (`take_care` in
//! [`run`]), and no longer that of the one that it polled. If the code of the one that came back has ended, a poll of
//! it collects the result.

#![allow(unsafe_code)]

use std::ptr::{self, NonNull};

use weald_sync::unit::{self, Unit};

use crate::{
    job::{Header, JobPtr, body_bit, runnable::Runnable},
    scheduler::{
        stackful::{
            pinned::PinnedQueue,
            stack_context::{StackContext, StackKind},
        },
        workers::{
            context::{self, Context, PollNotes},
            run,
        },
    },
    stack::{self, Onto},
};

impl Context {
    /// The fiber of `job`, whose stack is `leaving`, is about to be suspended. If a direct switch to another fiber is
    /// possible, parks or queues `job`, begins the run of the other, and returns where that resumes.
    #[inline(always)]
    pub(crate) fn switch_directly(
        &self,
        leaving: &StackContext,
        job: JobPtr,
    ) -> Option<&StackContext> {
        let cx = self;
        let budget = cx.direct_budget()?;
        let pinned = cx.pinned_here()?;
        // Not before its first wait, at whose end the loop pins it; and neither from nor to one that migrates, whose
        // pin ends when it resumes: `take_care` tells by the pin whether the one that came back has ended.
        let is_pinned = std::ptr::eq(leaving.pinned(), pinned) && !leaving.migrates.get();
        if !is_pinned || cx.noted().needs_care() {
            return None;
        }
        let (_, fiber) = next_fiber(pinned)?;
        let ((worker, lease), shared) = (cx.worker()?, cx.shared()?);
        // SAFETY: *owner*: the worker of this thread's context.
        let mut core = unsafe { worker.core.enter_at_once(lease) }?;
        let next = core.take_pinned_in_row(pinned, shared.config.next_slot_runs)?;
        worker.set_running(next.ptr(), core.polls());
        // The lock before the park, as in `WorkerLoop::run_from`.
        drop(core);
        // SAFETY: one runner: the caller runs the job, and gives up its right here.
        run::park(cx, unsafe { Runnable::new(job) });
        // A run is an operation where the coarseness of the work is measured.
        unit::with(Unit::count_free);
        run::begin(cx, &next, budget);
        // The loop sees that the job was cancelled where it polls; a fiber sees it in its own code.
        let _answer = next.header().state.start();
        fiber.caller.set(leaving.caller.get());
        next.into_ptr();
        Some(fiber)
    }

    /// The running fiber, which is `job`, is about to yield. If it has nothing to restore afterwards except that it
    /// runs on its stack, and a direct switch to another fiber is possible, queues `job`, begins the run of the other,
    /// and returns the two stacks.
    #[inline(always)]
    pub(crate) fn yield_directly(&self, job: JobPtr) -> Option<(&StackContext, &StackContext)> {
        let cx = self;
        let budget = cx.direct_budget()?;
        let pinned = cx.pinned_here()?;
        // SAFETY: at the top ([`StackContext`]): the caller runs on it.
        let leaving = unsafe { cx.stack_context().as_ref() }?;
        // A fiber that migrates is pinned only while it is suspended.
        let is_pinned = leaving.kind == StackKind::Fiber && std::ptr::eq(leaving.pinned(), pinned);
        if !is_pinned || !cx.noted().leaves_nothing() || !cx.has_no_notes() || cx.is_panicking() {
            return None;
        }
        let (next, fiber) = next_fiber(pinned)?;
        let ((worker, lease), shared) = (cx.worker()?, cx.shared()?);
        // SAFETY: *owner*: the worker of this thread's context.
        let mut core = unsafe { worker.core.enter_at_once(lease) }?;
        if !core.count_pinned_in_row(pinned, shared.config.next_slot_runs) {
            return None;
        }
        worker.set_running(next, core.polls());
        // SAFETY: one runner: the caller runs the job, and gives up its right here.
        let queued = unsafe { Runnable::new(job) };
        // The first job is `next`, whose run begins here.
        pinned.rotate_own(queued);
        drop(core);
        // A run is an operation where the coarseness of the work is measured.
        unit::with(Unit::count_free);
        // SAFETY: this thread has the job's right to run.
        let header = unsafe { next.header() };
        cx.begin_run(next, budget);
        header.set_waits_for(0);
        // As above.
        let _answer = header.state.start();
        fiber.caller.set(leaving.caller.get());
        // Its last wait may have been on a segment.
        leaving.suspends_itself();
        Some((leaving, fiber))
    }

    /// As [`switch_directly`](Context::switch_directly), from a fiber that migrates to the next job of the worker, if
    /// that is another one, and nothing is pinned here. The fiber that resumes parks or queues `job`, as `noted` says.
    /// The caller uses what is returned to switch to it, and not afterwards.
    #[inline(always)]
    pub(crate) fn switch_migrating(
        &self,
        leaving: &StackContext,
        (job, noted): (JobPtr, PollNotes),
    ) -> Option<&'static StackContext> {
        let cx = self;
        let budget = cx.direct_budget()?;
        let pinned = cx.pinned_here()?;
        // SAFETY: the caller runs the job.
        let bits = unsafe { job.header() }.body_bits();
        if !is_migrating(bits) || noted.needs_care() {
            return None;
        }
        let ((worker, lease), shared) = (cx.worker()?, cx.shared()?);
        // SAFETY: *owner*: the worker of this thread's context.
        let mut core = unsafe { worker.core.enter_at_once(lease) }?;
        let (next, fiber) =
            core.take_fitting_in_row(pinned, shared.config.next_slot_runs, migrating_fiber)?;
        worker.set_running(next.ptr(), core.polls());
        drop(core);
        // A run is an operation where the coarseness of the work is measured.
        unit::with(Unit::count_free);
        run::begin(cx, &next, budget);
        // As in `switch_directly`.
        let _answer = next.header().state.start();
        // SAFETY: *its stack* ([`fiber`](crate::scheduler::stackful::fiber)): it is suspended, and resumes now. It is
        // there until its code ends, and so for as long as the caller uses it.
        let fiber = unsafe { fiber.as_ref() };
        fiber.caller.set(leaving.caller.get());
        cx.leave(job, noted);
        next.into_ptr();
        Some(fiber)
    }

    /// As [`yield_directly`](Context::yield_directly), for a fiber that migrates. Returns the two stacks: the caller's
    /// own, and that of [`switch_migrating`](Context::switch_migrating).
    #[inline(always)]
    pub(crate) fn yield_migrating(
        &self,
        job: JobPtr,
    ) -> Option<(&'static StackContext, &'static StackContext)> {
        let cx = self;
        // SAFETY: at the top ([`StackContext`]): the caller runs on it.
        let leaving = unsafe { cx.stack_context().as_ref() }?;
        let noted = cx.noted();
        let has_notes = !noted.leaves_nothing() || !cx.has_no_notes() || cx.is_panicking();
        if leaving.kind != StackKind::Fiber || has_notes {
            return None;
        }
        let next = cx.switch_migrating(leaving, (job, PollNotes::of_yield()))?;
        // Its last wait may have been on a segment.
        leaving.suspends_itself();
        Some((leaving, next))
    }

    /// [`switch_migrating`](Context::switch_migrating) in a frame of its own: the way of a fiber that does not migrate
    /// stays short.
    #[inline(never)]
    pub(crate) fn next_migrating(
        &self,
        leaving: &StackContext,
        job: JobPtr,
    ) -> Option<&'static StackContext> {
        self.switch_migrating(leaving, (job, self.noted()))
    }

    /// Parks or queues the fiber that has just switched to the running one. The first that a stack does on which a
    /// fiber that migrates resumes: until then nobody may resume that other one, whose stack was still in use.
    // In a frame of its own: it ends in code that reads the thread's context, and the caller's frame may still have the
    // address of that of the OS thread on which it was suspended.
    #[inline(never)]
    pub(crate) fn settle_left(&self) {
        if let Some((job, noted)) = self.take_left() {
            // SAFETY: one runner: that fiber gave up its right to run.
            run::park_noted(self, unsafe { Runnable::new(job) }, noted);
        }
    }

    /// Suspends the stack of the running fiber, which is `job`, as [`suspend`](super::stack_context::suspend) does, if
    /// the fiber migrates, has nothing to restore afterwards except that the thread runs on its stack, and a direct
    /// switch is possible. `before`: as there. False elsewhere: the fiber still runs, and at most the first job of the
    /// ring has come to the next slot (`WorkerCore::take_fitting_in_row`). After it the caller may be on another
    /// thread.
    #[inline(always)]
    pub(crate) fn suspend_if_migrating(
        &self,
        own: &StackContext,
        (job, before): (JobPtr, PollNotes),
    ) -> bool {
        own.migrates.get() && !before.waits() && suspend_migrating(own, job)
    }
}

/// See [`suspend_if_migrating`](Context::suspend_if_migrating).
// Not inlined: it resumes on another thread.
#[inline(never)]
fn suspend_migrating(own: &StackContext, job: JobPtr) -> bool {
    let cx = context::here();
    if !cx.has_no_notes() || !ptr::eq(cx.stack_context(), own) {
        return false;
    }
    let Some(next) = cx.switch_migrating(own, (job, cx.noted())) else {
        return false;
    };
    own.suspends_itself();
    let onto = Onto::Ours(next.newest().stack());
    // SAFETY: *its stack* ([`fiber`](super::fiber)): the next fiber is suspended there, and the job's next run resumes
    // here.
    unsafe { stack::switch(own.saved_sp.as_ptr(), next.saved_sp.get(), onto, 0) };
    // Perhaps another thread's.
    let cx = context::again();
    cx.set_stack_context(own);
    cx.settle_left();
    true
}

/// Whether a job with these bits is a fiber that has waited, and that any thread may resume.
#[inline(always)]
fn is_migrating(bits: u8) -> bool {
    bits & (body_bit::PINNED_STACK | body_bit::MIGRATING) == body_bit::MIGRATING
}

/// The stack of `job`, if it is a fiber that has waited, and that any thread may resume.
#[inline(always)]
fn migrating_fiber(job: &Runnable) -> Option<NonNull<StackContext>> {
    match is_migrating(job.header().body_bits()) {
        true => StackContext::of_fiber(job).map(NonNull::from),
        false => None,
    }
}

/// The first job of the pinned queue of the calling thread, and its stack, if it is a fiber to which another one may
/// switch.
#[inline(always)]
fn next_fiber(pinned: &PinnedQueue) -> Option<(JobPtr, &StackContext)> {
    let first = pinned.first_own()?;
    // SAFETY: a queued job is alive, and only this thread takes it out.
    let header: &Header = unsafe { first.header() };
    let fiber = header.pinned_stack()?;
    let is_fit = fiber.kind == StackKind::Fiber && !fiber.migrates.get();
    is_fit.then_some((first, fiber))
}
