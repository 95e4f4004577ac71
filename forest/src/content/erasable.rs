//! Attributes that can be erased: the tree and the journal hold a reference, and a store holds the bytes.
//!
//! - A reference is a value of 22 bytes whose beginning no text has. The id in it cannot be guessed, so a
//!   reference cannot be forged.
//! - Erasing removes the bytes from the store, so every version, snapshot and export reads `Erased`.
//! - The edit that refers to bytes puts them into the store, and its commit makes them the forest's (see `brought`).
//!   They stay until they are erased, or until no version has the reference any longer, neither in the forest nor with
//!   a reader: each reference in a tree has a [`Holder`], which is dropped with the last clone of the reference.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};
use std::time::SystemTime;

use weald_tree::{Bytes, NodeId};

pub use super::erasable_bytes::ErasableBytes;
pub use super::shelves::BlobId;
pub(crate) use super::shelves::Place;
use super::shelves::{Content, Shelf, Shelves, leave};

/// The value of an attribute, seen through the store of a forest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A plain value, which is in the tree.
    Plain(&'a [u8]),
    /// An erasable value that was not erased.
    Erasable(ErasableBytes),
    /// An erasable value that was erased.
    Erased {
        /// When; or of the newest commit, if it was erased after the moment that is shown, or the journal cannot read
        /// it.
        when: SystemTime,
    },
    /// A reference to bytes that this forest does not have: another forest has them; or the history has them, and the
    /// commit of the edit that took the reference from there brings them back.
    Elsewhere,
}

impl Value<'_> {
    /// The bytes, unless they were erased or are elsewhere.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Plain(bytes) => Some(bytes),
            Self::Erasable(bytes) => Some(bytes),
            Self::Erased { .. } | Self::Elsewhere => None,
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

/// Whether a reference may be anywhere in these bytes.
pub(crate) fn may_refer(bytes: &[u8]) -> bool {
    // A reference begins at few bytes, so the quickest test comes first.
    bytes.contains(&MARK[0]) && bytes.windows(MARK.len()).any(|window| window == MARK)
}

/// The erasable bytes to which a record refers. The references are found by how their bytes begin, so nothing of the
/// record is decoded.
pub fn references_in(record: &[u8]) -> impl Iterator<Item = BlobId> + '_ {
    record.windows(LEN).filter_map(referred)
}

pub(crate) fn is_reference(value: &[u8]) -> bool {
    value.len() == LEN && value.starts_with(&MARK)
}

/// A reference to erasable bytes, with the node and the name of the attribute that has it.
pub(crate) type Referred = (NodeId, Box<str>, BlobId);

/// Erasable bytes that an edit brings.
#[derive(Clone, Debug)]
pub struct Blob {
    /// Their id.
    pub id: BlobId,
    /// The number of the tree for which they are brought.
    pub tree: u64,
    /// The node whose attribute refers to them.
    pub node: NodeId,
    /// The name of that attribute.
    pub name: Box<str>,
    /// The bytes.
    pub bytes: ErasableBytes,
}

/// Erasable bytes that are to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Erasure {
    /// All bytes that were ever brought for this attribute: the number of the tree, the node, and the name.
    pub place: (u64, NodeId, Box<str>),
    /// And these bytes: they were brought for other attributes, but this attribute referred to
    /// them.
    pub ids: Vec<BlobId>,
}

/// The attribute for which erasable bytes were brought, in the tree of the change that brings them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobPlace {
    /// The id of the bytes.
    pub id: BlobId,
    /// The node whose attribute refers to them.
    pub node: NodeId,
    /// The name of that attribute.
    pub name: Box<str>,
}

/// The erasable bytes of a forest.
#[derive(Default)]
pub(crate) struct Blobs {
    /// Whether there ever were any. Relaxed: a thread that has a reference has synchronised with the commit that
    /// brought it.
    were_used: AtomicBool,
    pub(super) shelves: RwLock<Shelves>,
    random: [RandomState; 2],
}

/// The companion of a reference in a tree. When the last clone of the reference is dropped, in whatever version
/// it was, nobody can ask for the bytes any longer.
pub(super) struct Holder {
    pub(super) blobs: Arc<Blobs>,
    id: BlobId,
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.blobs.let_go(self.id);
    }
}

impl Blobs {
    /// The id for a number that no other blob has.
    pub(crate) fn id(&self, number: u64) -> BlobId {
        let halves = self.random.each_ref().map(|random| random.hash_one(number));
        BlobId(u128::from(halves[0]) << 64 | u128::from(halves[1]))
    }

    /// The value that refers to a blob in a tree, and in the end removes the blob from the store.
    pub(crate) fn reference(self: &Arc<Self>, id: BlobId) -> Bytes {
        self.were_used.store(true, Ordering::Relaxed);
        *self.write().holders.part_mut(&id).entry(id).or_default() += 1;
        let blobs = Arc::clone(self);
        Bytes::with_companion(&reference(id), Holder { blobs, id })
    }

    /// Whether any value may be a reference.
    pub(crate) fn were_used(&self) -> bool {
        self.were_used.load(Ordering::Relaxed)
    }

    /// How many blobs are stored, and their bytes together.
    pub(crate) fn count(&self) -> (usize, usize) {
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        let is_there = |shelf: &&Shelf| !matches!(shelf.content, Content::Erased(_));
        let blobs = shelves.blobs.iter().map(|(_, shelf)| shelf);
        let blobs = blobs.filter(is_there).count();
        (blobs, shelves.bytes)
    }

    /// No version refers to a blob any longer. The id may be unknown: a tree may refer to bytes that this
    /// forest does not have.
    fn let_go(&self, id: BlobId) {
        let mut shelves = self.write();
        if let Some(count) = shelves.holders.part_mut(&id).get_mut(&id) {
            *count -= 1;
            if *count > 0 {
                return;
            }
        }
        shelves.holders.take(&id);
        if shelves.keeps_unheld {
            return;
        }
        let gone = shelves.take(id);
        drop(shelves);
        drop(gone); // Large bytes are freed after the lock.
    }

    /// Removes all bytes that were ever stored for an attribute of a node, and those to which it referred. Returns
    /// them: to overwrite and to free them takes long if they are many.
    #[must_use]
    pub(crate) fn erase(&self, erasure: &Erasure, when: SystemTime) -> Vec<ErasableBytes> {
        let mut gone = Vec::new();
        let mut guard = self.write();
        let mut ids = guard.committed_at(&erasure.place);
        ids.extend(&erasure.ids);
        for id in ids {
            leave(&mut guard.places, &erasure.place, id);
            // The checkpoint may know nothing of it, because its reference was brought back from the history later.
            if guard.keeps_unheld && !guard.blobs.has(&id) {
                let (place, content) = (erasure.place.clone(), Content::Erased(when));
                let shelf = Shelf::new(place, content);
                guard.blobs.part_mut(&id).insert(id, shelf);
            }
            gone.extend(guard.erase(id, when));
        }
        gone
    }

    /// The meaning of a value. A reference is never plain bytes, even if it refers to nothing that is known here.
    pub(crate) fn value<'a>(&self, value: &'a [u8]) -> Value<'a> {
        let Some(id) = referred(value) else {
            return Value::Plain(value);
        };
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        match shelves.blobs.get(&id).map(|shelf| &shelf.content) {
            None | Some(Content::Absent) => Value::Elsewhere,
            Some(Content::Stored(bytes)) => Value::Erasable(bytes.clone()),
            Some(Content::Erased(when) | Content::Unreadable(when)) => {
                Value::Erased { when: *when }
            }
        }
    }
}

/// Copies of references, for a forest whose journal has a history: so an attribute can be erased, too, if only the
/// history has a copy of it.
impl Blobs {
    /// Copies stay known after the last version in memory has lost the reference, until they are
    /// [forgotten](Self::forget_copies).
    pub(crate) fn keeping_copies() -> Self {
        let blobs = Self::default();
        blobs.write().keeps_copies = true;
        blobs
    }

    /// All copies that commits up to this number have made.
    pub(crate) fn copies(&self, upto: u64) -> Vec<(BlobId, Place)> {
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        let mut all = Vec::new();
        for (id, copies) in shelves.copies.iter() {
            let copies = copies.iter().filter(|(number, _)| *number <= upto);
            all.extend(copies.map(|(_, place)| (*id, place.clone())));
        }
        let coming = shelves.coming.iter().filter(|notes| notes.number <= upto);
        all.extend(coming.flat_map(|notes| shelves.copies_in(notes)));
        drop(shelves); // Commits with erasable bytes wait for it.
        all.sort_unstable();
        all.dedup();
        all
    }

    /// A copy that an earlier opening knew, in a checkpoint of this number.
    pub(crate) fn add_copy(&self, (id, place): (BlobId, Place), number: u64) {
        self.write().copy_to(place, id, number);
    }

    /// There were references in an earlier opening, and its history may still have them.
    pub(crate) fn note_use(&self) {
        self.were_used.store(true, Ordering::Relaxed);
    }

    /// Blobs that were copied and are no longer stored here. Only the journal knows whether its history has
    /// them.
    pub(crate) fn copied_and_gone(&self) -> Vec<BlobId> {
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        let is_gone = |id: &BlobId| match shelves.blobs.get(id) {
            Some(shelf) => matches!(shelf.content, Content::Erased(_)),
            // An edit that is yet to be committed may bring it.
            None => !shelves.holders.has(id),
        };
        let copied = shelves.copies.iter().map(|(id, _)| *id);
        copied.filter(is_gone).collect()
    }

    /// Nobody can ask for a blob any more, not in the history either.
    pub(crate) fn forget_copies(&self, id: BlobId) {
        self.write().forget_copies(id);
    }
}

/// Reading a forest back.
impl Blobs {
    /// Blobs stay until they are [swept](Self::sweep): a record may bring back a reference that no kept version had
    /// meanwhile, because its author took it from a snapshot or restored a version that this forest does not keep.
    pub(crate) fn to_recover() -> Self {
        let blobs = Self::keeping_copies();
        blobs.write().keeps_unheld = true;
        blobs
    }

    /// Bytes that the journal has. If they were known, nothing changes.
    pub(crate) fn add_absent(&self, tree: u64, at: BlobPlace) {
        let mut shelves = self.write();
        if shelves.blobs.has(&at.id) {
            return;
        }
        let place = (tree, at.node, at.name);
        shelves.put_at(&place, at.id);
        let content = Content::Absent;
        let shelf = Shelf::new(place, content);
        shelves.blobs.part_mut(&at.id).insert(at.id, shelf);
    }

    pub(crate) fn set_erased(&self, id: BlobId, when: SystemTime) {
        self.write().erase(id, when);
    }

    /// The bytes that were erased.
    pub(crate) fn erased(&self) -> Vec<BlobId> {
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        let erased = shelves.blobs.iter();
        let erased = erased.filter(|(_, shelf)| matches!(shelf.content, Content::Erased(_)));
        erased.map(|(id, _)| *id).collect()
    }

    /// The journal has bytes whose erasure was lost.
    pub(crate) fn set_absent(&self, id: BlobId) {
        let mut guard = self.write();
        let shelves = &mut *guard;
        if let Some(shelf) = shelves.blobs.part_mut(&id).get_mut(&id) {
            shelf.content = Content::Absent;
            let place = shelf.place.clone();
            shelves.put_at(&place, id);
        }
    }

    /// Forgets what nothing refers to, now that all is read; from now on at once.
    pub(crate) fn sweep(&self) {
        let mut guard = self.write();
        let shelves = &mut *guard;
        shelves.keeps_unheld = false;
        let ids = shelves.blobs.iter().map(|(id, _)| *id);
        let unheld: Vec<_> = ids.filter(|id| !shelves.holders.has(id)).collect();
        for id in unheld {
            shelves.take(id);
        }
    }

    /// The bytes that are to be read back.
    pub(crate) fn absent(&self) -> Vec<BlobId> {
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        let blobs = shelves.blobs.iter();
        let absent = blobs.filter(|(_, shelf)| matches!(shelf.content, Content::Absent));
        absent.map(|(id, _)| *id).collect()
    }

    /// Stores bytes that were read back, unless they were erased meanwhile.
    pub(crate) fn fill(&self, id: BlobId, bytes: Vec<u8>) {
        self.write().fill(id, bytes.into());
    }

    /// The journal has bytes and cannot read them. So they are no erased ones: an erasure must still reach them.
    pub(crate) fn set_unreadable(&self, id: BlobId, when: SystemTime) {
        if let Some(shelf) = self.write().absent_mut(id) {
            shelf.content = Content::Unreadable(when);
        }
    }

    /// How many blobs the journal has and cannot read.
    pub(crate) fn unreadable(&self) -> usize {
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        let blobs = shelves.blobs.iter().map(|(_, shelf)| shelf);
        let is_it = |shelf: &&Shelf| matches!(shelf.content, Content::Unreadable(_));
        blobs.filter(is_it).count()
    }

    /// All blobs, with the time when they were erased.
    pub(crate) fn all(&self) -> Vec<(BlobId, Place, Option<SystemTime>)> {
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        let committed = shelves
            .blobs
            .iter()
            .filter(|(_, shelf)| shelf.is_committed());
        let all = committed.map(|(id, shelf)| {
            let erased = match shelf.content {
                Content::Erased(when) => Some(when),
                Content::Stored(_) | Content::Absent | Content::Unreadable(_) => None,
            };
            (*id, shelf.place.clone(), erased)
        });
        let mut all: Vec<_> = all.collect();
        drop(shelves);
        all.sort_unstable_by_key(|(id, ..)| *id);
        all
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, Shelves> {
        self.shelves.write().unwrap_or_else(PoisonError::into_inner)
    }
}
