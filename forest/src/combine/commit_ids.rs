//! The ids that authors gave to their commits: a second commit with the same id is not made; it returns the
//! outcome of the first, if it asked for the same.
//!
//! The newest [`LIMIT`] ids are remembered, and up to [`PART`] more. An id that the forest chose needs no entry: its
//! author could not know it before the commit was done.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::journal::Digest;
use crate::version::{CommitId, Committed};

/// How many ids a forest remembers.
const LIMIT: usize = 1 << 16;

/// How many of them are listed together, so that the list can be shared with a checkpoint.
const PART: usize = 1 << 10;

/// Some of the ids, in the order of the commits.
pub(crate) type Entries = Arc<Vec<(Committed, Digest)>>;

#[derive(Default)]
pub(crate) struct CommitIds {
    commits: HashMap<CommitId, (Committed, Digest)>,
    /// Lists of `PART` each.
    full: VecDeque<Entries>,
    newest: Vec<(Committed, Digest)>,
}

impl CommitIds {
    pub(crate) fn get(&self, id: CommitId) -> Option<(Committed, Digest)> {
        self.commits.get(&id).copied()
    }

    pub(crate) fn add(&mut self, commit: Committed, digest: Digest) {
        self.commits.insert(commit.id, (commit, digest));
        self.newest.push((commit, digest));
        if self.newest.len() == PART {
            self.full
                .push_back(Arc::new(std::mem::take(&mut self.newest)));
        }
        if self.full.len() > LIMIT / PART
            && let Some(oldest) = self.full.pop_front()
        {
            for (commit, _) in &*oldest {
                self.commits.remove(&commit.id);
            }
        }
    }

    /// All of them, in the order of the commits.
    pub(crate) fn entries(&self) -> Vec<Entries> {
        let newest = Arc::new(self.newest.clone());
        self.full.iter().cloned().chain([newest]).collect()
    }
}
