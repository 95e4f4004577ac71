//! What edits bring to the store of erasable bytes. The author does all that grows with it, before the commit or after;
//! in the right to commit a mark is set, and a list is linked in.
//!
//! - Bytes are put into the store by the edit ([`Blobs::bring`]). If it is not committed, they go with its references.
//! - References that were copied are noted, so that the bytes can be erased wherever they are. If they are many, the
//!   commit leaves them in a list, in which an erasure looks as well, and its author notes them one by one
//!   ([`Noting`]).

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::erasable::{Blob, BlobId, Blobs, Place, Referred};
use super::shelves::{CommitMark, Content, Notes, Shelf};

/// How many references are noted under one lock, and so by a commit itself.
const FEW: usize = 64;

/// References that are noted when this is dropped.
#[must_use]
pub(crate) struct Noting {
    blobs: Arc<Blobs>,
    notes: Arc<Notes>,
}

impl Drop for Noting {
    fn drop(&mut self) {
        let Notes {
            tree,
            number,
            references,
        } = &*self.notes;
        for few in references.chunks(FEW) {
            let mut shelves = self.blobs.write();
            for (node, name, id) in few {
                shelves.note((*tree, *node, name.clone()), *id, *number);
            }
        }
        let is_other = |other: &Arc<Notes>| !Arc::ptr_eq(other, &self.notes);
        self.blobs.write().coming.retain(is_other);
    }
}

impl Blobs {
    /// Bytes that an edit brings. The forest has them once the mark is set.
    pub(crate) fn bring(&self, blob: &Blob, mark: &CommitMark) {
        let place = (blob.tree, blob.node, blob.name.clone());
        let mut shelves = self.write();
        shelves.put_at(&place, blob.id);
        shelves.bytes += blob.bytes.len();
        let shelf = Shelf {
            place,
            content: Content::Stored(blob.bytes.clone()),
            mark: Some(Arc::clone(mark)),
        };
        shelves.blobs.part_mut(&blob.id).insert(blob.id, shelf);
    }

    /// The edit that brings these is committed.
    pub(crate) fn commit(&self, blobs: &[Blob]) {
        if blobs.is_empty() {
            return;
        }
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        let mut marks = blobs.iter().filter_map(|blob| {
            let shelf = shelves.blobs.get(&blob.id)?;
            shelf.mark.as_ref()
        });
        // One is enough, because all have the same.
        if let Some(mark) = marks.next() {
            mark.store(true, Ordering::Release);
        }
    }

    /// References that a commit of this number brought to a tree: what they refer to can be erased there, too. If they
    /// are many, the caller drops the rest of the work outside the right to commit.
    pub(crate) fn note(
        self: &Arc<Self>,
        (tree, number): (u64, u64),
        references: Vec<Referred>,
    ) -> Option<Noting> {
        if references.is_empty() {
            return None;
        }
        let mut shelves = self.write();
        if references.len() <= FEW {
            for (node, name, id) in references {
                shelves.note((tree, node, name), id, number);
            }
            return None;
        }
        let notes = Arc::new(Notes {
            tree,
            number,
            references,
        });
        shelves.coming.push(Arc::clone(&notes));
        let blobs = Arc::clone(self);
        Some(Noting { blobs, notes })
    }

    /// Whether bytes are stored for an attribute of a node.
    pub(crate) fn are_at(&self, place: &Place) -> bool {
        !self.ids_at(place).is_empty()
    }

    /// The blobs to which an attribute of a node ever referred in a version, and that were not erased.
    pub(crate) fn ids_at(&self, place: &Place) -> Vec<BlobId> {
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        shelves.committed_at(place)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::time::SystemTime;

    use proptest::prelude::*;
    use weald_tree::{Bytes, NodeId};

    use super::super::erasable::Erasure;
    use super::*;

    const NODES: u64 = 40;
    const BLOBS: u128 = 12;

    /// One of two stores of the same forest.
    struct Store {
        blobs: Arc<Blobs>,
        held: BTreeMap<BlobId, Bytes>,
        noting: Vec<Noting>,
        erased: BTreeSet<BlobId>,
    }

    impl Store {
        fn new(keeps_copies: bool) -> Self {
            let blobs = Arc::new(match keeps_copies {
                true => Blobs::keeping_copies(),
                false => Blobs::default(),
            });
            let mut held = BTreeMap::new();
            for id in (0..BLOBS).map(BlobId) {
                held.insert(id, blobs.reference(id));
                let blob = Blob {
                    id,
                    tree: 1,
                    node: NodeId::new(1 + u64::try_from(id.0).unwrap()).unwrap(),
                    name: "own".into(),
                    bytes: b"bytes"[..].into(),
                };
                // A blob that the history has and memory has not, and one whose edit is not committed.
                if id.0 > 0 {
                    let mark = CommitMark::default();
                    blobs.bring(&blob, &mark);
                    mark.store(id.0 > 1, Ordering::Release);
                }
            }
            let noting = Vec::new();
            Self {
                blobs,
                held,
                noting,
                erased: BTreeSet::new(),
            }
        }

        fn erase(&mut self, place: Place) {
            let ids = self.blobs.ids_at(&place);
            self.erased.extend(&ids);
            let erasure = Erasure { place, ids };
            drop(self.blobs.erase(&erasure, SystemTime::UNIX_EPOCH));
        }

        /// Everything that can be asked about places.
        fn described(&self) -> impl PartialEq + std::fmt::Debug + use<> {
            let nodes = 1..=NODES;
            let places = nodes.flat_map(|node| {
                let node = NodeId::new(node).unwrap();
                ["own", "copy"].map(|name| (1..3).map(move |tree| (tree, node, name.into())))
            });
            let at = places.flatten().map(|place| self.blobs.ids_at(&place));
            // Where erased bytes were copied to is not noted any more.
            let mut copies = self.blobs.copies(100);
            copies.retain(|(id, _)| !self.erased.contains(id));
            (at.collect::<Vec<_>>(), copies, self.blobs.count())
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        /// A commit brings references to a tree, to attributes from this node on.
        Commit(u64, u64, Vec<u128>),
        /// An author does what it has left.
        Note(usize),
        Erase(u64, u64, bool),
        LetGo(u128),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let ids = prop::collection::vec(0..BLOBS, 1..100);
        let step = prop_oneof![
            3 => (1..3_u64, 1..NODES, ids).prop_map(|(tree, node, ids)| Step::Commit(tree, node, ids)),
            2 => (0..4_usize).prop_map(Step::Note),
            2 => (1..3_u64, 1..NODES, any::<bool>()).prop_map(|(tree, node, own)| Step::Erase(tree, node, own)),
            1 => (0..BLOBS).prop_map(Step::LetGo),
        ];
        prop::collection::vec(step, 1..30)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 64 }))]
        /// Whether the author has noted references, or has yet to do so, an erasure finds the same.
        #[test]
        fn what_is_to_be_noted_is_known_like_what_is_noted(
            (keeps_copies, steps) in (any::<bool>(), steps())
        ) {
            let (mut at_once, mut later) = (Store::new(keeps_copies), Store::new(keeps_copies));
            for (number, step) in (2..).zip(steps) {
                match step {
                    Step::Commit(tree, node, ids) => {
                        let all = (node..).zip(ids).flat_map(|(node, id)| {
                            let node = NodeId::new(node).unwrap();
                            ["copy", "own"].map(|name| (node, name.into(), BlobId(id)))
                        });
                        let all: Vec<Referred> = all.collect();
                        for few in all.chunks(FEW) {
                            let noting = at_once.blobs.note((tree, number), few.to_vec());
                            prop_assert!(noting.is_none());
                        }
                        let noting = later.blobs.note((tree, number), all.clone());
                        prop_assert_eq!(noting.is_some(), all.len() > FEW);
                        later.noting.extend(noting);
                    }
                    Step::Note(at) if at < later.noting.len() => drop(later.noting.swap_remove(at)),
                    Step::Note(_) => {}
                    Step::Erase(tree, node, own) => {
                        let name = if own { "own" } else { "copy" };
                        let place: Place = (tree, NodeId::new(node).unwrap(), name.into());
                        // Bytes that only the history has stay known until the history is trimmed. So they are noted
                        // again after an erasure, which changes nothing.
                        let only_there = |id: &BlobId| id.0 == 0 || !later.held.contains_key(id);
                        if later.blobs.ids_at(&place).iter().any(only_there) {
                            later.noting.clear();
                        }
                        at_once.erase(place.clone());
                        later.erase(place);
                    }
                    Step::LetGo(id) => {
                        // As above.
                        if keeps_copies {
                            later.noting.clear();
                        }
                        at_once.held.remove(&BlobId(id));
                        later.held.remove(&BlobId(id));
                    }
                }
                prop_assert_eq!(at_once.described(), later.described());
            }
            later.noting.clear();
            prop_assert_eq!(at_once.described(), later.described());
        }
    }
}
