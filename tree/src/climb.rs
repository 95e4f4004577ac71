//! Which nodes of one version lie under some others, found by climbing: each node is climbed once.
//!
//! What was found for a node is remembered, so asking of all nodes of a chain costs its length and not
//! the square of it.

use std::collections::{HashMap, HashSet};

use crate::id::NodeId;
use crate::node::Node;

/// Answers, for many nodes of one version, under which of some nodes they lie.
///
/// ```
/// use weald_tree::{Attributes, Climb, Tree};
///
/// let mut edit = Tree::new().edit();
/// let root = edit.tree().root().id();
/// let [left, right] = [edit.append(root, Attributes::new())?, edit.append(root, Attributes::new())?];
/// let child = edit.append(left, Attributes::new())?;
/// let tree = edit.freeze();
///
/// let mut climb = Climb::to([left]);
/// assert_eq!(climb.from(tree.node(child).unwrap()), Some(left));
/// assert_eq!(climb.from(tree.node(right).unwrap()), None);
/// # Ok::<(), weald_tree::EditError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Climb {
    tops: HashSet<NodeId>,
    known: HashMap<NodeId, Option<NodeId>>,
    way: Vec<NodeId>,
}

impl Climb {
    /// A climb that ends at one of these nodes, or at the root.
    pub fn to(tops: impl IntoIterator<Item = NodeId>) -> Self {
        Self {
            tops: tops.into_iter().collect(),
            known: HashMap::new(),
            way: Vec::new(),
        }
    }

    /// The nearest of the sought nodes that is this one or lies above it. All nodes that are asked of one
    /// climb belong to one version. It costs the steps up to a node that was climbed before.
    pub fn from(&mut self, node: Node<'_>) -> Option<NodeId> {
        let mut at = Some(node);
        let top = loop {
            let Some(node) = at else { break None };
            let id = node.id();
            if self.tops.contains(&id) {
                break Some(id);
            }
            if let Some(known) = self.known.get(&id) {
                break *known;
            }
            self.way.push(id);
            at = node.parent();
        };
        self.known.extend(self.way.drain(..).map(|id| (id, top)));
        top
    }
}
