//! What follows when a job has survived a panic, because some code of its own has caught it: its attachment is told.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{
    job::{
        Header, attachment,
        runnable::Runnable,
        transition::{Listening, ParkOutcome},
    },
    report::{
        self, JobName, panic_message,
        payload::{self, Payload},
    },
    scheduler::workers::context::{Context, PollNotes},
};

/// Tells the job's attachment that the job, whose poll is over, has survived a panic. To be called while the run word
/// names the job, because the attachment may call user code.
pub(super) fn tell_if_survived(cx: &Context, job: &Runnable) {
    if cx.noted().has_panicked() {
        settle_panic(cx, job.header());
    }
}

/// The job has panicked, and some code of its own has caught that. If it was cancelled, it ends in its next run.
#[cold]
fn settle_panic(cx: &Context, job: &Header) {
    match job.state.is_cancelled() {
        true => cx.forget_panic(),
        false => tell_survived(cx, job),
    }
}

/// A part of a park: the job has panicked, and some code of its own has caught that; or it has dropped its mailbox.
/// If it was cancelled, it ends in its next run.
#[cold]
pub(super) fn park_survivor(cx: &Context, job: &Header) -> ParkOutcome {
    settle_panic(cx, job);
    match cx.noted() {
        PollNotes::LISTENS => job.state.park(Listening::Yes),
        PollNotes::NOTHING => job.state.park(Listening::No),
        _yielded => ParkOutcome::Again,
    }
}

/// The running job has survived a panic: tells its attachment.
pub(crate) fn tell_survived(cx: &Context, job: &Header) {
    cx.forget_panic();
    tell_attachment_of_survival(job);
}

/// Tells the attachment of `job`, which runs, that the job has survived a panic. What the attachment unwinds with ends
/// here: a panic is reported; after a cancel the job's own next wait ends.
pub(crate) fn tell_attachment_of_survival(job: &Header) {
    let told = catch_unwind(AssertUnwindSafe(|| attachment::tell_survived(job)));
    if let Err(payload) = told
        && !payload::delivers_cancel_again(&payload)
    {
        report_and_discard(job, payload);
    }
}

/// Reports a panic of a destructor or an exit hook, and drops its payload.
pub(super) fn report_and_discard(header: &Header, payload: Payload) {
    report::unobserved_panic(&JobName::of(header), &panic_message(payload.as_ref()));
    payload::discard(payload);
}

/// Reports the panic of a job whose output nobody takes.
pub(crate) fn report_untaken_panic(header: &Header, message: &str) {
    let named = JobName::of(header);
    match attachment::is_watched(header) {
        true => report::watched_panic(&named, message),
        false => report::unobserved_panic(&named, message),
    }
}
