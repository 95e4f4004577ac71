//! The keys: which one opens which blob, and where that blob is.
//!
//! - A key is durable before the record that brings its blob, and gone from every file before the record that erases it
//!   is acknowledged.
//! - Erasing needs no room: it writes into a spare file that is as large as the one in use, names it as the next one,
//!   and overwrites the old one with zeros. The old one is the spare file from then on. A key is taken only if both
//!   files have room for it ([`Keys::free`]).
//! - Erasing needs no further open file either: both stay open, and the directory is searched only after something
//!   failed.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;

use weald_forest::journal::{BlobId, BlobPlace, Erasure, Position};
use zeroize::Zeroizing;

use crate::blob::Sealing;
use crate::erased::Erased;
use crate::error::Unreadable;
use crate::key_file::{self, KeyEntry, entry_len, write_entry, write_head};
use crate::master_key::MasterKeys;
use crate::medium::{Medium, MediumFile, for_room, write_all, write_whole};
use crate::names;
use crate::place::{Place, SegmentId};
use crate::unfinished;

/// The room of the first key file. It doubles as often as it is needed.
const ROOM: u64 = 16 * 1024;

/// All keys, and the file they are in.
pub(crate) struct Keys {
    entries: HashMap<BlobId, KeyEntry>,
    /// The blobs that no trimming removes, whatever the checkpoints refer to.
    kept: HashSet<BlobId>,
    /// The number of the newest file; 0, if there never was one.
    number: u64,
    journal: u128,
    masters: MasterKeys,
    file: Option<KeyFile>,
    spare: Option<SpareFile>,
    /// Whether there may be files with keys besides these two.
    has_others: bool,
    /// Whether the file has keys that were forgotten here.
    is_stale: bool,
}

fn long(len: u64) -> usize {
    usize::try_from(len).unwrap_or(0)
}

/// The file of zeros into which the next one is written.
struct SpareFile {
    file: Box<dyn MediumFile>,
    len: u64,
}

/// The file in use.
struct KeyFile {
    file: Box<dyn MediumFile>,
    /// How many bytes of entries it began with.
    begun: u64,
    len: u64,
    /// Its length, with the zeros behind the entries.
    capacity: u64,
    is_dirty: bool,
}

impl Keys {
    pub(crate) fn new(journal: u128, masters: MasterKeys) -> Self {
        Self {
            entries: HashMap::new(),
            kept: HashSet::new(),
            number: 0,
            journal,
            masters,
            file: None,
            spare: None,
            has_others: true,
            is_stale: false,
        }
    }

    /// Reads the newest key file; returns where its valid part ends.
    pub(crate) fn read(
        medium: &dyn Medium,
        (journal, masters): (u128, &MasterKeys),
    ) -> Result<(Self, u64), Unreadable> {
        let mut keys = Self::new(journal, masters.clone());
        let names = medium.list()?;
        let newest = names.iter().filter_map(|name| names::keys_of(name)).max();
        let Some(number) = newest else {
            return Ok((keys, 0));
        };
        keys.number = number;
        let entries = &mut keys.entries;
        let end = key_file::read((medium, number), (journal, masters), |id, entry| {
            entries.insert(id, entry);
        })?;
        Ok((keys, end))
    }

    pub(crate) fn get(&self, id: BlobId) -> Option<KeyEntry> {
        self.entries.get(&id).cloned()
    }

    /// Where a blob is.
    pub(crate) fn place(&self, id: BlobId) -> Option<Place> {
        self.entries.get(&id).map(|entry| entry.at)
    }

    pub(crate) fn has(&self, id: BlobId) -> bool {
        self.entries.contains_key(&id)
    }

    /// Keeps a blob from being trimmed; answers with the attribute for which it was brought.
    pub(crate) fn keep(&mut self, id: BlobId) -> Option<(u64, BlobPlace)> {
        let place = self.entries.get(&id)?.place(id);
        self.kept.insert(id);
        Some(place)
    }

    /// What is kept so.
    pub(crate) fn kept(&self) -> impl Iterator<Item = BlobId> + '_ {
        self.kept.iter().filter(|id| self.has(**id)).copied()
    }

    /// The number of the newest file; 0, if there never was one.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The journal, once it has its number.
    pub(crate) fn belong_to(&mut self, journal: u128) {
        self.journal = journal;
    }

    /// Where blobs are.
    pub(crate) fn places(&self) -> impl Iterator<Item = Place> {
        self.entries.values().map(|entry| entry.at)
    }

    /// The blobs that lie in these segments.
    pub(crate) fn ids_in(&self, segments: &BTreeSet<SegmentId>) -> HashSet<BlobId> {
        let entries = self.entries.iter();
        let entries = entries.filter(|(_, entry)| segments.contains(&entry.at.segment));
        entries.map(|(id, _)| *id).collect()
    }

    /// The places of the blobs that lie behind a position, or are asked for.
    pub(crate) fn needed(
        &self,
        upto: Position,
        keep: &HashSet<BlobId>,
    ) -> impl Iterator<Item = Place> {
        let entries = self.entries.iter();
        let is_asked = |id: &BlobId| keep.contains(id) || self.kept.contains(id);
        let entries = entries.filter(move |(id, it)| it.at.position() > upto || is_asked(id));
        entries.map(|(_, entry)| entry.at)
    }

    /// For how many bytes of entries there is room, now and after they are written again.
    pub(crate) fn free(&self) -> u64 {
        self.file.as_ref().map_or(0, |file| {
            file.capacity.min(self.spare_len()).saturating_sub(file.len)
        })
    }

    /// How long the spare file is; 0, if there is none.
    fn spare_len(&self) -> u64 {
        self.spare.as_ref().map_or(0, |spare| spare.len)
    }

    /// Forgets the blobs at a place or behind it, and those that were erased.
    pub(crate) fn recover(&mut self, end: Place, erased: &Erased<'_>) {
        self.entries.retain(|_, entry| entry.at < end);
        self.forget(erased);
    }

    fn forget(&mut self, erased: &Erased<'_>) {
        self.entries
            .retain(|id, entry| !erased.has((*id, entry.at), Some(&entry.attribute)));
    }

    /// Forgets what lies in segments that are about to be removed. The files still have it, until they are written
    /// again.
    pub(crate) fn forget_in(&mut self, segments: &[SegmentId]) {
        let before = self.entries.len();
        self.entries
            .retain(|_, entry| segments.binary_search(&entry.at.segment).is_err());
        self.is_stale |= self.entries.len() < before;
    }

    /// Forgets these blobs, which are in no file any more. The key files still have them, until they are written again.
    pub(crate) fn forget_all(&mut self, ids: &HashSet<BlobId>) {
        self.entries.retain(|id, _| !ids.contains(id));
        self.is_stale |= !ids.is_empty();
    }

    /// Forgets what lies before a position and is not asked for any more; returns whether a file may have what was
    /// forgotten, now or when it could not be written.
    pub(crate) fn trim(&mut self, upto: Position, keep: &HashSet<BlobId>) -> bool {
        let before = self.entries.len();
        let kept = &self.kept;
        let is_asked = |id: &BlobId| keep.contains(id) || kept.contains(id);
        self.entries
            .retain(|id, entry| entry.at.position() > upto || is_asked(id));
        let is_stale = self.is_stale || self.entries.len() < before;
        is_stale || self.number > 0 && self.has_others
    }

    /// Writes keys to the file, which is not synced.
    pub(crate) fn add(&mut self, medium: &dyn Medium, new: &[(Place, Sealing)]) -> io::Result<()> {
        if new.is_empty() {
            return Ok(());
        }
        if self.file.is_none() {
            self.rewrite(medium)?;
        }
        let master = self.masters.current.as_ref();
        // It does not grow, because what it grew out of would keep keys.
        let names = new.iter().map(|(_, sealing)| &sealing.blob.name);
        let len: u64 = names.map(|name| entry_len(name)).sum();
        let mut bytes = Zeroizing::new(Vec::with_capacity(long(len)));
        for (at, Sealing { blob, key, .. }) in new {
            let entry = KeyEntry {
                key: key.clone(),
                at: *at,
                attribute: (blob.tree, blob.node, blob.name.clone()),
            };
            write_entry(&mut bytes, (blob.id, &entry), master);
            self.entries.insert(blob.id, entry);
        }
        if let Some(file) = &mut self.file {
            write_all(&*file.file, &bytes, file.len)?;
            file.len += bytes.len() as u64;
            file.capacity = file.capacity.max(file.len);
            file.is_dirty = true;
        }
        Ok(())
    }

    pub(crate) fn sync(&mut self) -> io::Result<()> {
        if let Some(file) = self.file.as_mut().filter(|file| file.is_dirty) {
            file.file.sync()?;
            file.is_dirty = false;
        }
        Ok(())
    }

    /// Erases for good.
    pub(crate) fn erase(
        &mut self,
        medium: &dyn Medium,
        erasures: &[(Place, Erasure)],
    ) -> io::Result<()> {
        if self.number == 0 {
            return Ok(());
        }
        self.forget(&Erased::by(erasures));
        self.rewrite(medium)
    }

    /// Makes a newest file that begins with all known entries: if one of them is missing in it later, that is
    /// damage.
    pub(crate) fn settle(&mut self, medium: &dyn Medium) -> io::Result<()> {
        let is_settled = self
            .file
            .as_ref()
            .is_some_and(|file| file.len == file.begun);
        if self.number == 0 || is_settled {
            return Ok(());
        }
        self.rewrite(medium)
    }

    /// The greatest length of a key file of a later opening, which may seal the keys, if this one gets room for this
    /// many bytes of entries.
    pub(crate) fn len_if_reopened(&self, more: u64) -> u64 {
        let len = match more {
            0 => self
                .file
                .as_ref()
                .map_or(self.spare_len(), |file| file.capacity),
            _ => self.capacity_for(more),
        };
        // A sealed key is half as long again as an open one; the difference is less than a quarter of its
        // entry.
        len.saturating_add(len / 4)
    }

    /// How long the key file has to be, to have room for this many bytes of entries.
    fn capacity_for(&self, more: u64) -> u64 {
        let used = self.used();
        let capacity = self.file.as_ref().map_or(ROOM, |file| file.capacity);
        let mut wanted = if more > 0 {
            capacity.max(ROOM)
        } else {
            capacity
        };
        while wanted < used.saturating_add(more) {
            wanted = wanted.saturating_mul(2);
        }
        wanted
    }

    /// Makes room for this many bytes of entries.
    pub(crate) fn grow(&mut self, medium: &dyn Medium, more: u64) -> io::Result<()> {
        let wanted = self.capacity_for(more);
        let has_file = self.file.as_ref();
        if has_file.is_none_or(|file| file.capacity < wanted) {
            self.make_spare(medium, wanted)?;
            self.rewrite(medium)?;
        }
        self.make_spare(medium, wanted)
    }

    /// How many bytes the head and all entries have.
    fn used(&self) -> u64 {
        let mut head = Zeroizing::default();
        write_head(&mut head, (self.journal, 0), self.masters.current.as_ref());
        let known = self.entries.values();
        let known: u64 = known.map(|entry| entry_len(&entry.attribute.2)).sum();
        let written = self.file.as_ref().map_or(0, |file| file.len);
        written.max(known + head.len() as u64)
    }

    /// Makes a larger spare file. The one before stays until it is whole, because erasing needs one.
    fn make_spare(&mut self, medium: &dyn Medium, len: u64) -> io::Result<()> {
        if self.spare_len() >= len {
            return Ok(());
        }
        let made = unfinished::make(medium, names::SPARE_KEYS, |name| {
            let file = medium.create(name)?;
            key_file::fill(&*file, 0, len)?;
            key_file::overwrite(medium, names::SPARE_KEYS)?;
            Ok(file)
        });
        let file = made.map_err(for_room(names::SPARE_KEYS, len))?;
        self.spare = Some(SpareFile { file, len });
        medium.sync_names()
    }

    /// Writes what is known into another file, and overwrites the former one, which is the spare one from then on.
    pub(crate) fn rewrite(&mut self, medium: &dyn Medium) -> io::Result<()> {
        let master = self.masters.current.as_ref();
        let len = self.used();
        let mut bytes = Zeroizing::new(Vec::with_capacity(long(len)));
        write_head(&mut bytes, (self.journal, self.entries.len()), master);
        for (id, entry) in &self.entries {
            write_entry(&mut bytes, (*id, entry), master);
        }
        let len = bytes.len() as u64;
        let number = self.number.checked_add(1);
        let number = number.ok_or(io::ErrorKind::InvalidData)?;
        let name = names::keys(number);
        let unfinished = format!("{name}{}", names::UNFINISHED);
        // Until everything here has succeeded.
        let has_others = std::mem::replace(&mut self.has_others, true);
        // It is no longer a file of zeros.
        let (from, file, capacity) = match self.spare.take_if(|spare| spare.len >= len) {
            Some(spare) => (names::SPARE_KEYS, spare.file, spare.len),
            None => (&unfinished[..], medium.create(&unfinished)?, len),
        };
        let written = write_whole(&*file, &bytes, 0).and_then(|()| file.sync());
        if let Err(error) = written {
            self.give_up(medium, from, (file, capacity));
            return Err(for_room(&name, len)(error));
        }
        // If this fails, either file may be the newest one, so neither is written to any more.
        let before = (self.number, self.file.take());
        self.number = number;
        medium.rename(from, &name)?;
        medium.sync_names()?;
        self.file = Some(KeyFile {
            file,
            begun: len,
            len,
            capacity,
            is_dirty: false,
        });
        let is_reused = self.reuse(medium, before, has_others)?;
        let kept = key_file::KeptKeys {
            newest: number,
            spare: self.spare.is_some(),
        };
        if (has_others || !is_reused) && key_file::destroy_others(medium, kept)? {
            medium.sync_names()?;
        }
        (self.has_others, self.is_stale) = (false, false);
        Ok(())
    }

    /// Overwrites a file that did not become the newest one. It stays as the spare file, or is removed.
    fn give_up(
        &mut self,
        medium: &dyn Medium,
        name: &str,
        (file, len): (Box<dyn MediumFile>, u64),
    ) {
        // If this fails, too, the next replacement tries again.
        if name != names::SPARE_KEYS {
            let _ = key_file::destroy(medium, name);
        } else if key_file::fill(&*file, 0, len).is_ok() {
            self.spare = Some(SpareFile { file, len });
        }
    }

    /// Overwrites the file that was in use, and makes it the spare file if there is none; returns whether it did that.
    fn reuse(
        &mut self,
        medium: &dyn Medium,
        (number, file): (u64, Option<KeyFile>),
        has_others: bool,
    ) -> io::Result<bool> {
        let Some(KeyFile { file, capacity, .. }) = file.filter(|_| self.spare.is_none()) else {
            return Ok(false);
        };
        key_file::fill(&*file, 0, capacity)?;
        if has_others {
            key_file::overwrite(medium, names::SPARE_KEYS)?;
        }
        medium.rename(&names::keys(number), names::SPARE_KEYS)?;
        medium.sync_names()?;
        self.spare = Some(SpareFile {
            file,
            len: capacity,
        });
        Ok(true)
    }
}
