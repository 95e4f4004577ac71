//! `run`: the one place from which the scheduler calls a job. Polls it once, and then finishes or parks it.
//!
//! Steps of a run, in the order in which [`crate::scheduler::workers::worker`] takes them:
//! 1. [`poll`]: the job's own code. Its panic is caught in [`Runnable::poll`](crate::job::runnable::Runnable).
//! 2. [`finish`], if it ended: drops an output that nobody takes, runs the exit hooks, tells the attachment, then
//!    wakes the joiner.
//! 3. [`park`], if it waits: gives up the runnable, or queues it again if a wake came first.

#![allow(unsafe_code)]

mod survival;

use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    task,
};

use crate::{
    job::{
        Header, JobRef, attachment,
        body::Failure,
        exit_hooks,
        extensions::Extensions,
        foreign_call::FiredBy,
        runnable::Runnable,
        transition::{Completed, Listening, ParkOutcome, StartAction},
    },
    report::panic_site,
    report::payload::{self, Payload},
    report::{self, LateName, panic_message},
    scheduler::{
        stackful::{
            pinned::PinChange,
            stack_context::{self, StackContext, StackKind},
        },
        workers::{
            context::{self, Context, PollNotes},
            ready::ready_last,
            shared, waker,
        },
    },
    sys::{MutexGuard, Ordering},
};

pub(crate) use survival::{report_untaken_panic, tell_attachment_of_survival, tell_survived};

use survival::{park_survivor, report_and_discard, tell_if_survived};

/// How a poll ended.
pub(crate) enum Polled {
    /// The job waits.
    Waits,
    /// The job has ended; with the message of its panic, if it panicked.
    Ended(Option<Box<str>>),
}

/// Whether `payload` is for a cancel of the running job. User code may catch the payload of another job's cancel and
/// raise it in a job that nobody cancelled, or outside of jobs; but below a fork there it counts as the cancel of a
/// part.
pub(crate) fn is_own_cancel(payload: &Payload) -> bool {
    let cx = context::again();
    payload::is_cancel(payload)
        && match cx.job() {
            // SAFETY: the thread that runs a job keeps it alive.
            Some(job) => unsafe { job.header() }.state.is_cancelled(),
            None => cx.thread_fork().is_some(),
        }
}

/// Unwinds the running job because it is cancelled; the panic hook is not run.
pub(crate) fn unwind_cancelled() -> ! {
    std::panic::resume_unwind(Box::new(payload::CancelUnwind))
}

/// A run of `job` begins on the calling thread.
#[inline(always)]
pub(crate) fn begin(cx: &Context, job: &Runnable, budget: u32) {
    cx.begin_run(job.ptr(), budget);
    // The last wait is over; the next one may be a wait that notes nothing.
    job.header().set_waits_for(0);
}

/// Step 1. The caller holds the runnable and is on a thread that may run it. Fibers may switch to each other meanwhile:
/// then `job` is the one that came back, and the result is for that one.
#[inline(always)]
pub(crate) fn poll(cx: &Context, job: &mut Runnable, budget: u32) -> Polled {
    begin(cx, job, budget);
    if job.header().has_own_stack() {
        resume(cx, job);
    } else if job.header().state.start() == StartAction::Cancel {
        return Polled::Ended(end_with(job, Failure::Cancelled));
    }
    match call(job) {
        Polled::Waits if cx.noted().needs_care() => take_care(cx, job),
        polled => polled,
    }
}

/// Calls the code of `job`, or collects the result of a fiber whose code has ended.
#[inline(always)]
pub(crate) fn call(job: &Runnable) -> Polled {
    // SAFETY: the runnable keeps the job alive during the poll.
    let waker = unsafe { waker::borrowed(job.ptr()) };
    match job.poll(&mut task::Context::from_waker(&waker)) {
        Ok(task::Poll::Pending) => Polled::Waits,
        Ok(task::Poll::Ready(())) => Polled::Ended(None),
        Err(payload) => Polled::Ended(end_with(job, Failure::of(payload, job.header()))),
    }
}

/// A poll has not ended its job, and leaves more to do than to park the job: another fiber came back, or the job has
/// survived a panic.
#[inline(never)]
pub(crate) fn take_care(cx: &Context, job: &mut Runnable) -> Polled {
    if cx.take_other_came_back() {
        let other = cx.job().expect("a fiber comes back in its run");
        // SAFETY: a direct switch gave up the right to run the job that was polled, and took that of the other.
        let polled = mem::replace(job, unsafe { Runnable::new(other) });
        polled.into_ptr();
        if StackContext::of_fiber(job).is_some_and(|fiber| fiber.has_ended.get()) {
            // Collects its result.
            return call(job);
        }
    }
    tell_if_survived(cx, job);
    Polled::Waits
}

/// Resumes a job whose stack is suspended. If the stack belongs to a loop, this switches to it for good: the calling
/// loop never continues. A fiber is polled as any job is; its own code sees that it is cancelled.
#[inline(never)]
fn resume(cx: &Context, job: &Runnable) {
    // The job's own code sees a cancel wherever it waits.
    let _answer = job.header().state.start();
    if let Some(context) = job.header().pinned_stack()
        && context.kind != StackKind::Fiber
    {
        stack_context::resume(cx, context);
    }
}

/// Puts `failure` in the place of the job's future. Returns the message, if it is a panic, or if a destructor of the
/// future panics.
// Returned in registers, so that `poll` need not build its result in memory.
#[cold]
fn end_with(job: &Runnable, failure: Failure) -> Option<Box<str>> {
    end_if_forked();
    let message = match &failure {
        Failure::Panicked(payload) => Some(Box::<str>::from(panic_message(payload.as_ref()))),
        Failure::Cancelled => None,
    };
    if let Some(message) = &message {
        note_panic(job.header(), message);
    }
    fail(job, failure).or(message)
}

/// A job that has forked the process, and panics or is cancelled there, ends the new process: the loop would run jobs
/// of the other one.
fn end_if_forked() {
    let shared = context::again().shared();
    if shared.is_some_and(|shared| !shared.process.is_here()) {
        report::abort(format_args!(
            "weald: a job panicked or was cancelled in a process that it has forked; aborting that\n"
        ));
    }
}

/// Notes on the job with which message it panicked, and where.
fn note_panic(job: &Header, message: &str) {
    let site = panic_site::take(message);
    let mut extensions = job.extensions.lock();
    extensions.panic_message = Some(message.into());
    extensions.panic_site = site;
}

/// Puts `failure` in the place of the job's future, or of what is left of the future. If a destructor of the future
/// waits, a cancel does not unwind it; if one panics, that is the failure, and its message is returned.
fn fail(job: &Runnable, failure: Failure) -> Option<Box<str>> {
    if matches!(failure, Failure::Cancelled) {
        job.header().note_cancelled();
    }
    let before = context::here().set_dropping(true);
    let message = job.fail(failure);
    context::here().set_dropping(before);
    if let Some(message) = &message {
        note_panic(job.header(), message);
    }
    message
}

/// Calls `code` as what the running job does, and not as a destructor of its future, which is being dropped: a cancel
/// ends a wait in it.
pub(crate) fn call_in_drop(code: &mut dyn FnMut()) {
    let before = context::here().set_dropping(false);
    code();
    context::again().set_dropping(before);
}

/// Step 2. Returns the job's own reference, so that the caller decides when the block is freed: the monitor may still
/// be reading which job this thread ran.
#[inline(always)]
pub(crate) fn finish(job: Runnable, panic: Option<Box<str>>) -> JobRef {
    if panic.is_some() || !job.header().ends_plainly() {
        return finish_in_general(job, panic);
    }
    match job.complete() {
        (Completed { is_quiet: true, .. }, own) => own,
        (completed, own) => {
            tell_of_end((completed, &own), None, None);
            own
        }
    }
}

/// [`finish`] of a job that has panicked, is pinned or counted, or has extensions.
#[inline(never)]
fn finish_in_general(job: Runnable, panic: Option<Box<str>>) -> JobRef {
    let pinned = job.header().queue_of_its_thread();
    uncount(job.header());
    let parker = take_parker(job.header());
    let (completed, own) = job.complete();
    tell_of_end((completed, &own), panic, parker);
    if let Some(pinned) = pinned {
        pinned.count_pinned(PinChange::Unpinned);
    }
    own
}

/// Does what a job leaves to do that is done, and was completed on this thread.
#[inline(never)]
fn tell_of_end(
    (completed, own): (Completed, &JobRef),
    panic: Option<Box<str>>,
    parker: Option<task::Waker>,
) {
    let ended = own.header();
    // A job that is done can no longer be woken, so a wait in the code below holds the OS thread.
    let cx = context::here();
    let ending = cx.set_ending(true);
    if completed.drop_output {
        if let Some(message) = &panic {
            report_untaken_panic(ended, message);
        }
        // SAFETY: the completion gave the output to this thread, because no handle wants it.
        let dropped = catch_unwind(AssertUnwindSafe(|| unsafe { own.drop_output() }));
        if let Err(payload) = dropped {
            report_and_discard(ended, payload);
        }
    }
    call_at_end(ended, FiredBy::Cancel, parker);
    if completed.run_exit_hooks {
        run_exit_hooks(ended);
        tell_attachment(ended, panic);
    }
    // The wakers leave the lock before they are woken: a waker is user code.
    if completed.wake_joiner || completed.run_exit_hooks {
        let mut extensions = ended.extensions.lock();
        if completed.run_exit_hooks {
            ended.state.end_exit_hooks();
        }
        let joiner = extensions.joiner.take();
        drop(extensions);
        call_at_end(ended, FiredBy::End, joiner);
    }
    if completed.wake_receiver {
        let receiver = ended.extensions.lock().receiver.take();
        call_at_end(ended, FiredBy::End, receiver);
    }
    cx.set_ending(ending);
}

/// Drops the user values in the extensions of `ended`, if the caller holds the last reference. To be called while
/// the run word names the job: a destructor that blocks is then reported as this job's, and holds up no job that the
/// worker took next.
#[inline(always)]
pub(crate) fn drop_last_extensions(ended: &JobRef) {
    if ended.is_last() {
        drop_extensions(ended);
    }
}

/// Drops the user values in the extensions of `ended`.
#[inline(always)]
pub(crate) fn drop_extensions(ended: &JobRef) {
    if let Some(extensions) = ended.header().extensions.lock_existing() {
        drop_values(ended.header(), extensions);
    }
}

#[inline(never)]
fn drop_values(ended: &Header, mut extensions: MutexGuard<'_, Extensions>) {
    let values = extensions.take_user_values();
    drop(extensions);
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(values))) {
        report_and_discard(ended, payload);
    }
}

/// Takes the waker that the job's last `park` left: that park will not end.
fn take_parker(job: &Header) -> Option<task::Waker> {
    job.extensions.lock_existing()?.parker.take()
}

fn call_at_end(job: &Header, by: FiredBy, waker: Option<task::Waker>) {
    if let Some(waker) = waker {
        waker::call_at_end(job.runtime(), by, waker);
    }
}

/// Gives back the job's place under the process limit. Called after its future is dropped, and before anyone can see
/// that the job is done. Any thread.
#[inline]
fn uncount(job: &Header) {
    if !job.is_counted() {
        return;
    }
    let here = context::here();
    let owned = here.worker_for(job);
    if let (Some((worker, lease)), Some(shared)) = (owned, here.shared()) {
        // SAFETY: *owner*: the worker of this thread's context.
        if let Ok(mut core) = unsafe { worker.core.enter(lease) } {
            shared.limit.give_back(&mut core.spare_admissions);
            return;
        }
        here.clear_worker();
    }
    if let Some(shared) = shared::find(job.runtime()) {
        shared.limit.put(1);
    }
}

fn run_exit_hooks(header: &Header) {
    exit_hooks::take_each(&header.extensions, |hook| {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(hook)) {
            report_and_discard(header, payload);
        }
    });
}

/// As [`run_exit_hooks`], for the attachment.
fn tell_attachment(header: &Header, panic: Option<Box<str>>) {
    let told = catch_unwind(AssertUnwindSafe(|| attachment::tell(header, panic)));
    if let Err(payload) = told {
        report_and_discard(header, payload);
    }
}

/// Step 3. The caller gives up the runnable, and must not touch the job afterwards.
#[inline(always)]
pub(crate) fn park(cx: &Context, job: Runnable) {
    park_noted(cx, job, cx.noted());
}

/// [`park`], where the job's poll had noted this before another run began.
#[inline(always)]
pub(crate) fn park_noted(cx: &Context, job: Runnable, noted: PollNotes) {
    let state = &job.header().state;
    // Each with the bits of the state word as constants.
    let parked = match noted {
        PollNotes::LISTENS => state.park(Listening::Yes),
        PollNotes::NOTHING => state.park(Listening::No),
        noted if noted.has_panicked() => park_survivor(cx, job.header()),
        _yielded => ParkOutcome::Again,
    };
    match parked {
        ParkOutcome::Parked => {
            job.into_ptr();
        }
        ParkOutcome::Again => go_behind(cx, job),
    }
}

/// Queues the job that just ran here behind all others.
#[inline(always)]
fn go_behind(cx: &Context, job: Runnable) {
    match cx.pinned_here() {
        Some(pinned) if job.header().is_suspended_at(pinned) => pinned.push_own(job),
        _ => ready_last(job),
    }
}

/// A whole run by a loop that owns no worker: of a pinned job inside `block_on`, or of a nested one.
pub(crate) fn run_without_worker(cx: &Context, mut job: Runnable, budget: u32) {
    // What runs is one job, which the caller has announced.
    let direct = cx.set_direct_budget(0);
    let polled = poll(cx, &mut job, budget);
    cx.set_direct_budget(direct);
    match polled {
        Polled::Waits => {
            park(cx, job);
            cx.set_job(None);
        }
        Polled::Ended(panic) => {
            let ended = finish(job, panic);
            count_ends(cx, 1);
            // The order is that of `WorkerLoop::run_from`.
            cx.set_job(None);
            drop_last_extensions(&ended);
            drop(ended);
        }
    }
}

/// Counts jobs that have ended on a thread that serves no worker.
pub(crate) fn count_ends(cx: &Context, ended: u64) {
    if let Some(shared) = cx.shared() {
        shared.counters.ended.fetch_add(ended, Ordering::Relaxed);
    }
}

/// Ends a job that will never run: drops its future at once.
pub(crate) fn cancel(job: Runnable) {
    if job.header().migrates() {
        return unwind(job);
    }
    if !job.header().may_end_here() {
        report::stranded(LateName::of(job.header()));
        job.into_ptr();
        return;
    }
    // It is runnable, so nothing is owed.
    let _nothing = job.header().state.cancel();
    context::with(|cx| {
        let before = cx.set_job(Some(job.ptr()));
        let ending = cx.set_ending(true);
        let panic = fail(&job, Failure::Cancelled);
        let ended = finish(job, panic);
        cx.set_ending(ending);
        cx.set_job(before);
        drop(ended);
    });
}

/// Ends a job whose stack is suspended and may migrate: it resumes here, and unwinds because it is cancelled.
fn unwind(job: Runnable) {
    // It is runnable, so nothing is owed.
    let _nothing = job.header().state.cancel();
    let cx = context::here();
    let outer = context::nested_run::OuterRun::new();
    let _nested = cx.begin_nested(&outer);
    run_without_worker(cx, job, u32::MAX);
}
