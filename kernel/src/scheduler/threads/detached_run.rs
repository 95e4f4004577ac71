//! What a detached thread runs, and why it is [detached](super::detached).

use std::time::Instant;

use crate::{
    job::JobRef,
    scheduler::threads::{priority::Share, senders::Sends},
};

/// The run of a job on a detached thread.
pub(crate) struct DetachedRun {
    pub(crate) job: JobRef,
    pub(crate) activity: Activity,
    pub(crate) cause: Cause,
    /// When it began, as far as is known.
    pub(crate) since: Instant,
    pub(crate) sends: Sends,
}

/// Why a thread is detached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The job announced that it blocks, or that it holds the thread in a wait: it is not reported.
    Announced,
    /// Its worker was retaken.
    Retaken,
    /// It runs a job of the quarantine.
    Quarantined,
}

/// What a detached thread does, according to the system when it was detached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    Block,
    /// It is in a fork, and keeps its priority.
    Fork,
    Compute,
    /// It computes and sends: it keeps its priority, with short slices.
    Send,
    /// It computes, at a lower priority.
    ComputeLowered(Share),
}
