//! Values that sort as what they mean: bytes whose order is that of the numbers, times and texts that they stand for.
//!
//! An attribute is bytes, and indexes and queries compare bytes. So a number that is put as digits is found between the
//! wrong neighbours ("10" before "9"). [`Sortable`] writes it so that the order is right:
//!
//! | type | bytes |
//! |---|---|
//! | `u8` … `u128` | big-endian |
//! | `i8` … `i128` | big-endian, the sign bit turned over |
//! | `f32`, `f64` | big-endian; the sign bit turned over, all bits if it is negative; as `total_cmp` sorts them |
//! | `bool`, `char` | one byte; four bytes, big-endian |
//! | `SystemTime` | seconds since 1970 as an `i64`, then nanoseconds as a `u32` |
//! | `String`, `Vec<u8>` | as they are |
//!
//! Several values that are one key are put together by [`key`]. The bytes of a type never change. A structure that is
//! not searched for by its parts is put with [`to_json`].

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::node::Node;

/// Why bytes are not a value of the type that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the attribute is not {expected}; read it as the type with which it was put ({bytes} bytes)"
)]
pub struct ValueError {
    /// What was asked for.
    pub expected: &'static str,
    /// How many bytes there are.
    pub bytes: usize,
}

/// A value whose bytes sort as it does.
///
/// ```
/// use weald::tree::value::Sortable;
/// use weald::tree::{Attributes, Tree};
///
/// let mut edit = Tree::new().edit();
/// let root = edit.tree().root().id();
/// let node = edit.append(root, Attributes::new().with("age", &(-3_i64).to_sortable()))?;
/// let tree = edit.freeze();
/// assert_eq!(tree.node(node).unwrap().value::<i64>("age")?, Some(-3));
/// assert!((-3_i64).to_sortable() < 2_i64.to_sortable());
/// assert!((-1.5_f64).to_sortable() < 0.25_f64.to_sortable());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Sortable: Sized {
    /// Its name, for errors.
    const NAME: &'static str;

    /// The bytes, which sort as the values do.
    fn to_sortable(&self) -> Vec<u8>;

    /// The value that has these bytes.
    ///
    /// # Errors
    /// [`ValueError`], if no value of this type has them.
    fn from_sortable(bytes: &[u8]) -> Result<Self, ValueError>;
}

fn wrong<T: Sortable>(bytes: &[u8]) -> ValueError {
    ValueError {
        expected: T::NAME,
        bytes: bytes.len(),
    }
}

macro_rules! unsigned {
    ($($type:ident)*) => {$(
        impl Sortable for $type {
            const NAME: &'static str = concat!("a number of the type ", stringify!($type));

            fn to_sortable(&self) -> Vec<u8> {
                self.to_be_bytes().to_vec()
            }

            fn from_sortable(bytes: &[u8]) -> Result<Self, ValueError> {
                let bytes = bytes.try_into().map_err(|_| wrong::<Self>(bytes))?;
                Ok(Self::from_be_bytes(bytes))
            }
        }
    )*};
}

macro_rules! signed {
    ($($type:ident)*) => {$(
        impl Sortable for $type {
            const NAME: &'static str = concat!("a number of the type ", stringify!($type));

            fn to_sortable(&self) -> Vec<u8> {
                (self ^ $type::MIN).to_be_bytes().to_vec()
            }

            fn from_sortable(bytes: &[u8]) -> Result<Self, ValueError> {
                let bytes = bytes.try_into().map_err(|_| wrong::<Self>(bytes))?;
                Ok(Self::from_be_bytes(bytes) ^ $type::MIN)
            }
        }
    )*};
}

macro_rules! float {
    ($($type:ident $bits:ident $top:expr;)*) => {$(
        impl Sortable for $type {
            const NAME: &'static str = concat!("a number of the type ", stringify!($type));

            fn to_sortable(&self) -> Vec<u8> {
                let bits = self.to_bits();
                let turned = if bits & $top == 0 { bits | $top } else { !bits };
                turned.to_be_bytes().to_vec()
            }

            fn from_sortable(bytes: &[u8]) -> Result<Self, ValueError> {
                let bits = $bits::from_sortable(bytes).map_err(|_| wrong::<Self>(bytes))?;
                let bits = if bits & $top == 0 { !bits } else { bits & !$top };
                Ok(Self::from_bits(bits))
            }
        }
    )*};
}

unsigned! { u8 u16 u32 u64 u128 }
signed! { i8 i16 i32 i64 i128 }
float! { f32 u32 1 << 31; f64 u64 1 << 63; }

impl Sortable for bool {
    const NAME: &'static str = "true or false";

    fn to_sortable(&self) -> Vec<u8> {
        vec![u8::from(*self)]
    }

    fn from_sortable(bytes: &[u8]) -> Result<Self, ValueError> {
        match bytes {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(wrong::<Self>(bytes)),
        }
    }
}

impl Sortable for char {
    const NAME: &'static str = "a character";

    fn to_sortable(&self) -> Vec<u8> {
        u32::from(*self).to_sortable()
    }

    fn from_sortable(bytes: &[u8]) -> Result<Self, ValueError> {
        let number = u32::from_sortable(bytes).ok();
        number
            .and_then(|number| Self::try_from(number).ok())
            .ok_or_else(|| wrong::<Self>(bytes))
    }
}

impl Sortable for String {
    const NAME: &'static str = "text";

    fn to_sortable(&self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }

    fn from_sortable(bytes: &[u8]) -> Result<Self, ValueError> {
        let text = str::from_utf8(bytes).map_err(|_| wrong::<Self>(bytes))?;
        Ok(text.to_owned())
    }
}

impl Sortable for Vec<u8> {
    const NAME: &'static str = "bytes";

    fn to_sortable(&self) -> Vec<u8> {
        self.clone()
    }

    fn from_sortable(bytes: &[u8]) -> Result<Self, ValueError> {
        Ok(bytes.to_vec())
    }
}

impl Sortable for SystemTime {
    const NAME: &'static str = "a time";

    fn to_sortable(&self) -> Vec<u8> {
        let (seconds, nanoseconds) = match self.duration_since(UNIX_EPOCH) {
            Ok(since) => (seconds_of(since), since.subsec_nanos()),
            Err(error) => {
                // The fraction counts forwards also before 1970.
                let until = error.duration();
                match until.subsec_nanos() {
                    0 => (-seconds_of(until), 0),
                    nanoseconds => (-seconds_of(until) - 1, 1_000_000_000 - nanoseconds),
                }
            }
        };
        let mut bytes = seconds.to_sortable();
        bytes.extend(nanoseconds.to_sortable());
        bytes
    }

    fn from_sortable(bytes: &[u8]) -> Result<Self, ValueError> {
        let parts = bytes.split_at_checked(size_of::<i64>());
        let time = parts.and_then(|(seconds, nanoseconds)| {
            let seconds = i64::from_sortable(seconds).ok()?;
            let nanoseconds = u32::from_sortable(nanoseconds).ok()?;
            let whole = Duration::from_secs(seconds.unsigned_abs());
            let second = match seconds < 0 {
                true => UNIX_EPOCH.checked_sub(whole),
                false => UNIX_EPOCH.checked_add(whole),
            };
            let is_fraction = nanoseconds < 1_000_000_000;
            second?
                .checked_add(Duration::from_nanos(u64::from(nanoseconds)))
                .filter(|_| is_fraction)
        });
        time.ok_or_else(|| wrong::<Self>(bytes))
    }
}

fn seconds_of(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}

/// One key of several parts, which sorts by the first part, then by the second, and so on. A byte 0 in a part is
/// written as 0, 255, and each part ends with 0, 0; so a part that begins another one comes before it. (The encoding is
/// that of FoundationDB's tuple layer for byte strings.)
///
/// ```
/// use weald::tree::value::{Sortable, key, parts};
///
/// let place = key([&b"Paris"[..], &75_001_u32.to_sortable()]);
/// assert!(place < key([&b"Paris"[..], &75_002_u32.to_sortable()]));
/// assert!(place < key([&b"Paris 1"[..], &1_u32.to_sortable()]));
/// assert!(place.starts_with(&key([b"Paris"])), "a prefix finds all with this first part");
/// assert_eq!(parts(&place)?[0], b"Paris");
/// # Ok::<(), weald::tree::value::ValueError>(())
/// ```
pub fn key<T: AsRef<[u8]>>(parts: impl IntoIterator<Item = T>) -> Vec<u8> {
    let mut key = Vec::new();
    for part in parts {
        for &byte in part.as_ref() {
            key.push(byte);
            if byte == 0 {
                key.push(255);
            }
        }
        key.extend([0, 0]);
    }
    key
}

/// The parts of a [`key`].
///
/// # Errors
/// [`ValueError`], if the bytes are no key.
pub fn parts(key: &[u8]) -> Result<Vec<Vec<u8>>, ValueError> {
    let wrong = || ValueError {
        expected: "a key of several parts",
        bytes: key.len(),
    };
    let (mut parts, mut part) = (Vec::new(), Vec::new());
    let mut bytes = key.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            0 => match bytes.next() {
                Some(0) => parts.push(std::mem::take(&mut part)),
                Some(255) => part.push(0),
                _ => return Err(wrong()),
            },
            byte => part.push(byte),
        }
    }
    part.is_empty().then_some(parts).ok_or_else(wrong)
}

/// A structure as the bytes of an attribute: JSON, which any program reads, and which sorts as nothing in particular.
///
/// ```
/// use weald::tree::value::{from_json, to_json};
///
/// let bytes = to_json(&("Ada", 1815))?;
/// assert_eq!(from_json::<(String, u32)>(&bytes)?, ("Ada".to_owned(), 1815));
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// # Errors
/// Those of the type's `Serialize`, and if a map has keys that are no text.
pub fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(value)
}

/// The structure that [`to_json`] turned into these bytes.
///
/// # Errors
/// If they are not JSON, or not of this type.
pub fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(bytes)
}

impl Node<'_> {
    /// One attribute as a value of a type; `None` if it is missing.
    ///
    /// # Errors
    /// [`ValueError`], if it is not of this type.
    pub fn value<T: Sortable>(self, name: &str) -> Result<Option<T>, ValueError> {
        self.get(name).map(T::from_sortable).transpose()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn agrees<T: Sortable + Clone>(one: &T, other: &T, order: std::cmp::Ordering) {
        assert_eq!(one.to_sortable().cmp(&other.to_sortable()), order);
        let again = T::from_sortable(&one.to_sortable()).unwrap();
        assert_eq!(again.to_sortable(), one.to_sortable());
    }

    fn time(seconds: i64, nanoseconds: u32) -> SystemTime {
        let whole = Duration::from_secs(seconds.unsigned_abs());
        let second = match seconds < 0 {
            true => UNIX_EPOCH - whole,
            false => UNIX_EPOCH + whole,
        };
        second + Duration::from_nanos(u64::from(nanoseconds))
    }

    proptest! {
        #[test]
        fn bytes_sort_as_values(
            unsigned: (u64, u64), signed: (i64, i64), small: (i8, i8), large: (i128, i128),
            floats: (u64, u64), singles: (u32, u32), characters: (char, char), texts: (String, String),
            seconds in (-1_000_000_000_000_i64..1_000_000_000_000, -3_i64..3),
            nanoseconds in (0_u32..1_000_000_000, 0_u32..1_000_000_000),
        ) {
            agrees(&unsigned.0, &unsigned.1, unsigned.0.cmp(&unsigned.1));
            agrees(&signed.0, &signed.1, signed.0.cmp(&signed.1));
            agrees(&small.0, &small.1, small.0.cmp(&small.1));
            agrees(&large.0, &large.1, large.0.cmp(&large.1));
            let (one, other) = (f64::from_bits(floats.0), f64::from_bits(floats.1));
            agrees(&one, &other, one.total_cmp(&other));
            let (one, other) = (f32::from_bits(singles.0), f32::from_bits(singles.1));
            agrees(&one, &other, one.total_cmp(&other));
            agrees(&characters.0, &characters.1, characters.0.cmp(&characters.1));
            agrees(&texts.0, &texts.1, texts.0.cmp(&texts.1));
            let (one, other) = (time(seconds.0, nanoseconds.0), time(seconds.1, nanoseconds.1));
            agrees(&one, &other, one.cmp(&other));
            prop_assert_eq!(SystemTime::from_sortable(&one.to_sortable()).unwrap(), one);
        }

        #[test]
        fn keys_sort_as_their_parts(
            one in prop::collection::vec(prop::collection::vec(0_u8..3, 0..4), 0..4),
            other in prop::collection::vec(prop::collection::vec(0_u8..3, 0..4), 0..4),
        ) {
            prop_assert_eq!(key(&one).cmp(&key(&other)), one.cmp(&other));
            prop_assert_eq!(parts(&key(&one)).unwrap(), one);
        }

        #[test]
        fn any_bytes_are_a_value_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            _ = SystemTime::from_sortable(&bytes);
            _ = char::from_sortable(&bytes);
            if let Ok(parts) = parts(&bytes) {
                prop_assert_eq!(key(parts), bytes);
            }
        }
    }

    #[test]
    fn special_numbers_are_in_place() {
        let sorted = [
            f64::NEG_INFINITY,
            -1.0,
            -0.0,
            0.0,
            f64::MIN_POSITIVE,
            1.0,
            f64::INFINITY,
        ];
        let bytes: Vec<_> = sorted.iter().map(Sortable::to_sortable).collect();
        assert!(bytes.is_sorted());
        assert!(u8::from_sortable(&[]).is_err());
        assert_eq!(
            bool::from_sortable(&[2]).unwrap_err().to_string(),
            "the attribute is not true or false; read it as the type with which it was put (1 bytes)"
        );
    }
}
