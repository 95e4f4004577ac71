//! An edit: a private version that is changed in place, and the list of what was done to it.
//!
//! - What the edit has copied once it owns, and changes in place from then on; freezing it costs nothing.
//! - The first operation, if it adds a node or puts an attribute, is only looked at and listed; it is carried
//!   out when somebody asks for the working version, or with the second. So who brings an edit of one
//!   operation to another version has not paid for one that nobody sees.
//! - The list of operations and reads is data: it can be checked against another version and applied
//!   there (see [`Script`]) without the code that made it.
//! - A refused operation changes nothing and is not on the list.

use std::cell::{OnceCell, RefCell};

use crate::attributes::Attributes;
use crate::bytes::Bytes;
use crate::error::EditError;
use crate::id::NodeId;
use crate::insert_position::InsertPosition;
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
    /// The working version, but for what is still to be carried out.
    tree: Tree,
    deferred: Option<Deferred>,
    operations: Vec<Operation>,
    /// Nothing, if the edit is blind.
    reads: Option<RefCell<Vec<Read>>>,
}

/// The only operation on the list, which is possible and was not carried out.
struct Deferred {
    /// The spot of a node that it adds.
    to: Option<InsertPosition>,
    /// The working version for those who only look; few do, and so it lies elsewhere.
    seen: OnceCell<Box<Tree>>,
}

impl Tree {
    /// A private working version that begins with this one.
    pub fn edit(&self) -> Edit {
        Edit {
            tree: self.clone(),
            deferred: None,
            operations: Vec::new(),
            reads: Some(RefCell::new(Vec::new())),
        }
    }
}

impl Edit {
    /// The same edit, which relies on nothing: it records nothing of what it reads, and what it puts or
    /// deletes goes over whatever is there when it is brought to a newer version.
    #[must_use]
    pub fn blind(mut self) -> Self {
        self.reads = None;
        self
    }

    /// The working version, to look at without being recorded.
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

    /// Carries out what is still to be carried out, so that nothing is left to be done for
    /// [`finish`](Self::finish).
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

    /// The version that this edit made.
    pub fn freeze(mut self) -> Tree {
        self.own();
        self.tree
    }

    /// The version that this edit made, and how it came about.
    pub fn finish(mut self) -> (Tree, Script) {
        self.own();
        let reads = self.reads.map(RefCell::into_inner);
        (self.tree, Script::new(self.operations, reads))
    }

    /// How the version of this edit would come about, for one who needs it in another version only.
    pub fn into_script(self) -> Script {
        let reads = self.reads.map(RefCell::into_inner);
        Script::new(self.operations, reads)
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
        let is_first = self.operations.is_empty();
        let tree = self.own();
        let to = tree.insert_position(at)?;
        let node = tree.ids.take();
        let target = to.target(at);
        if is_first {
            self.defer(Some(to));
        } else {
            tree.add(node, &to, attributes.clone());
        }
        self.operations.push(Operation::Add {
            node,
            target,
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
        let tree = self.own();
        let to = tree.insert_position(at)?;
        tree.splice(subtree, &to)?;
        self.operations.push(Operation::Splice {
            subtree: subtree.clone(),
            target: to.target(at),
        });
        Ok(())
    }

    /// Moves a node with all below it; its id and theirs stay.
    ///
    /// # Errors
    /// As [`add`](Self::add); `IsRoot`, if the node is the root; `Cycle`, if it would come under itself.
    pub fn move_to(&mut self, node: NodeId, at: Where) -> Result<(), EditError> {
        let tree = self.own();
        let to = tree.insert_position(at)?;
        tree.move_to(node, &to)?;
        let target = to.target(at);
        self.operations.push(Operation::Move { node, target });
        Ok(())
    }

    /// Deletes a node with all below it. It costs as much for each node as adding it did.
    ///
    /// # Errors
    /// `Missing`, if it is not there; `IsRoot`, if it is the root.
    pub fn delete(&mut self, node: NodeId) -> Result<(), EditError> {
        self.own().delete(node)?;
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
        self.put_bytes(node, name, Bytes::new(value.as_ref()))
    }

    /// The same with bytes that other clones may share, or that have a companion.
    ///
    /// # Errors
    /// `Missing`, if the node is not there.
    #[inline]
    pub fn put_bytes(&mut self, node: NodeId, name: &str, value: Bytes) -> Result<(), EditError> {
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
    /// `Missing`, if the node is not there; `NoAttribute`, if it has none of this name.
    pub fn delete_attribute(&mut self, node: NodeId, name: &str) -> Result<(), EditError> {
        self.own().delete_attribute(node, name)?;
        let name = name.into();
        self.operations
            .push(Operation::DeleteAttribute { node, name });
        Ok(())
    }

    /// Lets all nodes go and begins anew with one node, whose id this returns.
    pub fn replace_root(&mut self, attributes: Attributes) -> NodeId {
        let tree = self.own();
        let node = tree.ids.take();
        tree.replace_root(node, attributes.clone());
        self.operations
            .push(Operation::ReplaceRoot { node, attributes });
        node
    }

    /// Puts a new root above the present one (Jungle's pushPop); returns the id of the new one.
    pub fn push_root(&mut self, attributes: Attributes) -> NodeId {
        let tree = self.own();
        let node = tree.ids.take();
        tree.push_root(node, attributes.clone());
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
        self.own().apply(operation)?;
        self.operations.push(operation.clone());
        Ok(())
    }

    /// Reads one attribute; recorded.
    ///
    /// # Errors
    /// `Missing`, if the node is not there.
    pub fn attribute(&self, node: NodeId, name: &str) -> Result<Option<&[u8]>, EditError> {
        let found = self.tree().must_have(node)?;
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
        let found = self.tree().must_have(node)?;
        self.record(|| Read::Children(node));
        Ok(found.children().map(Node::id))
    }

    /// Reads a node and all below it, as `find` does; recorded.
    ///
    /// # Errors
    /// `Missing`, if the node is not there.
    pub fn subtree(&self, node: NodeId) -> Result<Node<'_>, EditError> {
        let found = self.tree().must_have(node)?;
        self.record(|| Read::Subtree(node));
        Ok(found)
    }

    /// The working version, with all that was done.
    #[inline]
    fn own(&mut self) -> &mut Tree {
        self.carry_out();
        &mut self.tree
    }

    /// The first operation is possible, and is carried out later.
    #[inline]
    fn defer(&mut self, to: Option<InsertPosition>) {
        let seen = OnceCell::new();
        self.deferred = Some(Deferred { to, seen });
        self.operations.reserve_exact(1); // Often it stays the only one.
    }

    fn record(&self, read: impl FnOnce() -> Read) {
        if let Some(reads) = &self.reads {
            reads.borrow_mut().push(read());
        }
    }
}

impl Deferred {
    /// Does what the only operation says in the version in which it was looked at.
    fn carry_out(&self, operations: &[Operation], tree: &mut Tree) {
        match (operations, &self.to) {
            (
                [
                    Operation::Add {
                        node, attributes, ..
                    },
                ],
                Some(to),
            ) => {
                tree.add(*node, to, attributes.clone());
            }
            ([operation], None) => {
                let possible = tree.apply(operation);
                possible.expect("it was looked at in this version");
            }
            _ => unreachable!("one operation waits at most"),
        }
    }
}
