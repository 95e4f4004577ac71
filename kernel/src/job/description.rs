//! What a job says of itself: a name that is made only when a report needs it, and which kind of work it does.
//!
//! A connection, for example, serves one request after the other. It is named after the request that it serves, at no
//! cost to the request.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

use crate::payload;

/// Describes a job that does different things over time; see [`Spawn::described_by`](crate::Spawn::described_by).
///
/// Both methods are called when something is reported or when a job was slow, on any thread, while the job may be
/// running. They must not wait, call the runtime, or panic.
pub trait Describe: fmt::Debug + Send + Sync + 'static {
    /// The name of what the job does at this moment, as reports print it.
    fn name(&self) -> String;

    /// The kind of what the job does at this moment; 0 if it is nothing in particular. When a job blocks or computes for
    /// too long, others of its spawn site and type that are of the same kind then run in quarantine, and no others. So a
    /// kind is what tends to behave alike, for example the requests of one route.
    fn kind(&self) -> u64 {
        0
    }
}

/// The name that `description` gives; none if that panics.
pub(crate) fn name(description: &dyn Describe) -> Option<String> {
    ask(|| description.name())
}

/// The kind that `description` gives; that of nothing in particular if that panics.
pub(crate) fn kind(description: &dyn Describe) -> u64 {
    ask(|| description.kind()).unwrap_or_default()
}

/// Calls user code. The monitor and the workers' loops ask, and a panic must end neither.
fn ask<T>(question: impl FnOnce() -> T) -> Option<T> {
    let answer = catch_unwind(AssertUnwindSafe(question));
    answer.map_err(payload::discard).ok()
}
