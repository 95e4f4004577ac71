//! Walks over a subtree. Each is an iterator with a stack or queue on the heap, so a deep tree needs no deep
//! call stack.

use std::collections::VecDeque;
use std::ops::Range;

use crate::id::NodeId;
use crate::node::Node;
use crate::siblings::{Finger, SiblingIds};

impl<'t> Node<'t> {
    /// This node and everything below it, parents before children.
    pub fn preorder(self) -> Preorder<'t> {
        Preorder::new(self)
    }

    /// This node and everything below it, children before parents.
    pub fn postorder(self) -> Postorder<'t> {
        Postorder::new(self)
    }

    /// This node and everything below it, level by level.
    pub fn breadth_first(self) -> BreadthFirst<'t> {
        BreadthFirst::new(self)
    }

    /// This node and the nodes below it for which `is_sought` holds, found lazily.
    ///
    /// ```
    /// use weald::tree::{Attributes, Tree};
    ///
    /// let mut edit = Tree::new().edit();
    /// let root = edit.tree().root().id();
    /// for role in ["author", "reader", "author"] {
    ///     edit.append(root, Attributes::new().with("role", role))?;
    /// }
    /// let tree = edit.freeze();
    /// let authors = tree.root().find(|node| node.get_str("role") == Some("author"));
    /// assert_eq!(authors.count(), 2);
    /// # Ok::<(), weald::tree::EditError>(())
    /// ```
    pub fn find<F>(self, is_sought: F) -> impl Iterator<Item = Node<'t>>
    where
        F: FnMut(&Node<'t>) -> bool,
    {
        self.preorder().filter(is_sought)
    }
}

/// A node and everything below it, parents before children.
#[derive(Clone)]
pub struct Preorder<'t> {
    first: Option<Node<'t>>,
    finger: Finger<'t>,
    /// What is left to visit, the lowest level last.
    levels: Vec<SiblingIds<'t>>,
}

impl<'t> Preorder<'t> {
    pub(crate) fn new(first: Node<'t>) -> Self {
        Self {
            first: Some(first),
            finger: Finger::new(first.tree),
            levels: Vec::new(),
        }
    }
}

impl<'t> Iterator for Preorder<'t> {
    type Item = Node<'t>;

    #[inline]
    fn next(&mut self) -> Option<Node<'t>> {
        let node = loop {
            match self.levels.last_mut() {
                None => break self.first.take()?,
                Some(level) => match level.next() {
                    Some(id) => break self.finger.node(id),
                    None => _ = self.levels.pop(),
                },
            }
        };
        if node.is_parent() {
            self.levels.push(SiblingIds::all(node));
        }
        Some(node)
    }

    /// Used by `count`, `for_each`, `sum` and the like: visits one family at a time.
    #[inline]
    fn fold<B, F: FnMut(B, Node<'t>) -> B>(mut self, init: B, mut visit: F) -> B {
        let mut all = init;
        let mut level = match (self.levels.pop(), self.first.take()) {
            (Some(level), _) => level,
            (None, None) => return all,
            (None, Some(first)) => {
                all = visit(all, first);
                SiblingIds::all(first)
            }
        };
        loop {
            let parent;
            (all, parent) = match &mut level {
                SiblingIds::Run(ids) => visit_run(ids, &mut self.finger, (all, &mut visit)),
                SiblingIds::Few(ids) => {
                    visit_listed(ids.by_ref().copied(), &mut self.finger, (all, &mut visit))
                }
                SiblingIds::List(ids) => visit_listed(ids, &mut self.finger, (all, &mut visit)),
            };
            if let Some(parent) = parent {
                self.levels
                    .push(std::mem::replace(&mut level, SiblingIds::all(parent)));
            } else if let Some(above) = self.levels.pop() {
                level = above;
            } else {
                return all;
            }
        }
    }
}

/// Visits siblings, and the leaves right after each of them, up to the first sibling with other children,
/// and returns that sibling.
#[inline(always)]
fn visit_listed<'t, B, F: FnMut(B, Node<'t>) -> B>(
    ids: impl Iterator<Item = NodeId>,
    finger: &mut Finger<'t>,
    (mut all, visit): (B, &mut F),
) -> (B, Option<Node<'t>>) {
    for id in ids {
        let node = finger.node(id);
        all = visit(all, node);
        match finger.leaf_children(node) {
            Some(leaves) => all = leaves.fold(all, &mut *visit),
            None => return (all, Some(node)),
        }
    }
    (all, None)
}

/// Like [`visit_listed`], for siblings with consecutive ids, up to the first that has children.
#[inline(always)]
fn visit_run<'t, B, F: FnMut(B, Node<'t>) -> B>(
    ids: &mut Range<u64>,
    finger: &mut Finger<'t>,
    (mut all, visit): (B, &mut F),
) -> (B, Option<Node<'t>>) {
    while !ids.is_empty() {
        let (leaves, first, is_parent) = finger.nodes(ids);
        for at in 0..leaves {
            all = visit(all, first.beside(at));
        }
        ids.start += leaves;
        if is_parent {
            let parent = first.beside(leaves);
            ids.start += 1;
            return (visit(all, parent), Some(parent));
        }
    }
    (all, None)
}

/// A node and everything below it, children before parents.
#[derive(Clone)]
pub struct Postorder<'t> {
    /// The nodes above the next one, each with the rest of its children.
    open: Vec<(Node<'t>, SiblingIds<'t>)>,
    finger: Finger<'t>,
}

impl<'t> Postorder<'t> {
    pub(crate) fn new(last: Node<'t>) -> Self {
        Self {
            open: vec![(last, SiblingIds::all(last))],
            finger: Finger::new(last.tree),
        }
    }
}

impl<'t> Iterator for Postorder<'t> {
    type Item = Node<'t>;

    fn next(&mut self) -> Option<Node<'t>> {
        loop {
            let (node, left) = self.open.last_mut()?;
            match left.next().map(|id| self.finger.node(id)) {
                Some(child) if child.is_parent() => self.open.push((child, SiblingIds::all(child))),
                Some(child) => return Some(child),
                None => {
                    let node = *node;
                    self.open.pop();
                    return Some(node);
                }
            }
        }
    }
}

/// A node and everything below it, level by level. It holds one entry for each parent of the next level.
#[derive(Clone)]
pub struct BreadthFirst<'t> {
    first: Option<Node<'t>>,
    finger: Finger<'t>,
    families: VecDeque<SiblingIds<'t>>,
}

impl<'t> BreadthFirst<'t> {
    pub(crate) fn new(first: Node<'t>) -> Self {
        Self {
            first: Some(first),
            finger: Finger::new(first.tree),
            families: VecDeque::new(),
        }
    }
}

impl<'t> Iterator for BreadthFirst<'t> {
    type Item = Node<'t>;

    fn next(&mut self) -> Option<Node<'t>> {
        let node = loop {
            match self.families.front_mut() {
                None => break self.first.take()?,
                Some(family) => match family.next() {
                    Some(id) => break self.finger.node(id),
                    None => _ = self.families.pop_front(),
                },
            }
        };
        if node.is_parent() {
            self.families.push_back(SiblingIds::all(node));
        }
        Some(node)
    }
}
