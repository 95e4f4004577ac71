//! The kind of work that a job does at the moment, as data that the monitor reads.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// What kind of work a job does at this moment, as a number; see [`Spawn::kind`](crate::Spawn::kind).
///
/// When a job blocks or computes for too long, others of its spawn site and type that do work of the same kind then run
/// in quarantine, and no others. So work of one kind should tend to behave alike, for example the requests of one
/// route.
///
/// If the kinds may be many, because they come from outside, they should belong to *families* ([`set_family`]): when
/// several kinds of one family offend within a second, all work of the family is suspect, and when several families do,
/// all work that has one. Only work that is [known](WorkKind::set_known) is exempt.
///
/// Kinds without a family are suspect together once 16 of them have offended within a second. Until then each of them
/// holds a worker for [`Builder::stuck_after`](crate::Builder::stuck_after) first.
///
/// A value is a handle: the job sets its kind through one, and the runtime reads it through a clone. Both cost one
/// instruction.
///
/// [`set_family`]: WorkKind::set_family
#[derive(Clone, Debug, Default)]
pub struct WorkKind(Arc<Numbers>);

// Relaxed everywhere: each number stands for itself, and the monitor may see it a moment later, or with another's
// family.
#[derive(Debug, Default)]
struct Numbers {
    kind: AtomicU64,
    family: AtomicU64,
    is_known: AtomicBool,
    has_offended: AtomicBool,
}

impl WorkKind {
    /// A handle that is connected to no other, with the kind 0: nothing in particular.
    pub fn new() -> WorkKind {
        WorkKind::default()
    }

    /// The job does work of this kind from now on; 0 is nothing in particular.
    pub fn set(&self, kind: u64) {
        self.0.kind.store(kind, Ordering::Relaxed);
    }

    /// The kinds that are set from now on belong to this family; 0 is none.
    pub fn set_family(&self, family: u64) {
        self.0.family.store(family, Ordering::Relaxed);
    }

    /// Whether work of the kind that is set was seen to end soon, so that it does not share the fate of its family. Its
    /// own offences still count.
    pub fn set_known(&self, is_known: bool) {
        self.0.is_known.store(is_known, Ordering::Relaxed);
    }

    /// Whether the job has held its thread for too long since the last call.
    pub fn take_offence(&self) -> bool {
        self.0.has_offended.load(Ordering::Relaxed)
            && self.0.has_offended.swap(false, Ordering::Relaxed)
    }

    /// Called by the monitor.
    pub(crate) fn note_offence(&self) {
        self.0.has_offended.store(true, Ordering::Relaxed);
    }

    /// The kind that was set last.
    pub fn get(&self) -> u64 {
        self.0.kind.load(Ordering::Relaxed)
    }

    /// The family that was set last.
    pub(crate) fn family(&self) -> u64 {
        self.0.family.load(Ordering::Relaxed)
    }

    pub(crate) fn is_known(&self) -> bool {
        self.0.is_known.load(Ordering::Relaxed)
    }
}
