//! Publishing: the only place that stores to a tree's slot, which makes a version visible to readers.
//!
//! - Commits become visible in the order of their numbers, so a reader that has seen one sees all before it.
//! - Versions of one tree that follow each other in the combiner's group are collected and published
//!   together: readers could not tell the difference, and one store serves all of them.
//! - A commit over several trees becomes visible at one instant, by one store to a flag (like a descriptor in
//!   the multi-word compare-and-swap of Harris, Fraser and Pratt, 2002; but there is only one writer here, so
//!   no reader has to help). Readers neither wait for it nor retry.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::rollback::TagBefore;
use super::unaccepted::Unaccepted;
use crate::state::deferred::Deferred;
use crate::state::root::{Beside, Joint, RootRef};
use crate::state::stats::Counts;
use crate::state::tree::{TreeRef, TreeState};

/// Publishes versions. The combiner owns it.
pub(crate) struct Publisher {
    /// How many versions of each tree are kept.
    keep: usize,
    pub(crate) deferred: Deferred,
    pub(crate) unaccepted: Unaccepted,
    /// The versions of one tree that are accepted and not yet published.
    unpublished: Vec<RootRef>,
    unpublished_of: Option<TreeRef>,
}

impl Publisher {
    pub(crate) fn new(keep: usize) -> Self {
        Self {
            keep,
            deferred: Deferred::default(),
            unaccepted: Unaccepted::default(),
            unpublished: Vec::new(),
            unpublished_of: None,
        }
    }

    /// The newest version of a tree, published, accepted or on its way.
    pub(crate) fn head(&self, state: &TreeRef) -> RootRef {
        if let Some(root) = self.unaccepted.head(state) {
            return root.clone();
        }
        match self.unpublished.last() {
            Some(root) if self.collects(state) => root.clone(),
            _ => state.slot.load(),
        }
    }

    /// Whether versions of this tree are being collected.
    pub(crate) fn collects(&self, state: &TreeRef) -> bool {
        let of = self.unpublished_of.as_ref();
        of.is_some_and(|of| TreeRef::is(of, state))
    }

    /// Collects a version, which is published later. Versions of other trees must be published before.
    pub(crate) fn collect(&mut self, state: TreeRef, root: RootRef) {
        debug_assert!(self.unpublished.is_empty() || self.collects(&state));
        self.unpublished_of = Some(state);
        self.unpublished.push(root);
    }

    /// Publishes the versions that were collected. Readers may see the last of them only.
    pub(crate) fn publish_collected(&mut self, stats: &Counts) {
        let (Some(state), Some(newest)) =
            (self.unpublished_of.take(), self.unpublished.last().cloned())
        else {
            return;
        };
        let wakers = {
            let mut history = state.history();
            self.unpublished
                .drain(..)
                .for_each(|root| history.add(root));
            history.shrink(self.keep, stats.settled(), &mut self.deferred);
            stats.published(newest.number());
            state.slot.store(newest);
            history.take_wakers()
        };
        self.deferred.wake_watches(wakers);
    }

    /// Publishes a version of each of several trees, all at once.
    pub(crate) fn publish_jointly(&mut self, stats: &Counts, versions: &[(TreeRef, RootRef)]) {
        let is_visible = Arc::new(AtomicBool::new(false));
        // All histories are locked, so that no reader looks up in one tree's history what another tree's
        // does not have yet. Only the combiner ever locks more than one.
        let mut histories: Vec<_> = versions.iter().map(|(state, _)| state.history()).collect();
        for ((state, after), history) in versions.iter().zip(&histories) {
            state
                .slot
                .store(joint((history.newest(), after), &is_visible));
        }
        if let Some((_, after)) = versions.first() {
            stats.published(after.number());
        }
        // Release: pairs with the load in `Joint::meant`.
        is_visible.store(true, Ordering::Release);
        for ((state, after), history) in versions.iter().zip(&mut histories) {
            history.add(after.clone());
            history.shrink(self.keep, stats.settled(), &mut self.deferred);
            state.slot.store(after.clone());
            let wakers = history.take_wakers();
            self.deferred.wake_watches(wakers);
        }
    }

    /// Shows all trees, and their tags, as of the last durable commit, at one instant.
    pub(crate) fn fall_back(
        &mut self,
        (stats, durable): (&Counts, u64),
        trees: &[TreeRef],
        tags: Vec<TagBefore>,
    ) {
        let is_visible = Arc::new(AtomicBool::new(false));
        let mut histories: Vec<_> = trees.iter().map(|state| state.history()).collect();
        for (state, history) in trees.iter().zip(&mut histories) {
            let before = history.newest().clone();
            let lost = history.fall_back(durable);
            let after = history.newest();
            if !RootRef::is(&before, after) {
                state.slot.store(joint((&before, after), &is_visible));
            }
            self.deferred.drop_later(Some(lost));
        }
        for before in tags {
            let is_its = |state: &TreeRef| TreeRef::is(state, &before.state);
            let Some(at) = trees.iter().position(is_its) else {
                continue;
            };
            let gone = histories[at].put_tag(before.tag, before.tagged);
            self.deferred.drop_later(gone);
        }
        stats.published(durable);
        // Release: pairs with the load in `Joint::meant`.
        is_visible.store(true, Ordering::Release);
        for (state, history) in trees.iter().zip(&mut histories) {
            state.slot.store(history.newest().clone());
            let wakers = history.take_wakers();
            self.deferred.wake_watches(wakers);
        }
    }

    /// Wakes the watches of a deleted tree, which gets no further version.
    pub(crate) fn wake_watches(&mut self, state: &TreeState) {
        let wakers = state.history().take_wakers();
        self.deferred.wake_watches(wakers);
    }
}

/// The root in a slot while several trees change from their old versions to their new ones.
fn joint((before, after): (&RootRef, &RootRef), is_visible: &Arc<AtomicBool>) -> RootRef {
    RootRef::new(after.with_beside(Beside::Joint(Joint {
        before: before.clone(),
        after: after.clone(),
        is_visible: Arc::clone(is_visible),
    })))
}
