//! Encodes what a commit did to a tree. `decode.rs` reads it.
//!
//! - A number is a varint: seven bits a byte, the lowest first, the eighth bit says that more follow.
//! - A text or a value is its length, a number, and its bytes.
//! - An order key is how many words it has, and the words as numbers.
//! - A list is its length, and its items. Nodes are listed by rising ids, each id as the difference from the one
//!   before.
//! - A change begins with its kind, one byte, and the number of its tree; an operation with its kind, one byte.
//!
//! There is one way to encode a thing, so equal commits have equal bytes.

use std::time::{Duration, SystemTime};

use weald_tree::{Attributes, NodeId, NodeRecord, Operation, OrderKey, Target, Tree};

use crate::content::erasable::{Blob, BlobId, Place};
use crate::version::Version;

/// The kinds of changes.
pub(super) mod change {
    pub(crate) const CREATE: u8 = 1;
    pub(crate) const EDIT: u8 = 2;
    pub(crate) const RENAME: u8 = 4;
    pub(crate) const DELETE: u8 = 5;
    pub(crate) const ADD_INDEX: u8 = 6;
    pub(crate) const DROP_INDEX: u8 = 7;
    pub(crate) const ERASE: u8 = 8;
    pub(crate) const TAG: u8 = 9;
    pub(crate) const UNTAG: u8 = 10;
}

/// The kinds of operations.
pub(super) mod operation {
    pub(crate) const ADD: u8 = 1;
    pub(crate) const SPLICE: u8 = 2;
    pub(crate) const MOVE: u8 = 3;
    pub(crate) const DELETE: u8 = 4;
    pub(crate) const PUT: u8 = 5;
    pub(crate) const UNPUT: u8 = 6;
    pub(crate) const REPLACE_ROOT: u8 = 7;
    pub(crate) const PUSH_ROOT: u8 = 8;
    pub(crate) const POP_ROOT: u8 = 9;
}

pub(super) fn varint_len(number: u64) -> usize {
    (64 - (number | 1).leading_zeros() as usize).div_ceil(7)
}

pub(crate) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 128 {
        out.push(number.to_le_bytes()[0] | 128);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Most changes are shorter, so the vector need not grow.
const USUAL: usize = 240;

fn begin(kind: u8, tree: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(USUAL);
    out.push(kind);
    put_number(&mut out, tree);
    out
}

pub(crate) fn create(name: &str, content: &Tree) -> Vec<u8> {
    let mut out = vec![change::CREATE];
    put_bytes(&mut out, name.as_bytes());
    put_number(&mut out, content.ids().last());
    put_nodes(&mut out, content.len(), content.records());
    out
}

pub(crate) fn edit(tree: u64, operations: &[Operation], blobs: &[Blob]) -> Vec<u8> {
    let mut out = begin(change::EDIT, tree);
    put_number(&mut out, operations.len() as u64);
    operations
        .iter()
        .for_each(|step| put_operation(&mut out, step));
    put_number(&mut out, blobs.len() as u64);
    for blob in blobs {
        out.extend_from_slice(&blob.id.0.to_le_bytes());
        put_number(&mut out, blob.node.get());
        put_bytes(&mut out, blob.name.as_bytes());
    }
    out
}

pub(crate) fn rename(tree: u64, name: &str) -> Vec<u8> {
    with_text(begin(change::RENAME, tree), name)
}

pub(crate) fn delete(tree: u64) -> Vec<u8> {
    begin(change::DELETE, tree)
}

pub(crate) fn add_index(tree: u64, attribute: &str) -> Vec<u8> {
    with_text(begin(change::ADD_INDEX, tree), attribute)
}

pub(crate) fn drop_index(tree: u64, attribute: &str) -> Vec<u8> {
    with_text(begin(change::DROP_INDEX, tree), attribute)
}

pub(crate) fn erase((tree, node, name): &Place, ids: &[BlobId]) -> Vec<u8> {
    let mut out = begin(change::ERASE, *tree);
    put_number(&mut out, node.get());
    put_bytes(&mut out, name.as_bytes());
    put_number(&mut out, ids.len() as u64);
    for id in ids {
        out.extend_from_slice(&id.0.to_le_bytes());
    }
    out
}

pub(crate) fn tag(tree: u64, tag: &str, version: Version) -> Vec<u8> {
    with_version(with_text(begin(change::TAG, tree), tag), version)
}

pub(crate) fn untag(tree: u64, tag: &str) -> Vec<u8> {
    with_text(begin(change::UNTAG, tree), tag)
}

fn with_text(mut out: Vec<u8>, text: &str) -> Vec<u8> {
    put_bytes(&mut out, text.as_bytes());
    out
}

fn with_version(mut out: Vec<u8>, version: Version) -> Vec<u8> {
    put_version(&mut out, version);
    out
}

pub(crate) fn put_version(out: &mut Vec<u8>, version: Version) {
    put_number(out, version.incarnation);
    put_number(out, version.number);
}

/// Seconds since 1970, signed, and nanoseconds, both of fixed length.
pub(crate) fn put_time(out: &mut Vec<u8>, time: SystemTime) {
    let (seconds, nanoseconds) = since_1970(time);
    out.extend_from_slice(&seconds.to_le_bytes());
    out.extend_from_slice(&nanoseconds.to_le_bytes());
}

/// Whole seconds, rounded down, and nanoseconds.
fn since_1970(time: SystemTime) -> (i64, u32) {
    let whole = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => (whole(after), after.subsec_nanos()),
        Err(before) => {
            let before = before.duration();
            match before.subsec_nanos() {
                0 => (-whole(before), 0),
                nanoseconds => (-whole(before) - 1, 1_000_000_000 - nanoseconds),
            }
        }
    }
}

pub(crate) fn put_operation(out: &mut Vec<u8>, step: &Operation) {
    match step {
        Operation::Add {
            node,
            target,
            attributes,
        } => {
            put_node(out, operation::ADD, *node);
            put_target(out, target);
            put_attributes(out, attributes);
        }
        Operation::Splice { subtree, target } => {
            out.push(operation::SPLICE);
            put_target(out, target);
            put_nodes(out, subtree.len(), subtree.records());
        }
        Operation::Move { node, target } => {
            put_node(out, operation::MOVE, *node);
            put_target(out, target);
        }
        Operation::Delete { node } => put_node(out, operation::DELETE, *node),
        Operation::PutAttribute { node, name, value } => {
            put_node(out, operation::PUT, *node);
            put_bytes(out, name);
            put_bytes(out, value);
        }
        Operation::DeleteAttribute { node, name } => {
            put_node(out, operation::UNPUT, *node);
            put_bytes(out, name);
        }
        Operation::ReplaceRoot { node, attributes } => {
            put_node(out, operation::REPLACE_ROOT, *node);
            put_attributes(out, attributes);
        }
        Operation::PushRoot { node, attributes } => {
            put_node(out, operation::PUSH_ROOT, *node);
            put_attributes(out, attributes);
        }
        Operation::PopRoot { node } => put_node(out, operation::POP_ROOT, *node),
        other => unreachable!("a kind of operation without a code: {other:?}"),
    }
}

fn put_node(out: &mut Vec<u8>, kind: u8, node: NodeId) {
    out.push(kind);
    put_number(out, node.get());
}

/// Where a node went: the place that was asked for is not part of the outcome.
fn put_target(out: &mut Vec<u8>, target: &Target) {
    put_number(out, target.parent.get());
    put_key(out, &target.key);
}

fn put_key(out: &mut Vec<u8>, key: &OrderKey) {
    put_number(out, key.words().len() as u64);
    key.words().iter().for_each(|word| put_number(out, *word));
}

fn put_attributes(out: &mut Vec<u8>, attributes: &Attributes) {
    put_number(out, attributes.len() as u64);
    for (name, value) in attributes.iter_bytes() {
        put_bytes(out, name);
        put_bytes(out, value);
    }
}

/// Nodes by rising ids. The parent of the topmost is 0.
pub(crate) fn put_nodes(out: &mut Vec<u8>, count: u64, nodes: impl Iterator<Item = NodeRecord>) {
    put_number(out, count);
    let mut last = 0;
    for node in nodes {
        put_number(out, node.id.get() - last);
        last = node.id.get();
        put_number(out, node.parent.map_or(0, NodeId::get));
        put_key(out, &node.key);
        put_attributes(out, &node.attributes);
    }
}
