//! What the kernel reports, and how reports name a job.
//!
//! Making a report neither blocks nor fails: its maker writes down what happened (`data`) and puts it into a queue
//! that is bounded and limited in rate (`queue`). A thread of its own (`reporter`) takes it from there to a subscriber
//! of `tracing` (`subscriber`) or to stderr (`output`). Every function here may be called on any thread, even under a
//! lock of the kernel: it runs no user code and waits for nothing. The reporting thread also asks a job's description
//! for its name (`late_name`).

mod abort;
mod backlogs;
mod data;
mod holds_up;
pub(crate) mod hook_frames;
mod hooks;
mod just_below;
mod kills;
mod late_name;
mod operation;
mod output;
pub(crate) mod panic_site;
pub(crate) mod payload;
mod queue;
mod releases;
mod reporter;
mod retake;
mod subscriber;
pub(crate) mod upcalls;

use std::{any::Any, fmt, io, panic::Location, time::Duration};

use weald_sync::reason::Reason;

use data::{Details, Report, ReportKind, ReportOrigin};
use subscriber::{Audience, AudienceId};

pub(crate) use abort::abort;
pub(crate) use backlogs::{long_channel, long_mailbox, unread_mailbox};
use holds_up::units_wait;
pub(crate) use holds_up::{holds_up, main_future_holds_up};
pub(crate) use hooks::{long_panic_hook, panic_hook_runs};
pub(crate) use just_below::{JustBelow, just_below};
pub(crate) use kills::{hangs_at_end, keeps_block_on, pending_kill};
pub use late_name::Describe;
pub(crate) use late_name::{LateName, LateNames};
pub use operation::OperationName;
pub(crate) use operation::{abandoned_operation, held_operation, operations_hold_threads};
pub use panic_site::PanicSite;
pub(crate) use reporter::{
    call_for_user, drop_for_user, flush, forbid_user_code, forbids_user_code, start,
    without_user_code,
};
pub(crate) use retake::Retake;
pub(crate) use subscriber::RuntimeSubscriber;

/// A job as reports name it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobName {
    /// The name given at spawn, if any. A callback is named by its closure's type, a part of a fork and the future of
    /// `block_on` by these words.
    pub name: Option<String>,
    /// The type of the job's future, which contains the path of the function that created it.
    pub type_name: &'static str,
    /// Where the job was spawned, the callback was started, or the fork was called. Of a waker that was registered
    /// outside of units, and of an operation on a file that was asked for there, it is a line of Weald: print the whole
    /// name, which leaves it out.
    pub site: &'static Location<'static>,
    /// What the job last waited for, if it noted a reason.
    pub waits_for: Option<Reason>,
}

/// The site of what no line of the user is known to have caused: it comes from outside of units.
pub(crate) static OUTSIDE_OF_UNITS: &Location<'static> = Location::caller();

/// How reports name the future that a thread outside of jobs gave to `block_on`.
const MAIN_FUTURE: &str = "the future of block_on";

impl fmt::Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) if name == MAIN_FUTURE => write!(f, "{name} at {}", self.site),
            Some(name) if std::ptr::eq(self.site, OUTSIDE_OF_UNITS) => {
                write!(f, "`{name}`, which comes from outside of units,")
            }
            Some(name) => write!(f, "`{name}` spawned at {}", self.site),
            None => write!(f, "an unnamed job spawned at {}", self.site),
        }
    }
}

/// A run of a job that took too long.
pub(crate) struct StuckRun {
    pub(crate) held: Duration,
    pub(crate) retake: Retake,
    /// How long ago the job was asked to end, at least, if it was and has not come to a wait since.
    pub(crate) killed: Option<Duration>,
    /// Whether the job is in a fork, which cannot yield.
    pub(crate) is_fork: bool,
}

/// A job was stuck for too long. `held_up` are the jobs that it holds up.
pub(crate) fn stuck(named: LateName, run: StuckRun, held_up: LateNames) {
    let StuckRun {
        held: stuck,
        retake,
        killed,
        is_fork,
    } = run;
    let stuck_ms = u64::try_from(stuck.as_millis()).unwrap_or(u64::MAX);
    of_job_late(ReportKind::Stuck { stuck_ms }, named, move |named| {
        let held_up = units_wait(held_up);
        let killed = killed.map_or_else(String::new, |pending| {
            format!("; a kill has been pending for {pending:.1?}, until its next wait")
        });
        let advice = match is_fork {
            true => {
                "If it computes, wrap the whole fork in weald::blocking; if its parts block, wrap what blocks in each part."
            }
            false => "Wrap blocking calls in weald::blocking, or let long computations yield.",
        };
        format!(
            "{named} has blocked or computed for {stuck:.1?} without a wait; {retake}{killed}.{held_up} {advice}"
        )
    });
}

/// What the lack of a spare thread means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoSpareThread {
    WorkerIsStuck,
    /// Jobs of suspect kinds wait; the workers continue.
    JobsWait,
}

/// All spare threads, or all for jobs of suspect kinds, are in use: names the jobs that hold a thread.
pub(crate) fn no_spare_thread(bound: usize, so: NoSpareThread, stuck: LateNames) {
    of_program_late(ReportKind::NoSpareThread { bound }, move || {
        let so = match so {
            NoSpareThread::WorkerIsStuck => "are in use, so a stuck worker stays stuck",
            NoSpareThread::JobsWait => {
                "that may run jobs of kinds that block are in use, so further jobs of these kinds wait, and all others \
                 run on"
            }
        };
        let holders = match stuck.all() {
            0 => String::new(),
            1 => format!("; the job that holds one: {}", stuck.now()),
            all => format!("; the {all} jobs that hold them: {}", stuck.now()),
        };
        format!(
            "all {bound} spare threads {so}{holders}. Raise Builder::spare_threads, or block less."
        )
    });
}

/// The system refused a thread, for a worker or for jobs in quarantine.
pub(crate) fn no_thread(error: Option<&io::Error>) {
    of_program(ReportKind::NoThread, || {
        let cause = error.map_or_else(|| "the bound was reached".to_owned(), ToString::to_string);
        format!("no thread could be started ({cause}); trying again each round")
    });
}

/// Closures wait for a blocking thread, and all of them are in use.
pub(crate) fn no_free_thread(bound: usize, queued: usize, late: Duration, running: LateNames) {
    of_program_late(ReportKind::NoFreeThread { bound, queued }, move || {
        format!(
            "all {bound} blocking threads are in use, and {queued} closures wait for one, the first for \
             {late:.1?}; those that run: {}. Raise Builder::blocking_threads, or let closures that wait for each \
             other wait with Weald.",
            running.now(),
        )
    });
}

/// The system refused a blocking thread.
pub(crate) fn no_blocking_thread(error: &io::Error) {
    of_program(ReportKind::NoBlockingThread, || {
        format!(
            "no thread could be started for a closure that blocks: {error}; it waits for another one, or holds its \
             caller's thread if there is none"
        )
    });
}

/// A job has waited for long where its stack must not be suspended, on a thread of the pool.
pub(crate) fn holds_thread(named: LateName, held: Duration) {
    let held_ms = u64::try_from(held.as_millis()).unwrap_or(u64::MAX);
    of_job_late(ReportKind::HoldsThread { held_ms }, named, move |named| {
        format!(
            "{named} has waited for {held:.1?} in a destructor, while it unwinds or at its end, or in a panic hook, and \
             so holds an OS thread. Other jobs run on other threads meanwhile. Let it wait before it ends."
        )
    });
}

/// A job waits and holds its thread meanwhile, on which other jobs' stacks must resume.
pub(crate) fn holds_pinned_jobs(named: LateName, others: usize) {
    of_job_late(ReportKind::HoldsPinnedJobs, named, move |named| {
        format!(
            "{named} waits in a panic hook, in a destructor while it unwinds, or for a fork, and so holds its OS \
             thread, on which {others} suspended jobs must resume. If it waits for one of them, neither ends: let it wait \
             before it unwinds, or join what it needs inside the fork."
        )
    });
}

/// A round of the monitor panicked.
pub(crate) fn monitor_panicked(message: &str) {
    of_program(ReportKind::MonitorPanicked, || {
        format!("bug in weald: the monitor panicked, and goes on; please report it: {message}")
    });
}

/// No stack could be had, so a wait blocks its thread.
pub(crate) fn no_stack(error: &dyn fmt::Display) {
    of_program(ReportKind::NoStack, || {
        format!("no stack is available, so a wait holds its thread meanwhile: {error}")
    });
}

/// A job panicked, and its result will never be taken.
pub(crate) fn unobserved_panic(named: &JobName, message: &str) {
    of_job(ReportKind::UnobservedPanic, named, || {
        format!("{named} panicked, and nothing joins it: {message}")
    });
}

/// A job panicked, and its result will never be taken, but its attachment tells others of its end.
pub(crate) fn watched_panic(named: &JobName, message: &str) {
    of_job(ReportKind::WatchedPanic, named, || {
        format!("{named} panicked; its links and monitors are told: {message}")
    });
}

/// A unit of work in a job panicked, and the job continues.
pub(crate) fn caught_panic(named: &JobName, message: &str) {
    of_job(ReportKind::CaughtPanic, named, || {
        format!("{named} panicked, and goes on with something else: {message}")
    });
}

/// Whether the message of a panic at `place` may be printed: at most ten a second are, of all runtimes together, as all
/// go to stderr. If not, it is counted.
pub(crate) fn admits_panic_at(place: &Location<'_>) -> bool {
    let origin = ReportOrigin::Code(place.to_string());
    reporter::admits(&ReportKind::PanicMessage, &origin, AudienceId::PROGRAM)
}

/// A callback panicked, and its owner has no panic handler.
pub(crate) fn callback_panicked(callback: &str, site: &'static Location<'static>, message: &str) {
    let origin = ReportOrigin::Callback(callback.to_owned(), site);
    make(ReportKind::CallbackPanicked, origin, None, || {
        format!(
            "the callback `{callback}` spawned at {site} panicked, and its owner has set no on_panic: {message}"
        )
    });
}

/// A foreign waker panicked when it was woken or dropped, by `unit`. A job that calls wakers for others has the name of
/// the job that left the waker.
pub(crate) fn waker_panicked(unit: Option<LateName>, message: String) {
    match unit {
        Some(unit) => of_job_late(ReportKind::WakerPanicked, unit, move |unit| {
            format!("a waker panicked in {unit}: {message}")
        }),
        None => of_program(ReportKind::WakerPanicked, || {
            format!("a waker panicked: {message}")
        }),
    }
}

/// A description, an attachment or a value that somebody left has panicked in a call that the runtime made. It names no
/// unit, because the caller may hold the lock of the running one's extensions; the panic's own message names it.
fn user_call_panicked(message: String) {
    of_program_late(ReportKind::CaughtPanic, move || {
        format!("user code that the runtime called panicked, and ends there: {message}")
    });
}

/// A pinned job cannot be dropped, because its thread is gone.
pub(crate) fn stranded(named: LateName) {
    of_job_late(ReportKind::Stranded, named, |named| {
        format!(
            "{named} may run on one thread only, which has ended; its memory is leaked, and its \
             destructors do not run"
        )
    });
}

/// A runtime was dropped, and these jobs did not stop.
pub(crate) fn shutdown(not_stopped: &[JobName]) {
    for job in not_stopped {
        of_job(ReportKind::NotStopped, job, || {
            format!("{job} did not stop when its runtime was dropped; its thread is left behind")
        });
    }
}

/// Jobs wait for each other; `sentence` says which, and the first of them is named.
pub(crate) fn cycle(
    first: LateName,
    begins: &'static str,
    sentence: impl FnOnce() -> String + Send + 'static,
) {
    of_job_late(ReportKind::Cycle, first, move |_| {
        format!("{begins}: {}", sentence())
    });
}

/// A job gives up what it did, such as starting others again.
pub(crate) fn given_up(named: &JobName, why: &dyn fmt::Display) {
    of_job(ReportKind::GivenUp, named, || {
        format!("{named} has given up: {why}")
    });
}

/// What a unit does for others has failed; `text` names both. Made by `named`, or outside of jobs.
pub(crate) fn failure(named: Option<&JobName>, text: impl FnOnce() -> String) {
    match named {
        Some(named) => of_job(ReportKind::Failure, named, text),
        None => of_program(ReportKind::Failure, text),
    }
}

fn of_job(kind: ReportKind, named: &JobName, text: impl FnOnce() -> String) {
    make(kind, ReportOrigin::Site(named.site), Some(named), text);
}

fn of_program(kind: ReportKind, text: impl FnOnce() -> String) {
    make(kind, ReportOrigin::Program, None, text);
}

/// As [`of_job`], for makers that must not run user code: `text` is called on the reporting thread.
fn of_job_late(
    kind: ReportKind,
    named: LateName,
    text: impl FnOnce(&JobName) -> String + Send + 'static,
) {
    make_late(kind, ReportOrigin::Site(named.site()), move || {
        let named = named.now();
        let text = text(&named);
        Details::new(Some(&named), text)
    });
}

/// As [`of_program`], for makers that must not run user code: `text` is called on the reporting thread.
fn of_program_late(kind: ReportKind, text: impl FnOnce() -> String + Send + 'static) {
    make_late(kind, ReportOrigin::Program, || Details::new(None, text()));
}

/// As [`make`]; `details` is called on the reporting thread.
fn make_late(
    kind: ReportKind,
    origin: ReportOrigin,
    details: impl FnOnce() -> Details + Send + 'static,
) {
    if !reporter::admits(&kind, &origin, AudienceId::here()) {
        return reporter::discard(details);
    }
    reporter::submit(Report {
        kind,
        origin,
        audience: Audience::here(),
        details: Box::new(details),
    });
}

/// Sends a report off, unless its audience got too many of its kind from the same origin. Nothing waits for it.
fn make(
    kind: ReportKind,
    origin: ReportOrigin,
    named: Option<&JobName>,
    text: impl FnOnce() -> String,
) {
    if !reporter::admits(&kind, &origin, AudienceId::here()) {
        return;
    }
    let details = Details::new(named, text());
    reporter::submit(Report {
        kind,
        origin,
        audience: Audience::here(),
        details: Box::new(|| details),
    });
}

/// Panics, because something happened that the protocols exclude.
#[cold]
pub(crate) fn impossible(what: &str) -> ! {
    panic!("bug in weald: {what}; please report it")
}

/// The message in a panic's payload.
pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&'static str>() {
        return (*text).to_owned();
    }
    match payload.downcast_ref::<String>() {
        Some(text) => text.clone(),
        None => "a panic whose payload is not text".to_owned(),
    }
}
