//! Prefetches what is about to be needed: the child lists of a walk that visits ids in order, and the attributes of
//! nodes that are read together.
//!
//! A walk needs one child list after another and would wait for memory at each. The prefetch reads a word of
//! every list of the next thousand nodes. These reads do not depend on each other, so memory serves them at
//! the same time. A walk over 810,156 nodes takes 5 % less time with it. A walk over 10,005 nodes, which fit
//! into the processor's cache, took 30 % more, so small trees are not prefetched.

use std::hint::black_box;

use crate::branch::{BITS, Branch, Content};
use crate::id::NodeId;
use crate::node::Node;
use crate::record::Links;
use crate::tree::Tree;

/// How many branches above the leaves the prefetched part is: 64 leaves at once.
const HEIGHT: u32 = 2;

/// The least number of nodes for which prefetching pays: several megabytes of records.
const LARGE: u64 = 1 << 17;

/// The part that was prefetched last.
#[derive(Clone, Default)]
pub(crate) struct Prefetch {
    part: u64,
}

impl Prefetch {
    /// Prefetches the lists of the part that holds `id`, unless that part was the last one.
    pub(crate) fn fetch(&mut self, tree: &Tree, id: NodeId) {
        let part = id.leaf() >> (BITS * HEIGHT);
        if part == self.part || tree.len < LARGE {
            return;
        }
        self.part = part;
        if let Some(branch) = tree.records.branch(id, HEIGHT) {
            let mut seen = 0;
            // First the records, which hold the addresses of the lists, then the lists.
            for_listed(branch, &mut |links| seen ^= links.parent().get());
            for_listed(branch, &mut |links| seen ^= links.children().first_listed());
            black_box(seen);
        }
    }
}

impl Node<'_> {
    /// Asks memory for the places and the attributes of these nodes at once, because they are about to be read. In a
    /// large tree that is not in the processor's cache, twenty nodes that are read one after the other wait for memory
    /// twenty times.
    ///
    /// ```
    /// use weald::tree::{Attributes, Node, Tree};
    ///
    /// let mut edit = Tree::new().edit();
    /// let root = edit.tree().root().id();
    /// edit.append(root, Attributes::new().with("name", "Ada"))?;
    /// let tree = edit.freeze();
    /// let nodes: Vec<_> = tree.root().children().collect();
    /// Node::prefetch(&nodes);
    /// assert_eq!(nodes[0].get_str("name"), Some("Ada"));
    /// # Ok::<(), weald::tree::EditError>(())
    /// ```
    pub fn prefetch(nodes: &[Self]) {
        let one = |node: &Self| node.child_count() ^ node.attributes().touched();
        black_box(nodes.iter().fold(0, |seen, node| seen ^ one(node)));
    }
}

/// Calls `see` for the links of each record below whose children the shape of its leaf does not give.
fn for_listed(branch: &Branch, see: &mut impl FnMut(&Links)) {
    match branch.content() {
        Content::Empty => {}
        Content::Inner(below) => below.0.iter().for_each(|branch| for_listed(branch, see)),
        Content::Leaf(leaf) => {
            let listed = leaf.shape.listed().filter_map(|slot| leaf.links(slot));
            listed.for_each(see);
        }
    }
}
