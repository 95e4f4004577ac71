//! A moment of the forest, named by the combiner for a checkpoint.

use std::sync::Arc;

use super::combiner::Combiner;
use super::request::Moment;
use crate::state::forest::ForestState;
use crate::state::root::Snapshot;

impl Combiner {
    /// This moment. It costs a look at each tree.
    pub(super) fn moment(&self, forest: &ForestState) -> Moment {
        let names = forest.names();
        let trees = names.iter().map(|(name, state)| {
            let newest = Snapshot::of(&state.slot).0;
            (Arc::clone(name), Arc::clone(state), newest)
        });
        Moment {
            version: forest.version_of(self.accepted.0),
            time: self.accepted.1,
            position: self.position,
            trees: trees.collect(),
            ids: self.commit_ids.entries(),
        }
    }
}
