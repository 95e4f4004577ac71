//! A report as plain data: what happened, which unit it concerns, and the text.
//!
//! The code that makes a report only fills this in. Nothing here calls a subscriber, reads the clock or waits.

use std::{fmt, panic::Location};

use crate::report::{JobName, subscriber::Audience};

/// What a report is about, with the numbers that only this kind has.
#[derive(Clone, Debug)]
pub(crate) enum ReportKind {
    Stuck {
        stuck_ms: u64,
    },
    HoldsUp {
        held_ms: u64,
    },
    PendingKill {
        pending_ms: u64,
    },
    JustBelow,
    PanicHookRuns,
    LongPanicHook,
    LongMailbox {
        messages: usize,
    },
    LongChannel {
        values: usize,
    },
    NoFreeThread {
        bound: usize,
        queued: usize,
    },
    OperationsHoldThreads {
        bound: usize,
        queued: usize,
    },
    HeldOperation {
        held_ms: u64,
    },
    NoBlockingThread,
    NoSpareThread {
        bound: usize,
    },
    NoThread,
    HoldsThread {
        held_ms: u64,
    },
    HoldsPinnedJobs,
    MonitorPanicked,
    NoStack,
    UnobservedPanic,
    WatchedPanic,
    CaughtPanic,
    /// The message that the standard library's panic hook prints.
    PanicMessage,
    CallbackPanicked,
    WakerPanicked,
    Stranded,
    NotStopped,
    Cycle,
    GivenUp,
    Failure,
}

impl ReportKind {
    /// Whether subscribers get it as a warning, and not as an error.
    pub(super) fn is_warning(&self) -> bool {
        matches!(
            self,
            ReportKind::Stuck { .. }
                | ReportKind::HoldsUp { .. }
                | ReportKind::PendingKill { .. }
                | ReportKind::HeldOperation { .. }
                | ReportKind::JustBelow
                | ReportKind::PanicHookRuns
                | ReportKind::LongPanicHook
                | ReportKind::LongMailbox { .. }
                | ReportKind::LongChannel { .. }
                | ReportKind::HoldsThread { .. }
                | ReportKind::HoldsPinnedJobs
                | ReportKind::Failure
        )
    }

    /// What reports of this kind are called in the sentence about those that were left out.
    pub(super) fn plural(&self) -> &'static str {
        match self {
            ReportKind::Stuck { .. } => "stuck jobs",
            ReportKind::HoldsUp { .. } => "jobs that hold up others",
            ReportKind::PendingKill { .. } => "kills that are pending",
            ReportKind::NoFreeThread { .. } => "no free blocking thread",
            ReportKind::OperationsHoldThreads { .. } => "operations without a thread",
            ReportKind::HeldOperation { .. } => "operations that do not return",
            ReportKind::NoBlockingThread => "no blocking thread",
            ReportKind::JustBelow => "jobs with long runs",
            ReportKind::PanicHookRuns => "panic hooks that take long",
            ReportKind::LongPanicHook => "panic hooks that block",
            ReportKind::LongMailbox { .. } => "long mailboxes",
            ReportKind::LongChannel { .. } => "long channels",
            ReportKind::NoSpareThread { .. } => "no spare thread",
            ReportKind::NoThread => "no thread",
            ReportKind::HoldsThread { .. } => "waits that hold an OS thread",
            ReportKind::HoldsPinnedJobs => "waits that hold up suspended jobs",
            ReportKind::MonitorPanicked => "panics of the monitor",
            ReportKind::NoStack => "no stack",
            ReportKind::UnobservedPanic => "panics that nothing joins",
            ReportKind::WatchedPanic => "panics that links and monitors are told of",
            ReportKind::CaughtPanic => "panics that were caught",
            ReportKind::PanicMessage => "messages of panics",
            ReportKind::CallbackPanicked => "panics of a callback",
            ReportKind::WakerPanicked => "panics of a waker",
            ReportKind::Stranded => "jobs whose thread has ended",
            ReportKind::NotStopped => "jobs that did not stop",
            ReportKind::Cycle => "jobs that wait for each other",
            ReportKind::GivenUp => "supervisors that gave up",
            ReportKind::Failure => "failures",
        }
    }
}

/// Where the reported unit comes from. Reports of one kind from one origin for one audience share a limit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ReportOrigin {
    /// The job's spawn site.
    Site(&'static Location<'static>),
    /// The callback's name, and where it was started.
    Callback(String, &'static Location<'static>),
    /// A line of the program.
    Code(String),
    /// No unit in particular.
    Program,
}

impl fmt::Display for ReportOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReportOrigin::Site(site) => site.fmt(f),
            ReportOrigin::Callback(name, _) => f.write_str(name),
            ReportOrigin::Code(place) => f.write_str(place),
            ReportOrigin::Program => Ok(()),
        }
    }
}

/// A report on its way to a subscriber or to stderr.
pub(super) struct Report {
    pub(super) kind: ReportKind,
    pub(super) origin: ReportOrigin,
    pub(super) audience: Audience,
    /// May run user code.
    pub(super) details: Box<dyn FnOnce() -> Details + Send>,
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Report")
            .field("kind", &self.kind)
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

/// What a report says.
pub(super) struct Details {
    /// The job's name, or nothing.
    pub(super) job: String,
    pub(super) type_name: &'static str,
    pub(super) text: String,
}

impl Details {
    pub(super) fn new(named: Option<&JobName>, text: String) -> Details {
        Details {
            job: named.and_then(|it| it.name.clone()).unwrap_or_default(),
            type_name: named.map_or("", |it| it.type_name),
            text,
        }
    }
}

/// How many reports of one kind and origin were left out.
#[derive(Debug)]
pub(super) struct LeftOut {
    pub(super) kind: ReportKind,
    pub(super) origin: ReportOrigin,
    pub(super) audience: Audience,
    pub(super) count: u64,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (reports, were) = match self.count {
            1 => ("report", "was"),
            _ => ("reports", "were"),
        };
        let (count, what) = (self.count, self.kind.plural());
        write!(
            f,
            "… and {count} more {reports} of this kind from the same place {were} left out: {what}"
        )?;
        match &self.origin {
            ReportOrigin::Site(site) => write!(f, ", spawned at {site}"),
            ReportOrigin::Callback(name, site) => write!(f, ", `{name}` at {site}"),
            ReportOrigin::Code(place) => write!(f, ", at {place}"),
            ReportOrigin::Program => Ok(()),
        }
    }
}
