//! For many nodes of one version, the nearest of some given ancestors, found by climbing to the root.
//!
//! The result for each node is remembered, so looking up all nodes of a chain costs its length and not the
//! square of its length.

use std::collections::{HashMap, HashSet};

use crate::id::NodeId;
use crate::node::Node;

/// For many nodes of one version, finds which of some given nodes is the nearest at or above each
/// of them.
///
/// ```
/// use weald::tree::{Attributes, Climb, Tree};
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
/// # Ok::<(), weald::tree::EditError>(())
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

    /// The nearest of the given nodes that is `node` itself or above it. All nodes passed to one climb must
    /// belong to one version. It costs the steps up to a node that an earlier climb passed.
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
