//! What a record tells besides the versions that it makes: of names, tags and erasures, as the watches of the forest
//! were told when it was made (`combine/forest_events.rs`), and which trees its commit has changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::recovered_tree::RecoveredTree;
use crate::journal::Change;
use crate::state::happenings::Happening;
use crate::state::root::Beside;

/// What a change does besides making a version, if anything. The trees are as they were before it; the number is that
/// of the commit.
pub(super) fn happening(
    change: &Change,
    (trees, number): (&BTreeMap<u64, RecoveredTree>, u64),
) -> Option<Happening> {
    let name_of = |tree: &u64| trees.get(tree).map(|known| known.name.to_string());
    Some(match change {
        Change::Edit { .. } | Change::AddIndex { .. } | Change::DropIndex { .. } => return None,
        Change::Create { name, .. } => Happening::Created {
            tree: number,
            name: name.clone(),
        },
        Change::Delete { tree } => Happening::Deleted {
            tree: *tree,
            name: name_of(tree)?,
        },
        Change::Rename { tree, name } => Happening::Renamed {
            tree: *tree,
            from: name_of(tree)?,
            to: name.clone(),
        },
        Change::Tag { tree, tag, version } => Happening::Tagged {
            tree: *tree,
            tag: tag.clone(),
            version: *version,
        },
        Change::Untag { tree, tag } => Happening::Untagged {
            tree: *tree,
            tag: tag.clone(),
        },
        Change::Erase(erasure) => Happening::Erased {
            tree: erasure.place.0,
            node: erasure.place.1,
            name: erasure.place.2.to_string(),
        },
    })
}

/// The trees that a commit has changed, as its roots have it.
pub(super) fn beside(changes: &[Change]) -> Option<Arc<Beside>> {
    let of_edit = |change: &Change| match change {
        Change::Edit { tree, .. } => Some(*tree),
        _ => None,
    };
    let trees: Vec<_> = changes.iter().filter_map(of_edit).collect();
    (trees.len() > 1).then(|| Arc::new(Beside::Trees(trees)))
}
