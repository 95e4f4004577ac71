//! Builds a subtree in one go, in document order: open a node, add its children, close it.
//!
//! Sixteen records are written side by side and become a leaf of the map when they are complete, so a
//! node costs one write. Consecutive children that have no children of their own form a run.

use std::ops::Range;
use std::sync::Arc;

use weald_memory::Shared;

use crate::attributes::Attributes;
use crate::children::Children;
use crate::id::{Ids, Mark, NodeId};
use crate::key;
use crate::leaf::{Leaf, NewLeaf};
use crate::record::Near;
use crate::subtree::{Parts, Subtree};
use crate::tree::Tree;

/// A subtree that is being built. See [`Tree::builder`].
///
/// ```
/// use weald::tree::{Attributes, Builder};
///
/// let mut builder = Builder::new(Attributes::new().with("title", "a book"));
/// for number in ["one", "two"] {
///     builder.open(Attributes::new().with("chapter", number));
///     builder.leaf(Attributes::new().with("text", "…"));
///     builder.close();
/// }
/// let book = builder.finish().into_tree();
/// assert_eq!(book.len(), 5);
/// ```
pub struct Builder {
    ids: Ids,
    mark: Mark,
    /// Ids taken from the source and not used yet.
    spare: Range<u64>,
    /// The leaf that is being filled, and those that are full.
    leaf: NewLeaf,
    /// Its number.
    number: u64,
    full: Vec<(u64, Shared<Leaf>)>,
    open: Vec<Open>,
    /// Children of open nodes that do not form a run, those of the innermost node last.
    listed: Vec<NodeId>,
    /// The nodes in full leaves.
    len: u64,
}

/// A node whose children are being built.
struct Open {
    id: NodeId,
    /// How many leaves were full when its record was written.
    full: usize,
    count: u32,
    /// The id with which its children go on being a run, which its first child mostly has; 0, once they no longer form
    /// one.
    next: u64,
    /// Where its children begin in `listed`, if they do not.
    listed_from: usize,
}

impl Tree {
    /// Starts a subtree that can be spliced into this tree.
    pub fn builder(&self, root: Attributes) -> Builder {
        Builder::with_ids(&self.ids, root)
    }
}

impl Builder {
    /// Starts a new tree.
    pub fn new(root: Attributes) -> Self {
        Self::with_ids(&Ids::new(), root)
    }

    /// Starts a subtree that takes its ids from `ids`.
    pub fn with_ids(ids: &Ids, root: Attributes) -> Self {
        let spare = ids.take_leaf();
        let id = NodeId::at(spare.start);
        let mut builder = Self {
            ids: ids.clone(),
            mark: ids.mark(),
            leaf: NewLeaf::new(id.slot()),
            number: id.leaf(),
            spare,
            full: Vec::new(),
            open: vec![Open::new(id, 0)],
            listed: Vec::new(),
            len: 0,
        };
        builder.write(Near::alone(id, key::nth(0)), root);
        builder
    }

    /// Adds a child to the innermost open node, opens it, and returns its id.
    #[inline(always)]
    pub fn open(&mut self, attributes: Attributes) -> NodeId {
        let id = self.put(attributes);
        self.open.push(Open::new(id, self.full.len()));
        id.marked(self.mark)
    }

    /// Adds a child without children to the innermost open node, and returns its id.
    #[inline(always)]
    pub fn leaf(&mut self, attributes: Attributes) -> NodeId {
        self.put(attributes).marked(self.mark)
    }

    #[inline(always)]
    fn put(&mut self, attributes: Attributes) -> NodeId {
        if self.spare.is_empty() {
            self.next_leaf();
        }
        let id = NodeId::at(self.spare.start);
        let above = self.open.last_mut();
        let above = above.expect("the root is open until the end");
        let links = above.adopt(id, &mut self.listed);
        self.write(links, attributes);
        id
    }

    /// Closes the innermost open node.
    ///
    /// # Panics
    /// If only the root is open, which [`finish`](Self::finish) closes.
    #[inline]
    pub fn close(&mut self) {
        assert!(self.open.len() > 1, "more nodes were closed than opened");
        self.close_innermost();
    }

    /// Closes all open nodes and returns the subtree.
    pub fn finish(mut self) -> Subtree {
        let root = self.open[0].id;
        while !self.open.is_empty() {
            self.close_innermost();
        }
        self.ids.give_back(self.spare);
        let len = self.len + self.leaf.len();
        let mut last = self.leaf.finish();
        last.fit();
        self.full.push((self.number, Shared::new(last)));
        Subtree(Arc::new(Parts {
            root,
            len,
            ids: self.ids,
            leaves: self.full,
        }))
    }

    // Inlined into the caller, so that attributes are written in their final place: copying what was just
    // written byte by byte stalls the processor for longer than everything else here takes.
    #[inline(always)]
    fn write(&mut self, links: Near, attributes: Attributes) {
        self.leaf.push(links, attributes);
        self.spare.start += 1;
    }

    #[cold]
    fn next_leaf(&mut self) {
        self.spare = self.ids.take_leaf();
        let id = NodeId::at(self.spare.start);
        let full = std::mem::replace(&mut self.leaf, NewLeaf::new(id.slot()));
        self.len += full.len();
        self.full.push((self.number, Shared::new(full.finish())));
        self.number = id.leaf();
    }

    #[inline]
    fn close_innermost(&mut self) {
        let Some(node) = self.open.last() else { return };
        // Field by field, for the reason of `write`.
        let (id, full) = (node.id, self.full.get_mut(node.full));
        match (node.count, node.next) {
            (0, _) => {}
            (_, 0) => {
                let children = Children::from_list(&self.listed[node.listed_from..]);
                self.listed.truncate(node.listed_from);
                match full {
                    Some((_, full)) => full.own().set_children(id, children),
                    None => self.leaf.set_children(id, children),
                }
            }
            (count, next) => {
                let run = (NodeId::at(next - u64::from(count)), count);
                match full {
                    Some((_, full)) => full.own().adopt(id, 0, run),
                    None => self.leaf.adopt(id, run),
                }
            }
        }
        self.open.pop();
    }
}

impl Open {
    #[inline(always)]
    fn new(id: NodeId, full: usize) -> Self {
        Self {
            id,
            full,
            count: 0,
            next: id.get() + 1,
            listed_from: 0,
        }
    }

    /// Adds a child and returns its links.
    #[inline(always)]
    fn adopt(&mut self, child: NodeId, listed: &mut Vec<NodeId>) -> Near {
        match child.get() == self.next {
            true => self.next += 1,
            false => self.go_on_elsewhere(child, listed),
        }
        let index = u64::from(self.count);
        let count = self.count.checked_add(1);
        self.count = count.expect("a node has less than 2³² children");
        Near::alone(self.id, key::nth(index))
    }

    /// Notes a child that does not follow the one before it, or that is the first one.
    #[inline(never)]
    fn go_on_elsewhere(&mut self, child: NodeId, listed: &mut Vec<NodeId>) {
        if self.count == 0 {
            self.next = child.get() + 1;
            return;
        }
        if self.next > 0 {
            self.listed_from = listed.len();
            let before = self.next - u64::from(self.count)..self.next;
            listed.extend(before.map(NodeId::at));
            self.next = 0;
        }
        listed.push(child);
    }
}
