//! The digest of what an author asks for. A commit that is tried again has the same digest, although its new nodes have
//! other ids and its erasable bytes other references.
//!
//! Erasable bytes are left out, because the digest stays when they are erased, and short bytes could be guessed from
//! it.
//!
//! It is stored in the journal, so it is the same in all programs: FNV-1a of 64 bits, over what `absorb` passes in.

use std::collections::HashMap;

use weald_tree::{Attributes, NodeId, NodeRecord, Operation, Target, Where};

use super::request::{Action, TreeEdit};
use crate::content::erasable::{Blob, referred};
use crate::journal::Digest;

impl Action {
    /// The digest of edits: only these may be given an id.
    pub(crate) fn digest(&self) -> Digest {
        let mut hasher = Hasher::default();
        if let Self::Edits(first, rest) = self {
            for edit in std::iter::once(&**first).chain(rest) {
                hasher.edit(edit);
            }
        }
        Digest::new(hasher.state).unwrap_or(Digest::MIN)
    }
}

struct Hasher<'a> {
    state: u64,
    /// The nodes that the edit creates, by the order in which it does.
    new: HashMap<NodeId, u64>,
    blobs: &'a [Blob],
}

impl Default for Hasher<'_> {
    fn default() -> Self {
        Self {
            state: 0xcbf2_9ce4_8422_2325,
            new: HashMap::new(),
            blobs: &[],
        }
    }
}

impl<'a> Hasher<'a> {
    fn absorb(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.state = (self.state ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    fn number(&mut self, number: u64) {
        self.absorb(&number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.absorb(bytes);
    }

    fn value(&mut self, value: &[u8]) {
        let own = referred(value).and_then(|id| self.blobs.iter().find(|blob| blob.id == id));
        match own {
            Some(_) => self.absorb(b"e"),
            None => self.bytes(value),
        }
    }

    fn attributes(&mut self, attributes: &Attributes) {
        for (name, value) in attributes.iter() {
            self.bytes(name.as_bytes());
            self.value(value);
        }
    }

    fn edit(&mut self, edit: &'a TreeEdit) {
        self.new.clear();
        self.blobs = &edit.blobs;
        self.number(edit.state.number);
        let operations = edit.work.operations();
        self.number(operations.len() as u64);
        operations.iter().for_each(|step| self.operation(step));
    }

    fn operation(&mut self, step: &Operation) {
        match step {
            Operation::Add {
                node,
                target,
                attributes,
            } => {
                self.absorb(b"a");
                self.target(target);
                self.create(*node);
                self.attributes(attributes);
            }
            Operation::Splice { subtree, target } => {
                self.absorb(b"s");
                self.target(target);
                subtree.records().for_each(|node| self.record(&node));
            }
            Operation::Move { node, target } => {
                self.absorb(b"m");
                self.node(*node);
                self.target(target);
            }
            Operation::Delete { node } => {
                self.absorb(b"d");
                self.node(*node);
            }
            Operation::PutAttribute { node, name, value } => {
                self.absorb(b"p");
                self.node(*node);
                self.bytes(name);
                self.value(value);
            }
            Operation::DeleteAttribute { node, name } => {
                self.absorb(b"u");
                self.node(*node);
                self.bytes(name);
            }
            Operation::ReplaceRoot { node, attributes } => {
                self.absorb(b"r");
                self.create(*node);
                self.attributes(attributes);
            }
            Operation::PushRoot { node, attributes } => {
                self.absorb(b"t");
                self.create(*node);
                self.attributes(attributes);
            }
            Operation::PopRoot { node } => {
                self.absorb(b"o");
                self.node(*node);
            }
            other => unreachable!("a kind of operation without a letter: {other:?}"),
        }
    }

    fn record(&mut self, record: &NodeRecord) {
        self.create(record.id);
        if let Some(parent) = record.parent {
            self.node(parent);
        }
        record
            .key
            .words()
            .iter()
            .for_each(|word| self.number(*word));
        self.attributes(&record.attributes);
    }

    /// The place that the author meant. Its key depends on what is there.
    fn target(&mut self, target: &Target) {
        let (kind, node) = match target.at {
            Where::First(node) => (b"f", node),
            Where::Last(node) => (b"l", node),
            Where::Before(node) => (b"b", node),
            Where::After(node) => (b"n", node),
            Where::AtKey(node) => (b"k", node),
        };
        self.absorb(kind);
        self.node(node);
    }

    fn create(&mut self, node: NodeId) {
        let nth = self.new.len() as u64;
        self.new.insert(node, nth);
    }

    fn node(&mut self, node: NodeId) {
        match self.new.get(&node).copied() {
            Some(nth) => {
                self.absorb(b"+");
                self.number(nth);
            }
            None => self.number(node.get()),
        }
    }
}
