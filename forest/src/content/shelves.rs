//! Where erasable bytes are kept: by their ids, and by the attributes for which they were brought.
//!
//! - Each map is in [`PARTS`] parts. A map that grows moves all its entries. With a hundred thousand entries that would
//!   delay the commit at which it happens by many milliseconds; a part moves its own entries only.
//! - Most attributes have one value ever, so a place with one id has no set.
//! - What an edit brings is here before its commit, which only sets a mark. Until then nobody but its author can have a
//!   reference to it, and no erasure reaches it.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use weald_tree::NodeId;

use super::erasable_bytes::ErasableBytes;

/// Identifies the bytes of an erasable value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobId(pub u128);

/// The attribute for which bytes were stored: the tree's number, the node, the name.
pub(crate) type Place = (u64, NodeId, Box<str>);

/// How many parts a map has.
const PARTS: usize = 64;

/// All erasable bytes of a forest.
#[derive(Default)]
pub(super) struct Shelves {
    pub(super) blobs: Parts<BlobId, Shelf>,
    /// The blobs that were not erased, by the attribute for which they were put, and by those to which they were
    /// copied.
    pub(super) places: Parts<Place, Ids>,
    /// The attributes to which a reference was copied, with the number of the first commit that did so.
    pub(super) copies: Parts<BlobId, Vec<(u64, Place)>>,
    /// Whether copies stay known when no version in memory has the blob: a history on disk may have it.
    pub(super) keeps_copies: bool,
    /// Whether blobs stay that no reference has: the forest is being read back, and a later record may have one again.
    pub(super) keeps_unheld: bool,
    /// The bytes of all blobs together.
    pub(super) bytes: usize,
    /// How many references there are, where clones of one count once.
    pub(super) holders: Parts<BlobId, usize>,
    /// What commits have brought and their authors have yet to note.
    pub(super) coming: Vec<Arc<Notes>>,
}

/// The references that a commit brought to a tree, in the order of their attributes.
pub(super) struct Notes {
    /// The number of the tree.
    pub(super) tree: u64,
    /// That of the commit.
    pub(super) number: u64,
    pub(super) references: Vec<(NodeId, Box<str>, BlobId)>,
}

impl Notes {
    /// The blob to which an attribute refers.
    fn at(&self, (tree, node, name): &Place) -> Option<BlobId> {
        find(&self.references, (*node, name)).filter(|_| self.tree == *tree)
    }
}

/// The blob to which an attribute refers, among references in the order of their attributes.
pub(crate) fn find(
    references: &[(NodeId, Box<str>, BlobId)],
    at: (NodeId, &str),
) -> Option<BlobId> {
    let found = references.binary_search_by(|(node, name, _)| (*node, &**name).cmp(&at));
    found.ok().map(|found| references[found].2)
}

pub(super) struct Shelf {
    pub(super) place: Place,
    pub(super) content: Content,
    /// That of the edit that brings it, which its commit sets; `None`, if it was never in an edit of this opening.
    pub(super) mark: Option<CommitMark>,
}

/// Whether an edit was committed. All that it brings has the same one.
pub(crate) type CommitMark = Arc<AtomicBool>;

impl Shelf {
    pub(super) fn new(place: Place, content: Content) -> Self {
        let mark = None;
        Self {
            place,
            content,
            mark,
        }
    }

    /// Whether it belongs to the forest, and not to an edit that may never be committed.
    pub(super) fn is_committed(&self) -> bool {
        // Acquire: pairs with the store by the commit.
        let mark = self.mark.as_ref();
        mark.is_none_or(|mark| mark.load(Ordering::Acquire))
    }
}

pub(super) enum Content {
    Stored(ErasableBytes),
    Erased(SystemTime),
    /// They are in the journal, and not read back yet.
    Absent,
    /// The journal has them and cannot read them. They read as erased at this time; they can still be erased, and
    /// copied.
    Unreadable(SystemTime),
}

/// The ids of the bytes that were brought for one attribute.
#[derive(Default)]
pub(super) enum Ids {
    #[default]
    None,
    One(BlobId),
    Many(HashSet<BlobId>),
}

/// A map in parts.
pub(super) struct Parts<K: Spread, V>(Box<[HashMap<K, V, K::Hashing>]>);

/// What spreads the keys of a map over its parts, and in them.
pub(super) trait Spread: Eq + Hash {
    type Hashing: std::hash::BuildHasher + Default;

    fn spread(&self) -> u64;
}

impl Spread for BlobId {
    type Hashing = BuildHasherDefault<OfRandom>;

    fn spread(&self) -> u64 {
        (self.0 >> 64) as u64
    }
}

impl Spread for Place {
    type Hashing = std::hash::RandomState;

    fn spread(&self) -> u64 {
        self.1.get()
    }
}

/// The hash of an id, which is random already.
#[derive(Default)]
pub(super) struct OfRandom(u64);

impl Hasher for OfRandom {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for word in bytes.chunks(8) {
            let mut all = [0; 8];
            all[..word.len()].copy_from_slice(word);
            self.0 ^= u64::from_ne_bytes(all);
        }
    }
}

impl<K: Spread, V> Default for Parts<K, V> {
    fn default() -> Self {
        Self((0..PARTS).map(|_| HashMap::default()).collect())
    }
}

impl<K: Spread, V> Parts<K, V> {
    fn at(key: &K) -> usize {
        // It is less than the number of parts.
        usize::try_from(key.spread() % PARTS as u64).unwrap_or_default()
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.0[Self::at(key)].get(key)
    }

    pub(super) fn has(&self, key: &K) -> bool {
        self.0[Self::at(key)].contains_key(key)
    }

    /// The part in which a key is, if it is there.
    pub(super) fn part_mut(&mut self, key: &K) -> &mut HashMap<K, V, K::Hashing> {
        &mut self.0[Self::at(key)]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.0.iter().flatten()
    }

    /// Removes an entry, and shrinks its part when few are left in it.
    pub(super) fn take(&mut self, key: &K) -> Option<V> {
        let part = self.part_mut(key);
        let taken = part.remove(key);
        if part.is_empty() || part.len() < part.capacity() / 4 {
            part.shrink_to(2 * part.len());
        }
        taken
    }
}

impl Ids {
    /// Whether it was not there.
    pub(super) fn insert(&mut self, id: BlobId) -> bool {
        match self {
            Self::None => *self = Self::One(id),
            Self::One(one) if *one == id => return false,
            Self::One(one) => *self = Self::Many(HashSet::from([*one, id])),
            Self::Many(all) => return all.insert(id),
        }
        true
    }

    /// Whether none is left.
    fn remove(&mut self, id: BlobId) -> bool {
        match self {
            Self::None => true,
            Self::One(one) => *one == id,
            Self::Many(all) => {
                all.remove(&id);
                all.is_empty()
            }
        }
    }

    pub(super) fn all(&self) -> Vec<BlobId> {
        match self {
            Self::None => Vec::new(),
            Self::One(one) => vec![*one],
            Self::Many(all) => all.iter().copied().collect(),
        }
    }
}

impl Shelves {
    /// The blobs to which an attribute of a node ever referred in a version, and that were not erased.
    pub(super) fn committed_at(&self, place: &Place) -> Vec<BlobId> {
        let ids = self.places.get(place).map(Ids::all);
        let mut ids = ids.unwrap_or_default();
        // Where it was copied to, a version has it, whatever becomes of the edit that brings it.
        let is_there = |shelf: &Shelf| shelf.place != *place || shelf.is_committed();
        ids.retain(|id| self.blobs.get(id).is_none_or(is_there));
        let coming = self.coming.iter().filter_map(|notes| notes.at(place));
        ids.extend(coming.filter(|id| self.is_copy(place, *id)));
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Whether a reference at an attribute is a copy of one that was brought for another, and that was not erased.
    fn is_copy(&self, place: &Place, id: BlobId) -> bool {
        match self.blobs.get(&id) {
            // The reference may be in the history, and have come from there.
            None => self.keeps_copies,
            Some(shelf) => shelf.place != *place && !matches!(shelf.content, Content::Erased(_)),
        }
    }

    /// Those of some references that are copies.
    pub(super) fn copies_in(&self, notes: &Notes) -> Vec<(BlobId, Place)> {
        let all = notes.references.iter();
        let all = all.map(|(node, name, id)| (*id, (notes.tree, *node, name.clone())));
        all.filter(|(id, place)| self.is_copy(place, *id)).collect()
    }

    /// Notes a reference that a commit of this number brought to an attribute.
    pub(super) fn note(&mut self, place: Place, id: BlobId, number: u64) {
        if self.is_copy(&place, id) {
            self.copy_to(place, id, number);
        }
    }

    /// A blob is for a place.
    pub(super) fn put_at(&mut self, place: &Place, id: BlobId) {
        let part = self.places.part_mut(place);
        match part.get_mut(place) {
            Some(ids) => _ = ids.insert(id),
            None => _ = part.insert(place.clone(), Ids::One(id)),
        }
    }

    /// The shelf of bytes that are to be read back.
    pub(super) fn absent_mut(&mut self, id: BlobId) -> Option<&mut Shelf> {
        let shelf = self.blobs.part_mut(&id).get_mut(&id);
        shelf.filter(|shelf| matches!(shelf.content, Content::Absent))
    }

    /// Stores bytes that were to be read back, unless they were erased meanwhile.
    pub(super) fn fill(&mut self, id: BlobId, bytes: ErasableBytes) {
        let len = bytes.len();
        if let Some(shelf) = self.absent_mut(id) {
            shelf.content = Content::Stored(bytes);
            self.bytes += len;
        }
    }

    /// Returns the bytes that are gone.
    pub(super) fn erase(&mut self, id: BlobId, when: SystemTime) -> Option<ErasableBytes> {
        let shelf = self.blobs.part_mut(&id).get_mut(&id)?;
        if matches!(shelf.content, Content::Erased(_)) {
            return None;
        }
        let gone = std::mem::replace(&mut shelf.content, Content::Erased(when));
        leave(&mut self.places, &shelf.place, id);
        for (_, place) in self.copies.get(&id).into_iter().flatten() {
            leave(&mut self.places, place, id);
        }
        if !self.keeps_copies {
            self.copies.take(&id);
        }
        let Content::Stored(bytes) = gone else {
            return None;
        };
        self.bytes -= bytes.len();
        Some(bytes)
    }

    /// Removes a blob.
    pub(super) fn take(&mut self, id: BlobId) -> Option<Shelf> {
        let shelf = self.blobs.take(&id)?;
        if let Content::Stored(bytes) = &shelf.content {
            self.bytes -= bytes.len();
        }
        leave(&mut self.places, &shelf.place, id);
        if !self.keeps_copies {
            self.forget_copies(id);
        }
        Some(shelf)
    }

    /// The attribute has a reference that was brought for another one, since a commit of this number.
    pub(super) fn copy_to(&mut self, place: Place, id: BlobId, number: u64) {
        let ids = self.places.part_mut(&place).entry(place.clone());
        if ids.or_default().insert(id) {
            let copies = self.copies.part_mut(&id).entry(id).or_default();
            copies.push((number, place));
        }
    }

    /// No attribute has the blob any more, or only the one for which it was brought.
    pub(super) fn forget_copies(&mut self, id: BlobId) {
        for (_, place) in self.copies.take(&id).into_iter().flatten() {
            leave(&mut self.places, &place, id);
        }
    }
}

/// A blob is no longer at a place.
pub(super) fn leave(places: &mut Parts<Place, Ids>, place: &Place, id: BlobId) {
    let ids = places.part_mut(place).get_mut(place);
    if ids.is_some_and(|ids| ids.remove(id)) {
        places.take(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ids_of_a_place_are_a_set() {
        let [one, two, three] = [1, 2, 3].map(BlobId);
        let mut ids = Ids::default();
        assert!(ids.insert(one) && !ids.insert(one));
        assert!(!ids.remove(two), "another one stays");
        assert!(ids.insert(two) && !ids.insert(two) && ids.insert(three));
        let mut all = ids.all();
        all.sort_unstable();
        assert_eq!(all, [one, two, three]);
        assert!(!ids.remove(one) && !ids.remove(one) && !ids.remove(three));
        assert!(ids.remove(two), "none is left");
    }

    #[test]
    fn no_part_has_most_of_what_a_map_has() {
        let mut parts: Parts<Place, ()> = Parts::default();
        for number in 1..=64_000 {
            let place = (1, NodeId::new(number).unwrap(), "post".into());
            parts.part_mut(&place).insert(place, ());
        }
        assert_eq!(parts.iter().count(), 64_000);
        assert!(parts.0.iter().all(|part| part.len() == 1_000));
    }
}
