//! An edit: a private version that is changed in place, and the list of the operations and reads done on it.
//!
//! - The edit owns what it has copied once, and changes it in place from then on; freezing costs nothing.
//! - A first operation that adds a node or puts an attribute is checked and listed, but carried out only with the
//!   second one, or when the caller asks for the working version: an edit of one operation may never need that version.
//! - The list of operations and reads is data: it can be checked against another version and applied there
//!   without the code that made it (see [`Script`]).
//! - A refused operation changes nothing and is not on the list.

use std::cell::{OnceCell, RefCell};

use crate::apply::Origin;
use crate::attributes::Attributes;
use crate::bytes::Bytes;
use crate::deferred::Deferred;
use crate::error::EditError;
use crate::id::NodeId;
use crate::insert_position::InsertPosition;
use crate::key::OrderKey;
use crate::node::Node;
use crate::operation::{Operation, Where};
use crate::radix::Radix;
use crate::script::{self, Read, Script};
use crate::steps::Steps;
use crate::subtree::Subtree;
use crate::tree::Tree;

/// A working version. One thread changes it; it may be sent to another.
///
/// ```
/// use weald::tree::{Attributes, Tree, Where};
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
/// # Ok::<(), weald::tree::EditError>(())
/// ```
pub struct Edit {
    /// The working version, without the deferred operation.
    tree: Tree,
    deferred: Option<Deferred>,
    operations: Steps,
    /// `None` if the edit is blind.
    reads: Option<RefCell<Vec<Read>>>,
    /// The nodes that were spliced in or deleted.
    moved: u64,
    /// The node that the last operation added after all its siblings, so that the next one finds its place quickly.
    newest: Option<(NodeId, InsertPosition)>,
}

impl Tree {
    /// A private working version that starts from this one.
    pub fn edit(&self) -> Edit {
        Edit {
            tree: self.clone(),
            deferred: None,
            operations: Steps::default(),
            reads: Some(RefCell::new(Vec::new())),
            moved: 0,
            newest: None,
        }
    }
}

impl Edit {
    /// Makes this a blind edit, which relies on nothing: it records no reads, and when it is replayed on a
    /// newer version, its operations overwrite or delete whatever is there.
    #[must_use]
    pub fn blind(mut self) -> Self {
        self.set_blind();
        self
    }

    /// The same in place.
    pub fn set_blind(&mut self) {
        self.reads = None;
    }

    /// The working version. Reads through it are not recorded.
    pub fn tree(&self) -> &Tree {
        match &self.deferred {
            None => &self.tree,
            Some(deferred) => deferred.seen.get_or_init(|| {
                let mut tree = self.tree.clone();
                deferred.carry_out(&self.operations, &mut tree);
                Box::new(tree)
            }),
        }
    }

    /// Carries out the deferred operation, if there is one, so that [`finish`](Self::finish) has nothing left to do.
    #[inline]
    pub fn carry_out(&mut self) {
        let Some(mut deferred) = self.deferred.take() else {
            return;
        };
        match deferred.seen.take() {
            Some(seen) => self.tree = *seen,
            None => deferred.carry_out(&self.operations, &mut self.tree),
        }
    }

    /// The finished version.
    pub fn freeze(mut self) -> Tree {
        self.own();
        self.tree
    }

    /// The finished version, and the script of how it came about.
    #[inline]
    pub fn finish(mut self) -> (Tree, Script) {
        self.own();
        let steps = self.steps();
        let reads = self.reads.map(RefCell::into_inner);
        (self.tree, Script::new(self.operations, reads, steps))
    }

    /// The finished version, which leaves the edit: from then on the edit has no nodes, and only tells what was done.
    /// An edit that is large and stays where it is needs no copy for that.
    #[inline]
    pub fn take_version(&mut self) -> Tree {
        let tree = self.own();
        Tree {
            records: std::mem::replace(&mut tree.records, Radix::new()),
            ids: tree.ids.clone(),
            ..*tree
        }
    }

    /// The script alone, to be replayed on another version. A deferred operation is not carried out.
    pub fn into_script(self) -> Script {
        let steps = self.steps();
        let reads = self.reads.map(RefCell::into_inner);
        Script::new(self.operations, reads, steps)
    }

    /// The work done so far, in steps: an operation is one, and each node that it spliced in or deleted is one more.
    #[inline]
    pub fn steps(&self) -> u64 {
        self.operations.len() as u64 + self.moved
    }

    /// The operations so far, in order.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// As [`Script::steps_to_rebase`].
    #[inline]
    pub fn steps_to_rebase(&self, between: u64) -> u64 {
        let reads = self.reads.as_ref().map(RefCell::borrow);
        let own = (&self.operations[..], self.steps());
        script::steps_to_rebase(own, reads.as_deref().map(|reads| &reads[..]), between)
    }

    /// Adds a node after the children of `parent`.
    ///
    /// # Errors
    /// `Missing`, if the parent is not there; `OtherTree`, if another tree gave out its id.
    #[inline]
    pub fn append(&mut self, parent: NodeId, attributes: Attributes) -> Result<NodeId, EditError> {
        self.add(Where::Last(parent), attributes)
    }

    /// Adds a node.
    ///
    /// # Errors
    /// `Missing`, if the node that `at` names is not there; `OtherTree`, if another tree gave out its id; `IsRoot`, if
    /// that node has no siblings; `NoIdLeft`, if none is left.
    #[inline]
    pub fn add(&mut self, at: Where, attributes: Attributes) -> Result<NodeId, EditError> {
        let is_first = self.operations.is_empty();
        let (at, newest) = (self.tree.own_place(at)?, self.newest.take());
        let tree = self.own();
        let to = match (at, newest) {
            (Where::Last(parent), Some((last, before))) if before.parent == parent => {
                before.after(last)
            }
            _ => tree.insert_position(at)?,
        };
        let node = tree.ids.try_take().ok_or(EditError::NoIdLeft)?;
        let target = to.target(at);
        if is_first {
            self.defer(Some(to));
        } else {
            tree.add(node, &to, attributes.clone());
            if matches!(at, Where::Last(_)) {
                self.newest = Some((node, to));
            }
        }
        self.operations.push(Operation::Add {
            node,
            target,
            attributes,
        });
        Ok(self.tree.given_out(node))
    }

    /// Adds a subtree that was built separately. It costs a sixteenth of adding its nodes one by one.
    ///
    /// # Errors
    /// As [`add`](Self::add); `ForeignSubtree`, if it has ids of another tree; `AlreadyThere`, if it was spliced in
    /// before.
    pub fn splice(&mut self, at: Where, subtree: &Subtree) -> Result<(), EditError> {
        let at = self.tree.own_place(at)?;
        let tree = self.own();
        let to = tree.insert_position(at)?;
        tree.splice(subtree, &to)?;
        self.moved += subtree.len();
        self.operations.push(Operation::Splice {
            subtree: subtree.clone(),
            target: to.target(at),
        });
        Ok(())
    }

    /// Moves a node with everything below it. All ids stay the same.
    ///
    /// # Errors
    /// As [`add`](Self::add); `IsRoot`, if the node is the root; `Cycle`, if it would end up under itself.
    pub fn move_to(&mut self, node: NodeId, at: Where) -> Result<(), EditError> {
        let (node, at) = (self.tree.own_id(node)?, self.tree.own_place(at)?);
        let tree = self.own();
        let to = tree.insert_position(at)?;
        tree.move_to(node, &to)?;
        let target = to.target(at);
        self.operations.push(Operation::Move { node, target });
        Ok(())
    }

    /// Deletes a node with everything below it. Each node costs as much as adding it did.
    ///
    /// # Errors
    /// `Missing`, if it is not there; `IsRoot`, if it is the root.
    pub fn delete(&mut self, node: NodeId) -> Result<(), EditError> {
        let node = self.tree.own_id(node)?;
        let tree = self.own();
        let before = tree.len();
        tree.delete(node)?;
        self.moved += before - self.tree.len();
        self.operations.push(Operation::Delete { node });
        Ok(())
    }

    /// Sets the bytes of an attribute, whether or not it has a value already.
    ///
    /// # Errors
    /// `Missing`, if the node is not there; `OtherTree`, if another tree gave out the id.
    #[inline]
    pub fn put_attribute(
        &mut self,
        node: NodeId,
        name: &str,
        value: impl AsRef<[u8]>,
    ) -> Result<(), EditError> {
        self.put_bytes(node, name, Bytes::new(value.as_ref()))
    }

    /// Like [`put_attribute`](Self::put_attribute), with bytes that other clones share or that have a companion.
    ///
    /// # Errors
    /// `Missing`, if the node is not there; `OtherTree`, if another tree gave out the id.
    #[inline]
    pub fn put_bytes(&mut self, node: NodeId, name: &str, value: Bytes) -> Result<(), EditError> {
        let node = self.tree.own_id(node)?;
        if self.operations.is_empty() {
            self.tree.must_have(node)?;
            self.defer(None);
        } else {
            self.own().put_bytes(node, name, &value)?;
        }
        self.operations.push(Operation::PutAttribute {
            node,
            name: name.into(),
            value,
        });
        Ok(())
    }

    /// Deletes an attribute.
    ///
    /// # Errors
    /// `Missing`, if the node is not there; `OtherTree`, if another tree gave out the id; `NoAttribute`, if it has
    /// none.
    pub fn delete_attribute(&mut self, node: NodeId, name: &str) -> Result<(), EditError> {
        let node = self.tree.own_id(node)?;
        self.own().delete_attribute(node, name)?;
        let name = name.into();
        self.operations
            .push(Operation::DeleteAttribute { node, name });
        Ok(())
    }

    /// Removes all nodes and starts over with a new root. Returns the root's id.
    ///
    /// # Panics
    /// If no id is left: somebody has said that 2⁶² were given out.
    pub fn replace_root(&mut self, attributes: Attributes) -> NodeId {
        let tree = self.own();
        let (node, before) = (tree.ids.take(), tree.len());
        tree.replace_root(node, attributes.clone());
        self.moved += before;
        self.operations
            .push(Operation::ReplaceRoot { node, attributes });
        self.tree.given_out(node)
    }

    /// Puts a new root above the present one (Jungle's pushPop). Returns the new root's id.
    ///
    /// # Panics
    /// As [`replace_root`](Self::replace_root).
    pub fn push_root(&mut self, attributes: Attributes) -> NodeId {
        let tree = self.own();
        let node = tree.ids.take();
        tree.push_root(node, attributes.clone());
        self.operations
            .push(Operation::PushRoot { node, attributes });
        self.tree.given_out(node)
    }

    /// Takes the root away; its only child becomes the root, and keeps its id.
    ///
    /// # Errors
    /// `NotAlone`, unless the root has exactly one child.
    pub fn pop_root(&mut self) -> Result<(), EditError> {
        let tree = self.own();
        let node = tree.root.plain();
        tree.pop_root(node)?;
        self.operations.push(Operation::PopRoot { node });
        Ok(())
    }

    /// Applies an operation of another edit of this tree. Order keys that still fit are kept. Returns the key under
    /// which a node was placed, if one was.
    ///
    /// # Errors
    /// Those of the method that does the same; `SiblingMoved`, if the sibling that the operation names has
    /// another parent now; `AlreadyThere`, if the operation was applied before; `IdTooLarge`, if the tree could run
    /// out of ids after the one that it brings.
    pub fn apply(&mut self, operation: &Operation) -> Result<Option<OrderKey>, EditError> {
        self.carry_out_from(operation, Origin::Elsewhere)
    }

    /// Applies an operation of a record, which was carried out before on an equal version: under the parent and the
    /// key that it holds, whatever its `at` says.
    ///
    /// # Errors
    /// Those of [`apply`](Self::apply), except `SiblingMoved`.
    pub fn replay(&mut self, operation: &Operation) -> Result<(), EditError> {
        self.carry_out_from(operation, Origin::Record).map(drop)
    }

    fn carry_out_from(
        &mut self,
        operation: &Operation,
        origin: Origin,
    ) -> Result<Option<OrderKey>, EditError> {
        let tree = self.own();
        let before = tree.len();
        let used = tree.apply(operation, origin)?;
        self.moved += match operation {
            Operation::Splice { .. } | Operation::Delete { .. } => before.abs_diff(self.tree.len()),
            // An added node is one step with its operation.
            _ => before.abs_diff(self.tree.len()).saturating_sub(1),
        };
        let mut done = operation.clone();
        done.place_at(used.clone());
        self.operations.push(done);
        Ok(used)
    }

    /// Reads one attribute. The read is recorded.
    ///
    /// # Errors
    /// `Missing`, if the node is not there; `OtherTree`, if another tree gave out the id.
    pub fn attribute(&self, node: NodeId, name: &str) -> Result<Option<&[u8]>, EditError> {
        let node = self.tree.own_id(node)?;
        let found = self.tree().must_have(node)?;
        self.record(|| Read::Attribute {
            node,
            name: Bytes::from(name),
        });
        Ok(found.get(name))
    }

    /// Reads which children a node has, in order. The read is recorded.
    ///
    /// # Errors
    /// `Missing`, if the node is not there; `OtherTree`, if another tree gave out the id.
    pub fn children(&self, node: NodeId) -> Result<impl Iterator<Item = NodeId>, EditError> {
        let node = self.tree.own_id(node)?;
        let found = self.tree().must_have(node)?;
        self.record(|| Read::Children(node));
        Ok(found.children().map(Node::id))
    }

    /// Reads a node and everything below it, as `find` does. The read is recorded.
    ///
    /// # Errors
    /// `Missing`, if the node is not there; `OtherTree`, if another tree gave out the id.
    pub fn subtree(&self, node: NodeId) -> Result<Node<'_>, EditError> {
        let node = self.tree.own_id(node)?;
        let found = self.tree().must_have(node)?;
        self.record(|| Read::Subtree(node));
        Ok(found)
    }

    /// The working version, with every operation carried out.
    #[inline]
    fn own(&mut self) -> &mut Tree {
        self.newest = None;
        self.carry_out();
        &mut self.tree
    }

    /// Defers the first operation, which was checked.
    #[inline]
    fn defer(&mut self, to: Option<InsertPosition>) {
        let seen = OnceCell::new();
        self.deferred = Some(Deferred { to, seen });
    }

    fn record(&self, read: impl FnOnce() -> Read) {
        if let Some(reads) = &self.reads {
            reads.borrow_mut().push(read());
        }
    }
}
