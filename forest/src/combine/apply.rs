//! Applies a commit to the forest: it is possible, has its number, and the journal has accepted it and all before it.
//!
//! Readers see a commit when it is published (`publish.rs`). Versions of one tree are published together, at the end of
//! the combiner's group ([`Combiner::publish_accepted`]); everything else is published here, as it is applied.

use std::sync::Arc;

use super::combiner::Combiner;
use super::new_versions::{ErasableParts, Made, NewRoot};
use super::request::{Answer, Garbage};
use super::rollback::{Before, TagBefore};
use crate::journal::{Digest, Position};
use crate::state::forest::ForestState;
use crate::state::root::RootRef;
use crate::version::Committed;

impl Combiner {
    /// Applies a commit, and notes what happened for the watches of the forest.
    #[inline]
    pub(super) fn apply(
        &mut self,
        forest: &ForestState,
        (made, garbage): (Made, Garbage),
        (commit, digest, position): (Committed, Option<Digest>, Option<Position>),
    ) -> Answer {
        if matches!(made, Made::One(..) | Made::Many(_)) {
            return self.apply_made(forest, (made, garbage), (commit, digest, position));
        }
        // Before its number is visible, so that a reader that knows the number finds it.
        if let Some(happening) = made.happening() {
            forest.happenings.add(commit, happening);
            self.has_happened = true;
        }
        self.apply_made(forest, (made, garbage), (commit, digest, position))
    }

    /// New versions of one tree are collected, and published when the group ends, or before a commit that is not just
    /// another of them; every other change is visible at once.
    #[inline]
    fn apply_made(
        &mut self,
        forest: &ForestState,
        (made, mut garbage): (Made, Garbage),
        (commit, digest, position): (Committed, Option<Digest>, Option<Position>),
    ) -> Answer {
        let number = commit.version.number;
        self.note_position(forest, (number, position));
        if !matches!(&made, Made::One(state, _) if self.publisher.collects(state)) {
            // Earlier commits become visible before this one is applied, and before its number is
            // known.
            self.publish_accepted(forest);
        }
        self.accepted = (commit.version.number, commit.time);
        self.position = position.or(self.position);
        forest.stats.committed();
        if let Some(digest) = digest {
            self.commit_ids.add(commit, digest);
        }
        match made {
            Made::One(state, new) => {
                let root = own(forest, (state.number, number), (new, &mut garbage));
                self.publisher.collect(state, root);
                self.has_collected = true;
            }
            Made::Many(versions) => {
                let roots = versions.into_iter().map(|(state, new)| {
                    let root = own(forest, (state.number, number), (new, &mut garbage));
                    (state, root)
                });
                let roots: Vec<_> = roots.collect();
                self.publisher.publish_jointly(&forest.stats, &roots);
                garbage = Garbage::of((garbage, self.publisher.deferred.take_large()));
            }
            Made::Create(name, state, references) => {
                if let Some(noting) = forest.blobs.note((state.number, number), references) {
                    garbage = Garbage::of((garbage, noting));
                }
                // Whoever reads both under the lock finds the tree of each number that is visible.
                let mut names = forest.names_mut();
                forest.stats.published(commit.version.number);
                names.insert(state.clone());
                drop(names);
                self.remember(forest, number, Before::Create(name));
                return Answer::Created(Ok(state), garbage);
            }
            Made::Delete(name, state) => {
                let named = forest.names_mut().remove(&name);
                state.delete();
                self.publisher.wake_watches(&state);
                let before = Before::Delete(state.clone());
                self.remember(forest, number, before);
                // If no handle is left, the tree is freed with all its versions.
                garbage = Garbage::of((named, state));
            }
            Made::Rename(old, new, _) => {
                forest.names_mut().rename(&old, &new);
                let before = Before::Rename(old, new);
                self.remember(forest, number, before);
            }
            Made::Erase(erasure) => {
                let gone = forest.blobs.erase(&erasure, commit.time);
                garbage = Garbage::of((garbage, gone));
            }
            Made::Tag(state, tag, tagged) => {
                let tagged = state.history().tag(Arc::clone(&tag), *tagged, commit.time);
                let before = TagBefore { state, tag, tagged };
                self.remember(forest, number, Before::Tag(before));
            }
            Made::Untag(state, tag) => {
                let tagged = state.history().put_tag(Arc::clone(&tag), None);
                let before = TagBefore { state, tag, tagged };
                self.remember(forest, number, Before::Tag(before));
            }
        }
        Answer::Committed(Ok(commit), garbage)
    }
}

/// From now on the forest has what a version brings: erasable bytes, and references to them. Work that takes longer
/// than a moment is left to the author.
#[inline]
fn own(forest: &ForestState, at: (u64, u64), (new, garbage): (NewRoot, &mut Garbage)) -> RootRef {
    if let Some(erasable) = new.erasable {
        let ErasableParts { blobs, references } = *erasable;
        forest.blobs.commit(&blobs);
        let noting = forest.blobs.note(at, references);
        *garbage = Garbage::of((std::mem::take(garbage), noting, blobs));
    }
    new.root
}
