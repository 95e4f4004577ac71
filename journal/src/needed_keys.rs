//! The keys at an opening: each one that a record needs must be there, and a new key file is made.
//!
//! A key was durable before its blob was written. So an invalid entry counts as torn only if no record that was found
//! needs it or a later entry; otherwise it is damage, because a new key file would lose the key for good.

use std::collections::HashMap;
use std::io;

use weald_forest::journal::{BlobId, Change, Erasure, Stored};
use weald_tree::Ids;

use crate::erased::Erased;
use crate::error::{Damage, Unreadable};
use crate::key_file::{self, Attribute};
use crate::keys::Keys;
use crate::master_key::MasterKeys;
use crate::medium::Medium;
use crate::names;
use crate::place::Place;

/// What the records that were read say about keys.
#[derive(Clone, Default)]
pub(crate) struct NeededKeys {
    /// What they erase, with the places where that is said.
    erasures: Vec<(Place, Erasure)>,
    /// What they bring: each needs its key, unless it was erased.
    brought: Vec<Brought>,
    /// What was read since the last record. It counts only with the record that follows it.
    ahead: Ahead,
    /// The least number that the newest key file has.
    pub(crate) number: u64,
}

#[derive(Clone, Default)]
struct Ahead {
    erasures: Vec<(Place, Erasure)>,
    blobs: Vec<(Place, BlobId)>,
}

impl NeededKeys {
    /// The next record erases this.
    pub(crate) fn erasure(&mut self, at: Place, erasure: Erasure) {
        self.ahead.erasures.push((at, erasure));
    }

    /// The next record brings a blob, whose first part is here.
    pub(crate) fn blob(&mut self, at: Place, id: BlobId) {
        self.ahead.blobs.push((at, id));
    }

    /// A record. If it is before the checkpoint, what it brought may be needed no more, and the key
    /// may have been trimmed.
    pub(crate) fn record(&mut self, record: &[u8], checkpoint: Option<Place>) {
        let Ahead {
            mut erasures,
            mut blobs,
        } = std::mem::take(&mut self.ahead);
        self.erasures.append(&mut erasures);
        blobs.retain(|(at, _)| checkpoint.is_none_or(|checkpoint| *at >= checkpoint));
        self.brought.extend(brought(record, blobs));
    }
}

/// Erasable bytes that a record brings.
#[derive(Clone)]
struct Brought {
    id: BlobId,
    /// Where their first part is.
    at: Place,
    /// For which attribute, as far as the record tells.
    attribute: Option<Attribute>,
}

/// The blobs that a record brings, with their attributes.
fn brought(record: &[u8], blobs: Vec<(Place, BlobId)>) -> Vec<Brought> {
    if blobs.is_empty() {
        return Vec::new();
    }
    let stored = Stored::read(record).ok();
    let changes = stored.and_then(|stored| stored.changes(&mut |_| Some(Ids::new())).ok());
    let mut attributes = HashMap::new();
    for change in changes.into_iter().flatten() {
        if let Change::Edit { tree, blobs, .. } = change {
            let places = blobs.into_iter();
            attributes.extend(places.map(|it| (it.id, (tree, it.node, it.name))));
        }
    }
    let brought = blobs.into_iter().map(|(at, id)| Brought {
        id,
        at,
        attribute: attributes.remove(&id),
    });
    brought.collect()
}

/// Reads the keys of all blobs that are in the journal.
pub(crate) fn keys(
    medium: &dyn Medium,
    (journal, masters): (u128, &MasterKeys),
    end: Place,
    needed: &NeededKeys,
) -> Result<Keys, Unreadable> {
    let (mut keys, valid) = Keys::read(medium, (journal, masters))?;
    if keys.number() < needed.number {
        return Err(Unreadable::Damaged(Damage {
            file: names::keys(needed.number),
            offset: 0,
            what: "it is missing, and so is every later key file",
        }));
    }
    let erased = Erased::by(&needed.erasures);
    keys.recover(end, &erased);
    let is_lost = |blob: &Brought| {
        !keys.has(blob.id) && !erased.has((blob.id, blob.at), blob.attribute.as_ref())
    };
    if needed.brought.iter().any(is_lost) {
        return Err(Unreadable::Damaged(Damage {
            file: names::keys(keys.number().max(1)),
            offset: valid,
            what: "the keys of bytes that were not erased are missing from there on",
        }));
    }
    Ok(keys)
}

/// Makes a new key file of what is left, if there was one, and destroys the others; and makes sure that erasing needs
/// no room.
pub(crate) fn renew_keys(medium: &dyn Medium, keys: &mut Keys) -> io::Result<()> {
    if keys.number() > 0 {
        keys.rewrite(medium)?;
        return keys.grow(medium, 0);
    }
    let none = key_file::KeptKeys {
        newest: 0,
        spare: false,
    };
    match key_file::destroy_others(medium, none)? {
        true => medium.sync_names(),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use weald_forest::journal::Position;
    use weald_tree::NodeId;
    use zeroize::Zeroizing;

    use super::*;
    use crate::blob::BlobKey;
    use crate::key_file::{KeyEntry, write_entry, write_head};
    use crate::simulated::SimulatedDisk;

    /// A key file with this many entries, and what their records need.
    fn many(disk: &SimulatedDisk, count: u64) -> NeededKeys {
        let mut bytes = Zeroizing::default();
        write_head(&mut bytes, (7, 0), None);
        let mut needed = NeededKeys::default();
        for number in 1..=count {
            let (id, at) = (BlobId(number.into()), Place::of(Position(number.into())));
            let attribute = (1, NodeId::new(number).unwrap(), "name".into());
            let entry = KeyEntry {
                key: BlobKey::of(&[1; 32]),
                at,
                attribute,
            };
            write_entry(&mut bytes, (id, &entry), None);
            needed.brought.push(Brought {
                id,
                at,
                attribute: Some(entry.attribute),
            });
        }
        disk.set_file(&names::keys(1), Some(&bytes));
        needed
    }

    fn read(disk: &SimulatedDisk, needed: &NeededKeys) -> Result<Keys, Unreadable> {
        let end = Place::of(Position(u128::MAX));
        keys(disk, (7, &MasterKeys::default()), end, needed)
    }

    /// Each key and each erasure is looked up once. To compare each key with each erasure would take 5,000,000,000
    /// steps, twice.
    #[test]
    fn an_opening_takes_a_hundred_thousand_keys_of_which_each_second_one_is_erased_by_itself() {
        const COUNT: u64 = 100_000;
        let disk = SimulatedDisk::new();
        let mut needed = many(&disk, COUNT);
        needed.erasures = (1..=COUNT / 2)
            .map(|number| {
                let place = (2, NodeId::new(number).unwrap(), "other".into());
                let ids = vec![BlobId(u128::from(number) * 2)];
                let at = Place::of(Position(u128::from(COUNT) + 1));
                (at, Erasure { place, ids })
            })
            .collect();
        let left = read(&disk, &needed).unwrap();
        assert_eq!(left.places().count() as u64, COUNT / 2);
        assert!(left.has(BlobId(1)) && !left.has(BlobId(2)));
        // The same if the keys are gone, because they were erased before; and damage, if one of them was not.
        let mut bytes = Zeroizing::default();
        write_head(&mut bytes, (7, 0), None);
        disk.set_file(&names::keys(1), Some(&bytes));
        needed.brought.retain(|brought| brought.id.0 % 2 == 0);
        assert_eq!(read(&disk, &needed).unwrap().places().count(), 0);
        needed.erasures.pop();
        assert!(matches!(read(&disk, &needed), Err(Unreadable::Damaged(_))));
    }
}
