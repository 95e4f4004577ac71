//! The trees of a forest by their names: sorted lists of at most [`CHUNK`] trees, which are chunks, in a list that is
//! sorted by the least name that each may have. A look-up halves both lists. It locks only the trees that it compares
//! in the one chunk, because the least names are here.
//!
//! - A tree has its name itself, so a chunk has a pointer to each tree and nothing else. The name of a tree that is
//!   here changes only in [`Names::rename`], so the order stays right.
//! - The least name of a chunk is no greater than the names in it, and greater than those in the chunks before it.
//! - No chunk is empty, and two neighbours that together have at most half of what one may have become one when a tree
//!   of them is removed.
//! - A full chunk is cut in half, or where a long run of names goes on, which leaves full chunks behind it. So of the
//!   two pieces the one with the run has half of what a chunk may have, or more. The other one becomes a part of the
//!   next chunk, if that has room for it and one tree more.

use super::name::{Name, Sought};
use super::tree::TreeRef;

/// The most trees in one chunk; few in tests, so that chunks are cut and joined often.
const CHUNK: usize = if cfg!(test) { 8 } else { 64 };

/// Trees that are sorted by their names, no two of which are equal.
#[derive(Default)]
pub(crate) struct Names {
    chunks: Vec<NameChunk>,
    /// Where in its chunk a name would be put that follows the one that was added last.
    run: usize,
    /// How many names were added there, each behind the one before.
    length_of_run: usize,
}

/// Trees whose names follow each other.
struct NameChunk {
    least: Name,
    trees: Vec<TreeRef>,
}

impl Names {
    pub(crate) fn get(&self, name: &str) -> Option<&TreeRef> {
        let (chunk, place) = self.place(&Name::new(name));
        let place = place.ok()?;
        Some(&self.chunks[chunk].trees[place])
    }

    /// Adds a tree. Returns the one that had its name.
    pub(crate) fn insert(&mut self, tree: TreeRef) -> Option<TreeRef> {
        let name = tree.name();
        match self.place(&name) {
            (chunk, Ok(place)) => {
                let former = &mut self.chunks[chunk].trees[place];
                return Some(std::mem::replace(former, tree));
            }
            (_, Err(_)) if self.chunks.is_empty() => self.begin_chunk(0, (name, tree)),
            (chunk, Err(place)) if self.chunks[chunk].trees.len() == CHUNK => {
                self.insert_in_full((chunk, place), (name, tree));
            }
            (chunk, Err(place)) => self.insert_at((chunk, place), (name, tree)),
        }
        None
    }

    pub(crate) fn remove(&mut self, name: &str) -> Option<TreeRef> {
        let (chunk, place) = self.place(&Name::new(name));
        let place = place.ok()?;
        let tree = self.chunks[chunk].trees.remove(place);
        self.join(chunk);
        Some(tree)
    }

    /// Gives a tree that has the first name the second one.
    pub(crate) fn rename(&mut self, name: &str, new: &str) {
        if let Some(tree) = self.remove(name) {
            tree.rename(Name::new(new));
            self.insert(tree);
        }
    }

    /// All trees, in the order of their names.
    pub(crate) fn trees(&self) -> impl Iterator<Item = &TreeRef> {
        self.chunks.iter().flat_map(|chunk| &chunk.trees)
    }

    /// The names from this one on, in their order.
    pub(crate) fn names_from(&self, first: &str) -> impl Iterator<Item = Name> {
        let (chunk, place) = self.place(&Name::new(first));
        let place = place.unwrap_or_else(|place| place);
        let chunks = self.chunks.get(chunk..).unwrap_or_default();
        let trees = chunks.iter().flat_map(|chunk| &chunk.trees);
        trees.skip(place).map(|tree| tree.name())
    }

    /// The chunk where a name belongs, and its place in it; an error, if it is not there. There may be no chunk.
    fn place(&self, name: &Name) -> (usize, Result<usize, usize>) {
        let sought = Sought::new(name);
        let is_before = |chunk: &NameChunk| sought.order_of(&chunk.least).is_le();
        let at = self.chunks.partition_point(is_before).saturating_sub(1);
        let found = self.chunks.get(at).map_or(Err(0), |chunk| {
            let trees = &chunk.trees;
            trees.binary_search_by(|tree| tree.compare_name(&sought))
        });
        (at, found)
    }

    fn begin_chunk(&mut self, at: usize, (least, tree): (Name, TreeRef)) {
        let trees = vec![tree];
        self.chunks.insert(at, NameChunk { least, trees });
        self.run = 1;
        self.length_of_run = 1;
    }

    /// Puts a tree into a chunk that has room for it.
    fn insert_at(&mut self, (chunk, place): (usize, usize), (name, tree): (Name, TreeRef)) {
        let NameChunk { least, trees } = &mut self.chunks[chunk];
        if trees.len() == trees.capacity() {
            let more = trees.len().min(CHUNK / 4).min(CHUNK - trees.len());
            trees.reserve_exact(more.max(1));
        }
        trees.insert(place, tree);
        if name < *least {
            *least = name; // Only the first chunk may get a name that is less.
        }
        self.length_of_run = match place == self.run {
            true => self.length_of_run + 1,
            false => 1,
        };
        self.run = place + 1;
    }

    fn insert_in_full(&mut self, (chunk, place): (usize, usize), tree: (Name, TreeRef)) {
        // Where a short run ends, a piece of a few trees would be left behind each.
        let goes_on = place == self.run && self.length_of_run >= CHUNK / 2;
        let cut = if goes_on { place } else { CHUNK / 2 };
        let before = &mut self.chunks[chunk].trees;
        let after = before.split_off(cut);
        before.shrink_to_fit();
        let Some(least) = after.first().map(|tree| tree.name()) else {
            return self.begin_chunk(chunk + 1, tree);
        };
        self.put_before_next(chunk + 1, (least, after));
        match place.checked_sub(cut) {
            None | Some(0) => self.insert_at((chunk, place), tree),
            Some(place) => self.insert_at((chunk + 1, place), tree),
        }
    }

    /// Puts trees, the first of which has the least name, before a chunk: into it, if there is room for one more then.
    fn put_before_next(&mut self, at: usize, (least, mut trees): (Name, Vec<TreeRef>)) {
        match self.chunks.get_mut(at) {
            Some(next) if trees.len() + next.trees.len() < CHUNK => {
                trees.reserve_exact(next.trees.len());
                trees.append(&mut next.trees);
                *next = NameChunk { least, trees };
            }
            _ => self.chunks.insert(at, NameChunk { least, trees }),
        }
    }

    /// Joins a chunk that a tree has left with a neighbour, if both are small.
    fn join(&mut self, chunk: usize) {
        if self.chunks[chunk].trees.is_empty() {
            self.chunks.remove(chunk);
            return;
        }
        for first in [Some(chunk), chunk.checked_sub(1)].into_iter().flatten() {
            if let Some([one, other]) = self.chunks.get_mut(first..first + 2)
                && one.trees.len() + other.trees.len() <= CHUNK / 2
            {
                one.trees.append(&mut other.trees);
                self.chunks.remove(first + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::SystemTime;

    use proptest::prelude::*;
    use weald_memory::Shared;
    use weald_tree::{Bytes, Tree};

    use super::*;
    use crate::content::index::Indexes;
    use crate::state::root::{Root, RootRef};
    use crate::state::tree::TreeState;
    use crate::version::{CommitId, Committed, Version};

    fn tree(number: u64, name: &str) -> TreeRef {
        let commit = Committed {
            id: CommitId(0),
            version: Version {
                incarnation: 0,
                number,
            },
            time: SystemTime::UNIX_EPOCH,
        };
        let content = (Tree::new(), Indexes::default(), 0);
        let root = Root::new(number, content, (commit, Bytes::new(&[])), None);
        Shared::new(TreeState::new(number, name, RootRef::new(root)))
    }

    impl Names {
        /// Whether the chunk of a name becomes one with the next, when the name goes.
        fn joins_without(&self, name: &str) -> bool {
            let (chunk, place) = self.place(&Name::new(name));
            let len = |chunk: usize| self.chunks.get(chunk).map(|chunk| chunk.trees.len());
            let both = len(chunk).zip(len(chunk + 1));
            place.is_ok() && both.is_some_and(|(one, other)| one + other <= CHUNK / 2 + 1)
        }

        fn must_be_in_order(&self) {
            for chunk in &self.chunks {
                assert!((1..=CHUNK).contains(&chunk.trees.len()));
                let names: Vec<_> = chunk.trees.iter().map(|tree| tree.name()).collect();
                assert!(chunk.least <= names[0] && names.is_sorted());
            }
            for pair in self.chunks.windows(2) {
                let last = pair[0].trees.last().expect("no chunk is empty");
                assert!(last.name() < pair[1].least);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]
        #[test]
        fn names_do_what_a_map_does(
            steps in prop::collection::vec((0..6_u8, "[ab]{0,4}|[ab]{15,17}", "[ab]{0,4}"), 0..200),
        ) {
            let (mut names, mut model) = (Names::default(), BTreeMap::new());
            for (number, (step, name, new)) in (0..).zip(steps) {
                match step {
                    0..=2 => {
                        let former = names.insert(tree(number, &name)).map(|tree| tree.number);
                        prop_assert_eq!(former, model.insert(name.clone(), number));
                    }
                    3 | 4 => {
                        let (before, joins) = (names.chunks.len(), names.joins_without(&name));
                        let gone = names.remove(&name).map(|tree| tree.number);
                        prop_assert_eq!(gone, model.remove(&name));
                        prop_assert!(!joins || names.chunks.len() < before);
                    }
                    _ if !model.contains_key(&new) => {
                        names.rename(&name, &new);
                        if let Some(number) = model.remove(&name) {
                            model.insert(new.clone(), number);
                        }
                    }
                    _ => {}
                }
                names.must_be_in_order();
                for name in [&name, &new] {
                    let found = names.get(name).map(|tree| tree.number);
                    prop_assert_eq!(found, model.get(name).copied());
                    let from: Vec<_> = names.names_from(name).map(|name| name.to_string()).collect();
                    prop_assert!(from.iter().eq(model.range(name.clone()..).map(|(name, _)| name)));
                }
                prop_assert!(names.trees().map(|tree| tree.number).eq(model.values().copied()));
            }
        }

        #[test]
        fn names_that_follow_each_other_fill_their_chunks(first in 0..40_u64) {
            let mut names = Names::default();
            for number in (0..first).chain(first + 60..100).chain(first..first + 60) {
                names.insert(tree(number, &format!("{number:03}")));
                names.must_be_in_order();
            }
            // All but some at the ends of the three runs are full.
            prop_assert!(names.chunks.len() <= 100 / CHUNK + 4);
        }

        #[test]
        fn groups_of_names_in_falling_order_fill_half_of_their_chunks(
            first in 0..16_u64,
            group in 1..2 * CHUNK,
        ) {
            let mut names = Names::default();
            let before = (0..first).map(|number| format!("0{number:02}"));
            let groups = (100..200).rev().flat_map(|at| (0..group).map(move |of| format!("{at}{of:02}")));
            for (number, name) in (0..).zip(before.chain(groups)) {
                names.insert(tree(number, &name));
                names.must_be_in_order();
            }
            let count = names.trees().count();
            prop_assert!(names.chunks.len() <= 2 * count / CHUNK + 1);
        }
    }
}
