//! What owns its items, or cannot be divided by itself, as parts: vectors, maps and sets.
//!
//! A vector is divided by moving its second half, so each item moves some ten times, on the threads that process it.
//! A map or a set is first walked by the caller, which notes the items in a vector.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::fork::parts::{IntoParts, Parts};

impl<T: Send> Parts for Vec<T> {
    type Item = T;

    fn len(&self) -> usize {
        Vec::len(self)
    }

    fn divide(mut self, index: usize) -> (Self, Self) {
        let right = self.split_off(index);
        (self, right)
    }

    fn items(self) -> impl Iterator<Item = T> {
        self.into_iter()
    }
}

macro_rules! collections {
    ($([$($generics:tt)*] $collection:ty, $item:ty;)*) => { $(
        impl<$($generics)*> IntoParts for $collection {
            type Parts = Vec<$item>;
            type Item = $item;

            fn into_parts(self) -> Vec<$item> {
                self.into_iter().collect()
            }
        }
    )* };
}

collections! {
    [K: Send, V: Send, S] HashMap<K, V, S>, (K, V);
    ['a, K: Sync, V: Sync, S] &'a HashMap<K, V, S>, (&'a K, &'a V);
    ['a, K: Sync, V: Send, S] &'a mut HashMap<K, V, S>, (&'a K, &'a mut V);
    [K: Send, V: Send] BTreeMap<K, V>, (K, V);
    ['a, K: Sync, V: Sync] &'a BTreeMap<K, V>, (&'a K, &'a V);
    ['a, K: Sync, V: Send] &'a mut BTreeMap<K, V>, (&'a K, &'a mut V);
    [T: Send, S] HashSet<T, S>, T;
    ['a, T: Sync, S] &'a HashSet<T, S>, &'a T;
    [T: Send] BTreeSet<T>, T;
    ['a, T: Sync] &'a BTreeSet<T>, &'a T;
}
