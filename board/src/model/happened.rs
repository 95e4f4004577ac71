//! What a commit did to a board, for its followers.

use weald::forest::{Change, NodeId, Seen, Version};

use super::message::attribute;

/// A change of a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happened {
    /// The version that it made.
    pub version: Version,
    /// What was done: `write`, `edit`, `delete`, `restore`, `erase`, or `other`.
    pub did: &'static str,
    /// The messages that are new or changed.
    pub messages: Vec<NodeId>,
}

/// What the step from one version to the next did.
pub(crate) fn happened(seen: &Seen) -> Happened {
    let known = ["write", "edit", "delete", "restore", "erase"];
    let did = known
        .into_iter()
        .find(|did| did.as_bytes() == seen.after.bytes());
    let is_told = |change: &Change<'_>| match change {
        Change::Added(node) => node.parent().is_some(),
        Change::Deleted(_) => false,
        // The answer itself tells that somebody has answered in a topic.
        Change::Changed { .. } => change
            .attributes()
            .any(|(name, ..)| name != attribute::ACTIVE),
    };
    Happened {
        version: seen.after.version(),
        did: did.unwrap_or("other"),
        messages: seen
            .changes()
            .filter(is_told)
            .map(|change| change.id())
            .collect(),
    }
}
