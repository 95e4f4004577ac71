//! A map that needs no memory of its own while it has at most one entry.
//!
//! Most units have one link and one monitor, if they have any: a tree's first node, which has room for eleven, would be
//! more than all else that is noted about them.

use std::{collections::BTreeMap, mem};

pub(crate) enum Few<K, V> {
    None,
    One(K, V),
    /// At least one entry.
    Many(BTreeMap<K, V>),
}

impl<K: Ord, V> Few<K, V> {
    pub(crate) fn contains_key(&self, key: &K) -> bool {
        match self {
            Few::None => false,
            Few::One(own, _) => own == key,
            Few::Many(map) => map.contains_key(key),
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
                *self = Few::Many(BTreeMap::from([(first, former), (key, value)]));
            }
            Few::Many(map) => return map.insert(key, value),
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
            Few::Many(map) => {
                let value = map.remove(key);
                if map.is_empty() {
                    *self = Few::None;
                }
                value
            }
        }
    }

    /// All entries; none is left.
    pub(crate) fn take(&mut self) -> Few<K, V> {
        mem::replace(self, Few::None)
    }

    /// All entries, in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let (one, many) = match self {
            Few::None => (None, None),
            Few::One(key, value) => (Some((key, value)), None),
            Few::Many(map) => (None, Some(map)),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }

    /// All values, in ascending order of the keys.
    pub(crate) fn into_values(self) -> impl Iterator<Item = V> {
        let (one, many) = match self {
            Few::None => (None, None),
            Few::One(_, value) => (Some(value), None),
            Few::Many(map) => (None, Some(map.into_values())),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All sequences of six steps over three keys, beside a map.
    #[test]
    fn it_is_as_a_map() {
        const KEYS: u32 = 3;
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
                assert_eq!(matches!(few, Few::None), map.is_empty());
            }
            assert!(few.into_values().eq(map.into_values()));
        }
    }
}
