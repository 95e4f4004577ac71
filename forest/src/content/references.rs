//! Finds the references to erasable bytes that a commit brings to a tree, so that the bytes can be erased there, too.

use weald_tree::{Attributes, NodeId, Operation, Tree};

use super::erasable::{Referred, referred};

fn references_of(node: NodeId, attributes: &Attributes, found: &mut Vec<Referred>) {
    for (name, value) in attributes.iter_bytes() {
        note(found, node, (name, value));
    }
}

fn note(found: &mut Vec<Referred>, node: NodeId, (name, value): (&[u8], &[u8])) {
    if let Some(id) = referred(value)
        && let Ok(name) = str::from_utf8(name)
    {
        found.push((node, name.into(), id));
    }
}

/// The references that operations bring, copied ones too.
pub(crate) fn references_in(operations: &[Operation]) -> Vec<Referred> {
    let mut found = Vec::new();
    for step in operations {
        match step {
            Operation::PutAttribute { node, name, value } => {
                note(&mut found, *node, (name, value));
            }
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
    found
}

/// The references that a tree has.
pub(crate) fn references_of_tree(tree: &Tree) -> Vec<Referred> {
    let mut found = Vec::new();
    for node in tree.root().preorder() {
        references_of(node.id(), node.attributes(), &mut found);
    }
    found
}
