//! The key file: which key opens which blob, and where that blob is. `docs/journal.md` has the bytes.
//!
//! - A key is durable before the record that brings its blob, and gone from every file before the record that erases it
//!   is acknowledged.
//! - A file begins with the entries that it had when it was made; those must be whole. More are appended, and the last may
//!   be torn. Erasing makes another file, and overwrites this one with zeros.

use std::collections::HashMap;
use std::io;

use crc32c::{crc32c, crc32c_append};
use weald_forest::journal::{BlobId, Erasure, Position};
use weald_tree::NodeId;
use zeroize::{Zeroize, Zeroizing};

use crate::blob::{BlobKey, Sealing};
use crate::error::{Damage, Unreadable};
use crate::medium::{Medium, MediumFile, read_whole, write_all};
use crate::names;
use crate::place::Place;

const MAGIC: [u8; 8] = *b"WEALDK\0\x01";

/// The length of the head: the magic bytes, the journal, how many entries it began with, a check.
const HEAD: usize = 8 + 16 + 8 + 4;

/// What is known of a blob that was not erased.
#[derive(Clone)]
pub(crate) struct KeyEntry {
    pub(crate) key: BlobKey,
    /// Where its first part is.
    pub(crate) at: Place,
    /// The attribute for which it was brought.
    attribute: (u64, NodeId, Box<str>),
}

/// All keys, and the file they are in.
pub(crate) struct Keys {
    entries: HashMap<BlobId, KeyEntry>,
    /// The number of the newest file; 0, if there never was one.
    number: u64,
    journal: u128,
    file: Option<Box<dyn MediumFile>>,
    len: u64,
    is_dirty: bool,
}

impl Keys {
    pub(crate) fn new(journal: u128) -> Self {
        Self {
            entries: HashMap::new(),
            number: 0,
            journal,
            file: None,
            len: 0,
            is_dirty: false,
        }
    }

    /// Reads the newest key file.
    pub(crate) fn read(medium: &dyn Medium, journal: u128) -> Result<Self, Unreadable> {
        let mut keys = Self::new(journal);
        let names = medium.list()?;
        let newest = names.iter().filter_map(|name| names::keys_of(name)).max();
        let Some(number) = newest else {
            return Ok(keys);
        };
        keys.number = number;
        let name = names::keys(number);
        let bytes = Zeroizing::new(read_whole(&*medium.open(&name)?)?);
        let damaged = |offset: usize| Damage {
            file: name.clone(),
            offset: offset as u64,
            what: "it is no key file of this journal",
        };
        let head = bytes.get(..HEAD).ok_or_else(|| damaged(0))?;
        let check = crc32c(&head[..HEAD - 4]).to_le_bytes();
        if head[..8] != MAGIC || head[8..24] != journal.to_le_bytes() || head[HEAD - 4..] != check {
            return Err(damaged(0).into());
        }
        let count = u64::from_le_bytes(*head[24..].first_chunk().ok_or_else(|| damaged(0))?);
        let mut offset = HEAD;
        let mut read = 0;
        while let Some((id, entry, len)) = read_entry(&bytes[offset..]) {
            keys.entries.insert(id, entry);
            offset += len;
            read += 1;
        }
        if read < count {
            return Err(damaged(offset).into());
        }
        Ok(keys)
    }

    pub(crate) fn get(&self, id: BlobId) -> Option<KeyEntry> {
        self.entries.get(&id).cloned()
    }

    /// Whether there is a file.
    pub(crate) fn has_file(&self) -> bool {
        self.number > 0
    }

    /// The journal, once it has its number.
    pub(crate) fn belong_to(&mut self, journal: u128) {
        self.journal = journal;
    }

    /// Where blobs are.
    pub(crate) fn places(&self) -> impl Iterator<Item = Place> {
        self.entries.values().map(|entry| entry.at)
    }

    /// Forgets what lies at a place or behind it, and what was erased.
    pub(crate) fn recover(&mut self, end: Place, erasures: &[(Place, Erasure)]) {
        self.entries.retain(|_, entry| entry.at < end);
        erasures
            .iter()
            .for_each(|(at, erasure)| self.forget(*at, erasure));
    }

    fn forget(&mut self, at: Place, erasure: &Erasure) {
        self.entries.retain(|id, entry| {
            let is_erased = entry.attribute == erasure.place || erasure.ids.contains(id);
            !is_erased || entry.at > at
        });
    }

    /// Forgets what lies before a position and is not asked for any more; returns whether anything was.
    pub(crate) fn trim(&mut self, upto: Position, keep: &[BlobId]) -> bool {
        let before = self.entries.len();
        self.entries
            .retain(|id, entry| entry.at.position() > upto || keep.contains(id));
        self.entries.len() < before
    }

    /// Writes keys to the file, which is not synced.
    pub(crate) fn add(&mut self, medium: &dyn Medium, new: &[(Place, Sealing)]) -> io::Result<()> {
        if new.is_empty() {
            return Ok(());
        }
        if self.file.is_none() {
            self.rewrite(medium)?;
        }
        let mut bytes = Zeroizing::new(Vec::new());
        for (at, Sealing { blob, key, .. }) in new {
            let entry = KeyEntry {
                key: key.clone(),
                at: *at,
                attribute: (blob.tree, blob.node, blob.name.clone()),
            };
            write_entry(&mut bytes, blob.id, &entry);
            self.entries.insert(blob.id, entry);
        }
        if let Some(file) = &self.file {
            write_all(&**file, &bytes, self.len)?;
        }
        self.len += bytes.len() as u64;
        self.is_dirty = true;
        Ok(())
    }

    pub(crate) fn sync(&mut self) -> io::Result<()> {
        if let Some(file) = self.file.as_ref().filter(|_| self.is_dirty) {
            file.sync()?;
        }
        self.is_dirty = false;
        Ok(())
    }

    /// Erases for good.
    pub(crate) fn erase(
        &mut self,
        medium: &dyn Medium,
        erasures: &[(Place, Erasure)],
    ) -> io::Result<()> {
        erasures
            .iter()
            .for_each(|(at, erasure)| self.forget(*at, erasure));
        self.rewrite(medium)
    }

    /// Makes another file of what is known, and destroys those before.
    pub(crate) fn rewrite(&mut self, medium: &dyn Medium) -> io::Result<()> {
        let mut bytes = Zeroizing::new(Vec::new());
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&self.journal.to_le_bytes());
        bytes.extend_from_slice(&(self.entries.len() as u64).to_le_bytes());
        let check = crc32c(&bytes).to_le_bytes();
        bytes.extend_from_slice(&check);
        for (id, entry) in &self.entries {
            write_entry(&mut bytes, *id, entry);
        }
        let number = self.number + 1;
        let name = names::keys(number);
        let unfinished = format!("{name}{}", names::UNFINISHED);
        let file = medium.create(&unfinished)?;
        write_all(&*file, &bytes, 0)?;
        file.sync()?;
        // If this fails, either file may be the newest one, so nothing is written to them any more.
        (self.number, self.file) = (number, None);
        medium.rename(&unfinished, &name)?;
        medium.sync_names()?;
        self.len = bytes.len() as u64;
        self.file = Some(file);
        self.is_dirty = false;
        destroy_others(medium, number)
    }
}

/// Overwrites and removes all key files but one.
pub(crate) fn destroy_others(medium: &dyn Medium, newest: u64) -> io::Result<()> {
    let mut changed = false;
    for name in medium.list()? {
        let whole = name.strip_suffix(names::UNFINISHED).unwrap_or(&name);
        if names::keys_of(whole).is_none_or(|number| name == whole && number == newest) {
            continue;
        }
        let file = medium.open(&name)?;
        let len = usize::try_from(file.len()?).unwrap_or(0);
        write_all(&*file, &vec![0; len], 0)?;
        file.sync()?;
        medium.remove(&name)?;
        changed = true;
    }
    if changed { medium.sync_names() } else { Ok(()) }
}

fn write_entry(out: &mut Zeroizing<Vec<u8>>, id: BlobId, entry: &KeyEntry) {
    let begin = out.len();
    let (tree, node, name) = &entry.attribute;
    let len = u32::try_from(name.len()).expect("a name is short");
    out.extend_from_slice(&id.0.to_le_bytes());
    out.extend_from_slice(&entry.key[..]);
    out.extend_from_slice(&entry.at.position().0.to_le_bytes());
    out.extend_from_slice(&tree.to_le_bytes());
    out.extend_from_slice(&node.get().to_le_bytes());
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(name.as_bytes());
    let check = crc32c_append(1, &out[begin..]);
    out.extend_from_slice(&check.to_le_bytes());
}

fn read_entry(bytes: &[u8]) -> Option<(BlobId, KeyEntry, usize)> {
    let (id, rest) = bytes.split_first_chunk()?;
    let (key, rest) = rest.split_first_chunk::<32>()?;
    let (at, rest) = rest.split_first_chunk()?;
    let (tree, rest) = rest.split_first_chunk()?;
    let (node, rest) = rest.split_first_chunk()?;
    let (len, rest) = rest.split_first_chunk()?;
    let len = usize::try_from(u32::from_le_bytes(*len)).ok()?;
    let (name, rest) = rest.split_at_checked(len)?;
    let (check, rest) = rest.split_first_chunk()?;
    let whole = bytes.len() - rest.len();
    if crc32c_append(1, &bytes[..whole - 4]) != u32::from_le_bytes(*check) {
        return None;
    }
    let mut copy = *key;
    let entry = KeyEntry {
        key: Zeroizing::new(copy),
        at: Place::of(Position(u128::from_le_bytes(*at))),
        attribute: (
            u64::from_le_bytes(*tree),
            NodeId::new(u64::from_le_bytes(*node))?,
            str::from_utf8(name).ok()?.into(),
        ),
    };
    copy.zeroize();
    Some((BlobId(u128::from_le_bytes(*id)), entry, whole))
}
