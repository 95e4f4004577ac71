//! A moment of the forest, named by the combiner for a checkpoint.

use super::combiner::Combiner;
use super::new_versions::Made;
use super::request::{Moment, TreeMoment};
use crate::state::forest::ForestState;
use crate::state::root::{RootRef, Snapshot};
use crate::state::tree::HeldTree;

impl Combiner {
    /// This moment. It costs a look at each tree, and a copy of all tags.
    pub(super) fn moment(&self, forest: &ForestState) -> Moment {
        let coming = self.coming_tags();
        let of_tree = |number| coming.iter().filter(move |(tree, _)| *tree == number);
        let names = forest.names();
        let trees = names.trees().map(|state| {
            let newest = Snapshot::of(&state.slot).0;
            let held = HeldTree::new(state, self.accepted.0);
            let history = state.history();
            TreeMoment {
                name: state.name(),
                state: held,
                newest,
                gone: history.gone(),
                tags: history.tags().clone(),
                coming: of_tree(state.number)
                    .map(|(_, root)| root.clone())
                    .collect(),
            }
        });
        Moment {
            version: forest.version_of(self.accepted.0),
            time: self.accepted.1,
            position: self.position,
            trees: trees.collect(),
            ids: self.commit_ids.entries(),
        }
    }

    /// The versions that get a tag by commits that are on their way, with the numbers of their trees.
    fn coming_tags(&self) -> Vec<(u64, RootRef)> {
        let coming = self.outstanding.commits.iter();
        let coming = coming.filter_map(|known| match &known.made {
            Made::Tag(state, _, tagged) => Some((state.number, tagged.root.clone())),
            _ => None,
        });
        coming.collect()
    }
}
