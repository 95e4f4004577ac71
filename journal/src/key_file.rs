//! The bytes of a key file: a head, and entries one after the other. `docs/journal.md` has them.
//!
//! - A file begins with the entries that it had when it was made; those must be whole. More are appended, and the last
//!   group may be torn.
//! - Room for more is filled with zeros before it is needed, so that a full disk is met there.
//! - A file is overwritten before it is removed.

use std::io;

use crc32c::{crc32c, crc32c_append};
use weald_forest::journal::{BlobId, BlobPlace, Position};
use weald_tree::NodeId;
use zeroize::{Zeroize, Zeroizing};

use crate::blob::BlobKey;
use crate::error::{Damage, Unreadable};
use crate::master_key::{self, MasterKey, MasterKeys};
use crate::medium::{Medium, MediumFile, write_whole};
use crate::names;
use crate::place::Place;

/// The magic bytes of a file whose keys are open.
const OPEN: [u8; 8] = *b"WEALDK\0\x01";

/// The magic bytes of a file whose keys are sealed by a master key.
const SEALED: [u8; 8] = *b"WEALDK\0\x03";

/// The magic bytes of such a file in format 2, which has another proof.
const FORMERLY_SEALED: [u8; 8] = *b"WEALDK\0\x02";

/// What a head begins with: the magic bytes, the journal, how many entries it began with.
const NAMED: usize = 8 + 16 + 8;

/// The length of an entry without its key and the name of its attribute.
const ENTRY: usize = 16 + 16 + 8 + 8 + 4 + 4;

/// No name of an attribute is longer, and a longer one in a file is damage.
const MAX_NAME: usize = 1 << 24;

/// How many bytes are read or overwritten at once.
const STEP: usize = 64 * 1024;

/// The attribute of a blob: the number of the tree, the node, the name.
pub(crate) type Attribute = (u64, NodeId, Box<str>);

/// What is known of a blob that was not erased.
#[derive(Clone)]
pub(crate) struct KeyEntry {
    pub(crate) key: BlobKey,
    /// Where its first part is.
    pub(crate) at: Place,
    /// The attribute for which it was brought.
    pub(crate) attribute: Attribute,
}

impl KeyEntry {
    /// The attribute, with the number of its tree.
    pub(crate) fn place(&self, id: BlobId) -> (u64, BlobPlace) {
        let (tree, node, name) = self.attribute.clone();
        (tree, BlobPlace { id, node, name })
    }
}

/// The greatest length of the entry of a blob whose attribute has this name.
pub(crate) fn entry_len(name: &str) -> u64 {
    (ENTRY + master_key::SEALED + name.len()) as u64
}

/// The head of a file that begins with this many entries.
pub(crate) fn write_head(
    out: &mut Zeroizing<Vec<u8>>,
    (journal, count): (u128, usize),
    master: Option<&MasterKey>,
) {
    let begin = out.len();
    out.extend_from_slice(if master.is_some() { &SEALED } else { &OPEN });
    out.extend_from_slice(&journal.to_le_bytes());
    out.extend_from_slice(&(count as u64).to_le_bytes());
    if let Some(master) = master {
        out.extend_from_slice(&master.proof(journal));
    }
    let check = crc32c(&out[begin..]).to_le_bytes();
    out.extend_from_slice(&check);
}

pub(crate) fn write_entry(
    out: &mut Zeroizing<Vec<u8>>,
    (id, entry): (BlobId, &KeyEntry),
    master: Option<&MasterKey>,
) {
    let begin = out.len();
    let (tree, node, name) = &entry.attribute;
    let len = u32::try_from(name.len()).expect("a name is short");
    out.extend_from_slice(&id.0.to_le_bytes());
    match master {
        Some(master) => out.extend_from_slice(&master.seal(id, &entry.key)),
        None => out.extend_from_slice(entry.key.bytes()),
    }
    out.extend_from_slice(&entry.at.position().0.to_le_bytes());
    out.extend_from_slice(&tree.to_le_bytes());
    out.extend_from_slice(&node.get().to_le_bytes());
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(name.as_bytes());
    let check = crc32c_append(1, &out[begin..]);
    out.extend_from_slice(&check.to_le_bytes());
}

/// Reads all entries of a file up to the first that is not valid, and returns where that one begins.
pub(crate) fn read(
    (medium, number): (&dyn Medium, u64),
    (journal, masters): (u128, &MasterKeys),
    mut take: impl FnMut(BlobId, KeyEntry),
) -> Result<u64, Unreadable> {
    let name = names::keys(number);
    let damaged = |offset: u64| Damage {
        file: name.clone(),
        offset,
        what: "it is no key file of this journal",
    };
    let mut reader = EntryReader {
        file: medium.open(&name)?,
        offset: 0,
        bytes: Zeroizing::default(),
        taken: 0,
    };
    let head = reader.bytes(NAMED + master_key::TAG + 4)?;
    let is_former = head.starts_with(&FORMERLY_SEALED);
    let is_sealed = is_former || head.starts_with(&SEALED);
    let named = head.get(..NAMED).ok_or_else(|| damaged(0))?;
    let checked = if is_sealed {
        NAMED + master_key::TAG
    } else {
        NAMED
    };
    let is_it = is_sealed || head.starts_with(&OPEN);
    let is_later = head.starts_with(&OPEN[..7]) && head.get(7) > Some(&SEALED[7]);
    let has_check_at = |at: usize| {
        let check = head.get(at..).and_then(<[u8]>::first_chunk);
        check.is_some_and(|check| *check == crc32c(&head[..at]).to_le_bytes())
    };
    if is_later
        && [NAMED, NAMED + master_key::TAG]
            .into_iter()
            .any(has_check_at)
    {
        let (file, format) = (name.clone(), head[7]);
        return Err(Unreadable::UnknownFormat { file, format });
    }
    if !has_check_at(checked) || !is_it || named[8..24] != journal.to_le_bytes() {
        return Err(damaged(0).into());
    }
    let master = match is_sealed {
        true => {
            let master = masters.that_made(&head[NAMED..checked], |key| match is_former {
                true => key.former_proof(named),
                false => key.proof(journal),
            });
            Some(master.ok_or(Unreadable::Sealed {
                has_key: masters.current.is_some(),
            })?)
        }
        false => None,
    };
    let count = u64::from_le_bytes(*named[24..].first_chunk().ok_or_else(|| damaged(0))?);
    reader.go_on(checked + 4);
    let mut read = 0;
    while let Some((id, entry)) = reader.entry(master)? {
        take(id, entry);
        read += 1;
    }
    if read < count {
        return Err(damaged(reader.offset).into());
    }
    Ok(reader.offset)
}

/// Reads a file in steps: it may have been made by hand, and be larger than the memory.
struct EntryReader {
    file: Box<dyn MediumFile>,
    offset: u64,
    /// The bytes of the file from the offset on, as far as they were read; bytes that were taken stand
    /// before them.
    bytes: Zeroizing<Vec<u8>>,
    taken: usize,
}

impl EntryReader {
    /// At least this many bytes, or all that are left.
    fn bytes(&mut self, len: usize) -> io::Result<&[u8]> {
        if self.bytes.len() - self.taken < len {
            let mut bytes = Zeroizing::new(vec![0; len.max(STEP)]);
            let read = self.file.read_at(&mut bytes, self.offset)?;
            bytes[read..].zeroize();
            bytes.truncate(read);
            (self.bytes, self.taken) = (bytes, 0);
        }
        Ok(&self.bytes[self.taken..])
    }

    fn go_on(&mut self, len: usize) {
        self.offset += len as u64;
        self.taken += len;
    }

    fn entry(&mut self, master: Option<&MasterKey>) -> io::Result<Option<(BlobId, KeyEntry)>> {
        let key_len = master.map_or(32, |_| master_key::SEALED);
        let bytes = self.bytes(ENTRY + key_len)?;
        let len = bytes.get(ENTRY - 8 + key_len..);
        let Some(len) = len.and_then(<[u8]>::first_chunk) else {
            return Ok(None);
        };
        let Ok(len) = usize::try_from(u32::from_le_bytes(*len)) else {
            return Ok(None);
        };
        if len > MAX_NAME {
            return Ok(None);
        }
        let read = read_entry(self.bytes(ENTRY + key_len + len)?, master);
        Ok(read.map(|(id, entry, len)| {
            self.go_on(len);
            (id, entry)
        }))
    }
}

fn read_entry(bytes: &[u8], master: Option<&MasterKey>) -> Option<(BlobId, KeyEntry, usize)> {
    let (id, rest) = bytes.split_first_chunk()?;
    let id = BlobId(u128::from_le_bytes(*id));
    let key_len = master.map_or(32, |_| master_key::SEALED);
    let (key, rest) = rest.split_at_checked(key_len)?;
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
    let key = match master {
        Some(master) => master.open(id, key.first_chunk()?)?,
        None => BlobKey::of(key.first_chunk()?),
    };
    let entry = KeyEntry {
        key,
        at: Place::of(Position(u128::from_le_bytes(*at))),
        attribute: (
            u64::from_le_bytes(*tree),
            NodeId::new(u64::from_le_bytes(*node))?,
            str::from_utf8(name).ok()?.into(),
        ),
    };
    Some((id, entry, whole))
}

/// Fills a file with zeros from an offset up to a length, and syncs it.
pub(crate) fn fill(file: &dyn MediumFile, mut at: u64, len: u64) -> io::Result<()> {
    let zeros = vec![0; STEP];
    while at < len {
        let step = usize::try_from(len - at).unwrap_or(STEP).min(STEP);
        write_whole(file, &zeros[..step], at)?;
        at += step as u64;
    }
    file.sync()
}

/// Overwrites a file, if there is one, whose name is about to go.
pub(crate) fn overwrite(medium: &dyn Medium, name: &str) -> io::Result<()> {
    match medium.open(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        file => {
            let file = file?;
            fill(&*file, 0, file.len()?)
        }
    }
}

/// Overwrites and removes a file, if there is one; returns whether there was.
pub(crate) fn destroy(medium: &dyn Medium, name: &str) -> io::Result<bool> {
    overwrite(medium, name)?;
    match medium.remove(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        removed => removed.map(|()| true),
    }
}

/// Which key files are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeptKeys {
    /// The number of the newest one; 0: there is none.
    pub(crate) newest: u64,
    /// Whether the spare one is kept.
    pub(crate) spare: bool,
}

/// Destroys all key files except those that are kept. Returns whether there were any others.
pub(crate) fn destroy_others(medium: &dyn Medium, kept: KeptKeys) -> io::Result<bool> {
    let mut changed = false;
    for name in medium.list()? {
        let is_old = match name.strip_suffix(names::UNFINISHED) {
            Some(whole) => names::keys_of(whole).is_some(),
            None if name == names::SPARE_KEYS => !kept.spare,
            None => names::keys_of(&name).is_some_and(|number| number != kept.newest),
        };
        changed |= is_old && destroy(medium, &name)?;
    }
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::SimulatedDisk;

    fn entry(number: u64) -> (BlobId, KeyEntry) {
        let entry = KeyEntry {
            key: BlobKey::of(&[u8::try_from(number).unwrap(); 32]),
            at: Place::of(Position(u128::from(number) << 64)),
            attribute: (1, NodeId::new(number).unwrap(), "name".into()),
        };
        (BlobId(number.into()), entry)
    }

    #[test]
    fn a_file_far_longer_than_its_entries_is_read_up_to_them() {
        let disk = SimulatedDisk::new();
        let mut bytes = Zeroizing::default();
        write_head(&mut bytes, (7, 1), None);
        for number in 1..=3 {
            let (id, entry) = entry(number);
            write_entry(&mut bytes, (id, &entry), None);
        }
        let end = bytes.len() as u64;
        bytes.extend_from_slice(&[0; 3 * STEP]);
        disk.set_file(&names::keys(1), Some(&bytes));
        let mut ids = Vec::new();
        let broken = read((&disk, 1), (7, &MasterKeys::default()), |id, _| {
            ids.push(id.0)
        })
        .unwrap();
        assert_eq!((ids, broken), (vec![1, 2, 3], end));
    }

    #[test]
    fn a_master_key_makes_one_proof_for_all_key_files_of_a_journal() {
        let master = MasterKey::new([7; 32]);
        let head = |journal, count| {
            let mut head = Zeroizing::default();
            write_head(&mut head, (journal, count), Some(&master));
            head
        };
        let proof = |journal, count| head(journal, count)[NAMED..NAMED + master_key::TAG].to_vec();
        assert_ne!(head(1, 0), head(1, 5));
        assert_eq!(proof(1, 0), proof(1, 5));
        assert_ne!(proof(1, 0), proof(2, 0));
        // No other master key has this proof, in either format.
        let disk = SimulatedDisk::new();
        let masters = |byte| MasterKeys {
            current: Some(MasterKey::new([byte; 32])),
            former: Vec::new(),
        };
        let mut former = head(1, 0);
        former[..8].copy_from_slice(&FORMERLY_SEALED);
        let made = master.former_proof(&former[..NAMED]);
        former[NAMED..NAMED + master_key::TAG].copy_from_slice(&made);
        let checked = former.len() - 4;
        let check = crc32c(&former[..checked]).to_le_bytes();
        former[checked..].copy_from_slice(&check);
        for file in [head(1, 0), former] {
            disk.set_file(&names::keys(1), Some(&file));
            let read = |byte| {
                read((&disk, 1), (1, &masters(byte)), |_, _| {
                    panic!("it is empty")
                })
            };
            assert_eq!(read(7).unwrap(), file.len() as u64);
            assert!(matches!(read(8), Err(Unreadable::Sealed { .. })));
        }
    }

    #[test]
    fn no_entry_is_as_long_as_one_made_by_hand_says() {
        let disk = SimulatedDisk::new();
        let mut bytes = Zeroizing::default();
        write_head(&mut bytes, (7, 0), None);
        bytes.extend_from_slice(&[0xFF; ENTRY + 32]);
        disk.set_file(&names::keys(1), Some(&bytes));
        let broken = read((&disk, 1), (7, &MasterKeys::default()), |_, _| {
            panic!("it is an entry")
        });
        assert_eq!(broken.unwrap(), NAMED as u64 + 4);
    }
}
