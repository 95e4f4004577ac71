//! A persistent sorted set of values with their nodes: the representation of an index.
//!
//! - It is a tree of chunks, each with the least key below it; all leaves are at the same height.
//! - A clone shares everything. A chunk with a single owner is changed in place; any other is copied
//!   first.
//! - Each child knows how many keys are below it, so counting a range costs as much as finding its ends.

use std::cmp::Ordering;
use std::sync::Arc;

use weald_tree::{Bytes, NodeId};

const LEAF: usize = 32;
const INNER: usize = 16;

/// A value of an attribute, and a node that has the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) value: Bytes,
    pub(crate) node: NodeId,
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        (&*self.value, self.node).cmp(&(&*other.value, other.node))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A sorted set of keys.
#[derive(Clone)]
pub(crate) struct Sorted(Arc<Chunk>);

#[derive(Clone)]
enum Chunk {
    Leaf(Vec<Key>),
    Inner(Vec<Child>),
}

#[derive(Clone)]
struct Child {
    least: Key,
    len: usize,
    set: Sorted,
}

impl Sorted {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Chunk::Leaf(Vec::new())))
    }

    pub(crate) fn from_keys(mut keys: Vec<Key>) -> Self {
        keys.sort_unstable();
        let mut level: Vec<Self> = keys
            .chunks(LEAF)
            .map(|keys| Self::of(Chunk::Leaf(keys.to_vec())))
            .collect();
        while level.len() > 1 {
            let above = level.chunks(INNER).map(|sets| {
                let children = sets.iter().cloned().map(Child::new);
                Self::of(Chunk::Inner(children.collect()))
            });
            level = above.collect();
        }
        level.pop().unwrap_or_else(Self::new)
    }

    fn of(chunk: Chunk) -> Self {
        Self(Arc::new(chunk))
    }

    pub(crate) fn len(&self) -> usize {
        match &*self.0 {
            Chunk::Leaf(keys) => keys.len(),
            Chunk::Inner(children) => children.iter().map(|child| child.len).sum(),
        }
    }

    /// Passes the address and the bytes of each chunk to `look`, which returns whether to descend.
    pub(crate) fn chunks(&self, look: &mut dyn FnMut(usize, usize) -> bool) {
        let held = match &*self.0 {
            Chunk::Leaf(keys) => keys.capacity() * size_of::<Key>(),
            Chunk::Inner(children) => children.capacity() * size_of::<Child>(),
        };
        // The two counters of an `Arc` are in front of the chunk.
        let bytes = size_of::<Chunk>() + 2 * size_of::<usize>() + held;
        let is_new = look(Arc::as_ptr(&self.0).addr(), bytes);
        if let (true, Chunk::Inner(children)) = (is_new, &*self.0) {
            children.iter().for_each(|child| child.set.chunks(look));
        }
    }

    /// Inserts a key, unless it is there.
    pub(crate) fn insert(&mut self, key: Key) {
        if let Some(behind) = self.insert_or_split(key) {
            let before = std::mem::replace(self, Self::new());
            *self = Self::of(Chunk::Inner(vec![Child::new(before), Child::new(behind)]));
        }
    }

    /// Removes a key, if it is there.
    pub(crate) fn remove(&mut self, key: &Key) {
        self.take_out(key);
        while let Chunk::Inner(children) = &*self.0
            && let [only] = &children[..]
        {
            *self = only.set.clone();
        }
    }

    /// How many keys are before the first for which `is_reached` holds; it holds for all after that.
    pub(crate) fn before(&self, is_reached: &dyn Fn(&Key) -> bool) -> usize {
        match &*self.0 {
            Chunk::Leaf(keys) => keys.partition_point(|key| !is_reached(key)),
            Chunk::Inner(children) => {
                let begun = children.partition_point(|child| !is_reached(&child.least));
                let Some((last, whole)) = children[..begun].split_last() else {
                    return 0;
                };
                whole.iter().map(|child| child.len).sum::<usize>() + last.set.before(is_reached)
            }
        }
    }

    /// The keys from the first for which `is_reached` holds; it holds for all after that.
    pub(crate) fn from(&self, is_reached: &dyn Fn(&Key) -> bool) -> Keys<'_> {
        let mut keys = Keys {
            leaf: [].iter(),
            above: Vec::new(),
        };
        let mut set = self;
        loop {
            match &*set.0 {
                Chunk::Leaf(all) => {
                    keys.leaf = all[all.partition_point(|key| !is_reached(key))..].iter();
                    return keys;
                }
                Chunk::Inner(children) => {
                    let begun = children.partition_point(|child| !is_reached(&child.least));
                    let first = begun.saturating_sub(1);
                    keys.above.push(children[first + 1..].iter());
                    set = &children[first].set;
                }
            }
        }
    }

    /// The keys before the first for which `is_reached` holds, the last one first; it holds for all after that.
    pub(crate) fn back_from(&self, is_reached: &dyn Fn(&Key) -> bool) -> KeysBack<'_> {
        let mut keys = KeysBack {
            leaf: [].iter(),
            above: Vec::new(),
        };
        let mut set = self;
        loop {
            match &*set.0 {
                Chunk::Leaf(all) => {
                    keys.leaf = all[..all.partition_point(|key| !is_reached(key))].iter();
                    return keys;
                }
                Chunk::Inner(children) => {
                    let begun = children.partition_point(|child| !is_reached(&child.least));
                    let Some((last, before)) = children[..begun].split_last() else {
                        return keys;
                    };
                    keys.above.push(before.iter());
                    set = &last.set;
                }
            }
        }
    }

    /// Inserts a key; returns the second half of this chunk if it grew too long.
    fn insert_or_split(&mut self, key: Key) -> Option<Self> {
        match Arc::make_mut(&mut self.0) {
            Chunk::Leaf(keys) => {
                let at = keys.binary_search(&key).err()?;
                keys.insert(at, key);
                let behind = split(keys, LEAF)?;
                Some(Self::of(Chunk::Leaf(behind)))
            }
            Chunk::Inner(children) => {
                let at = children
                    .partition_point(|child| child.least <= key)
                    .saturating_sub(1);
                let behind = children[at].set.insert_or_split(key);
                children[at].look_again();
                children.insert(at + 1, Child::new(behind?));
                let behind = split(children, INNER)?;
                Some(Self::of(Chunk::Inner(behind)))
            }
        }
    }

    fn take_out(&mut self, key: &Key) {
        match Arc::make_mut(&mut self.0) {
            Chunk::Leaf(keys) => {
                if let Ok(at) = keys.binary_search(key) {
                    keys.remove(at);
                }
            }
            Chunk::Inner(children) => {
                let at = children.partition_point(|child| child.least <= *key);
                let Some(at) = at.checked_sub(1) else { return };
                children[at].set.take_out(key);
                if children[at].set.len() == 0 {
                    children.remove(at);
                } else {
                    children[at].look_again();
                }
            }
        }
    }

    /// The first key of a chunk that is not empty.
    fn least(&self) -> &Key {
        match &*self.0 {
            Chunk::Leaf(keys) => &keys[0],
            Chunk::Inner(children) => &children[0].least,
        }
    }
}

impl Child {
    fn new(set: Sorted) -> Self {
        Self {
            least: set.least().clone(),
            len: set.len(),
            set,
        }
    }

    fn look_again(&mut self) {
        self.len = self.set.len();
        if self.least != *self.set.least() {
            self.least = self.set.least().clone();
        }
    }
}

/// Removes and returns the second half if the list is too long.
fn split<T>(list: &mut Vec<T>, limit: usize) -> Option<Vec<T>> {
    (list.len() > limit).then(|| list.split_off(list.len() / 2))
}

/// Keys in order.
#[derive(Clone)]
pub(crate) struct Keys<'a> {
    leaf: std::slice::Iter<'a, Key>,
    /// What is left of the chunks above, the lowest last.
    above: Vec<std::slice::Iter<'a, Child>>,
}

impl<'a> Iterator for Keys<'a> {
    type Item = &'a Key;

    fn next(&mut self) -> Option<&'a Key> {
        loop {
            if let Some(key) = self.leaf.next() {
                return Some(key);
            }
            let Some(child) = self.above.last_mut()?.next() else {
                self.above.pop();
                continue;
            };
            match &*child.set.0 {
                Chunk::Leaf(keys) => self.leaf = keys.iter(),
                Chunk::Inner(children) => self.above.push(children.iter()),
            }
        }
    }
}

/// Keys in the opposite order.
#[derive(Clone)]
pub(crate) struct KeysBack<'a> {
    leaf: std::slice::Iter<'a, Key>,
    /// What is left of the chunks above, the lowest last.
    above: Vec<std::slice::Iter<'a, Child>>,
}

impl<'a> Iterator for KeysBack<'a> {
    type Item = &'a Key;

    fn next(&mut self) -> Option<&'a Key> {
        loop {
            if let Some(key) = self.leaf.next_back() {
                return Some(key);
            }
            let Some(child) = self.above.last_mut()?.next_back() else {
                self.above.pop();
                continue;
            };
            match &*child.set.0 {
                Chunk::Leaf(keys) => self.leaf = keys.iter(),
                Chunk::Inner(children) => self.above.push(children.iter()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_sorted_set(
            start in prop::collection::vec((0..40_u8, 1..50_u64), 0..200),
            steps in prop::collection::vec((any::<bool>(), 0..40_u8, 1..50_u64), 0..400),
            bound in 0..41_u8,
        ) {
            let key = |value: u8, node| Key {
                value: Bytes::new(&[value]),
                node: NodeId::new(node).unwrap(),
            };
            let mut model: BTreeSet<Key> = start.into_iter().map(|(value, node)| key(value, node)).collect();
            let mut set = Sorted::from_keys(model.iter().cloned().collect());
            for (is_insert, value, node) in steps {
                let (shared, before) = (set.clone(), model.len());
                if is_insert {
                    set.insert(key(value, node));
                    model.insert(key(value, node));
                } else {
                    set.remove(&key(value, node));
                    model.remove(&key(value, node));
                }
                prop_assert_eq!(set.len(), model.len());
                prop_assert_eq!(shared.from(&|_| true).count(), before);
            }
            prop_assert!(set.from(&|_| true).eq(&model));
            let is_reached = |key: &Key| key.value[0] >= bound;
            prop_assert!(set.from(&is_reached).eq(model.iter().filter(|key| is_reached(key))));
            prop_assert!(set.back_from(&is_reached).eq(model.iter().rev().filter(|key| !is_reached(key))));
            prop_assert_eq!(set.before(&is_reached), model.iter().filter(|key| !is_reached(key)).count());
        }
    }
}
