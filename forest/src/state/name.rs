//! The name of a tree, in two words if it is short: a forest may have very many trees.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// How many bytes of a name are in place.
const ROOM: usize = 14;

/// A name. It sorts as its bytes do.
#[derive(Clone)]
pub(crate) enum Name {
    Short { length: u8, bytes: [u8; ROOM] },
    Long(Arc<Box<str>>),
}

const _: () = assert!(size_of::<Name>() == 16);

impl Name {
    pub(crate) fn new(name: &str) -> Self {
        let mut bytes = [0; ROOM];
        match (bytes.get_mut(..name.len()), u8::try_from(name.len())) {
            (Some(place), Ok(length)) => {
                place.copy_from_slice(name.as_bytes());
                Self::Short { length, bytes }
            }
            _ => Self::Long(Arc::new(name.into())),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Short { length, bytes } => {
                let name = str::from_utf8(&bytes[..usize::from(*length)]);
                name.expect("a name is made of text")
            }
            Self::Long(name) => name,
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Short { length, bytes } => &bytes[..usize::from(*length)],
            Self::Long(name) => name.as_bytes(),
        }
    }
}

/// A name that is compared with many.
pub(crate) struct Sought<'a> {
    name: &'a Name,
    /// Those of a short name.
    words: Option<(u64, u64)>,
}

impl<'a> Sought<'a> {
    #[inline]
    pub(crate) fn new(name: &'a Name) -> Self {
        let words = match name {
            Name::Short { bytes, .. } => Some(words(bytes)),
            Name::Long(_) => None,
        };
        Self { name, words }
    }

    /// How another name compares with this one.
    #[inline]
    pub(crate) fn order_of(&self, other: &Name) -> Ordering {
        match (self.words, other) {
            (Some(sought), Name::Short { length, bytes }) => {
                // Names with equal words differ at most in how many zeros are at their end.
                let by_length = || usize::from(*length).cmp(&self.name.as_bytes().len());
                words(bytes).cmp(&sought).then_with(by_length)
            }
            _ => other.as_bytes().cmp(self.name.as_bytes()),
        }
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        Sought::new(other).order_of(self)
    }
}

/// The bytes as words that sort as they do.
#[inline]
fn words(bytes: &[u8; ROOM]) -> (u64, u64) {
    let word = |from: usize| {
        let eight = bytes[from..].first_chunk();
        eight.map_or(0, |eight| u64::from_be_bytes(*eight))
    };
    (word(0), word(ROOM - 8))
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Name {}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn names_are_their_texts_and_sort_as_they_do(one in "[\0aé\u{10FFFF}]{0,9}", other in "[\0aé\u{10FFFF}]{0,9}") {
            let names = [&one, &other].map(|name| Name::new(name));
            prop_assert_eq!(names[0].as_str(), &one);
            prop_assert_eq!(names[0].cmp(&names[1]), one.cmp(&other));
            prop_assert_eq!(Sought::new(&names[0]).order_of(&names[1]), other.cmp(&one));
            prop_assert_eq!(names[0] == names[1], one == other);
        }
    }
}
