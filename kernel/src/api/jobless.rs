//! A jobless run: the code of a thread runs on a stack of its own in the middle of its creator's run, and is no job
//! before it waits.
//!
//! Most threads of a program that forks and joins in depth end without having waited. Such a thread needs neither a job
//! nor a handle: its creator switches to its stack, and comes back when the code has ended. Until then the running job
//! is the creator's. Before the code waits, it must become a job ([`about_to_wait`]). From then on everything is as if
//! the creator had spawned a fiber and had run it nested ([`nested`]): the code waits as that job, its stack is
//! suspended, and the creator goes on with a handle.
//!
//! The code must migrate as [`Migration::Freely`](crate::scheduler::stackful::fiber::Migration) demands.
//!
//! # Safety
//! - **its stack**: as in [`fiber`](crate::scheduler::stackful::fiber).
//! - **its creator**: the record is in the frame of the creator's call, which continues after the code has ended, or
//!   waits as a job. Until it has become a job, the stack's context has the record's address, and nobody has it later.

#![allow(unsafe_code)]

mod lazy;

use std::{
    any::Any,
    cell::Cell,
    mem,
    panic::{AssertUnwindSafe, Location, catch_unwind},
    ptr::{self, NonNull},
    time::Instant,
};

use crate::{
    api::join::JoinHandle,
    job::{JobPtr, Room, Spec, body_bit, flag, new_with, runnable::Runnable, transition::Inbox},
    report,
    scheduler::{
        stackful::{
            fiber::{BEGUN, Fiber},
            nested,
            pinned::PinnedQueue,
            stack_context::{StackContext, StackKind, caller},
        },
        workers::{
            context::{self, Context, OuterRun, plain_nested_run::PlainNestedRun},
            run_word::RunWord,
            shared::Shared,
            worker::Worker,
            worker_core::WorkerCore,
        },
    },
    stack::{self, Onto, SavedSp, Stack, switch},
};

pub use crate::queue::sharing::lazy_jobs::{LazyJob, MakeJob};
pub use lazy::{push_lazy, put_back_lazy, take_lazy};

use lazy::make_jobs_of_lazy;

/// The code of a jobless run, with the argument that [`run_jobless`] gets. It does not unwind. What its caller promises
/// is its own affair; [`run_jobless`] passes it on.
pub type JoblessCode = unsafe fn(*mut ());

/// What came of a jobless run.
#[must_use]
pub enum JoblessRun {
    /// The code has ended.
    Ended,
    /// It has become a job, which waits or has ended.
    Job(JoinHandle<()>),
    /// Nothing: no run can be nested here, or there is no stack.
    Refused,
}

/// What the creator's frame has.
struct Jobless {
    code: JoblessCode,
    argument: *mut (),
    site: &'static Location<'static>,
    node: OuterRun,
    became: Cell<Option<Became>>,
}

/// The job that the code has become, whose run is nested in the creator's.
struct Became {
    /// The right to run it.
    job: JobPtr,
    handle: JoinHandle<()>,
    nested: PlainNestedRun<'static>,
    before: RunWord,
}

/// A fiber whose code has begun before it was one.
type BegunFiber = Fiber<fn(), ()>;

/// Runs `code` with `argument` on a stack of `bytes`, until it ends or waits. Its [word](crate::with_fiber_word) is
/// `word`.
///
/// # Safety
/// `code` may be called with `argument`. It keeps nothing that depends on the OS thread over a call of
/// [`about_to_wait`], and calls that before each wait. It does not use what is in the frames of the caller after that
/// call.
///
/// # Aborts
/// If the code becomes a job, and there is no memory for one, or the worker was taken from the thread meanwhile. So it
/// is for runtimes that take none away: `stuck_after(Duration::MAX)`.
// Not inlined: behind it the caller may switch, and must not keep the address of a thread-local.
#[track_caller]
#[inline(never)]
pub unsafe fn run_jobless(
    bytes: usize,
    (code, argument): (JoblessCode, *mut ()),
    word: *const (),
) -> JoblessRun {
    let cx = context::here();
    let Some(stack) = stack_for(cx, bytes) else {
        return JoblessRun::Refused;
    };
    let record = Jobless {
        code,
        argument,
        site: Location::caller(),
        node: OuterRun::new(),
        became: Cell::new(None),
    };
    let stack_context = StackContext::on(stack, StackKind::Fiber);
    // SAFETY: its stack.
    let context = unsafe { stack_context.as_ref() };
    context.migrates.set(true);
    context.word.set(word);
    context.jobless.set((&raw const record).cast());
    let here = Cell::new(SavedSp::NONE);
    let outer = cx.set_stack_context(context);
    context.caller.set((here.as_ptr(), outer));
    // SAFETY: its stack: nothing runs on it yet.
    let start = unsafe { switch::begin(StackContext::frames(stack_context), begin) };
    // SAFETY: its stack. It switches back to `here` on this thread, because the creator's stack waits in this call.
    unsafe { stack::switch(here.as_ptr(), start, Onto::Ours(context.stack()), 0) };
    cx.set_stack_context(outer);
    match record.became.take() {
        None => {
            // SAFETY: its stack: its code has ended.
            cx.give_stack(unsafe { StackContext::into_stack(stack_context) });
            JoblessRun::Ended
        }
        Some(became) => JoblessRun::Job(settle(cx, context, became)),
    }
}

/// A stack for a jobless run, if there can be one in the present run.
#[inline(always)]
fn stack_for(cx: &Context, bytes: usize) -> Option<Stack> {
    let is_fit = cx.worker().is_some()
        && cx.job().is_some()
        && cx.has_no_notes()
        && !cx.is_panicking()
        && (counts(cx) && cx.spend_if_any() || has_time(cx));
    if !is_fit {
        return None;
    }
    let class = Stack::class_for(bytes).ok()?;
    match cx.take_cached_stack_of(class) {
        Some(stack) => Some(stack),
        None => claimed(cx, bytes),
    }
}

/// A stack from the pool, which has no more for threads than for any other fibers.
#[cold]
#[inline(never)]
fn claimed(cx: &Context, bytes: usize) -> Option<Stack> {
    let claim = stack::claim(bytes).ok()?;
    let stack = cx.take_stack(&claim).ok()?;
    mem::forget(claim);
    Some(stack)
}

/// Counts a run for the next look of the worker, as any nested run. False if a look is due.
#[inline(always)]
fn counts(cx: &Context) -> bool {
    let Some((worker, lease)) = cx.worker() else {
        return false;
    };
    // SAFETY: *owner*: the worker of this thread's context.
    unsafe { worker.core.enter(lease) }.is_ok_and(|mut core| core.count_if_allowed())
}

/// The budget of the running job is used up, or a look is due. Both are put off for a while
/// ([`put_off`](WorkerCore::put_off)), since a yield in the middle of such runs makes a job of each of them.
#[cold]
#[inline(never)]
fn has_time(cx: &Context) -> bool {
    let (Some(shared), Some((worker, lease))) = (cx.shared(), cx.worker()) else {
        return false;
    };
    // SAFETY: *owner*: the worker of this thread's context.
    let Ok(mut core) = (unsafe { worker.core.enter(lease) }) else {
        return false;
    };
    let now = shared.clock.now();
    let is_urgent = |core: &WorkerCore| is_urgent(cx, (shared, worker), core, now);
    let has_time = !shared.is_driven() && core.put_off(now, is_urgent) && core.count_if_allowed();
    drop(core);
    if worker.has_lazy_jobs() {
        worker.share_lazy(shared);
    }
    if has_time {
        cx.refill(shared.config.poll_budget);
    }
    has_time
}

/// Whether more waits for a look of the worker than jobs do: a timer, a callback, a descriptor, a thread that
/// wants the worker, or one without a stack.
fn is_urgent(
    cx: &Context,
    (shared, worker): (&Shared, &Worker),
    core: &WorkerCore,
    now: Instant,
) -> bool {
    let is_due = |step| step <= shared.clock.step_at(now);
    !core.callbacks.is_empty()
        || !worker.arrivals.is_empty()
        || core.wheel.next_deadline().is_some_and(is_due)
        || cx.pinned_here().is_some_and(PinnedQueue::has_runnable)
        || shared.reactor.has_sources()
        || shared.pool.is_wanted()
        || shared.refused_lazy.is_any()
}

/// The first function of the stack.
extern "C" fn begin(_: usize) -> ! {
    switch::arrived();
    let stack_context =
        NonNull::new(context::here().stack_context().cast_mut()).expect("it was just set");
    // SAFETY: its stack.
    let context = unsafe { stack_context.as_ref() };
    // SAFETY: its creator: it has not become a job.
    let record = unsafe { &*context.jobless.get().cast::<Jobless>() };
    let (code, argument) = (record.code, record.argument);
    // SAFETY: the promise to `run_jobless`.
    let result = catch_unwind(AssertUnwindSafe(|| unsafe { code(argument) }));
    end(context, result)
}

/// The code has ended.
// Inlined: the processor pairs each `ret` with the latest `call`, so a call that does not return would have it expect
// wrong ones in the creator.
#[inline(always)]
fn end(context: &StackContext, result: Result<(), Box<dyn Any + Send>>) -> ! {
    context.has_ended.set(true);
    if let Some(fiber) = NonNull::new(context.fiber.get().cast_mut()) {
        // SAFETY: its stack: the job that it has become holds the fiber, and runs here.
        unsafe { BegunFiber::end(fiber.cast().as_ptr(), NonNull::from(context), result) };
    } else if result.is_err() {
        report::impossible("the code of a jobless run has unwound");
    }
    let (caller, onto) = caller(context);
    // SAFETY: its stack: the last caller waits there; nothing is left in this frame.
    unsafe { switch::leave(caller, onto) }
}

/// Whether the caller is in a jobless run, and has not become a job.
#[inline]
pub fn is_jobless() -> bool {
    // SAFETY: at the top ([`StackContext`]): the caller runs on it.
    let context = unsafe { context::again().stack_context().as_ref() };
    context.is_some_and(|context| !context.jobless.get().is_null())
}

/// The calling code is about to wait. If it is that of a jobless run, a job is made of it, and of all [lazy
/// jobs](crate::LazyJob) of the worker.
#[inline]
pub fn about_to_wait() {
    let cx = context::again();
    // SAFETY: as in `is_jobless`.
    let context = unsafe { cx.stack_context().as_ref() };
    if context.is_some_and(|context| !context.jobless.get().is_null()) {
        become_one(cx);
    }
    make_jobs_of_lazy(cx);
}

#[cold]
#[inline(never)]
fn become_one(cx: &Context) {
    let stack_context = NonNull::new(cx.stack_context().cast_mut()).expect("the caller runs on it");
    // SAFETY: at the top ([`StackContext`]): the caller runs on it.
    let context = unsafe { stack_context.as_ref() };
    // SAFETY: its creator.
    let record = unsafe { &*context.jobless.replace(ptr::null()).cast::<Jobless>() };
    let (Some(outer), Some((worker, lease)), Some(shared)) = (cx.job(), cx.worker(), cx.shared())
    else {
        report::impossible("a jobless run has lost its worker");
    };
    let spec = Spec {
        runtime: shared.id(),
        site: record.site,
        inbox: Inbox::None,
        pinned: None,
        flags: flag::FIBER,
        refs: 1,
    };
    let make = |_: &Runnable| BegunFiber::begun(stack_context);
    // SAFETY: the table of a job that is such a fiber.
    let job = unsafe { new_with(BEGUN, Room::needed(), spec, make) };
    // SAFETY: this is the one reference that the spec asked for.
    let reference = unsafe { job.claim_ref() };
    // SAFETY: this is the job's only handle, and the job's output is `()`.
    let handle = unsafe { JoinHandle::new(reference) };
    context.fiber.set(BegunFiber::of(&job).cast());
    let before = worker.running();
    // SAFETY: its creator: the node stays until the nested run has ended.
    let node = unsafe { NonNull::from(&record.node).as_ref() };
    let nested = cx.begin_plain_nested(node, outer);
    cx.begin_run(job.ptr(), shared.config.poll_budget);
    let _answer = job.header().state.start();
    // SAFETY: *owner*: the worker of this thread's context.
    if let Ok(core) = unsafe { worker.core.enter(lease) } {
        worker.set_running(job.ptr(), core.polls());
    }
    record.became.set(Some(Became {
        job: job.into_ptr(),
        handle,
        nested,
        before,
    }));
}

/// The code has become a job, and waits or has ended.
#[cold]
#[inline(never)]
fn settle(cx: &Context, context: &StackContext, became: Became) -> JoinHandle<()> {
    // SAFETY: one runner: its stack ran it, and has switched back.
    let job = unsafe { Runnable::new(became.job) };
    if context.has_ended.get() {
        cx.end_plain_nested(became.nested);
        nested::collect(cx, became.before, job);
    } else {
        if !job.header().has_own_stack() {
            job.header().set_body_bit(body_bit::MIGRATING);
        }
        nested::wait(cx, job);
        cx.end_plain_nested(became.nested);
        nested::restore(cx, became.before, 0);
    }
    became.handle
}
