//! An edit: a private version that is changed in place, and the list of what was done to it.
//!
//! - What the edit has copied once it owns, and changes in place from then on; freezing it costs nothing.
//! - The list of operations and reads is data: it can be checked against another version and applied
//!   there (see [`Script`]) without the code that made it.
//! - A refused operation changes nothing and is not on the list.

use std::cell::RefCell;

use crate::attributes::Attributes;
use crate::bytes::Bytes;
use crate::error::EditError;
use crate::id::NodeId;
use crate::node::Node;
use crate::operation::{Operation, Where};
use crate::script::{Read, Script};
use crate::subtree::Subtree;
use crate::tree::Tree;

/// A working version. One thread changes it; it may be sent to another.
///
/// ```
/// use weald_tree::{Attributes, Tree, Where};
///
/// let mut edit = Tree::new().edit();
/// let root = edit.tree().root().id();
/// let last = edit.append(root, Attributes::new().with("n", "2"))?;
/// edit.add(Where::Before(last), Attributes::new().with("n", "1"))?;
/// let (tree, script) = edit.finish();
///
/// let numbers: Vec<_> = tree.root().children().filter_map(|node| node.get_str("n")).collect();
/// assert_eq!(numbers, ["1", "2"]);
/// assert_eq!(script.operations().len(), 2);
/// # Ok::<(), weald_tree::EditError>(())
/// ```
pub struct Edit {
    tree: Tree,
    operations: Vec<Operation>,
    /// Nothing, if the edit is blind.
    reads: Option<RefCell<Vec<Read>>>,
}

impl Edit {
    pub(crate) fn of(tree: Tree) -> Self {
        Self {
            tree,
            operations: Vec::new(),
            reads: Some(RefCell::new(Vec::new())),
        }
    }

    /// The same edit, which relies on nothing: it records nothing of what it reads, and what it puts or
    /// deletes goes over whatever is there when it is brought to a newer version.
    #[must_use]
    pub fn blind(mut self) -> Self {
        self.reads = None;
        self
    }

    /// The working version, to look at without being recorded.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The version that this edit made.
    pub fn freeze(self) -> Tree {
        self.tree
    }

    /// The version that this edit made, and how it came about.
    pub fn finish(self) -> (Tree, Script) {
        let reads = self.reads.map(RefCell::into_inner);
        (self.tree, Script::new(self.operations, reads))
    }

    /// Adds a node behind the children of `parent`.
    ///
    /// # Errors
    /// `Missing`, if the parent is not there.
    #[inline]
    pub fn append(&mut self, parent: NodeId, attributes: Attributes) -> Result<NodeId, EditError> {
        self.add(Where::Last(parent), attributes)
    }

    /// Adds a node.
    ///
    /// # Errors
    /// `Missing`, if the node that `at` names is not there; `IsRoot`, if that node has no siblings.
    #[inline]
    pub fn add(&mut self, at: Where, attributes: Attributes) -> Result<NodeId, EditError> {
        let spot = self.tree.spot(at)?;
        let node = self.tree.ids.take();
        self.tree.add(node, &spot, attributes.clone());
        self.operations.push(Operation::Add {
            node,
            target: spot.target(at),
            attributes,
        });
        Ok(node)
    }

    /// Adds a subtree that was built apart. It costs a sixteenth of what its nodes cost one by one.
    ///
    /// # Errors
    /// As [`add`](Self::add); `ForeignSubtree`, if it was built with ids of another tree;
    /// `AlreadyThere`, if it was spliced in before.
    pub fn splice(&mut self, at: Where, subtree: &Subtree) -> Result<(), EditError> {
        let spot = self.tree.spot(at)?;
        self.tree.splice(subtree, &spot)?;
        self.operations.push(Operation::Splice {
            subtree: subtree.clone(),
            target: spot.target(at),
        });
        Ok(())
    }

    /// Moves a node with all below it; its id and theirs stay.
    ///
    /// # Errors
    /// As [`add`](Self::add); `IsRoot`, if the node is the root; `Cycle`, if it would come under itself.
    pub fn move_to(&mut self, node: NodeId, at: Where) -> Result<(), EditError> {
        let spot = self.tree.spot(at)?;
        self.tree.move_to(node, &spot)?;
        let target = spot.target(at);
        self.operations.push(Operation::Move { node, target });
        Ok(())
    }

    /// Deletes a node with all below it. It costs as much for each node as adding it did.
    ///
    /// # Errors
    /// `Missing`, if it is not there; `IsRoot`, if it is the root.
    pub fn delete(&mut self, node: NodeId) -> Result<(), EditError> {
        self.tree.delete(node)?;
        self.operations.push(Operation::Delete { node });
        Ok(())
    }

    /// Puts the bytes of an attribute, over those that may be there.
    ///
    /// # Errors
    /// `Missing`, if the node is not there.
    #[inline]
    pub fn put_attribute(
        &mut self,
        node: NodeId,
        name: &str,
        value: impl AsRef<[u8]>,
    ) -> Result<(), EditError> {
        let value = value.as_ref();
        self.tree.put_attribute(node, name, value)?;
        self.operations.push(Operation::PutAttribute {
            node,
            name: name.into(),
            value: value.into(),
        });
        Ok(())
    }

    /// Deletes an attribute.
    ///
    /// # Errors
    /// `Missing`, if the node is not there; `NoAttribute`, if it has none of this name.
    pub fn delete_attribute(&mut self, node: NodeId, name: &str) -> Result<(), EditError> {
        self.tree.delete_attribute(node, name)?;
        let name = name.into();
        self.operations
            .push(Operation::DeleteAttribute { node, name });
        Ok(())
    }

    /// Lets all nodes go and begins anew with one node, whose id this returns.
    pub fn replace_root(&mut self, attributes: Attributes) -> NodeId {
        let node = self.tree.ids.take();
        self.tree.replace_root(node, attributes.clone());
        self.operations
            .push(Operation::ReplaceRoot { node, attributes });
        node
    }

    /// Puts a new root above the present one (Jungle's pushPop); returns the id of the new one.
    pub fn push_root(&mut self, attributes: Attributes) -> NodeId {
        let node = self.tree.ids.take();
        self.tree.push_root(node, attributes.clone());
        self.operations
            .push(Operation::PushRoot { node, attributes });
        node
    }

    /// Does here what was done in another edit of this tree. Keys that hold are kept.
    ///
    /// # Errors
    /// Those of the method of the same name; `SiblingMoved`, if the node to stand beside has another
    /// parent now; `AlreadyThere`, if this was applied before.
    pub fn apply(&mut self, operation: &Operation) -> Result<(), EditError> {
        self.tree.apply(operation)?;
        self.operations.push(operation.clone());
        Ok(())
    }

    /// Reads one attribute; recorded.
    ///
    /// # Errors
    /// `Missing`, if the node is not there.
    pub fn attribute(&self, node: NodeId, name: &str) -> Result<Option<&[u8]>, EditError> {
        let found = self.tree.must_have(node)?;
        self.record(|| Read::Attribute {
            node,
            name: Bytes::from(name),
        });
        Ok(found.get(name))
    }

    /// Reads which children a node has, in order; recorded.
    ///
    /// # Errors
    /// `Missing`, if the node is not there.
    pub fn children(&self, node: NodeId) -> Result<impl Iterator<Item = NodeId>, EditError> {
        let found = self.tree.must_have(node)?;
        self.record(|| Read::Children(node));
        Ok(found.children().map(Node::id))
    }

    /// Reads a node and all below it, as `find` does; recorded.
    ///
    /// # Errors
    /// `Missing`, if the node is not there.
    pub fn subtree(&self, node: NodeId) -> Result<Node<'_>, EditError> {
        let found = self.tree.must_have(node)?;
        self.record(|| Read::Subtree(node));
        Ok(found)
    }

    fn record(&self, read: impl FnOnce() -> Read) {
        if let Some(reads) = &self.reads {
            reads.borrow_mut().push(read());
        }
    }
}
