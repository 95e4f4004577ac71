//! A map from numbers that needs no memory of its own while it has at most one entry.
//!
//! Most units have one link and one monitor, if they have any. With more entries it becomes a hash table. A unit that
//! watches 100,000 others looks each of them up four times, and searching a tree of that size would cost as much as
//! everything else.
//!
//! The numbers are Weald's own and consecutive, so the hash need not resist an attack. It keeps sixteen consecutive
//! numbers next to each other, because units that were spawned together are often linked, and often end together.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hash, Hasher},
    mem,
};

pub(crate) enum Few<K, V> {
    None,
    One(K, V),
    /// At least one entry. In a box, since few units need it.
    Many(Box<Table<K, V>>),
}

type Table<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// A table with room for more than this many entries gives memory back when an eighth of it is used.
const KEPT: usize = 64;

/// The hash of one number.
#[derive(Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write_u64(&mut self, number: u64) {
        const NEIGHBOURS: u32 = 4;
        // The golden ratio (Knuth, multiplicative hashing); the low bits of a product depend on too few bits.
        let mixed = (number >> NEIGHBOURS).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let place = (mixed ^ (mixed >> 32)) << NEIGHBOURS;
        // The table finds the place by the low bits, and tells entries there apart by the high ones.
        self.0 = (place | (number & ((1 << NEIGHBOURS) - 1))) ^ (number << 57);
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only numbers of 64 bits are hashed");
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl<K: Copy + Ord + Hash, V> Few<K, V> {
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Few::None)
    }

    pub(crate) fn is_many(&self) -> bool {
        matches!(self, Few::Many(_))
    }

    pub(crate) fn contains_key(&self, key: &K) -> bool {
        match self {
            Few::None => false,
            Few::One(own, _) => own == key,
            Few::Many(table) => table.contains_key(key),
        }
    }

    /// Adds an entry. Returns the value that it replaces.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self {
            Few::None => *self = Few::One(key, value),
            Few::One(own, former) if *own == key => return Some(mem::replace(former, value)),
            Few::One(..) => {
                let Few::One(first, former) = mem::replace(self, Few::None) else {
                    unreachable!("it was found to be one")
                };
                let table = [(first, former), (key, value)].into_iter().collect();
                *self = Few::Many(Box::new(table));
            }
            Few::Many(table) => return table.insert(key, value),
        }
        None
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        match self {
            Few::One(own, _) if own == key => match mem::replace(self, Few::None) {
                Few::One(_, value) => Some(value),
                Few::None | Few::Many(_) => unreachable!("it was found to be one"),
            },
            Few::None | Few::One(..) => None,
            Few::Many(table) => {
                let value = table.remove(key);
                if table.is_empty() {
                    *self = Few::None;
                } else if table.capacity() > KEPT && table.len() < table.capacity() / 8 {
                    table.shrink_to(table.capacity() / 4);
                }
                value
            }
        }
    }

    /// All entries; none is left.
    pub(crate) fn take(&mut self) -> Few<K, V> {
        mem::replace(self, Few::None)
    }

    /// All entries, in ascending order. O(n log n).
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let (one, mut many) = match self {
            Few::None => (None, Vec::new()),
            Few::One(key, value) => (Some((key, value)), Vec::new()),
            Few::Many(table) => (None, table.iter().collect()),
        };
        many.sort_unstable_by_key(|(key, _)| **key);
        one.into_iter().chain(many)
    }

    /// All values, in ascending order of the keys. O(n log n).
    pub(crate) fn into_values(self) -> impl Iterator<Item = V> {
        let (one, mut many) = match self {
            Few::None => (None, Vec::new()),
            Few::One(_, value) => (Some(value), Vec::new()),
            Few::Many(table) => (None, table.into_iter().collect()),
        };
        many.sort_unstable_by_key(|(key, _)| *key);
        one.into_iter()
            .chain(many.into_iter().map(|(_, value)| value))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// All sequences of six steps over three keys, beside a map.
    #[test]
    fn it_is_as_a_map() {
        const KEYS: u64 = 3;
        const STEPS: u32 = 6;
        for mut sequence in 0..(2 * KEYS).pow(STEPS) {
            let (mut few, mut map) = (Few::None, BTreeMap::new());
            for step in 0..STEPS {
                let (key, is_insert) = (sequence % KEYS, (sequence / KEYS).is_multiple_of(2));
                sequence /= 2 * KEYS;
                match is_insert {
                    true => assert_eq!(few.insert(key, step), map.insert(key, step)),
                    false => assert_eq!(few.remove(&key), map.remove(&key)),
                }
                assert!(few.iter().eq(map.iter()));
                assert!((0..KEYS).all(|key| few.contains_key(&key) == map.contains_key(&key)));
                assert_eq!(few.is_empty(), map.is_empty());
            }
            assert!(few.into_values().eq(map.into_values()));
        }
    }

    /// Neighbours, and numbers far apart at any power of two.
    #[test]
    fn it_keeps_many_in_order_and_gives_memory_back() {
        const MANY: u64 = 10_000;
        for stride in (0..40).map(|shift| 1 << shift) {
            let mut few = Few::None;
            for n in (0..MANY).rev() {
                assert_eq!(few.insert(n * stride, n), None);
            }
            assert!(few.iter().map(|(_, n)| *n).eq(0..MANY));
            for n in 100..MANY {
                assert_eq!(few.remove(&(n * stride)), Some(n));
            }
            let Few::Many(table) = &few else {
                panic!("a hundred are left");
            };
            assert!(table.capacity() < 10 * 100, "{}", table.capacity());
            assert!(few.into_values().eq(0..100));
        }
    }
}
