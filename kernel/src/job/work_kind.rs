//! The kind of what a job does at a moment, as data that the monitor reads.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// What kind of work a job does at this moment, as a number; see [`Spawn::kind`](crate::Spawn::kind).
///
/// When a job blocks or computes for too long, others of its spawn site and type that do work of the same kind then run
/// in quarantine, and no others. So work of one kind should tend to behave alike, for example the requests of one
/// route.
///
/// A value is a handle: the job sets its kind through one, and the runtime reads it through a clone. Both cost one
/// instruction.
#[derive(Clone, Debug, Default)]
pub struct WorkKind(Arc<AtomicU64>);

impl WorkKind {
    /// A handle that is connected to no other, with the kind 0: nothing in particular.
    pub fn new() -> WorkKind {
        WorkKind::default()
    }

    /// The job does work of this kind from now on; 0 is nothing in particular.
    pub fn set(&self, kind: u64) {
        // Relaxed: the number stands for itself, and the monitor may see it a moment later.
        self.0.store(kind, Ordering::Relaxed);
    }

    /// The kind that was set last.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
