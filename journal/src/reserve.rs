//! Room that is kept for an opening on a full disk: a file of zeros, which such an opening removes, so that it can make
//! its key files and a short first segment. Only the length of the file matters.

use std::io;

use crate::head::HEAD;
use crate::key_file::fill;
use crate::keys::Keys;
use crate::medium::{Medium, for_room, is_full, is_unopened};
use crate::names;

/// The length of the first segment that an opening on a full disk begins with, at most. The rest of the reserve is for
/// key files.
const SEGMENT: u32 = 128 * 1024;

/// The least length: with a shorter one, names that the forest allows would be too long for a frame.
const LEAST_SEGMENT: u32 = 8 * 1024;

/// What the record of the opening, and the mark before it, have of that segment. The rest is for records that erase.
const OPENING: u32 = 512;

/// A file takes whole blocks of the medium.
const BLOCK: u64 = 4096;

/// How much of such a segment is left to records that erase.
pub(crate) fn left_for_erasing(segment: u32) -> u32 {
    segment.saturating_sub(HEAD + OPENING)
}

/// The lengths that the first segment may have on a full disk, if it has this one otherwise, longest first.
pub(crate) fn short_segments(regular: u32) -> impl Iterator<Item = u32> {
    let longest = regular.min(SEGMENT);
    let shorter = std::iter::successors(Some(longest), |len| Some(len / 2));
    shorter.take_while(move |len| *len == longest || *len >= LEAST_SEGMENT)
}

/// The file `reserve`.
#[derive(Debug)]
pub(crate) struct Reserve {
    /// How long it is; 0, if there is none.
    len: u64,
}

impl Reserve {
    /// What an earlier opening has kept.
    pub(crate) fn find(medium: &dyn Medium) -> io::Result<Self> {
        let len = match medium.open(names::RESERVE) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            file => file?.len()?,
        };
        Ok(Self { len })
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// How long it is to be: for a segment, and for two key files, which are to get room for this many bytes of
    /// entries.
    pub(crate) fn due(segment: u32, keys: &Keys, more: u64) -> u64 {
        let keys = keys.len_if_reopened(more).next_multiple_of(BLOCK);
        u64::from(segment.min(SEGMENT)).saturating_add(keys.saturating_mul(2))
    }

    /// Extends the file to that length, if it is shorter. If there is room for a part only, that
    /// part stays.
    pub(crate) fn keep(&mut self, medium: &dyn Medium, due: u64) -> io::Result<()> {
        if self.len >= due {
            return Ok(());
        }
        let file = match self.len {
            0 => medium.create(names::RESERVE)?,
            _ => match medium.open(names::RESERVE) {
                // Somebody has removed it, for room.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.len = 0;
                    medium.create(names::RESERVE)?
                }
                file => file?,
            },
        };
        let filled = fill(&*file, self.len, due);
        self.len = file.len()?;
        filled.map_err(for_room(names::RESERVE, due))?;
        medium.sync_names()
    }

    /// The same, for an opening, which needs no reserve itself: the next segment is not prepared without it.
    pub(crate) fn keep_if_possible(&mut self, medium: &dyn Medium, due: u64) -> io::Result<()> {
        match self.keep(medium, due) {
            Err(error) if is_full(&error) || is_unopened(&error) => Ok(()),
            kept => kept,
        }
    }

    /// Gives its room to others.
    pub(crate) fn give(&mut self, medium: &dyn Medium) -> io::Result<()> {
        if self.len > 0 {
            medium.remove(names::RESERVE)?;
            self.len = 0;
            medium.sync_names()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_segment_is_as_long_as_there_is_room_for_and_never_longer_than_the_others() {
        let lens = |regular| short_segments(regular).collect::<Vec<_>>();
        let halves = [128, 64, 32, 16, 8].map(|len| len << 10);
        assert_eq!(lens(16 << 20), halves);
        assert_eq!(lens(10 << 10), [10 << 10]);
        assert_eq!(lens(1 << 10), [1 << 10]);
    }
}
