//! The differences between two versions, found in time proportional to the differences.
//!
//! Both maps are walked together, and parts that they share in memory are skipped whole. The versions need no
//! common history, but without one everything may differ. The leaves beside the trees are compared
//! as if they were in their places in the tree.

use crate::branch::{BITS, Branch, Content, WIDTH, fits};
use crate::id::{LEAF, NodeId};
use crate::leaf::Leaf;
use crate::node::Node;
use crate::tree::Tree;

/// A node that is not the same in two versions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change<'a> {
    /// Only the new version has it.
    Added(Node<'a>),
    /// Only the old version had it.
    Deleted(Node<'a>),
    /// Both have it, with different attributes or at different places. When a child moves, the child
    /// changes; its old and new parents do not.
    Changed {
        /// The node as it was.
        old: Node<'a>,
        /// The node as it is.
        new: Node<'a>,
    },
}

impl Change<'_> {
    /// The node that differs.
    pub fn id(&self) -> NodeId {
        match self {
            Self::Added(node) | Self::Deleted(node) | Self::Changed { new: node, .. } => node.id(),
        }
    }

    /// Whether the node is under another parent, or elsewhere among its siblings.
    pub fn is_moved(&self) -> bool {
        match self {
            Self::Changed { old, new } => old.is_moved_to(*new),
            _ => false,
        }
    }

    /// Whether both versions have the node, with different attributes.
    pub fn has_other_attributes(&self) -> bool {
        match self {
            Self::Changed { old, new } => old.attributes() != new.attributes(),
            _ => false,
        }
    }
}

impl<'a> Change<'a> {
    /// The attributes that differ, in the order of their names, each as it was and as it is. All that a node has, if it
    /// was added or deleted. It takes the time of the attributes of the node.
    ///
    /// ```
    /// use weald::tree::Tree;
    ///
    /// let old = Tree::from_json(r#"{"attributes": {"a": "1", "b": "2", "c": "3"}}"#)?;
    /// let mut edit = old.edit();
    /// let root = old.root().id();
    /// edit.put_attribute(root, "b", "5")?;
    /// edit.delete_attribute(root, "c")?;
    /// let new = edit.freeze();
    /// let change = old.diff(&new).next().unwrap();
    /// let b = ("b", Some(&b"2"[..]), Some(&b"5"[..]));
    /// assert_eq!(change.attributes().collect::<Vec<_>>(), [b, ("c", Some(b"3"), None)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn attributes(self) -> impl Iterator<Item = (&'a str, Option<&'a [u8]>, Option<&'a [u8]>)> {
        let (old, new) = match self {
            Self::Added(new) => (None, Some(new)),
            Self::Deleted(old) => (Some(old), None),
            Self::Changed { old, new } => (Some(old), Some(new)),
        };
        let mut all = std::collections::BTreeMap::<&str, (Option<&[u8]>, Option<&[u8]>)>::new();
        for (name, value) in old.iter().flat_map(|old| old.attributes().iter()) {
            all.entry(name).or_default().0 = Some(value);
        }
        for (name, value) in new.iter().flat_map(|new| new.attributes().iter()) {
            all.entry(name).or_default().1 = Some(value);
        }
        let changed = all.into_iter().filter(|(_, (old, new))| old != new);
        changed.map(|(name, (old, new))| (name, old, new))
    }
}

impl Tree {
    /// The differences between this version and `newer`, in the order of ids.
    ///
    /// ```
    /// use weald::tree::{Attributes, Change, Tree};
    ///
    /// let old = Tree::new();
    /// let mut edit = old.edit();
    /// let node = edit.append(old.root().id(), Attributes::new())?;
    /// let new = edit.freeze();
    /// let changes: Vec<_> = old.diff(&new).collect();
    /// assert_eq!(changes, [Change::Added(new.node(node).unwrap())]);
    /// # Ok::<(), weald::tree::EditError>(())
    /// ```
    pub fn diff<'a>(&'a self, newer: &'a Self) -> Diff<'a> {
        Diff::new(self, newer)
    }
}

/// The differences between two versions, found lazily.
#[derive(Clone)]
pub struct Diff<'a> {
    trees: [&'a Tree; 2],
    /// Pairs of parts still to compare; the next one last.
    pairs: Vec<Pair<'a>>,
    /// The leaves that are being compared, the id of the next slot, and the id after the last slot.
    leaves: [Option<&'a Leaf>; 2],
    next: u64,
    end: u64,
}

/// Two parts of the maps, for the same ids.
#[derive(Clone)]
struct Pair<'a> {
    sides: [Side<'a>; 2],
    height: u32,
    /// The number of the first leaf below.
    number: u64,
}

/// A part of a map and its height; a lower map is treated as the first part of a higher one.
#[derive(Clone, Copy)]
struct Side<'a>(&'a Branch, u32);

impl<'a> Diff<'a> {
    fn new(old: &'a Tree, new: &'a Tree) -> Self {
        let sides = [old, new].map(|tree| {
            let (top, height) = tree.records.top();
            Side(top, height)
        });
        let last = [old, new].map(|tree| {
            let [tail, _] = tree.records.loose_leaves();
            tail.number
        });
        let mut height = sides[0].1.max(sides[1].1);
        while !fits(last[0].max(last[1]), height) {
            height += 1;
        }
        Self {
            trees: [old, new],
            pairs: vec![Pair {
                sides,
                height,
                number: 0,
            }],
            leaves: [None; 2],
            next: 0,
            end: 0,
        }
    }

    /// Visits one pair of parts: skips it if shared, queues the pairs below, or starts on two leaves.
    fn descend(&mut self, pair: &Pair<'a>) {
        if pair.sides[0].is(pair.sides[1]) && !self.has_loose(pair) {
            return;
        }
        if pair.height == 0 {
            self.leaves = [0, 1].map(|side| self.leaf(pair, side));
            if let [Some(old), Some(new)] = self.leaves
                && old.is(new)
            {
                return;
            }
            self.next = NodeId::in_leaf(pair.number, 0).get();
            self.end = self.next + LEAF;
            return;
        }
        let height = pair.height - 1;
        for digit in (0..WIDTH).rev() {
            let sides = pair.sides.map(|side| side.below(pair.height, digit));
            self.pairs.push(Pair {
                sides,
                height,
                number: pair.number + ((digit as u64) << (BITS * height)),
            });
        }
    }

    /// Whether the place of a leaf beside either tree is in these parts.
    fn has_loose(&self, pair: &Pair<'a>) -> bool {
        let leaves = self
            .trees
            .iter()
            .flat_map(|tree| tree.records.loose_leaves());
        let mut there = leaves.filter(|loose| !loose.leaf.is_empty());
        there.any(|loose| fits(loose.number ^ pair.number, pair.height))
    }

    fn leaf(&self, pair: &Pair<'a>, side: usize) -> Option<&'a Leaf> {
        let leaves = self.trees[side].records.loose_leaves();
        let mut there = leaves.iter().filter_map(|loose| loose.leaf(pair.number));
        there.next().or(pair.sides[side].leaf())
    }

    /// Compares the next slot of both leaves.
    fn compare(&mut self) -> Option<Change<'a>> {
        let id = NodeId::at(self.next);
        self.next += 1;
        let slot = id.slot();
        let node = |side: usize| {
            let leaf = self.leaves[side]?;
            leaf.has(slot).then(|| Node {
                tree: self.trees[side],
                id,
                leaf,
            })
        };
        match (node(0), node(1)) {
            (None, None) => None,
            (None, Some(new)) => Some(Change::Added(new)),
            (Some(old), None) => Some(Change::Deleted(old)),
            (Some(old), Some(new)) => {
                let change = Change::Changed { old, new };
                let differs = change.is_moved() || change.has_other_attributes();
                differs.then_some(change)
            }
        }
    }
}

impl<'a> Iterator for Diff<'a> {
    type Item = Change<'a>;

    fn next(&mut self) -> Option<Change<'a>> {
        loop {
            while self.next < self.end {
                if let Some(change) = self.compare() {
                    return Some(change);
                }
            }
            let pair = self.pairs.pop()?;
            self.descend(&pair);
        }
    }
}

static NOTHING: Branch = Branch::EMPTY;

impl<'a> Side<'a> {
    /// Whether both are the same part in memory, or both are empty.
    fn is(self, other: Self) -> bool {
        self.1 == other.1 && self.0.is(other.0)
    }

    fn leaf(self) -> Option<&'a Leaf> {
        match self.0.content() {
            Content::Leaf(leaf) => Some(leaf),
            _ => None,
        }
    }

    /// The part at `digit` of this part, seen as a part of height `height`.
    fn below(self, height: u32, digit: usize) -> Self {
        match self.0.content() {
            _ if self.1 < height && digit == 0 => self,
            Content::Inner(below) if self.1 == height => Self(&below.0[digit], height - 1),
            _ => Self(&NOTHING, height - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Attributes, Builder};

    #[test]
    fn one_change_among_many_nodes_takes_few_steps() {
        let mut builder = Builder::new(Attributes::new());
        let nodes: Vec<_> = (0..100_000)
            .map(|_| builder.leaf(Attributes::new()))
            .collect();
        let old = builder.finish().into_tree();
        let mut edit = old.edit();
        edit.put_attribute(nodes[50_000], "k", "v")
            .expect("it is there");
        let new = edit.freeze();

        let mut diff = old.diff(&new);
        let (mut steps, mut changes) = (0, 0);
        while let Some(pair) = diff.pairs.pop() {
            diff.descend(&pair);
            steps += 1;
            while diff.next < diff.end {
                changes += usize::from(diff.compare().is_some());
                steps += 1;
            }
        }
        assert_eq!(changes, 1);
        // Eight parts for each of the five levels, sixteen slots, and the top; as many parts again on the
        // path to the tail.
        assert!(steps <= 2 * 8 * 5 + 16 + 1, "{steps}");
    }
}
