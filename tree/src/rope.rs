//! A long list of ids that versions share: a tree of chunks, addressed by position.
//!
//! - Every chunk holds something, except the only chunk of an empty list; all leaves are at one height.
//! - A clone shares everything. A chunk with one owner is changed in place; a shared chunk is copied first.
//! - Appending fills chunks completely, so the millionth id costs what the thousandth costs.

use std::ops::Range;
use std::sync::Arc;

use crate::id::NodeId;

/// Ids by position.
#[derive(Clone)]
pub(crate) struct Rope(Arc<Chunk>);

#[derive(Clone)]
enum Chunk {
    Leaf(Vec<NodeId>),
    Inner { len: usize, parts: Vec<Part> },
}

/// A part and its length, so that finding a position enters one part only.
#[derive(Clone)]
struct Part {
    len: usize,
    rope: Rope,
}

const LEAF_LIMIT: usize = 64;
const INNER_LIMIT: usize = 16;

impl Rope {
    pub(crate) fn new(ids: impl Iterator<Item = NodeId>) -> Self {
        let ids: Vec<NodeId> = ids.collect();
        if ids.len() <= LEAF_LIMIT {
            return Self(Arc::new(Chunk::Leaf(ids)));
        }
        let leaves = ids
            .chunks(LEAF_LIMIT)
            .map(|part| Self(Arc::new(Chunk::Leaf(part.to_vec()))));
        let mut level: Vec<Self> = leaves.collect();
        while level.len() > 1 {
            level = level
                .chunks(INNER_LIMIT)
                .map(|parts| Self::over(parts.iter().cloned()))
                .collect();
        }
        level.pop().expect("there was more than one leaf")
    }

    pub(crate) fn len(&self) -> usize {
        match &*self.0 {
            Chunk::Leaf(ids) => ids.len(),
            Chunk::Inner { len, .. } => *len,
        }
    }

    /// Calls `look` with the address and size of each chunk; `look` returns whether to visit the parts below.
    pub(crate) fn chunks(&self, look: &mut dyn FnMut(usize, usize) -> bool) {
        let bytes = match &*self.0 {
            Chunk::Leaf(ids) => ids.capacity() * size_of::<NodeId>(),
            Chunk::Inner { parts, .. } => parts.capacity() * size_of::<Part>(),
        };
        let is_new = look(Arc::as_ptr(&self.0).addr(), bytes + size_of::<Chunk>());
        if let (true, Chunk::Inner { parts, .. }) = (is_new, &*self.0) {
            parts.iter().for_each(|part| part.rope.chunks(look));
        }
    }

    /// Whether both are the same list in memory, and therefore equal.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn get(&self, at: usize) -> Option<NodeId> {
        self.iter(at..at + 1).next()
    }

    /// The ids in a range of positions, cut off at the end of the list.
    pub(crate) fn iter(&self, range: Range<usize>) -> RopeIter<'_> {
        let mut iter = RopeIter {
            leaf: [].iter(),
            above: None,
            left: range.end.min(self.len()).saturating_sub(range.start),
        };
        let (mut part, mut at) = (self, range.start);
        while iter.left > 0 {
            match &*part.0 {
                Chunk::Leaf(ids) => {
                    iter.leaf = ids[at..].iter();
                    break;
                }
                Chunk::Inner { parts, .. } => {
                    let (next, rest) = locate(parts, at);
                    iter.above
                        .get_or_insert_default()
                        .push(parts[next + 1..].iter());
                    (part, at) = (&parts[next].rope, rest);
                }
            }
        }
        iter
    }

    /// Inserts an id before the one at a position, or at the end.
    pub(crate) fn insert(&mut self, at: usize, id: NodeId) {
        if let Some(after) = self.insert_or_split(at, id) {
            let before = std::mem::replace(self, Self(Arc::new(Chunk::Leaf(Vec::new()))));
            *self = Self::over([before, after]);
        }
    }

    /// Removes the id at a position, which must exist.
    pub(crate) fn remove(&mut self, at: usize) {
        self.take_out(at);
        while let Chunk::Inner { parts, .. } = &*self.0
            && let [only] = &parts[..]
        {
            *self = only.rope.clone();
        }
    }

    fn over(parts: impl IntoIterator<Item = Self>) -> Self {
        Self::of(parts.into_iter().map(Part::new).collect())
    }

    fn of(parts: Vec<Part>) -> Self {
        let len = parts.iter().map(|part| part.len).sum();
        Self(Arc::new(Chunk::Inner { len, parts }))
    }

    /// Inserts an id; returns what must follow this part if it grew too long.
    fn insert_or_split(&mut self, at: usize, id: NodeId) -> Option<Self> {
        match Arc::make_mut(&mut self.0) {
            Chunk::Leaf(ids) => {
                ids.insert(at, id);
                let after = split(ids, LEAF_LIMIT, at)?;
                Some(Self(Arc::new(Chunk::Leaf(after))))
            }
            Chunk::Inner { len, parts } => {
                *len += 1;
                // Insert at the end of a part rather than at the start of the next one.
                let before = at.checked_sub(1).map(|before| locate(parts, before));
                let (next, rest) = before.map_or((0, 0), |(part, rest)| (part, rest + 1));
                let part = &mut parts[next];
                let after = part.rope.insert_or_split(rest, id);
                part.len = part.rope.len();
                parts.insert(next + 1, Part::new(after?));
                let after = Self::of(split(parts, INNER_LIMIT, next + 1)?);
                *len -= after.len();
                Some(after)
            }
        }
    }

    fn take_out(&mut self, at: usize) {
        match Arc::make_mut(&mut self.0) {
            Chunk::Leaf(ids) => _ = ids.remove(at),
            Chunk::Inner { len, parts } => {
                *len -= 1;
                let (next, rest) = locate(parts, at);
                parts[next].rope.take_out(rest);
                parts[next].len -= 1;
                if parts[next].len == 0 {
                    parts.remove(next);
                }
            }
        }
    }
}

impl Part {
    fn new(rope: Rope) -> Self {
        let len = rope.len();
        Self { len, rope }
    }
}

/// The part that holds a position, and the position in that part.
fn locate(parts: &[Part], mut at: usize) -> (usize, usize) {
    for (number, part) in parts.iter().enumerate() {
        if at < part.len {
            return (number, at);
        }
        at -= part.len;
    }
    panic!("the position {at} is past the end of a list");
}

/// Splits off the end of a list that is too long: half of it, or only the newest item if that is last.
fn split<T>(list: &mut Vec<T>, limit: usize, newest: usize) -> Option<Vec<T>> {
    if list.len() <= limit {
        return None;
    }
    let is_last = newest + 1 == list.len();
    Some(list.split_off(if is_last { newest } else { list.len() / 2 }))
}

/// Ids in order.
#[derive(Clone)]
pub(crate) struct RopeIter<'a> {
    leaf: std::slice::Iter<'a, NodeId>,
    /// The rest of the chunks above, the lowest last.
    #[expect(
        clippy::box_collection,
        reason = "a walk keeps many, and most lists are one leaf"
    )]
    above: Option<Box<Vec<std::slice::Iter<'a, Part>>>>,
    left: usize,
}

impl RopeIter<'_> {
    pub(crate) fn left(&self) -> usize {
        self.left
    }
}

impl Iterator for RopeIter<'_> {
    type Item = NodeId;

    #[inline]
    fn next(&mut self) -> Option<NodeId> {
        if self.left == 0 {
            return None;
        }
        loop {
            if let Some(id) = self.leaf.next() {
                self.left -= 1;
                return Some(*id);
            }
            let above = self.above.as_mut()?;
            let Some(part) = above.last_mut()?.next() else {
                above.pop();
                continue;
            };
            match &*part.rope.0 {
                Chunk::Leaf(ids) => self.leaf = ids.iter(),
                Chunk::Inner { parts, .. } => above.push(parts.iter()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn all(rope: &Rope) -> Vec<NodeId> {
        rope.iter(0..usize::MAX).collect()
    }

    /// Cases, and the greatest length and number of steps of each. Each step walks the whole list, which Miri does some
    /// thousand times more slowly.
    const CASES: u32 = if cfg!(miri) { 4 } else { 64 };
    const LENGTH: u64 = if cfg!(miri) { 400 } else { 5000 };
    const STEPS: usize = if cfg!(miri) { 12 } else { 300 };

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(CASES))]
        #[test]
        fn it_is_a_list(
            start in 0..LENGTH,
            steps in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 0..STEPS),
            range in (0..6000_usize, 0..6000_usize),
        ) {
            let mut model: Vec<NodeId> = (1..=start).map(NodeId::at).collect();
            let mut rope = Rope::new(model.iter().copied());
            for (number, (is_insert, at)) in (10_000..).zip(steps) {
                let (before, shared) = (model.clone(), rope.clone());
                if is_insert {
                    let at = at.index(model.len() + 1);
                    model.insert(at, NodeId::at(number));
                    rope.insert(at, NodeId::at(number));
                } else if !model.is_empty() {
                    let at = at.index(model.len());
                    model.remove(at);
                    rope.remove(at);
                }
                prop_assert_eq!(rope.len(), model.len());
                prop_assert_eq!(all(&shared).len(), before.len());
            }
            prop_assert_eq!(&all(&rope), &model);
            let (from, to) = (range.0.min(model.len()), range.1.min(model.len()));
            let part: Vec<_> = rope.iter(from..to).collect();
            prop_assert_eq!(part, model.get(from..to).unwrap_or(&[]));
            prop_assert_eq!(rope.get(from), model.get(from).copied());
        }
    }

    /// The addresses of all chunks of a list.
    fn chunks(rope: &Rope) -> HashSet<*const Chunk> {
        let below = match &*rope.0 {
            Chunk::Leaf(_) => HashSet::new(),
            Chunk::Inner { parts, .. } => {
                parts.iter().flat_map(|part| chunks(&part.rope)).collect()
            }
        };
        below.into_iter().chain([Arc::as_ptr(&rope.0)]).collect()
    }

    /// How many chunks of `new` are not in `old`.
    fn copied(old: &Rope, new: &Rope) -> usize {
        chunks(new).difference(&chunks(old)).count()
    }

    #[test]
    fn the_millionth_id_copies_one_chunk_for_each_level() {
        for (count, levels) in [(1000, 2), (1_000_000, 5)] {
            let mut rope = Rope::new((1..=count).map(NodeId::at));
            let last = rope.len();
            for at in [last, last / 2, 0] {
                let old = rope.clone();
                rope.insert(at, NodeId::at(count + 1));
                // Each level may split, and one more may be added on top.
                assert!(copied(&old, &rope) <= 2 * levels + 1, "{count} {at}");
                let old = rope.clone();
                rope.remove(at);
                assert!(copied(&old, &rope) <= levels + 1, "{count} {at}");
            }
        }
    }

    #[test]
    fn everything_can_be_removed() {
        let mut rope = Rope::new((1..=5000).map(NodeId::at));
        for left in (0..5000).rev() {
            rope.remove(left / 2);
            assert_eq!(rope.len(), left);
        }
        assert_eq!(all(&rope), []);
        rope.insert(0, NodeId::at(1));
        assert_eq!(all(&rope), [NodeId::at(1)]);
    }
}
