//! A snapshot of several trees at one moment.
//!
//! All slots are read twice. If no tree changed in between, all roots were current at one moment between the two
//! readings, because a tree never gets an earlier root again. (If the forest falls back, a tree does, and then all are
//! read again.) An attempt fails only if others commit meanwhile. After [`TRIES`] attempts the moment is fixed as a
//! version instead, and each tree is looked up in its history.

use crate::state::forest::ForestState;
use crate::state::root::{RootRef, Snapshot};
use crate::state::tree::TreeState;

/// Attempts before the histories are read.
const TRIES: usize = 4;

pub(crate) fn snapshot(forest: &ForestState, trees: &[&TreeState]) -> Vec<Snapshot> {
    forest.when_steady(|| at_one_moment(trees))
}

fn at_one_moment(trees: &[&TreeState]) -> Vec<Snapshot> {
    let mut roots = read(trees);
    for tries in 0.. {
        let again = read(trees);
        let mut both = roots.iter().zip(&again);
        if both.all(|(one, other)| RootRef::is(&one.0, &other.0)) {
            break;
        }
        roots = again;
        if tries >= TRIES
            && let Some(found) = look_up(trees, &roots)
        {
            return found;
        }
    }
    roots
}

fn read(trees: &[&TreeState]) -> Vec<Snapshot> {
    trees
        .iter()
        .map(|state| Snapshot::of(&state.slot))
        .collect()
}

/// All trees as they were when the newest of these roots was created: commits become visible in their order, so
/// every earlier commit is in the histories. `None`, if a tree's history begins later.
fn look_up(trees: &[&TreeState], roots: &[Snapshot]) -> Option<Vec<Snapshot>> {
    let moment = roots.iter().map(|root| root.version()).max()?;
    let at = |state: &&TreeState| state.history().at(moment).ok().cloned().map(Snapshot);
    trees.iter().map(at).collect()
}
