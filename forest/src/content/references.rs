//! Finds the references to erasable bytes that a commit brings to a tree. So the bytes can be erased through that tree,
//! too.

use std::collections::BTreeMap;

use weald_tree::{Attributes, NodeId, Operation, Tree};

use super::erasable::{BlobId, Referred, referred};

fn references_of(node: NodeId, attributes: &Attributes, found: &mut Brought) {
    for (name, value) in attributes.iter_bytes() {
        note(found, node, (name, value));
    }
}

/// By the attributes that have them.
type Brought = BTreeMap<(NodeId, Box<str>), BlobId>;

fn note(found: &mut Brought, node: NodeId, (name, value): (&[u8], &[u8])) {
    if let Some(id) = referred(value)
        && let Ok(name) = str::from_utf8(name)
    {
        found.insert((node, name.into()), id);
    }
}

/// The attribute has another value now, or none.
fn forget(found: &mut Brought, node: NodeId, name: &[u8]) {
    if !found.is_empty()
        && let Ok(name) = str::from_utf8(name)
    {
        found.remove(&(node, name.into()));
    }
}

fn listed(found: Brought) -> Vec<Referred> {
    let all = found.into_iter();
    all.map(|((node, name), id)| (node, name, id)).collect()
}

/// The references that operations bring, copied ones included, except those that a later one of the operations
/// replaces: what no version ever had is not erased with an attribute.
pub(crate) fn references_in(operations: &[Operation]) -> Vec<Referred> {
    let mut found = Brought::new();
    for step in operations {
        match step {
            Operation::PutAttribute { node, name, value } => {
                forget(&mut found, *node, name);
                note(&mut found, *node, (name, value));
            }
            Operation::DeleteAttribute { node, name } => forget(&mut found, *node, name),
            Operation::Add {
                node, attributes, ..
            }
            | Operation::ReplaceRoot { node, attributes }
            | Operation::PushRoot { node, attributes } => {
                references_of(*node, attributes, &mut found);
            }
            Operation::Splice { subtree, .. } => subtree
                .records()
                .for_each(|node| references_of(node.id, &node.attributes, &mut found)),
            _ => {}
        }
    }
    listed(found)
}

/// The references that a tree has.
pub(crate) fn references_of_tree(tree: &Tree) -> Vec<Referred> {
    let mut found = Brought::new();
    for node in tree.root().preorder() {
        references_of(node.id(), node.attributes(), &mut found);
    }
    listed(found)
}
