//! The counters of a forest: commits, conflicts, rebases, groups.
//!
//! Only the combiner counts frequent events, so counting is a load and a store. A reader may see counters of different
//! moments side by side.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::CommitError;

/// Sizes of groups are counted by powers of two, up to this one.
const SIZES: usize = 8;

#[derive(Default)]
pub(crate) struct Counts {
    commits: AtomicU64,
    conflicts: AtomicU64,
    rebases: AtomicU64,
    leases_revoked: AtomicU64,
    groups: [AtomicU64; SIZES],
    newest: AtomicU64,
    settled: AtomicU64,
}

/// What has happened in a forest since it was opened, and what it holds. See [`Forest::stats`](crate::Forest::stats).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Commits that succeeded.
    pub commits: u64,
    /// Commits that were refused because they conflict with others.
    pub conflicts: u64,
    /// Edits that were rebased to a newer version than the one they began from.
    pub rebases: u64,
    /// Write leases that were revoked from updates that kept others waiting.
    pub leases_revoked: u64,
    /// How many groups of combined requests had 1, 2 to 3, 4 to 7, … and at least 128 requests.
    pub groups: [u64; SIZES],
    /// Trees.
    pub trees: u64,
    /// Versions that are kept in all trees.
    pub versions: u64,
    /// Indexes of the newest versions of all trees.
    pub indexes: u64,
    /// Values that these indexes hold.
    pub index_keys: u64,
    /// Erasable values that are stored, because a version that is kept or read refers to them, or an edit that is not
    /// committed yet.
    pub blobs: u64,
    /// The bytes of these values together.
    pub blob_bytes: u64,
    /// Those of these values that the journal could not read, and was told to leave out. They read as erased.
    pub unreadable_blobs: u64,
}

impl Counts {
    pub(crate) fn committed(&self) {
        bump(&self.commits);
    }

    pub(crate) fn refused(&self, error: &CommitError) {
        if let CommitError::Conflict(_) = error {
            // Authors that replay an edit count, too.
            self.conflicts.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn rebased(&self) {
        bump(&self.rebases);
    }

    pub(crate) fn lease_revoked(&self) {
        bump(&self.leases_revoked);
    }

    pub(crate) fn group(&self, size: usize) {
        let power = size.max(1).ilog2() as usize;
        bump(&self.groups[power.min(SIZES - 1)]);
    }

    /// The number of the newest commit that readers can see. Stored just before the commit becomes visible,
    /// while its histories are locked.
    pub(crate) fn published(&self, number: u64) {
        // Relaxed: a thread that knows a version has synchronised with its publication, and sees this store
        // as well.
        self.newest.store(number, Ordering::Relaxed);
    }

    pub(crate) fn newest(&self) -> u64 {
        self.newest.load(Ordering::Relaxed)
    }

    /// All commits up to this number have reached the strongest level of the journal. Called by the combiner only.
    pub(crate) fn settle(&self, number: u64) {
        self.settled.store(number, Ordering::Relaxed);
    }

    /// Nothing up to this number is ever taken back. Without a medium that can lose commits it is the greatest number.
    pub(crate) fn settled(&self) -> u64 {
        self.settled.load(Ordering::Relaxed)
    }

    pub(crate) fn read(&self) -> Stats {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Stats {
            commits: read(&self.commits),
            conflicts: read(&self.conflicts),
            rebases: read(&self.rebases),
            leases_revoked: read(&self.leases_revoked),
            groups: self.groups.each_ref().map(read),
            ..Stats::default()
        }
    }
}

/// Relaxed: nothing depends on the counters, and the publication list orders the combiners.
fn bump(count: &AtomicU64) {
    count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}
