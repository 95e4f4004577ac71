//! The names of the files in a journal's directory, and the note in the file `lock`.

use std::io;

use crc32c::crc32c;

use crate::medium::{MediumFile, write_all};
use crate::place::SegmentId;
use weald_forest::journal::Position;

/// The file whose lock is the right to write, and whose content names the process that has it.
pub(crate) const LOCK: &str = "lock";

/// What a name ends with until its file is whole.
pub(crate) const UNFINISHED: &str = ".new";

pub(crate) fn segment(id: SegmentId) -> String {
    format!("{:016x}-{:08x}.segment", id.epoch, id.index)
}

pub(crate) fn segment_of(name: &str) -> Option<SegmentId> {
    let (epoch, index) = name.strip_suffix(".segment")?.split_once('-')?;
    let id = SegmentId {
        epoch: hexadecimal(epoch, 16)?,
        index: u32::try_from(hexadecimal(index, 8)?).ok()?,
    };
    (1..u32::MAX).contains(&id.index).then_some(id)
}

pub(crate) fn checkpoint(at: Position) -> String {
    format!("{:032x}.checkpoint", at.0)
}

pub(crate) fn checkpoint_of(name: &str) -> Option<Position> {
    position(name.strip_suffix(".checkpoint")?)
}

fn position(text: &str) -> Option<Position> {
    let (high, low) = text.split_at_checked(16)?;
    let (high, low) = (hexadecimal(high, 16)?, hexadecimal(low, 16)?);
    Some(Position(u128::from(high) << 64 | u128::from(low)))
}

/// The file of zeros into which the next key file is written.
pub(crate) const SPARE_KEYS: &str = "keys.spare";

/// The file of zeros whose room an opening on a full disk takes.
pub(crate) const RESERVE: &str = "reserve";

pub(crate) fn keys(number: u64) -> String {
    format!("{number:016x}.keys")
}

pub(crate) fn keys_of(name: &str) -> Option<u64> {
    hexadecimal(name.strip_suffix(".keys")?, 16)
}

fn hexadecimal(text: &str, len: usize) -> Option<u64> {
    let is_it = text.len() == len && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_it.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

/// The length of the note of a writer, and of the note behind it.
const NOTE: usize = 64;

/// The note of a writer, as text.
pub(crate) fn note(pid: u32, epoch: u64) -> Vec<u8> {
    let mut note = format!("weald journal\npid {pid}\nepoch {epoch}\n").into_bytes();
    note.resize(NOTE, b'\n');
    note
}

/// What a note of the end says, before its check. Without the check a torn note could be taken for another end.
fn end_note(end: Position) -> (String, u32) {
    let note = format!("end {:032x}", end.0);
    let check = crc32c(note.as_bytes());
    (note, check)
}

/// Notes where the journal ended when it was closed, behind the note of the writer.
pub(crate) fn note_end(file: &dyn MediumFile, end: Position) -> io::Result<()> {
    let (note, check) = end_note(end);
    let mut note = format!("{note} {check:08x}\n").into_bytes();
    note.resize(NOTE, b'\n');
    write_all(file, &note, NOTE as u64)
}

/// Where the journal ended when it was last closed, if that was noted.
pub(crate) fn noted_end(file: &dyn MediumFile) -> Option<Position> {
    let mut note = [0; NOTE];
    let read = file.read_at(&mut note, NOTE as u64).ok()?;
    let note = std::str::from_utf8(&note[..read]).ok()?;
    let (end, check) = note.lines().next()?.strip_prefix("end ")?.split_once(' ')?;
    let end = position(end)?;
    (hexadecimal(check, 8)? == u64::from(end_note(end).1)).then_some(end)
}

pub(crate) fn read_note(file: &dyn MediumFile) -> Vec<u8> {
    let mut note = vec![0; NOTE];
    let read = file.read_at(&mut note, 0).unwrap_or(0);
    note.truncate(read);
    note
}

pub(crate) fn noted_pid(file: &dyn MediumFile) -> Option<u32> {
    noted(file, "pid ")?.try_into().ok()
}

pub(crate) fn noted_epoch(file: &dyn MediumFile) -> Option<u64> {
    noted(file, "epoch ")
}

fn noted(file: &dyn MediumFile, key: &str) -> Option<u64> {
    let note = String::from_utf8(read_note(file)).ok()?;
    note.lines()
        .find_map(|line| line.strip_prefix(key))?
        .parse()
        .ok()
}
