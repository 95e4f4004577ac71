//! Attributes that can be erased: the tree and the journal hold a reference, and a store holds the bytes.
//!
//! - A reference is a value of 22 bytes whose beginning no text has. The id in it cannot be guessed, so a
//!   reference cannot be forged.
//! - Erasing removes the bytes from the store, so every version, snapshot and export reads `Erased`.
//! - The commit that refers to bytes puts them into the store. They stay until they are erased, or until no
//!   version has the reference any longer, neither in the forest nor with a reader: each reference in a tree
//!   has a [`Holder`], which is dropped with the last clone of the reference.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use weald_tree::{Bytes, NodeId};

/// Identifies the bytes of an erasable value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobId(pub u128);

/// The value of an attribute, seen through the store of a forest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A plain value, which is in the tree.
    Plain(&'a [u8]),
    /// An erasable value that was not erased.
    Erasable(Arc<[u8]>),
    /// An erasable value that was erased.
    Erased {
        /// When.
        when: SystemTime,
    },
}

impl Value<'_> {
    /// The bytes, unless they were erased.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Plain(bytes) => Some(bytes),
            Self::Erasable(bytes) => Some(bytes),
            Self::Erased { .. } => None,
        }
    }
}

/// No UTF-8 begins with these bytes.
const MARK: [u8; 6] = [0xff, 0xfe, b'b', b'l', b'o', b'b'];
const LEN: usize = MARK.len() + size_of::<u128>();

/// The bytes that refer to a blob in a tree.
fn reference(id: BlobId) -> [u8; LEN] {
    let mut value = [0; LEN];
    value[..MARK.len()].copy_from_slice(&MARK);
    value[MARK.len()..].copy_from_slice(&id.0.to_le_bytes());
    value
}

/// The blob to which a value refers.
pub(crate) fn referred(value: &[u8]) -> Option<BlobId> {
    let id = value.strip_prefix(&MARK)?.try_into().ok()?;
    Some(BlobId(u128::from_le_bytes(id)))
}

pub(crate) fn is_reference(value: &[u8]) -> bool {
    value.len() == LEN && value.starts_with(&MARK)
}

/// The attribute for which bytes were stored: the tree's number, the node, the name.
pub(crate) type Place = (u64, NodeId, Box<str>);

/// Erasable bytes that an edit brings.
#[derive(Clone, Debug)]
pub struct Blob {
    /// Their id.
    pub id: BlobId,
    /// The node whose attribute refers to them.
    pub node: NodeId,
    /// The name of that attribute.
    pub name: Box<str>,
    /// The bytes.
    pub bytes: Arc<[u8]>,
}

/// The erasable bytes of a forest.
#[derive(Default)]
pub(crate) struct Blobs {
    shelves: RwLock<Shelves>,
    random: [RandomState; 2],
}

#[derive(Default)]
struct Shelves {
    blobs: HashMap<BlobId, Shelf>,
    /// The blobs that were not erased, by the attribute for which they were put.
    places: HashMap<Place, HashSet<BlobId>>,
    /// The bytes of all blobs together.
    bytes: usize,
}

struct Shelf {
    place: Place,
    /// The bytes, or the time when they were erased.
    content: Result<Arc<[u8]>, SystemTime>,
}

/// The companion of a reference in a tree. When the last clone of the reference is dropped, in whatever version
/// it was, nobody can ask for the bytes any longer.
struct Holder {
    blobs: Arc<Blobs>,
    id: BlobId,
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.blobs.let_go(self.id);
    }
}

impl Blobs {
    /// The id for a ticket.
    pub(crate) fn id(&self, ticket: u64) -> BlobId {
        let halves = self.random.each_ref().map(|random| random.hash_one(ticket));
        BlobId(u128::from(halves[0]) << 64 | u128::from(halves[1]))
    }

    /// The value that refers to a blob in a tree, and in the end removes the blob from the store.
    pub(crate) fn reference(self: &Arc<Self>, id: BlobId) -> Bytes {
        let blobs = Arc::clone(self);
        Bytes::with_companion(&reference(id), Holder { blobs, id })
    }

    pub(crate) fn add(&self, tree: u64, blobs: Vec<Blob>) {
        if blobs.is_empty() {
            return;
        }
        let mut shelves = self.shelves.write().unwrap_or_else(PoisonError::into_inner);
        for blob in blobs {
            let place = (tree, blob.node, blob.name);
            let ids = shelves.places.entry(place.clone()).or_default();
            ids.insert(blob.id);
            shelves.bytes += blob.bytes.len();
            let content = Ok(blob.bytes);
            shelves.blobs.insert(blob.id, Shelf { place, content });
        }
    }

    /// How many blobs are stored, and their bytes together.
    pub(crate) fn count(&self) -> (usize, usize) {
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        let ids = shelves.places.values().map(HashSet::len);
        (ids.sum(), shelves.bytes)
    }

    /// No version refers to a blob any longer. The id may be unknown, if its edit was not committed.
    fn let_go(&self, id: BlobId) {
        let mut shelves = self.shelves.write().unwrap_or_else(PoisonError::into_inner);
        let gone = shelves.take(id);
        drop(shelves);
        drop(gone); // Large bytes are freed after the lock.
    }

    /// Whether bytes are stored for an attribute of a node.
    pub(crate) fn are_at(&self, place: &Place) -> bool {
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        shelves.places.contains_key(place)
    }

    /// Removes all bytes that were ever stored for an attribute of a node.
    pub(crate) fn erase(&self, place: &Place, when: SystemTime) {
        let mut gone = Vec::new();
        let mut guard = self.shelves.write().unwrap_or_else(PoisonError::into_inner);
        let shelves = &mut *guard;
        for id in shelves.places.remove(place).unwrap_or_default() {
            if let Some(shelf) = shelves.blobs.get_mut(&id)
                && let Ok(bytes) = std::mem::replace(&mut shelf.content, Err(when))
            {
                shelves.bytes -= bytes.len();
                gone.push(bytes);
            }
        }
        drop(guard);
        drop(gone); // Large bytes are freed after the lock.
    }

    /// The meaning of a value; one that refers to no known blob is plain.
    pub(crate) fn value<'a>(&self, value: &'a [u8]) -> Value<'a> {
        let Some(id) = referred(value) else {
            return Value::Plain(value);
        };
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        match shelves.blobs.get(&id).map(|shelf| &shelf.content) {
            None => Value::Plain(value),
            Some(Ok(bytes)) => Value::Erasable(Arc::clone(bytes)),
            Some(Err(when)) => Value::Erased { when: *when },
        }
    }
}

impl Shelves {
    /// Removes a blob, and shrinks the maps when few are left.
    fn take(&mut self, id: BlobId) -> Option<Shelf> {
        let shelf = self.blobs.remove(&id)?;
        if let Ok(bytes) = &shelf.content {
            self.bytes -= bytes.len();
        }
        if let Some(ids) = self.places.get_mut(&shelf.place) {
            ids.remove(&id);
            if ids.is_empty() {
                self.places.remove(&shelf.place);
            }
        }
        if self.blobs.len() < self.blobs.capacity() / 4 {
            self.blobs.shrink_to(2 * self.blobs.len());
            self.places.shrink_to(2 * self.blobs.len());
        }
        Some(shelf)
    }
}
