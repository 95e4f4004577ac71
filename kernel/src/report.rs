//! What the kernel reports through `tracing`, and how reports name a job.

use std::{any::Any, fmt, io, panic::Location, time::Duration};

use weald_sync::reason::Reason;

/// A job as reports name it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobName {
    /// The name given at spawn, if any.
    pub name: Option<String>,
    /// The type of the job's future, which contains the path of the function that created it.
    pub type_name: &'static str,
    /// Where the job was spawned.
    pub site: &'static Location<'static>,
    /// What the job last waited for, if it noted a reason.
    pub waits_for: Option<Reason>,
}

impl fmt::Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "`{name}` spawned at {}", self.site),
            None => write!(f, "an unnamed job spawned at {}", self.site),
        }
    }
}

/// A job's thread was stuck in it, and was detached from its worker.
/// `held_up` is a sentence about the jobs that it holds up, or empty.
pub(crate) fn stuck(named: &JobName, stuck: Duration, held_up: &str) {
    tracing::warn!(
        target: "weald::monitor",
        job = named.name.as_deref().unwrap_or(""),
        site = %named.site,
        type_name = named.type_name,
        stuck_ms = u64::try_from(stuck.as_millis()).unwrap_or(u64::MAX),
        "{named} has blocked or computed for {stuck:.1?} without a wait; another thread now serves \
         its worker.{held_up} Wrap blocking calls in weald::blocking, or let long computations yield.",
    );
}

/// A job's thread is detached, and other jobs can resume only there; `held_up` is a sentence about them.
pub(crate) fn holds_up(named: &JobName, held: Duration, held_up: &str) {
    tracing::warn!(
        target: "weald::monitor",
        job = named.name.as_deref().unwrap_or(""),
        site = %named.site,
        type_name = named.type_name,
        held_ms = u64::try_from(held.as_millis()).unwrap_or(u64::MAX),
        "{named} has held its OS thread for {held:.1?}.{held_up} Wrap blocking calls in weald::blocking, which holds \
         no thread, or let long computations yield.",
    );
}

/// All spare threads are in use: names the jobs that hold a thread.
pub(crate) fn no_spare_thread(bound: usize, stuck: &[JobName]) {
    let names: Vec<String> = stuck.iter().map(ToString::to_string).collect();
    tracing::error!(
        target: "weald::monitor",
        bound,
        "all {bound} spare threads are in use, so a stuck worker stays stuck; the {} jobs that hold \
         threads: {}. Raise Builder::spare_threads, or block less.",
        names.len(),
        names.join("; "),
    );
}

/// The system refused a thread.
pub(crate) fn no_thread(error: Option<&io::Error>) {
    let cause = error.map_or_else(|| "the bound was reached".to_owned(), ToString::to_string);
    tracing::error!(
        target: "weald::monitor",
        "no thread could be started for a worker ({cause}); trying again each round",
    );
}

/// Closures wait for a blocking thread, and all of them are in use.
pub(crate) fn no_turn_to_block(bound: usize, queued: usize, late: Duration, running: &[JobName]) {
    tracing::error!(
        target: "weald::blocking",
        bound,
        queued,
        "all {bound} blocking threads are in use, and {queued} closures wait for a turn, the first for {late:.1?}; \
         those that run: {}. Raise Builder::blocking_threads, or let closures that wait for each other wait with \
         Weald.",
        names(running, 10),
    );
}

/// The first `most` names, and how many there are beyond.
pub(crate) fn names(all: &[JobName], most: usize) -> String {
    let first: Vec<String> = all.iter().take(most).map(ToString::to_string).collect();
    match all.len().saturating_sub(most) {
        0 => first.join("; "),
        more => format!("{}; and {more} more", first.join("; ")),
    }
}

/// The system refused a blocking thread.
pub(crate) fn no_blocking_thread(error: &io::Error) {
    tracing::error!(
        target: "weald::blocking",
        "no thread could be started for a closure that blocks: {error}; it waits for another one, or holds its \
         caller's thread if there is none",
    );
}

/// A job waits and holds its thread meanwhile, on which other jobs' stacks must resume.
pub(crate) fn holds_pinned_jobs(named: &JobName, others: usize) {
    tracing::warn!(
        target: "weald::monitor",
        job = named.name.as_deref().unwrap_or(""),
        site = %named.site,
        "{named} waits in a destructor while it unwinds, or for a fork, and so holds its OS thread, on which \
         {others} suspended jobs must resume. If it waits for one of them, neither ends: let it wait \
         before it unwinds, or join what it needs inside the fork.",
    );
}

/// No stack could be had, so a wait blocks its thread.
pub(crate) fn no_stack(error: &dyn fmt::Display) {
    tracing::error!(
        target: "weald::stack",
        "no stack is available, so a wait holds its thread meanwhile: {error}",
    );
}

/// A job panicked, and its result will never be taken.
pub(crate) fn unobserved_panic(named: &JobName, message: &str) {
    tracing::error!(
        target: "weald::panic",
        job = named.name.as_deref().unwrap_or(""),
        site = %named.site,
        "{named} panicked, and nothing joins it: {message}",
    );
}

/// A callback panicked, and its owner has no panic handler.
pub(crate) fn callback_panicked(callback: &str, message: &str) {
    tracing::error!(
        target: "weald::panic",
        callback,
        "the callback `{callback}` panicked, and its owner has set no on_panic: {message}",
    );
}

/// A foreign waker panicked when it was woken or dropped.
pub(crate) fn waker_panicked(message: &str) {
    tracing::error!(target: "weald::panic", "a waker panicked: {message}");
}

/// A pinned job cannot be dropped, because its thread is gone.
pub(crate) fn stranded(named: &JobName) {
    tracing::error!(
        target: "weald::shutdown",
        "{named} may run on one thread only, which has ended; its memory is leaked, and its \
         destructors do not run",
    );
}

/// A runtime was dropped, and these jobs did not stop.
pub(crate) fn shutdown(not_stopped: &[JobName]) {
    for job in not_stopped {
        tracing::error!(
            target: "weald::shutdown",
            "{job} did not stop when its runtime was dropped; its thread is left behind",
        );
    }
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
