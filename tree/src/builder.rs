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
use crate::record::{Place, Record};
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
    len: u64,
}

/// A node whose children are being built.
struct Open {
    id: NodeId,
    /// How many leaves were full when its record was written.
    full: usize,
    count: u32,
    first: u64,
    /// Where its children begin in `listed`, once they no longer form a run.
    listed_from: Option<usize>,
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
            leaf: NewLeaf::new(),
            number: id.leaf(),
            spare,
            full: Vec::new(),
            open: Vec::new(),
            listed: Vec::new(),
            len: 0,
        };
        builder.write(id, Place::of_root(id), root);
        builder.open.push(Open::new(id, 0));
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
        let above = self
            .open
            .last_mut()
            .expect("the root is open until the end");
        let place = above.adopt(id, &mut self.listed);
        self.write(id, place, attributes);
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
        let mut last = self.leaf.finish();
        last.fit();
        self.full.push((self.number, Shared::new(last)));
        Subtree(Arc::new(Parts {
            root,
            len: self.len,
            ids: self.ids,
            leaves: self.full,
        }))
    }

    // Inlined into the caller, so that attributes are written in their final place: copying what was just
    // written byte by byte stalls the processor for longer than everything else here takes.
    #[inline(always)]
    fn write(&mut self, id: NodeId, place: Place, attributes: Attributes) {
        self.leaf.put(id.slot(), Record::new(place, attributes));
        self.spare.start += 1;
        self.len += 1;
    }

    #[cold]
    fn next_leaf(&mut self) {
        self.spare = self.ids.take_leaf();
        let full = std::mem::replace(&mut self.leaf, NewLeaf::new()).finish();
        self.full.push((self.number, Shared::new(full)));
        self.number = NodeId::at(self.spare.start).leaf();
    }

    #[inline]
    fn close_innermost(&mut self) {
        let Some(node) = self.open.pop() else { return };
        let children = match node.listed_from {
            _ if node.count == 0 => return,
            None => Children::Run {
                count: node.count,
                first: NodeId::at(node.first),
            },
            Some(from) => {
                let children = Children::from_list(&self.listed[from..]);
                self.listed.truncate(from);
                children
            }
        };
        match self.full.get_mut(node.full) {
            Some((_, full)) => full.own().set_children(node.id, children),
            None => self.leaf.set_children(node.id, children),
        }
    }
}

impl Open {
    fn new(id: NodeId, full: usize) -> Self {
        Self {
            id,
            full,
            count: 0,
            first: 0,
            listed_from: None,
        }
    }

    /// Adds a child and returns its place.
    #[inline(always)]
    fn adopt(&mut self, child: NodeId, listed: &mut Vec<NodeId>) -> Place {
        let index = u64::from(self.count);
        if self.count == 0 {
            self.first = child.get();
        }
        let is_run = self.listed_from.is_none() && self.first + index == child.get();
        if !is_run {
            if self.listed_from.is_none() {
                self.listed_from = Some(listed.len());
                listed.extend((self.first..self.first + index).map(NodeId::at));
            }
            listed.push(child);
        }
        self.count = self
            .count
            .checked_add(1)
            .expect("a node has less than 2³² children");
        Place::Word {
            parent: self.id,
            word: key::nth(index),
        }
    }
}
