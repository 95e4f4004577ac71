//! The ids that authors gave to their commits, so that the same id twice is the same commit.
//!
//! The newest [`LIMIT`] of them are remembered. An id that the forest chose needs no place here: its
//! author could not know it before the commit had happened.

use std::collections::{HashMap, VecDeque};

use crate::version::{CommitId, Committed};

/// How many given ids a forest remembers.
const LIMIT: usize = 1 << 16;

#[derive(Default)]
pub(crate) struct Known {
    commits: HashMap<CommitId, Committed>,
    order: VecDeque<CommitId>,
}

impl Known {
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
