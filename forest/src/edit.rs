//! An edit of a tree of the forest: a private version, which remembers from which one it began.
//!
//! It reads what it wrote. Nobody sees it before its commit, and dropping it leaves no trace.

use std::sync::Arc;

use weald_tree::{Attributes, EditError, Node, NodeId, Operation, Subtree, Tree, Where};

use crate::commit::Commit;
use crate::erasable::{self, Blob, Value};
use crate::forest::Shared;
use crate::line::Line;
use crate::request::Part;
use crate::root::Snapshot;

/// A working version of one tree. One thread changes it; it may be sent to another.
///
/// What an edit reads through [`attribute`](Self::attribute), [`children`](Self::children) and
/// [`subtree`](Self::subtree) is recorded, and must still be so in the version to which its commit is
/// brought; what is seen through [`tree`](Self::tree) is not recorded. See `docs/commits.md`.
pub struct Edit {
    pub(crate) shared: Arc<Shared>,
    line: Arc<Line>,
    base: Snapshot,
    edit: weald_tree::Edit,
    blobs: Vec<Blob>,
}

impl Edit {
    pub(crate) fn new(shared: Arc<Shared>, line: Arc<Line>, base: Snapshot) -> Self {
        let edit = base.tree.edit();
        Self {
            shared,
            line,
            base,
            edit,
            blobs: Vec::new(),
        }
    }

    /// The version from which it began.
    pub fn base(&self) -> &Snapshot {
        &self.base
    }

    /// The working version, to look at without being recorded.
    pub fn tree(&self) -> &Tree {
        self.edit.tree()
    }

    /// The id of the topmost node.
    pub fn root(&self) -> NodeId {
        self.edit.tree().root().id()
    }

    /// The same edit, which relies on nothing: it records nothing of what it reads, and what it puts or
    /// deletes goes over whatever is there when it is committed.
    #[must_use]
    pub fn blind(mut self) -> Self {
        self.edit = self.edit.blind();
        self
    }

    /// Adds a node behind the children of `parent`.
    ///
    /// # Errors
    /// `Missing`, if the parent is not there.
    #[inline]
    pub fn append(&mut self, parent: NodeId, attributes: Attributes) -> Result<NodeId, EditError> {
        self.edit.append(parent, attributes)
    }

    /// Adds a node.
    ///
    /// # Errors
    /// See [`weald_tree::Edit::add`].
    #[inline]
    pub fn add(&mut self, at: Where, attributes: Attributes) -> Result<NodeId, EditError> {
        self.edit.add(at, attributes)
    }

    /// Adds a subtree that was built apart with [`Tree::builder`].
    ///
    /// # Errors
    /// See [`weald_tree::Edit::splice`].
    pub fn splice(&mut self, at: Where, subtree: &Subtree) -> Result<(), EditError> {
        self.edit.splice(at, subtree)
    }

    /// Moves a node with all below it; its id and theirs stay.
    ///
    /// # Errors
    /// See [`weald_tree::Edit::move_to`].
    pub fn move_to(&mut self, node: NodeId, at: Where) -> Result<(), EditError> {
        self.edit.move_to(node, at)
    }

    /// Deletes a node with all below it.
    ///
    /// # Errors
    /// See [`weald_tree::Edit::delete`].
    pub fn delete(&mut self, node: NodeId) -> Result<(), EditError> {
        self.edit.delete(node)
    }

    /// Puts the bytes of an attribute, over those that may be there.
    ///
    /// # Errors
    /// See [`weald_tree::Edit::put_attribute`].
    #[inline]
    pub fn put_attribute(
        &mut self,
        node: NodeId,
        name: &str,
        value: impl AsRef<[u8]>,
    ) -> Result<(), EditError> {
        self.edit.put_attribute(node, name, value)
    }

    /// Puts the bytes of an attribute so that [`Trunk::erase`](crate::Trunk::erase) can take them out of
    /// every version. They are read with [`Forest::value`](crate::Forest::value), and are in no index.
    ///
    /// # Errors
    /// `Missing`, if the node is not there.
    pub fn put_erasable(
        &mut self,
        node: NodeId,
        name: &str,
        value: impl AsRef<[u8]>,
    ) -> Result<(), EditError> {
        let id = self.shared.blobs.id(self.shared.ticket());
        self.edit
            .put_bytes(node, name, self.shared.blobs.reference(id))?;
        self.blobs.push(Blob {
            id,
            node,
            name: name.into(),
            bytes: value.as_ref().into(),
        });
        Ok(())
    }

    /// Reads one attribute, plain or erasable; recorded. What this edit put is found, too.
    ///
    /// # Errors
    /// `Missing`, if the node is not there.
    pub fn value(&self, node: NodeId, name: &str) -> Result<Option<Value<'_>>, EditError> {
        let value = self.attribute(node, name)?;
        let own = |blob: &&Blob| value.and_then(erasable::referred) == Some(blob.id);
        if let Some(blob) = self.blobs.iter().find(own) {
            return Ok(Some(Value::Erasable(Arc::clone(&blob.bytes))));
        }
        Ok(value.map(|value| self.shared.blobs.value(value)))
    }

    /// Deletes an attribute.
    ///
    /// # Errors
    /// See [`weald_tree::Edit::delete_attribute`].
    pub fn delete_attribute(&mut self, node: NodeId, name: &str) -> Result<(), EditError> {
        self.edit.delete_attribute(node, name)
    }

    /// Lets all nodes go and begins anew with one node, whose id this returns.
    pub fn replace_root(&mut self, attributes: Attributes) -> NodeId {
        self.edit.replace_root(attributes)
    }

    /// Puts a new root above the present one; returns the id of the new one.
    pub fn push_root(&mut self, attributes: Attributes) -> NodeId {
        self.edit.push_root(attributes)
    }

    /// Does here what was done in another edit of this tree.
    ///
    /// # Errors
    /// See [`weald_tree::Edit::apply`].
    pub fn apply(&mut self, operation: &Operation) -> Result<(), EditError> {
        self.edit.apply(operation)
    }

    /// Reads one attribute; recorded.
    ///
    /// # Errors
    /// `Missing`, if the node is not there.
    pub fn attribute(&self, node: NodeId, name: &str) -> Result<Option<&[u8]>, EditError> {
        self.edit.attribute(node, name)
    }

    /// Reads which children a node has, in order; recorded.
    ///
    /// # Errors
    /// `Missing`, if the node is not there.
    pub fn children(&self, node: NodeId) -> Result<impl Iterator<Item = NodeId>, EditError> {
        self.edit.children(node)
    }

    /// Reads a node and all below it; recorded.
    ///
    /// # Errors
    /// `Missing`, if the node is not there.
    pub fn subtree(&self, node: NodeId) -> Result<Node<'_>, EditError> {
        self.edit.subtree(node)
    }

    /// The commit of this edit, which happens when it is awaited or waited for.
    #[must_use = "a commit happens when it is awaited, or waited for with `wait()`"]
    pub fn commit(self) -> Commit {
        Commit::of_one(self)
    }

    pub(crate) fn tree_name(&self) -> String {
        self.line.name().to_string()
    }

    pub(crate) fn is_of_the_same_tree(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.line, &other.line)
    }

    pub(crate) fn into_part(self) -> (Arc<Shared>, Part) {
        let part = Part {
            line: self.line,
            base: self.base.0,
            edit: self.edit,
            blobs: self.blobs,
        };
        (self.shared, part)
    }
}
