//! The operations that lead from one version to another: ids, order keys and attributes become those of the other.
//!
//! - New nodes come first, parents before children; then moves, from the top down; then deletions; then attributes.
//! - A node moves when all nodes above its new place have theirs, so no move makes a circle on the way.
//! - A deleted subtree has nothing left in it that stays, because that has moved out.

use std::collections::HashSet;

use crate::bytes::Bytes;
use crate::diff::Change;
use crate::id::NodeId;
use crate::key::OrderKey;
use crate::node::Node;
use crate::operation::{Operation, Target, Where};
use crate::tree::Tree;

impl Tree {
    /// The operations that make `target` from this version, for [`Edit::apply`](crate::Edit::apply) and
    /// [`Edit::replay`](crate::Edit::replay). Both are versions of one tree. It costs the time of a
    /// [`diff`](Self::diff), and of the ways from the moved nodes to the root.
    ///
    /// ```
    /// use weald::tree::{Attributes, Tree};
    ///
    /// let old = Tree::new();
    /// let mut edit = old.edit();
    /// let root = edit.tree().root().id();
    /// edit.append(root, Attributes::new().with("n", "1"))?;
    /// let new = edit.freeze();
    ///
    /// let mut back = new.edit();
    /// for operation in new.operations_to(&old) {
    ///     back.apply(&operation)?;
    /// }
    /// assert!(back.freeze().records().eq(old.records()));
    /// # Ok::<(), weald::tree::EditError>(())
    /// ```
    pub fn operations_to(&self, target: &Self) -> Vec<Operation> {
        let mut operations = Vec::new();
        if self.root == target.root {
            self.patch(target, &mut operations);
        } else {
            let with_its_root = self.with_root_of(target, &mut operations);
            with_its_root.patch(target, &mut operations);
        }
        operations
    }

    /// This version with the root of another one.
    fn with_root_of(&self, target: &Self, operations: &mut Vec<Operation>) -> Self {
        let (old, new) = (self.root(), target.root());
        match self.node(new.id) {
            None => operations.push(Operation::PushRoot {
                node: new.id,
                attributes: new.attributes().clone(),
            }),
            Some(risen) => {
                if risen.parent().is_some_and(|parent| parent != old) {
                    operations.push(move_under(old.id, risen));
                }
                let others = old.children().filter(|child| child.id != new.id);
                operations.extend(others.map(|child| move_under(new.id, child)));
                operations.push(Operation::PopRoot { node: old.id });
            }
        }
        let mut edit = self.edit().blind();
        for operation in operations.iter() {
            let done = edit.replay(operation);
            done.expect("the version has what these operations name");
        }
        edit.freeze()
    }

    fn patch(&self, target: &Self, operations: &mut Vec<Operation>) {
        let (mut added, mut moved, mut deleted) = (Vec::new(), Vec::new(), Vec::new());
        let mut attributes = Vec::new();
        for change in self.diff(target) {
            match change {
                Change::Added(node) => added.push(node),
                Change::Deleted(node) => deleted.push(node),
                Change::Changed { old, new } => {
                    if change.is_moved() && new.id != target.root {
                        moved.push(new);
                    }
                    put_differences(old, new, &mut attributes);
                }
            }
        }
        let add = |node: Node<'_>| Operation::Add {
            node: node.id,
            target: place_of(node),
            attributes: node.attributes().clone(),
        };
        operations.extend(from_the_top(added).into_iter().map(add));
        operations.extend(from_the_top(moved).into_iter().map(|node| Operation::Move {
            node: node.id,
            target: place_of(node),
        }));
        let gone: HashSet<NodeId> = deleted.iter().map(|node| node.id).collect();
        let is_topmost = |node: &Node<'_>| !gone.contains(&node.links().parent());
        let topmost = deleted.iter().filter(|node| is_topmost(node));
        operations.extend(topmost.map(|node| Operation::Delete { node: node.id }));
        operations.extend(attributes);
    }
}

/// The operations that give a node the attributes that it has in another version.
fn put_differences(old: Node<'_>, new: Node<'_>, operations: &mut Vec<Operation>) {
    let node = new.id;
    for (name, _) in old.attributes().iter() {
        if new.get(name).is_none() {
            let name = Bytes::from(name);
            operations.push(Operation::DeleteAttribute { node, name });
        }
    }
    for (name, value) in new.attributes().iter() {
        if old.get(name) != Some(value)
            && let Some(value) = new.get_bytes(name)
        {
            let name = Bytes::from(name);
            operations.push(Operation::PutAttribute { node, name, value });
        }
    }
}

/// Nodes of one version, each after those of them that are above it.
fn from_the_top(nodes: Vec<Node<'_>>) -> Vec<Node<'_>> {
    let sought: HashSet<NodeId> = nodes.iter().map(|node| node.id).collect();
    let (mut passed, mut sorted) = (HashSet::new(), Vec::with_capacity(nodes.len()));
    for node in nodes {
        let mut way = Vec::new();
        let mut next = Some(node);
        while let Some(node) = next
            && passed.insert(node.id)
        {
            way.extend(sought.contains(&node.id).then_some(node));
            next = node.parent();
        }
        sorted.extend(way.into_iter().rev());
    }
    sorted
}

fn key_of(node: Node<'_>) -> OrderKey {
    let words = node.links().rank(node.id).words;
    OrderKey::from_words(words).expect("a key has an odd number of words")
}

/// Where a node is.
fn place_of(node: Node<'_>) -> Target {
    let parent = node.links().parent();
    Target {
        at: Where::AtKey(parent),
        parent,
        key: key_of(node),
    }
}

fn move_under(parent: NodeId, node: Node<'_>) -> Operation {
    Operation::Move {
        node: node.id,
        target: Target {
            at: Where::AtKey(parent),
            parent,
            key: key_of(node),
        },
    }
}
