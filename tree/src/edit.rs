//! An edit: a private version that is changed in place, and the list of the operations and reads done on it.
//!
//! - The edit owns what it has copied once, and changes it in place from then on; freezing costs nothing.
//! - A first operation that adds a node or puts an attribute is checked and listed, but carried out only with the
//!   second one, or when the caller asks for the working version: an edit of one operation may never need that version.
//! - Nodes that are appended to one parent in turn are listed by the parent together: when another operation comes, or
//!   when the caller asks for the working version. An edit in which a caller has asked in between lists each at once.
//! - The list of operations and reads is data: it can be checked against another version and applied there
//!   without the code that made it (see [`Script`]).
//! - A refused operation changes nothing and is not on the list.

mod reads;

use std::cell::{OnceCell, RefCell};

use crate::apply::Origin;
use crate::attributes::Attributes;
use crate::bytes::Bytes;
use crate::deferred::Deferred;
use crate::error::EditError;
use crate::id::NodeId;
use crate::insert_position::InsertPosition;
use crate::key::OrderKey;
use crate::newest::Newest;
use crate::operation::{Operation, Target, Where};
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
    /// The working version, without what is deferred.
    tree: Tree,
    deferred: Option<Deferred>,
    newest: Option<Newest>,
    /// The working version with what is deferred, for reads; boxed because few edits need it.
    seen: OnceCell<Box<Tree>>,
    /// Whether it was needed in the midst of appended nodes.
    is_read_between: bool,
    operations: Steps,
    /// `None` if the edit is blind.
    reads: Option<RefCell<Vec<Read>>>,
    /// The nodes that were spliced in or deleted.
    moved: u64,
}

impl Tree {
    /// A private working version that starts from this one.
    pub fn edit(&self) -> Edit {
        self.clone().into_edit()
    }

    /// The same, for a version that its owner needs no longer: what no other version shares is changed in place, and
    /// not copied.
    #[inline]
    pub fn into_edit(mut self) -> Edit {
        self.records.begin_version();
        Edit {
            tree: self,
            deferred: None,
            newest: None,
            seen: OnceCell::new(),
            is_read_between: false,
            operations: Steps::default(),
            reads: Some(RefCell::new(Vec::new())),
            moved: 0,
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
    #[inline]
    pub fn tree(&self) -> &Tree {
        let has_all = self.newest.as_ref().is_none_or(Newest::is_listed);
        match has_all && self.deferred.is_none() {
            true => &self.tree,
            false => self.with_deferred(),
        }
    }

    #[cold]
    fn with_deferred(&self) -> &Tree {
        self.seen.get_or_init(|| {
            let mut tree = self.tree.clone();
            if let Some(deferred) = &self.deferred {
                deferred.carry_out(&self.operations, &mut tree);
            }
            if let Some(newest) = &self.newest {
                newest.list(&mut tree);
            }
            Box::new(tree)
        })
    }

    /// Carries out what is deferred, so that [`finish`](Self::finish) has nothing left to do.
    #[inline]
    pub fn carry_out(&mut self) {
        if let Some(seen) = self.seen.take() {
            self.tree = *seen;
            self.is_read_between |= self.newest.is_some();
        } else if let Some(deferred) = &self.deferred {
            deferred.carry_out(&self.operations, &mut self.tree);
        } else if let Some(newest) = &mut self.newest {
            newest.list(&mut self.tree);
        }
        (self.deferred, self.newest) = (None, None);
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
        let at = self.tree.own_place(at)?;
        let is_next = match (at, &self.newest) {
            (Where::Last(parent), Some(newest)) => {
                newest.parent() == parent && self.seen.get().is_none()
            }
            _ => false,
        };
        let found = match is_next {
            true => None,
            false => Some(self.own().insert_position(at)?),
        };
        let node = self.tree.ids.try_take().ok_or(EditError::NoIdLeft)?;
        let target = self.place(node, (at, found), &attributes);
        self.operations.push(Operation::Add {
            node,
            target,
            attributes,
        });
        Ok(self.tree.given_out(node))
    }

    /// Puts a new node at the place that was found, or after the newest one.
    #[inline]
    fn place(
        &mut self,
        node: NodeId,
        (at, found): (Where, Option<InsertPosition>),
        attributes: &Attributes,
    ) -> Target {
        let tree = &mut self.tree;
        let to = match (found, &mut self.newest) {
            (Some(to), _) if self.operations.is_empty() => {
                let target = to.target(at);
                self.deferred = Some(Deferred { to: Some(to) });
                return target;
            }
            (Some(to), _) if !matches!(at, Where::Last(_)) => {
                tree.add(node, &to, attributes.clone());
                return to.target(at);
            }
            (Some(to), newest) => newest.insert(Newest::new(node, to)).place(),
            (None, Some(newest)) => newest.advance(node, tree),
            (None, None) => unreachable!("the newest node is known"),
        };
        let target = to.target(at);
        tree.add_unlisted(node, to, attributes.clone());
        if self.is_read_between
            && let Some(newest) = &mut self.newest
        {
            newest.list_now(tree);
        }
        target
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
            self.deferred = Some(Deferred { to: None });
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

    /// The working version, with every operation carried out.
    #[inline]
    fn own(&mut self) -> &mut Tree {
        self.carry_out();
        &mut self.tree
    }
}
