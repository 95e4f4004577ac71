//! A few bytes stored in place, in three words.
//!
//! The first byte is the length plus one, so the first word is never zero, and an enum of this and a pointer
//! takes three words too. The fields are words and not bytes, so that building and copying one writes whole
//! words: bytes written one by one stall the processor when they are read as a word next.

use std::num::NonZeroU64;

use bytemuck::NoUninit;

/// How many bytes fit.
pub(crate) const ROOM: usize = 23;

/// Up to [`ROOM`] bytes.
#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
pub(crate) struct Inline {
    first: NonZeroU64,
    rest: [u64; 2],
}

/// Bytes that become an [`Inline`].
pub(crate) struct Draft {
    /// The first byte is still zero.
    words: [u64; 3],
    /// Where the next byte goes.
    end: usize,
}

impl Inline {
    pub(crate) const EMPTY: Self = Self {
        first: NonZeroU64::new(u64::from_ne_bytes([1, 0, 0, 0, 0, 0, 0, 0])).expect("it is one"),
        rest: [0; 2],
    };

    #[inline(always)]
    pub(crate) fn new(bytes: &[u8]) -> Option<Self> {
        let mut draft = Draft::EMPTY;
        draft.push(bytes)?;
        Some(draft.finish())
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        let all = bytemuck::bytes_of(self);
        &all[1..usize::from(all[0])]
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first == Self::EMPTY.first
    }
}

impl Draft {
    pub(crate) const EMPTY: Self = Self {
        words: [0; 3],
        end: 1,
    };

    #[inline(always)]
    pub(crate) fn has_room(&self, more: usize) -> bool {
        more <= ROOM + 1 - self.end
    }

    /// Appends bytes; `None` if there is no room.
    #[inline(always)]
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Option<()> {
        if !self.has_room(bytes.len()) {
            return None;
        }
        for part in bytes.chunks(8) {
            let (word, shift) = (self.end / 8, self.end % 8 * 8);
            let bits = word_of(part);
            self.words[word] |= bits << shift;
            if shift > 0 && word < 2 {
                self.words[word + 1] |= bits >> (64 - shift);
            }
            self.end += part.len();
        }
        Some(())
    }

    #[inline(always)]
    pub(crate) fn finish(self) -> Inline {
        let [first, rest @ ..] = self.words;
        let first = NonZeroU64::new((first | self.end as u64).to_le());
        Inline {
            first: first.expect("a draft ends after its first byte"),
            rest: rest.map(u64::to_le),
        }
    }
}

/// Up to eight bytes as a word, the first byte lowest.
#[inline(always)]
fn word_of(bytes: &[u8]) -> u64 {
    match bytes.try_into() {
        Ok(eight) => u64::from_le_bytes(eight),
        Err(_) => bytes
            .iter()
            .rev()
            .fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_beside_it_takes_no_more_room() {
        assert_eq!(size_of::<Inline>(), 24);
        assert_eq!(size_of::<Result<Inline, std::sync::Arc<[u8]>>>(), 24);
    }

    #[test]
    fn it_takes_what_fits_and_no_more() {
        for len in 0..=ROOM {
            let bytes: Vec<u8> = (1..).take(len).collect();
            let inline = Inline::new(&bytes).expect("it has room");
            assert_eq!(inline.bytes(), bytes);
            assert_eq!(inline.is_empty(), bytes.is_empty());
        }
        assert!(Inline::new(&[7; ROOM + 1]).is_none());
        let mut draft = Draft::EMPTY;
        draft.push(&[3]).expect("it has room");
        assert!(draft.push(&[4; ROOM]).is_none());
        assert_eq!(draft.finish().bytes(), [3]);
    }

    #[test]
    fn what_is_pushed_in_parts_is_one_string() {
        for cut in 0..=ROOM {
            let bytes: Vec<u8> = (1..).take(ROOM).collect();
            let mut draft = Draft::EMPTY;
            draft.push(&bytes[..cut]).expect("it has room");
            draft.push(&bytes[cut..]).expect("it has room");
            assert_eq!(draft.finish().bytes(), bytes);
        }
    }
}
