//! An edit of a tree of the forest: a private version, which remembers the version it began from.
//!
//! It reads its own writes. Nothing else sees it before its commit, and dropping it leaves no trace.

use std::sync::Arc;

use weald_tree::{Attributes, EditError, Node, NodeId, Operation, OrderKey, Subtree, Tree, Where};

use crate::combine::request::{TreeEdit, Work};
use crate::combine::shared::Shared;
use crate::content::erasable::{Blob, Value};
use crate::content::shelves::CommitMark;
use crate::error::MAX_ERASABLE_NAME;
use crate::state::root::Snapshot;
use crate::state::tree::TreeRef;

/// A working version of one tree. One thread at a time changes it; it may be sent to another.
///
/// Reads through [`attribute`](Self::attribute), [`children`](Self::children) and
/// [`subtree`](Self::subtree) are recorded, and what they read must be unchanged in the version to which
/// the commit is rebased. Reads through [`tree`](Self::tree) are not recorded. See [`commits`](crate::commits).
pub struct Edit {
    pub(crate) shared: Arc<Shared>,
    /// What its commit requests, in one place from the beginning, so that it is not moved on the way.
    parts: Box<TreeEdit>,
    /// What its commit sets, so that its erasable bytes belong to the forest.
    mark: Option<CommitMark>,
}

impl Edit {
    pub(crate) fn new(shared: Arc<Shared>, state: TreeRef, base: Snapshot) -> Self {
        let work = Work::Edit(base.tree.edit());
        let parts = Box::new(TreeEdit {
            state,
            base,
            work,
            blobs: Vec::new(),
            finished: None,
        });
        Self {
            shared,
            parts,
            mark: None,
        }
    }

    fn edit(&self) -> &weald_tree::Edit {
        match &self.parts.work {
            Work::Edit(edit) => edit,
            Work::Script(_) => unreachable!("only what is committed is finished"),
        }
    }

    fn edit_mut(&mut self) -> &mut weald_tree::Edit {
        match &mut self.parts.work {
            Work::Edit(edit) => edit,
            Work::Script(_) => unreachable!("only what is committed is finished"),
        }
    }

    /// The version the edit began from.
    pub fn base(&self) -> &Snapshot {
        &self.parts.base
    }

    /// The working version; reads through it are not recorded.
    pub fn tree(&self) -> &Tree {
        self.edit().tree()
    }

    /// The id of the topmost node.
    pub fn root(&self) -> NodeId {
        self.edit().tree().root().id()
    }

    /// The same edit, relying on nothing: its reads are not recorded, and what it puts or deletes replaces
    /// whatever is there when it is committed.
    #[must_use]
    pub fn blind(mut self) -> Self {
        self.edit_mut().set_blind();
        self
    }

    /// Adds a node after the last child of `parent`.
    ///
    /// # Errors
    /// `Missing`, if the tree does not have the parent.
    #[inline]
    pub fn append(&mut self, parent: NodeId, attributes: Attributes) -> Result<NodeId, EditError> {
        let attributes = self.held(attributes);
        self.edit_mut().append(parent, attributes)
    }

    /// Adds a node.
    ///
    /// # Errors
    /// See [`tree::Edit::add`](weald_tree::Edit::add).
    #[inline]
    pub fn add(&mut self, at: Where, attributes: Attributes) -> Result<NodeId, EditError> {
        let attributes = self.held(attributes);
        self.edit_mut().add(at, attributes)
    }

    /// Adds a subtree that was built separately with [`Tree::builder`].
    ///
    /// # Errors
    /// See [`tree::Edit::splice`](weald_tree::Edit::splice).
    pub fn splice(&mut self, at: Where, subtree: &Subtree) -> Result<(), EditError> {
        let held = self.shared.forest.blobs.subtree_held(subtree);
        self.edit_mut().splice(at, held.as_ref().unwrap_or(subtree))
    }

    /// Moves a node with all its descendants; all ids stay.
    ///
    /// # Errors
    /// See [`tree::Edit::move_to`](weald_tree::Edit::move_to).
    pub fn move_to(&mut self, node: NodeId, at: Where) -> Result<(), EditError> {
        self.edit_mut().move_to(node, at)
    }

    /// Deletes a node with all its descendants.
    ///
    /// # Errors
    /// See [`tree::Edit::delete`](weald_tree::Edit::delete).
    #[doc(alias = "remove")]
    pub fn delete(&mut self, node: NodeId) -> Result<(), EditError> {
        self.edit_mut().delete(node)
    }

    /// Puts the bytes of an attribute, replacing any that are there.
    ///
    /// # Errors
    /// See [`tree::Edit::put_attribute`](weald_tree::Edit::put_attribute).
    #[inline]
    pub fn put_attribute(
        &mut self,
        node: NodeId,
        name: &str,
        value: impl AsRef<[u8]>,
    ) -> Result<(), EditError> {
        let (blobs, value) = (&self.shared.forest.blobs, value.as_ref());
        if blobs.were_used()
            && let Some(reference) = blobs.held(value)
        {
            return self.edit_mut().put_bytes(node, name, reference);
        }
        self.edit_mut().put_attribute(node, name, value)
    }

    /// Puts the bytes of an attribute so that [`TreeHandle::erase`](crate::TreeHandle::erase) can remove them from
    /// every version. They are in no index. The tree has only a reference to them;
    /// [`Forest::value`](crate::Forest::value) reads them, and [`value`](Self::value) within the edit.
    ///
    /// ```
    /// use weald::block_on;
    /// use weald::forest::{Forest, Value};
    ///
    /// let forest = Forest::new();
    /// let people = block_on(forest.create("people"))?;
    /// let mut edit = people.edit();
    /// let root = edit.root();
    /// edit.put_erasable(root, "name", "Ada")?;
    /// assert_eq!(edit.value(root, "name")?, Some(Value::Erasable(b"Ada"[..].into())));
    /// block_on(edit.commit())?;
    ///
    /// let view = people.view();
    /// let value = forest.value(view.tree().root(), "name");
    /// assert_eq!(value, Some(Value::Erasable(b"Ada"[..].into())));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Missing`, if the tree does not have the node; `NameTooLong`, if the name has more than [`MAX_ERASABLE_NAME`]
    /// bytes.
    pub fn put_erasable(
        &mut self,
        node: NodeId,
        name: &str,
        value: impl AsRef<[u8]>,
    ) -> Result<(), EditError> {
        if name.len() > MAX_ERASABLE_NAME {
            let (len, max) = (name.len(), MAX_ERASABLE_NAME);
            return Err(EditError::NameTooLong { len, max });
        }
        let blobs = &self.shared.forest.blobs;
        let id = blobs.id(self.shared.forest.unique_number());
        let reference = blobs.reference(id);
        self.edit_mut().put_bytes(node, name, reference)?;
        let blob = Blob {
            id,
            tree: self.parts.state.number,
            node,
            name: name.into(),
            bytes: value.as_ref().into(),
        };
        let mark = self.mark.get_or_insert_default();
        self.shared.forest.blobs.bring(&blob, mark);
        self.parts.blobs.push(blob);
        Ok(())
    }

    /// Reads one attribute, plain or erasable; the read is recorded. It finds what this edit put, too.
    ///
    /// # Errors
    /// `Missing`, if the tree does not have the node.
    pub fn value(&self, node: NodeId, name: &str) -> Result<Option<Value<'_>>, EditError> {
        let value = self.attribute(node, name)?;
        Ok(value.map(|value| self.shared.forest.blobs.value(value)))
    }

    /// Deletes an attribute.
    ///
    /// # Errors
    /// See [`tree::Edit::delete_attribute`](weald_tree::Edit::delete_attribute).
    pub fn delete_attribute(&mut self, node: NodeId, name: &str) -> Result<(), EditError> {
        self.edit_mut().delete_attribute(node, name)
    }

    /// Drops all nodes and starts over with one node, whose id this returns.
    pub fn replace_root(&mut self, attributes: Attributes) -> NodeId {
        let attributes = self.held(attributes);
        self.edit_mut().replace_root(attributes)
    }

    /// Puts a new root above the current one; returns the id of the new root.
    pub fn push_root(&mut self, attributes: Attributes) -> NodeId {
        let attributes = self.held(attributes);
        self.edit_mut().push_root(attributes)
    }

    /// Takes the root away; its only child becomes the root, and keeps its id.
    ///
    /// # Errors
    /// `NotAlone`, unless the root has exactly one child.
    pub fn pop_root(&mut self) -> Result<(), EditError> {
        self.edit_mut().pop_root()
    }

    /// Applies an operation of another edit of this tree. Returns the key under which a node was placed, if one was.
    ///
    /// # Errors
    /// See [`tree::Edit::apply`](weald_tree::Edit::apply).
    pub fn apply(&mut self, operation: &Operation) -> Result<Option<OrderKey>, EditError> {
        let held = self.shared.forest.blobs.operation_held(operation);
        self.edit_mut().apply(held.as_ref().unwrap_or(operation))
    }

    /// Applies an operation that leads from one version of this tree to another.
    pub(crate) fn replay(&mut self, operation: &Operation) -> Result<(), EditError> {
        self.edit_mut().replay(operation)
    }

    /// Reads one attribute; the read is recorded.
    ///
    /// # Errors
    /// `Missing`, if the tree does not have the node.
    pub fn attribute(&self, node: NodeId, name: &str) -> Result<Option<&[u8]>, EditError> {
        self.edit().attribute(node, name)
    }

    /// Reads the list of a node's children, in order; the read is recorded.
    ///
    /// # Errors
    /// `Missing`, if the tree does not have the node.
    pub fn children(&self, node: NodeId) -> Result<impl Iterator<Item = NodeId>, EditError> {
        self.edit().children(node)
    }

    /// Reads a node and all its descendants; the read is recorded.
    ///
    /// # Errors
    /// `Missing`, if the tree does not have the node.
    pub fn subtree(&self, node: NodeId) -> Result<Node<'_>, EditError> {
        self.edit().subtree(node)
    }

    #[inline]
    fn held(&self, attributes: Attributes) -> Attributes {
        self.shared.forest.blobs.all_held(attributes)
    }

    pub(crate) fn tree_name(&self) -> String {
        self.parts.state.name().to_string()
    }

    pub(crate) fn is_of_same_tree(&self, other: &Self) -> bool {
        TreeRef::is(&self.parts.state, &other.parts.state)
    }

    pub(crate) fn into_parts(self) -> (Arc<Shared>, Box<TreeEdit>) {
        (self.shared, self.parts)
    }
}
