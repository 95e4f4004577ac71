//! The journal of a forest, as the forest sees it: which commit has which position, and what has reached which level.
//!
//! The forest itself knows what is visible (`Stats::published`). The journal knows what is durable, by its own
//! positions.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::reentrancy::Reentrancy;
use crate::journal::{AppendError, Durability, Journal, Later, Level, Position};
use crate::wake::catch_foreign;

/// How many positions may be remembered before those that are durable are forgotten.
const MANY: usize = 256;

pub(crate) struct ForestJournal {
    pub(crate) inner: Arc<dyn Journal>,
    /// The strongest level that the journal reaches.
    pub(crate) most: Level,
    /// How many records may be on their way.
    pub(crate) pipelined: usize,
    /// The positions of the commits that may not have reached the strongest level, by rising numbers.
    positions: Mutex<VecDeque<(u64, Position)>>,
}

impl ForestJournal {
    pub(crate) fn new(journal: Arc<dyn Journal>) -> Self {
        let capabilities = journal.capabilities();
        Self {
            inner: journal,
            most: capabilities.level,
            pipelined: capabilities.pipelined.max(1),
            positions: Mutex::default(),
        }
    }

    fn positions(&self) -> MutexGuard<'_, VecDeque<(u64, Position)>> {
        self.positions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The commit of this number has this position. Called before the commit is visible, in the order of the numbers.
    /// Returns whether [`settled`](Self::settled) is to be asked, because many are remembered.
    pub(crate) fn accepted(&self, accepted: (u64, Position)) -> bool {
        if self.most == Level::Accepted {
            return false;
        }
        let mut positions = self.positions();
        positions.push_back(accepted);
        positions.len().is_multiple_of(MANY)
    }

    /// Forgets the commits that have reached the strongest level. Returns the number up to which all have, if that is
    /// news. Called by the combiner only.
    pub(crate) fn settled(&self, reentrancy: &Reentrancy) -> Option<u64> {
        // A journal is foreign code: it may panic, or ask the forest.
        let reached = || catch_foreign(|| self.inner.reached(self.most));
        let reached = reentrancy.in_journal(reached)?;
        let mut positions = self.positions();
        let done = positions.partition_point(|(_, position)| *position <= reached);
        let (last, _) = positions.drain(..done).next_back()?;
        Some(last)
    }

    /// Why the journal takes nothing any more.
    pub(crate) fn refusal(&self, reentrancy: &Reentrancy) -> AppendError {
        let refusal = || catch_foreign(|| self.inner.refusal());
        let refusal = reentrancy.in_journal(refusal);
        refusal.unwrap_or(AppendError::Poisoned)
    }

    /// Waits until all commits up to a number have reached a level; `None`, if they have.
    pub(crate) fn when_reached(
        &self,
        number: u64,
        level: Level,
    ) -> Option<Later<'static, Durability>> {
        if level == Level::Accepted {
            return None;
        }
        let position = {
            let positions = self.positions();
            let (last, position) = positions.back()?;
            // An author asks at once for the commit that was just made.
            if *last <= number {
                *position
            } else {
                let behind = positions.partition_point(|(known, _)| *known <= number);
                positions[behind.checked_sub(1)?].1
            }
        };
        (self.inner.reached(level) < position).then(|| self.inner.when_reached(position, level))
    }
}
