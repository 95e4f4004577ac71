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
    job::{
        Header, JobPtr, body_bit,
        runnable::Runnable,
        transition::{Listening, ParkOutcome},
    },
    scheduler::{
        stackful::{
            fiber::own_stack_of,
            pinned::PinnedQueue,
            stack_context::{StackContext, StackKind},
        },
        workers::{
            context::{self, Context, Left, PollNotes},
            run,
        },
    },
    stack::{self, Onto},
};

impl Context {
    /// The fiber of `job`, whose stack is `leaving`, is about to be suspended. If a direct switch to another fiber is
    /// possible, parks or queues `job`, begins the run of the other, and returns where that resumes.
    #[inline(always)]
    pub(crate) fn begin_next(&self, leaving: &StackContext, job: JobPtr) -> Option<&StackContext> {
        let budget = self.direct_budget()?;
        let pinned = self.pinned_here()?;
        // Not before its first wait, at whose end the loop pins it; and neither from nor to one that migrates, whose
        // pin ends when it resumes: `take_care` tells by the pin whether the one that came back has ended.
        let is_pinned = ptr::eq(leaving.pinned(), pinned) && !leaving.migrates.get();
        if !is_pinned || self.noted().needs_care() {
            return None;
        }
        let (_, fiber) = next_fiber(pinned)?;
        let ((worker, lease), shared) = (self.worker()?, self.shared()?);
        // SAFETY: *owner*: the worker of this thread's context.
        let mut core = unsafe { worker.core.enter_at_once(lease) }?;
        let next = core.take_pinned_in_row(pinned, shared.config.next_slot_runs)?;
        worker.set_running(next.ptr(), core.polls());
        // The lock before the park, as in `WorkerLoop::run_from`.
        drop(core);
        // SAFETY: one runner: the caller runs the job, and gives up its right here.
        run::park(self, unsafe { Runnable::new(job) });
        // A run is an operation where the coarseness of the work is measured.
        unit::with(Unit::count_free);
        run::begin(self, &next, budget);
        // The loop sees that the job was cancelled where it polls; a fiber sees it in its own code.
        let _answer = next.header().state.start();
        fiber.caller.set(leaving.caller.get());
        next.into_ptr();
        Some(fiber)
    }

    /// Suspends the stack of the running fiber, which is `job`, if that has nothing to restore afterwards except that
    /// it runs on its stack, and a direct switch to another fiber is possible. Returns when it has resumed. All of
    /// [`suspend`](super::stack_context::suspend) that such a wait needs, in one frame. `job` has noted nothing that
    /// matters to a park.
    #[inline(always)]
    pub(crate) fn switch_to_next_pinned(&self, (job, header): (JobPtr, &Header)) -> bool {
        // SAFETY: at the top ([`StackContext`]): the caller runs on it.
        let Some(own) = (unsafe { self.stack_context().as_ref() }) else {
            return false;
        };
        let Some(next) = self.leave_pinned(own, (job, header)) else {
            return false;
        };
        let onto = Onto::Ours(next.newest().stack());
        // SAFETY: *its stack* ([`fiber`](super::fiber)): the next fiber is suspended there, and the job's next run
        // resumes here.
        unsafe { stack::switch(own.saved_sp.as_ptr(), next.saved_sp.get(), onto, 0) };
        // It is pinned, so this is the same thread.
        self.set_stack_context(own);
        true
    }

    /// The part of [`switch_to_next_pinned`](Context::switch_to_next_pinned) before the switch: parks or queues `job`,
    /// and begins the run of the next fiber.
    #[inline(always)]
    fn leave_pinned(
        &self,
        leaving: &StackContext,
        (job, header): (JobPtr, &Header),
    ) -> Option<&StackContext> {
        let pinned = self.pinned_here()?;
        // As in `begin_next`.
        let is_pinned = leaving.kind == StackKind::Fiber
            && ptr::eq(leaving.pinned(), pinned)
            && !leaving.migrates.get();
        if !is_pinned || !self.is_in_no_scope() {
            return None;
        }
        let budget = self.direct_budget()?;
        let (next, fiber) = next_fiber(pinned)?;
        let ((worker, lease), shared) = (self.worker()?, self.shared()?);
        // In a forked process the general way panics.
        if !shared.process.is_here() {
            return None;
        }
        // SAFETY: *owner*: the worker of this thread's context.
        let mut core = unsafe { worker.core.enter_at_once(lease) }?;
        if !core.count_pinned_in_row(pinned, shared.config.next_slot_runs) {
            return None;
        }
        pinned.drop_first_own();
        worker.set_running(next, core.polls());
        // The lock before the park, as in `WorkerLoop::run_from`.
        drop(core);
        if header.state.park(Listening::No) == ParkOutcome::Again {
            // SAFETY: one runner: the caller runs the job, and gives up its right here.
            pinned.push_own(unsafe { Runnable::new(job) });
        }
        self.begin_counted_run(next, budget);
        // SAFETY: this thread has the job's right to run.
        let next = unsafe { next.header() };
        next.set_waits_for(0);
        // As in `begin_next`.
        let _answer = next.state.start();
        fiber.caller.set(leaving.caller.get());
        // Its last wait may have been on a segment.
        leaving.suspends_itself();
        Some(fiber)
    }

    /// The running fiber, which is `job`, is about to yield. If it has nothing to restore afterwards except that it
    /// runs on its stack, and a direct switch to another fiber is possible, queues `job`, begins the run of the other,
    /// and returns the two stacks.
    #[inline(always)]
    pub(crate) fn yield_directly(&self, job: JobPtr) -> Option<(&StackContext, &StackContext)> {
        // SAFETY: at the top ([`StackContext`]): the caller runs on it.
        let leaving = unsafe { self.stack_context().as_ref() }?;
        let pinned = self.pinned_here()?;
        // A fiber that migrates is pinned only while it is suspended.
        let is_pinned = leaving.kind == StackKind::Fiber && ptr::eq(leaving.pinned(), pinned);
        if !is_pinned
            || !self.noted().leaves_nothing()
            || !self.has_no_notes()
            || self.is_panicking()
        {
            return None;
        }
        let budget = self.direct_budget()?;
        let (next, fiber) = next_fiber(pinned)?;
        let ((worker, lease), shared) = (self.worker()?, self.shared()?);
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
        self.begin_run(next, budget);
        header.set_waits_for(0);
        // As above.
        let _answer = header.state.start();
        fiber.caller.set(leaving.caller.get());
        // Its last wait may have been on a segment.
        leaving.suspends_itself();
        Some((leaving, fiber))
    }

    /// As [`begin_next`](Context::begin_next), from a fiber that migrates to the next job of the worker, if that is
    /// another one, and nothing is pinned here. The fiber that resumes parks or queues the one that is `left`. The
    /// caller uses what is returned to switch to it, and not afterwards.
    #[inline(always)]
    fn begin_next_migrating(
        &self,
        leaving: &StackContext,
        mut left: Left,
    ) -> Option<&'static StackContext> {
        let budget = self.direct_budget()?;
        let pinned = self.pinned_here()?;
        // SAFETY: the caller runs the job.
        let bits = unsafe { left.job.header() }.body_bits();
        if !is_migrating(bits) || left.noted.needs_care() {
            return None;
        }
        let ((worker, lease), shared) = (self.worker()?, self.shared()?);
        // SAFETY: *owner*: the worker of this thread's context.
        let mut core = unsafe { worker.core.enter_at_once(lease) }?;
        let (next, fiber) =
            core.take_fitting_in_row(pinned, shared.config.next_slot_runs, migrating_fiber)?;
        let run = self.begin_counted_run(next.ptr(), budget);
        // The number of operations tells runs apart, too.
        worker.set_running(next.ptr(), u64::from(run));
        if left.noted == PollNotes::of_yield()
            && shared.injector.len() == 0
            && core.overflow.len() == 0
            && core.ring.prepare(left.job.as_raw().as_ptr())
        {
            left.noted = PollNotes::PREPARED;
            // The thread stays inside over the switch; the guard is that of `publish_left`.
            std::mem::forget(core);
        } else {
            drop(core);
        }
        // The last wait is over, as in `run::begin`.
        next.header().set_waits_for(0);
        // As in `begin_next`.
        let _answer = next.header().state.start();
        // SAFETY: *its stack* ([`fiber`](crate::scheduler::stackful::fiber)): it is suspended, and resumes now. The
        // reference is `'static` because no lifetime fits: the stack is there until its code ends, which it cannot
        // before the caller has switched to it, the last use.
        let fiber = unsafe { fiber.as_ref() };
        fiber.caller.set(leaving.caller.get());
        self.leave(left);
        next.into_ptr();
        Some(fiber)
    }

    /// [`begin_next_migrating`](Context::begin_next_migrating) in a frame of its own: the way of a fiber that does not
    /// migrate stays short.
    #[inline(never)]
    pub(crate) fn begin_next_migrating_apart(
        &self,
        leaving: &StackContext,
        job: JobPtr,
    ) -> Option<&'static StackContext> {
        let noted = self.noted();
        self.begin_next_migrating(leaving, Left { job, noted })
    }

    /// Switches from `own`, the stack of a fiber that migrates and on which the thread runs, to the next fiber that
    /// migrates, and returns when `own` resumes, perhaps on another thread, where `also` is called first. False if
    /// there is none: the fiber still runs, and at most the first job of the ring has come to the next slot
    /// (`WorkerCore::take_fitting_in_row`).
    // Inlined into frames that read a thread-local only before it.
    #[inline(always)]
    pub(crate) fn switch_to_next_migrating(
        &self,
        own: &StackContext,
        left: Left,
        also: impl FnOnce(),
    ) -> bool {
        let Some(next) = self.begin_next_migrating(own, left) else {
            return false;
        };
        // Its last wait may have been on a segment.
        own.suspends_itself();
        let onto = Onto::Ours(next.newest().stack());
        // SAFETY: *its stack* ([`fiber`](super::fiber)): the next fiber is suspended there, and the job's next run
        // resumes here.
        unsafe { stack::switch(own.saved_sp.as_ptr(), next.saved_sp.get(), onto, 0) };
        resumed(own, also);
        true
    }

    /// The stack of the running fiber, if it migrates and has nothing to restore after a suspension except that the
    /// thread runs on that stack.
    #[inline(always)]
    pub(crate) fn plain_migrating(&self) -> Option<&'static StackContext> {
        // SAFETY: at the top ([`StackContext`]): the caller runs on it. What migrates is a fiber's own stack.
        let own = unsafe { self.stack_context().as_ref() }?;
        (own.migrates.get() && self.has_no_notes()).then_some(own)
    }

    /// The running job and its stack, if that is a fiber that migrates and about which nothing is noted, so that it may
    /// wait or yield by a direct switch: it is a job, and so is everything on its worker.
    #[inline(always)]
    pub(crate) fn common_migrating(&self) -> Option<(JobPtr, &'static StackContext)> {
        let job = self.job()?;
        // SAFETY: as in `plain_migrating`.
        let own = unsafe { self.stack_context().as_ref() }?;
        let is_common = own.migrates.get()
            && own.jobless.get().is_null()
            && unit::with(Unit::is_plain)
            && self.is_in_no_scope()
            && !self.is_panicking()
            && !self.worker().is_some_and(|it| it.0.has_lazy_jobs());
        is_common.then_some((job, own))
    }

    /// Parks or queues the fiber that has just switched to the running one. The first that a stack does on which a
    /// fiber that migrates resumes: until then nobody may resume that other one, whose stack was still in use.
    // In a frame of its own: it ends in code that reads the thread's context, and the caller's frame may still have the
    // address of that of the OS thread on which it was suspended.
    #[inline(never)]
    pub(crate) fn settle_left(&self) {
        self.settle();
    }

    #[inline(always)]
    fn settle(&self) {
        let Some(left) = self.take_left() else {
            return;
        };
        if left.noted == PollNotes::PREPARED {
            return self.publish_left();
        }
        // SAFETY: one runner: that fiber gave up its right to run.
        run::park_noted(self, unsafe { Runnable::new(left.job) }, left.noted);
    }

    /// The fiber that was left is prepared as the last of the ring, where anybody may take it from now on.
    #[inline(always)]
    fn publish_left(&self) {
        let (Some((worker, lease)), Some(shared)) = (self.worker(), self.shared()) else {
            unreachable!("the thread is inside of its worker's core")
        };
        // SAFETY: it stayed inside in `begin_next_migrating`, and each fiber that resumes comes here first.
        let mut core = unsafe { worker.core.still_inside(lease) };
        core.ring.publish();
        drop(core);
        if worker.sharing.is_shared() {
            shared.wake_one_for_own_ring();
        }
    }

    /// Suspends the stack of the running fiber, which is `job`, as [`suspend`](super::stack_context::suspend) does, if
    /// the fiber migrates, has nothing else to restore afterwards, and a direct switch is possible. `before`: as
    /// there. False elsewhere, as of [`switch_to_next_migrating`](Context::switch_to_next_migrating). After it the
    /// caller may be on another thread.
    #[inline(always)]
    pub(crate) fn suspend_if_migrating(
        &self,
        own: &StackContext,
        (job, before): (JobPtr, PollNotes),
    ) -> bool {
        own.migrates.get() && !before.waits() && suspend_migrating(job)
    }
}

/// The stack of a fiber that migrates has resumed, perhaps on another thread: see
/// [`settle_left`](Context::settle_left).
// In a frame of its own, as that.
#[inline(never)]
fn resumed(own: &StackContext, also: impl FnOnce()) {
    let cx = context::here();
    cx.set_stack_context(own);
    cx.settle();
    also();
}

/// See [`suspend_if_migrating`](Context::suspend_if_migrating).
// Not inlined: it resumes on another thread.
#[inline(never)]
fn suspend_migrating(job: JobPtr) -> bool {
    let cx = context::here();
    let Some(own) = cx.plain_migrating() else {
        return false;
    };
    let noted = cx.noted();
    cx.switch_to_next_migrating(own, Left { job, noted }, || {})
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
        // SAFETY: one runner: `job` is the right to run; what migrates holds its fiber.
        true => NonNull::new(unsafe { own_stack_of(job) }.cast_mut()).map(NonNull::cast),
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

#[cfg(all(test, not(loom)))]
mod tests;
