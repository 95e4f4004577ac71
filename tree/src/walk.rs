//! Walks over a subtree. Each is an iterator with a stack or a queue of its own, so the deepest tree
//! needs no deep call stack.

use std::collections::VecDeque;

use crate::children::Children;
use crate::id::NodeId;
use crate::node::Node;
use crate::siblings::{Finger, SiblingIds};

/// A node and all below it, parents before children.
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
        if has_children(node) {
            self.levels.push(below(node));
        }
        Some(node)
    }

    /// What `count`, `for_each`, `sum` and their like use: a family at a time.
    #[inline]
    fn fold<B, F: FnMut(B, Node<'t>) -> B>(mut self, init: B, mut visit: F) -> B {
        let mut all = init;
        while let Some(node) = self.next() {
            all = visit(all, node);
            let Some(level) = self.levels.last_mut() else {
                continue;
            };
            let parent;
            (all, parent) = match level {
                SiblingIds::Run(ids) => {
                    let mut ids = ids.by_ref().map(NodeId::at);
                    visit_childless(&mut ids, &mut self.finger, (all, &mut visit))
                }
                SiblingIds::List(ids) => visit_childless(ids, &mut self.finger, (all, &mut visit)),
            };
            self.levels.extend(parent.map(below));
        }
        all
    }
}

/// Visits siblings up to the first that has children, and returns that one too.
#[inline]
fn visit_childless<'t, B, F: FnMut(B, Node<'t>) -> B>(
    ids: &mut impl Iterator<Item = NodeId>,
    finger: &mut Finger<'t>,
    (mut all, visit): (B, &mut F),
) -> (B, Option<Node<'t>>) {
    for id in ids {
        let node = finger.node(id);
        all = visit(all, node);
        if has_children(node) {
            return (all, Some(node));
        }
    }
    (all, None)
}

/// A node and all below it, children before parents.
#[derive(Clone)]
pub struct Postorder<'t> {
    /// The nodes above the next one, each with its children that are left.
    open: Vec<(Node<'t>, SiblingIds<'t>)>,
    finger: Finger<'t>,
}

impl<'t> Postorder<'t> {
    pub(crate) fn new(last: Node<'t>) -> Self {
        Self {
            open: vec![(last, below(last))],
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
                Some(child) if has_children(child) => self.open.push((child, below(child))),
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

/// A node and all below it, level by level. It holds one entry for each parent of the next level.
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
        if has_children(node) {
            self.families.push_back(below(node));
        }
        Some(node)
    }
}

#[inline]
fn has_children(node: Node) -> bool {
    !matches!(node.record.children, Children::None)
}

#[inline]
fn below(node: Node<'_>) -> SiblingIds<'_> {
    SiblingIds::new(&node.record.children, 0..usize::MAX)
}
