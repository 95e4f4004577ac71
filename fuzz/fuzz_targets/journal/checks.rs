//! Right checks for the files of a journal, whatever is in them, so that what is checked is read. docs/journal.md has
//! the bytes.

use crc32c::{crc32c, crc32c_append};

/// Corrects what a file of this name has to have, as far as it has the form.
pub fn mend(name: &str, bytes: &mut [u8]) {
    if let Some((epoch, index)) = segment_of(name) {
        mend_segment((epoch, index), bytes);
    } else if let Some(at) = name.strip_suffix(".checkpoint") {
        mend_checkpoint(u128::from_str_radix(at, 16).ok(), bytes);
    } else if name.ends_with(".keys") {
        mend_keys(bytes);
    }
}

fn segment_of(name: &str) -> Option<(u64, u32)> {
    let (epoch, index) = name.strip_suffix(".segment")?.split_once('-')?;
    let epoch = u64::from_str_radix(epoch, 16).ok()?;
    Some((epoch, u32::from_str_radix(index, 16).ok()?))
}

fn put(bytes: &mut [u8], at: usize, check: u32) {
    if let Some(place) = bytes.get_mut(at..at + 4) {
        place.copy_from_slice(&check.to_le_bytes());
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let number = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*number))
}

fn mend_segment((epoch, index): (u64, u32), bytes: &mut [u8]) {
    if bytes.len() < 128 {
        return;
    }
    bytes[..8].copy_from_slice(b"WEALDJ\0\x01");
    bytes[8..16].copy_from_slice(&epoch.to_le_bytes());
    bytes[16..20].copy_from_slice(&index.to_le_bytes());
    put(bytes, 124, crc32c(&bytes[..124]));
    let mut at = 128;
    while let Some(word) = number(bytes, at) {
        let (kind, len) = (word >> 28, (word & 0x0FFF_FFFF) as usize);
        let end = at + 12 + len;
        if !(1..=7).contains(&kind) || end > bytes.len() {
            return;
        }
        let mut place = epoch.to_le_bytes().to_vec();
        place.extend_from_slice(&index.to_le_bytes());
        place.extend_from_slice(&(at as u32).to_le_bytes());
        place.extend_from_slice(&word.to_le_bytes());
        let seed = crc32c(&place);
        let check = crc32c_append(seed, &bytes[at + 12..end]);
        put(bytes, at + 4, check);
        put(bytes, at + 8, crc32c_append(seed, &check.to_le_bytes()));
        at = end;
    }
}

fn mend_checkpoint(at: Option<u128>, bytes: &mut [u8]) {
    if bytes.len() < 48 {
        return;
    }
    bytes[..8].copy_from_slice(b"WEALDC\0\x01");
    if let Some(at) = at {
        bytes[24..40].copy_from_slice(&at.to_le_bytes());
    }
    let long = |bytes: &[u8], at: usize| {
        let number = bytes.get(at..).and_then(|rest| rest.first_chunk());
        number.map_or(u64::MAX, |number| u64::from_le_bytes(*number))
    };
    let mut from = 0;
    let mut end = (long(bytes, 40) as usize)
        .saturating_mul(16)
        .saturating_add(48);
    let mut check = 0;
    while end < bytes.len() {
        check = crc32c_append(check, &bytes[from..end]);
        put(bytes, end, check);
        from = end + 4;
        end = match long(bytes, from) {
            u64::MAX => from + 8,
            len => (len as usize).saturating_add(from + 8),
        };
    }
}

fn mend_keys(bytes: &mut [u8]) {
    if bytes.len() < 36 {
        return;
    }
    bytes[..8].copy_from_slice(b"WEALDK\0\x01");
    put(bytes, 32, crc32c(&bytes[..32]));
    let mut at = 36;
    while let Some(len) = number(bytes, at + 80) {
        let end = at + 84 + len as usize;
        if end + 4 > bytes.len() {
            return;
        }
        put(bytes, end, crc32c_append(1, &bytes[at..end]));
        at = end + 4;
    }
}
