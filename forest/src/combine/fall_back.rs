//! The way back: when the journal fails, the forest shows what is durable, and takes no more commits.
//!
//! - The versions of trees are in their histories; see `History::fall_back`. Names and tags have no versions and are
//!   changed in place. So the combiner keeps their former state until the change is durable.
//! - The failure is noticed in `look_for_failure`; at the end of the group `fall_back_if_due` takes the newest durable
//!   version of each tree from its history, and `publish.rs` shows them.
//! - Readers see all of it at one instant, while the names and all histories are locked.
//! - Bytes that were erased stay erased.

use std::task::Context;

use super::combiner::Combiner;
use super::rollback::{Before, TagBefore};
use crate::journal::Position;
use crate::state::forest::{Fall, ForestState};
use crate::state::names::Names;
use crate::state::tree::TreeRef;
use crate::wake::catch_foreign;

impl Combiner {
    /// Keeps the state before a commit, until the commit is durable.
    pub(super) fn remember(&mut self, forest: &ForestState, number: u64, before: Before) {
        if number > forest.stats.settled() {
            self.before.push_back((number, before));
        } else {
            self.publisher.deferred.drop_later(Some(before));
        }
    }

    /// A commit has this position, if there is a journal.
    pub(super) fn note_position(
        &mut self,
        forest: &ForestState,
        (number, position): (u64, Option<Position>),
    ) {
        let (Some(journal), Some(position)) = (&forest.journal, position) else {
            return;
        };
        let are_many = journal.accepted((number, position));
        if are_many || !self.before.is_empty() {
            self.settle(forest);
        }
    }

    /// Asks the journal which commits are durable, and forgets what was kept for them.
    pub(super) fn settle(&mut self, forest: &ForestState) {
        let journal = forest.journal.as_ref();
        if let Some(settled) = journal.and_then(|journal| journal.settled(&forest.reentrancy)) {
            forest.stats.settle(settled);
        }
        let settled = forest.stats.settled();
        while self
            .before
            .front()
            .is_some_and(|(number, _)| *number <= settled)
        {
            self.publisher.deferred.drop_later(self.before.pop_front());
        }
    }

    /// Looks whether the journal has failed. If it has, the group ends with
    /// [`fall_back_if_due`](Self::fall_back_if_due).
    pub(super) fn look_for_failure(&mut self, forest: &ForestState) {
        let (Some(journal), None) = (&forest.journal, forest.fall()) else {
            return;
        };
        let watch = &mut self.failure;
        let has_failed = forest.reentrancy.in_journal(|| {
            let look = || {
                let failed = watch
                    .failed
                    .get_or_insert_with(|| journal.inner.when_failed());
                let mut cx = Context::from_waker(&watch.waker);
                failed.as_mut().poll(&mut cx).is_ready()
            };
            catch_foreign(look)
        });
        if has_failed != Some(false) {
            // The future is not polled again after it was ready or has panicked.
            watch.failed = Some(Box::pin(std::future::pending()));
            watch.is_due |= has_failed.is_some();
        }
    }

    /// If the journal has failed: shows what is durable, and takes no more commits. Commits that the journal has
    /// accepted were published before; those that it has not answered yet are answered when it does.
    pub(super) fn fall_back_if_due(&mut self, forest: &ForestState) {
        if !std::mem::take(&mut self.failure.is_due) || forest.fall().is_some() {
            return;
        }
        self.is_poisoned = true;
        self.settle(forest);
        let visible = self.accepted.0;
        let durable = forest.stats.settled().min(visible);
        forest.fall_back(Fall { durable, visible }, |names| {
            let mut trees = Vec::new();
            let tags = self.names_before(names, &mut trees);
            trees.extend(names.trees().cloned());
            let publisher = &mut self.publisher;
            publisher.fall_back((&forest.stats, durable), &trees, tags);
        });
        self.accepted.0 = durable;
        self.has_happened = true;
    }

    /// Takes back the changes of names, the newest first. Returns those of tags, and adds the trees that never were.
    fn names_before(&mut self, names: &mut Names, never: &mut Vec<TreeRef>) -> Vec<TagBefore> {
        let mut tags = Vec::new();
        for (_, before) in self.before.drain(..).rev() {
            match before {
                Before::Create(name) => {
                    if let Some(state) = names.remove(&name) {
                        state.delete();
                        never.push(state);
                    }
                }
                Before::Delete(state) => {
                    state.undelete();
                    names.insert(state);
                }
                Before::Rename(old, new) => names.rename(&new, &old),
                Before::Tag(before) => tags.push(before),
            }
        }
        tags
    }
}
