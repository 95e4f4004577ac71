//! The ids that authors gave to their commits: a second commit with the same id is not made; it returns the
//! outcome of the first.
//!
//! The newest [`LIMIT`] ids are remembered. An id that the forest chose needs no entry: its author could not
//! know it before the commit was done.

use std::collections::{HashMap, VecDeque};

use crate::version::{CommitId, Committed};

/// How many ids a forest remembers.
const LIMIT: usize = 1 << 16;

#[derive(Default)]
pub(crate) struct CommitIds {
    commits: HashMap<CommitId, Committed>,
    order: VecDeque<CommitId>,
}

impl CommitIds {
    pub(crate) fn get(&self, id: CommitId) -> Option<Committed> {
        self.commits.get(&id).copied()
    }

    pub(crate) fn add(&mut self, commit: Committed) {
        self.commits.insert(commit.id, commit);
        self.order.push_back(commit.id);
        if self.order.len() > LIMIT
            && let Some(oldest) = self.order.pop_front()
        {
            self.commits.remove(&oldest);
        }
    }
}
