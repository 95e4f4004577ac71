//! The keys at an opening: each one that a record needs must be there, and a new key file is made.
//!
//! A key was durable before its blob was written. So an entry that is not valid is a torn one only if no record that was
//! found needs it, or one behind it; otherwise a new key file would lose it for good.

use std::collections::HashMap;
use std::io;

use weald_forest::journal::{BlobId, Change, Erasure, Stored};
use weald_tree::{Ids, NodeId};

use crate::error::{Damage, Unreadable};
use crate::key_file;
use crate::keys::Keys;
use crate::master_key::MasterKeys;
use crate::medium::Medium;
use crate::names;
use crate::place::Place;

/// What the records that were read tell of keys.
#[derive(Clone, Default)]
pub(crate) struct NeededKeys {
    /// What they erase, with the places where that is said.
    erasures: Vec<(Place, Erasure)>,
    /// What they bring: each needs its key, unless it was erased.
    brought: Vec<Brought>,
    /// What was read since the last record. Without its record it is nothing.
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

    /// A record. What it brought before the checkpoint may be needed no more, and its key trimmed.
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
    attribute: Option<(u64, NodeId, Box<str>)>,
}

impl Brought {
    /// Whether a record may erase them.
    fn may_be_erased(&self, (at, erasure): &(Place, Erasure)) -> bool {
        let of_it = self
            .attribute
            .as_ref()
            .is_none_or(|it| *it == erasure.place);
        *at >= self.at && (of_it || erasure.ids.contains(&self.id))
    }
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
            what: "it is missing, or a later key file",
        }));
    }
    keys.recover(end, &needed.erasures);
    let is_lost = |blob: &&Brought| {
        let is_erased = || needed.erasures.iter().any(|it| blob.may_be_erased(it));
        keys.get(blob.id).is_none() && !is_erased()
    };
    if needed.brought.iter().any(|blob| is_lost(&blob)) {
        return Err(Unreadable::Damaged(Damage {
            file: names::keys(keys.number().max(1)),
            offset: valid,
            what: "the keys of bytes that were not erased are missing from there on",
        }));
    }
    Ok(keys)
}

/// Makes a new key file of what is left, if there was one, and destroys the others; and makes sure that erasing needs no
/// room.
pub(crate) fn renew_keys(medium: &dyn Medium, keys: &mut Keys) -> io::Result<()> {
    if keys.number() > 0 {
        keys.rewrite(medium)?;
        return keys.grow(medium, 0);
    }
    match key_file::destroy_others(medium, (0, false))? {
        true => medium.sync_names(),
        false => Ok(()),
    }
}
