//! The record of a commit: what happened, so that replaying it chooses no place and no key again.
//!
//! | bytes | |
//! |---|---|
//! | 8, 8 | incarnation and number of the version, little-endian |
//! | 16 | the id of the commit, little-endian |
//! | 8, 4 | time: seconds since 1970, signed, and nanoseconds, little-endian |
//! | 8 | the digest of what was asked for, little-endian; 0, if the forest chose the id |
//! | varint, … | the length of the author's bytes, and these bytes |
//! | … | the changes, one after the other, up to the end (`encode.rs`) |
//!
//! A commit's author encodes the changes without the right to commit. The rest is known only to the
//! combiner.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::SystemTime;

use weald_tree::{Operation, RecordsError, Tree};

use super::encode::{put_bytes, put_time};
use crate::content::erasable::{Blob, BlobPlace, Erasure};
use crate::version::{CommitId, Version};

/// The length of what precedes the author's bytes.
const HEAD: usize = 8 + 8 + 16 + 8 + 4 + 8;

/// One commit, on its way into a journal.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The version that it makes.
    pub version: Version,
    /// Its id.
    pub id: CommitId,
    /// Its time.
    pub time: SystemTime,
    /// A digest of what its author asked for, if it is the author who chose the id.
    pub digest: Option<Digest>,
    /// The bytes that its author attached to it.
    pub bytes: &'a [u8],
    /// What it changes, encoded, in pieces. A journal may keep a long piece instead of copying it.
    pub changes: &'a [Arc<Vec<u8>>],
    /// The erasable bytes to which it refers, and which are not part of the record.
    pub blobs: &'a [Blob],
    /// The erasable bytes that are gone when the record is as durable as the commit is to be.
    pub erases: Option<&'a Erasure>,
}

/// Distinguishes two different requests with the same commit id. It is not 0.
pub type Digest = NonZeroU64;

impl Record<'_> {
    /// How many bytes it has.
    #[expect(clippy::len_without_is_empty, reason = "a record has a head")]
    pub fn len(&self) -> usize {
        let changes: usize = self.changes.iter().map(|piece| piece.len()).sum();
        HEAD + super::encode::varint_len(self.bytes.len() as u64) + self.bytes.len() + changes
    }

    /// Appends its bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_head(out);
        self.changes
            .iter()
            .for_each(|piece| out.extend_from_slice(piece));
    }

    /// Appends what precedes the changes.
    pub fn write_head(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.version.incarnation.to_le_bytes());
        out.extend_from_slice(&self.version.number.to_le_bytes());
        out.extend_from_slice(&self.id.0.to_le_bytes());
        put_time(out, self.time);
        out.extend_from_slice(&self.digest.map_or(0, Digest::get).to_le_bytes());
        put_bytes(out, self.bytes);
    }
}

/// One commit, read back from a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The version that it made.
    pub version: Version,
    /// Its id.
    pub id: CommitId,
    /// Its time.
    pub time: SystemTime,
    /// A digest of what its author asked for, if it is the author who chose the id.
    pub digest: Option<Digest>,
    /// The bytes that its author attached to it.
    pub bytes: Vec<u8>,
    /// What it changes, encoded.
    pub(crate) changes: Vec<u8>,
}

/// Why bytes are no record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// They end too early.
    #[error("the record ends in the middle of a value")]
    Short,
    /// A value that cannot be.
    #[error("the record has {0} that cannot be")]
    Invalid(&'static str),
    /// The nodes of a tree or a subtree do not form one.
    #[error("the record has nodes that are no tree: {0}")]
    Nodes(#[from] RecordsError),
    /// It splices into a tree that the reader does not know.
    #[error("the record changes the tree {0}, which is not there")]
    UnknownTree(u64),
}

/// What a commit did to one tree. A tree is identified by the number of the commit that created it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Change {
    /// The tree of the record's number is created.
    Create {
        /// Its name.
        name: String,
        /// Its nodes.
        content: Tree,
    },
    /// Operations on the previous version, in order, for [`tree::Edit::replay`](weald_tree::Edit::replay).
    Edit {
        /// The number of the tree.
        tree: u64,
        /// The operations. Their `at` is not in a record, and says `Last`.
        operations: Vec<Operation>,
        /// The erasable bytes that came with it; they are kept separately, so that they can be erased.
        blobs: Vec<BlobPlace>,
    },
    /// The tree is renamed.
    Rename {
        /// The number of the tree.
        tree: u64,
        /// The new name.
        name: String,
    },
    /// The tree is deleted.
    Delete {
        /// The number of the tree.
        tree: u64,
    },
    /// An attribute has an index from this version on.
    AddIndex {
        /// The number of the tree.
        tree: u64,
        /// The name of the attribute.
        attribute: String,
    },
    /// An attribute has no index from this version on.
    DropIndex {
        /// The number of the tree.
        tree: u64,
        /// The name of the attribute.
        attribute: String,
    },
    /// Erasable bytes are erased from every version.
    Erase(Erasure),
    /// A version is given a tag.
    Tag {
        /// The number of the tree.
        tree: u64,
        /// The tag.
        tag: String,
        /// The version of the forest; the tree is as it was then.
        version: Version,
    },
    /// A tag is removed.
    Untag {
        /// The number of the tree.
        tree: u64,
        /// The tag.
        tag: String,
    },
}
