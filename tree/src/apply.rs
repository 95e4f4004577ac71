//! Applies one operation to a working version. All checks come before the first change, so a refused
//! operation changes nothing.
//!
//! All code that changes a version is in this file. The map copies what a version shares with another one
//! at the first change, and changes it in place from then on.

use crate::attributes::Attributes;
use crate::bytes::Bytes;
use crate::error::EditError;
use crate::id::{FOREIGN_END, NodeId, OWN_END};
use crate::insert_position::InsertPosition;
use crate::key::OrderKey;
use crate::node::Node;
use crate::operation::{Operation, Target, Where};
use crate::radix::Radix;
use crate::record::{Place, Record};
use crate::subtree::Subtree;
use crate::tree::Tree;

/// Where an operation comes from: how it finds its place, and which ids it may bring.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// From anywhere. It finds its place again, and leaves the source enough ids.
    Elsewhere,
    /// An edit of this tree that was checked when it was made. It finds its place again.
    Edit,
    /// A record of an operation that was carried out: its parent and its key are final.
    Record,
}

impl Tree {
    /// Applies an operation that may have been made on another version of this tree. Returns the key under which a
    /// node was placed.
    pub(crate) fn apply(
        &mut self,
        operation: &Operation,
        origin: Origin,
    ) -> Result<Option<OrderKey>, EditError> {
        match operation {
            Operation::Add {
                node,
                target,
                attributes,
            } => {
                self.must_be_new(*node, origin)?;
                let to = self.position_of_origin(target, *node, origin)?;
                self.add(*node, &to, attributes.clone());
                return Ok(Some(to.key));
            }
            Operation::Splice { subtree, target } => {
                let to = self.position_of_origin(target, subtree.root(), origin)?;
                self.splice(subtree, &to)?;
                return Ok(Some(to.key));
            }
            Operation::Move { node, target } => {
                let to = self.position_of_origin(target, *node, origin)?;
                self.move_to(*node, &to)?;
                return Ok(Some(to.key));
            }
            Operation::Delete { node } => self.delete(*node)?,
            Operation::PutAttribute { node, name, value } => {
                self.put_bytes(*node, text(*node, name)?, value)?;
            }
            Operation::DeleteAttribute { node, name } => {
                self.delete_attribute(*node, text(*node, name)?)?;
            }
            Operation::ReplaceRoot { node, attributes } => {
                self.must_be_new(*node, origin)?;
                self.replace_root(*node, attributes.clone());
            }
            Operation::PushRoot { node, attributes } => {
                self.must_be_new(*node, origin)?;
                self.push_root(*node, attributes.clone());
            }
            Operation::PopRoot { node } => self.pop_root(*node)?,
        }
        Ok(None)
    }

    fn position_of_origin(
        &self,
        target: &Target,
        id: NodeId,
        origin: Origin,
    ) -> Result<InsertPosition, EditError> {
        match origin {
            Origin::Elsewhere | Origin::Edit => self.rebased_position(target, id),
            Origin::Record => self.recorded_position(target, id),
        }
    }

    /// Adds a node whose id is new.
    #[inline]
    pub(crate) fn add(&mut self, node: NodeId, to: &InsertPosition, attributes: Attributes) {
        self.attach(node, to.parent, to.position);
        self.add_unlisted(node, to, attributes);
    }

    /// Adds a node whose id is new; the caller has its parent list it.
    #[inline(always)]
    pub(crate) fn add_unlisted(
        &mut self,
        node: NodeId,
        to: &InsertPosition,
        attributes: Attributes,
    ) {
        let place = Place::new(to.parent, &to.key);
        self.records.insert(node, Record::new(place, attributes));
        self.len += 1;
    }

    pub(crate) fn splice(
        &mut self,
        subtree: &Subtree,
        to: &InsertPosition,
    ) -> Result<(), EditError> {
        if !subtree.0.ids.is(&self.ids) {
            return Err(EditError::ForeignSubtree);
        }
        if let Some(id) = subtree.collision(&self.records) {
            return Err(EditError::AlreadyThere(id));
        }
        self.attach(subtree.root(), to.parent, to.position);
        subtree.insert_into(&mut self.records, Place::new(to.parent, &to.key));
        self.len += subtree.len();
        Ok(())
    }

    pub(crate) fn move_to(&mut self, node: NodeId, to: &InsertPosition) -> Result<(), EditError> {
        let moved = self.must_have(node)?;
        let old = moved.parent().ok_or(EditError::IsRoot(node))?;
        let parent = to.parent;
        if moved.is_above(self.must_have(parent)?) {
            return Err(EditError::Cycle { node, parent });
        }
        let (old, from) = (old.id, old.position_of(node));
        // The node itself was still among the siblings when its new position was found.
        let shift = usize::from(old == parent && from < to.position);
        self.records
            .change_links(old, |_, children| children.remove(from));
        self.attach(node, parent, to.position - shift);
        let new = Place::new(parent, &to.key);
        self.records.change_links(node, |place, _| *place = new);
        Ok(())
    }

    pub(crate) fn delete(&mut self, node: NodeId) -> Result<(), EditError> {
        let parent = self.must_have(node)?.parent();
        let parent = parent.ok_or(EditError::IsRoot(node))?;
        let (parent, position) = (parent.id, parent.position_of(node));
        self.records
            .change_links(parent, |_, children| children.remove(position));
        let mut gone = vec![node];
        while let Some(id) = gone.pop() {
            let links = self.records.remove(id);
            gone.extend(
                links
                    .expect("a listed child has a record")
                    .children()
                    .iter(),
            );
            self.len -= 1;
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn put_bytes(
        &mut self,
        node: NodeId,
        name: &str,
        value: &Bytes,
    ) -> Result<(), EditError> {
        self.must_have(node)?;
        self.put_there(node, name, value);
        Ok(())
    }

    /// Puts an attribute of a node that is there.
    #[inline]
    pub(crate) fn put_there(&mut self, node: NodeId, name: &str, value: &Bytes) {
        self.records
            .change_attributes(node, |attributes| attributes.put_bytes(name, value));
    }

    pub(crate) fn delete_attribute(&mut self, node: NodeId, name: &str) -> Result<(), EditError> {
        if self.must_have(node)?.get(name).is_none() {
            let name = name.to_owned();
            return Err(EditError::NoAttribute { node, name });
        }
        self.records
            .change_attributes(node, |attributes| attributes.delete(name));
        Ok(())
    }

    /// Removes all nodes; the new root has a new id.
    pub(crate) fn replace_root(&mut self, node: NodeId, attributes: Attributes) {
        self.records = Radix::new();
        let root = Record::new(Place::of_root(node), attributes);
        self.records.insert(node, root);
        (self.root, self.len) = (node.marked(self.root.mark()), 1);
    }

    /// Puts a new root above the present one, which keeps its id.
    pub(crate) fn push_root(&mut self, node: NodeId, attributes: Attributes) {
        let root = Record::new(Place::of_root(node), attributes);
        self.records.insert(node, root);
        self.attach(self.root, node, 0);
        self.records
            .change_links(self.root, |place, _| *place = Place::of_root(node));
        self.root = node.marked(self.root.mark());
        self.len += 1;
    }

    /// Takes the root away; its only child keeps its id.
    pub(crate) fn pop_root(&mut self, node: NodeId) -> Result<(), EditError> {
        let root = self.must_have(node)?;
        let only = root.child(0).map(|child| child.id);
        let Some(risen) = only.filter(|_| root.child_count() == 1 && node == self.root) else {
            return Err(EditError::NotAlone(node));
        };
        self.records.remove(node);
        self.records
            .change_links(risen, |place, _| *place = Place::of_root(risen));
        self.root = risen.marked(self.root.mark());
        self.len -= 1;
        Ok(())
    }

    /// The id without its mark, unless that is another tree's.
    #[inline]
    pub(crate) fn own_id(&self, node: NodeId) -> Result<NodeId, EditError> {
        match self.is_foreign(node) {
            true => Err(EditError::OtherTree(node)),
            false => Ok(node.plain()),
        }
    }

    #[inline]
    pub(crate) fn own_place(&self, at: Where) -> Result<Where, EditError> {
        Ok(match at {
            Where::First(parent) => Where::First(self.own_id(parent)?),
            Where::Last(parent) => Where::Last(self.own_id(parent)?),
            Where::Before(sibling) => Where::Before(self.own_id(sibling)?),
            Where::After(sibling) => Where::After(self.own_id(sibling)?),
            Where::AtKey(parent) => Where::AtKey(self.own_id(parent)?),
        })
    }

    /// The id with this tree's mark.
    #[inline]
    pub(crate) fn given_out(&self, node: NodeId) -> NodeId {
        node.marked(self.root.mark())
    }

    #[inline]
    fn attach(&mut self, node: NodeId, parent: NodeId, position: usize) {
        self.records.adopt(parent, position, (node, 1));
    }

    #[inline]
    pub(crate) fn must_have(&self, node: NodeId) -> Result<Node<'_>, EditError> {
        self.node(node).ok_or(EditError::Missing(node))
    }

    /// Checks the id that an operation brings, and keeps the source from giving it out again.
    fn must_be_new(&self, node: NodeId, origin: Origin) -> Result<(), EditError> {
        if self.node(node).is_some() {
            return Err(EditError::AlreadyThere(node));
        }
        let end = match origin {
            Origin::Elsewhere => FOREIGN_END,
            Origin::Edit | Origin::Record => OWN_END,
        };
        if node.get() >= end {
            return Err(EditError::IdTooLarge(node));
        }
        self.ids.pass(node);
        Ok(())
    }
}

fn text(node: NodeId, name: &[u8]) -> Result<&str, EditError> {
    str::from_utf8(name).map_err(|_| EditError::NameNotText(node))
}
