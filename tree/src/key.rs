//! The order key: a node's place among its siblings, set when the node is inserted and never changed.
//!
//! A key is a word, or a word followed by pairs: word, id, word, …, word. Siblings are compared by that list
//! with the node's own id appended, so no two are equal, and there is room between any two: between `[5, a]`
//! and `[5, b]` there is `[5, a, x, own]`. Logoot (Weiss, Urso, Molli 2009) orders a text in this way. Weald
//! differs in that one word is enough for about 30 inserts into the same gap, and one more level of words for
//! 2³¹ inserts in one direction.
//!
//! - A word of 0 occurs only in a pair `0, 0`, which makes room below a word of 1.
//! - Inserting between the two newest nodes again and again, in a zigzag, makes keys grow by 16 bytes per 30
//!   inserts; no immutable key can avoid that.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::id::NodeId;

/// A place among siblings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderKey(KeyRepr);

#[derive(Clone, Debug, PartialEq, Eq)]
enum KeyRepr {
    Word(u64),
    Words(Arc<[u64]>),
}

/// A key with the id that makes it unique.
#[derive(Clone, Copy)]
pub(crate) struct Rank<'a> {
    pub(crate) words: &'a [u64],
    pub(crate) id: NodeId,
}

const MIDDLE: u64 = 1 << 63;
/// The room left between two nodes that are added at an end.
const STEP: u64 = 1 << 32;

impl OrderKey {
    /// The key of the child at `index` of a list that is built in one go.
    #[inline]
    pub(crate) fn nth(index: u64) -> Self {
        Self(KeyRepr::Word(nth(index)))
    }

    /// The words, to be stored or sent. There is an odd number of them.
    pub fn words(&self) -> &[u64] {
        match &self.0 {
            KeyRepr::Word(word) => std::slice::from_ref(word),
            KeyRepr::Words(words) => words,
        }
    }

    /// The key of these words, if their number is odd.
    pub fn from_words(words: &[u64]) -> Option<Self> {
        match words {
            [word] => Some(Self(KeyRepr::Word(*word))),
            _ if words.len() % 2 == 1 => Some(Self(KeyRepr::Words(words.into()))),
            _ => None,
        }
    }

    pub(crate) fn rank(&self, id: NodeId) -> Rank<'_> {
        Rank {
            words: self.words(),
            id,
        }
    }

    /// A key between two neighbours; `None` is an end of the list.
    #[inline]
    pub(crate) fn between(left: Option<Rank>, right: Option<Rank>) -> Self {
        let [low, high] = [left, right].map(|bound| bound.map(|rank| rank.words[0]));
        match pick(low, high) {
            Some(word) => Self(KeyRepr::Word(word)),
            None => Self::deeper(left, right),
        }
    }

    /// A key between two neighbours whose first words leave no room.
    fn deeper(left: Option<Rank>, right: Option<Rank>) -> Self {
        let (mut prefix, mut level) = (Vec::new(), 0);
        let (mut left, mut right) = (left, right);
        loop {
            let [low, high] = [left, right].map(|bound| bound.and_then(|rank| rank.pair(level)));
            if low.is_some() && low == high {
                prefix.extend(low.into_iter().flatten());
            } else if let Some(word) = pick(low.map(|pair| pair[0]), high.map(|pair| pair[0])) {
                prefix.push(word);
                return Self(KeyRepr::Words(prefix.into()));
            } else if let Some(pair) = low {
                prefix.extend(pair);
                right = None; // Every key with this pair is before the right one.
            } else {
                // `left` has ended, and `right` continues with a word of 0 or 1.
                right = right.filter(|_| high == Some([0, 0]));
                left = None;
                prefix.extend([0, 0]);
            }
            level += 1;
        }
    }
}

/// The first word of the child at `index` of a list that is built in one go.
#[inline]
pub(crate) fn nth(index: u64) -> u64 {
    // After 2³¹ children the end of the range is near, so the steps shrink to one.
    let steps = index.min((1 << 31) - 2);
    MIDDLE + steps * STEP + (index - steps)
}

/// A word strictly between two: the middle of a gap, or a step away from an end.
#[inline]
fn pick(low: Option<u64>, high: Option<u64>) -> Option<u64> {
    match (low, high) {
        (None, None) => Some(MIDDLE),
        (Some(low), None) => {
            let room = u64::MAX - low;
            (room >= 2).then(|| low + STEP.min(room / 2))
        }
        (None, Some(high)) => (high >= 2).then(|| high - STEP.min(high / 2)),
        (Some(low), Some(high)) => {
            let room = high - low;
            (room >= 2).then(|| low + room / 2)
        }
    }
}

impl Rank<'_> {
    /// The word and the id at a level.
    fn pair(self, level: usize) -> Option<[u64; 2]> {
        let word = *self.words.get(2 * level)?;
        let id = self.words.get(2 * level + 1).copied();
        Some([word, id.unwrap_or(self.id.get())])
    }

    fn list(&self) -> impl Iterator<Item = u64> {
        self.words.iter().copied().chain([self.id.get()])
    }
}

impl PartialEq for Rank<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Rank<'_> {}

impl PartialOrd for Rank<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rank<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.words, other.words) {
            ([a], [b]) => (a, self.id).cmp(&(b, other.id)),
            _ => self.list().cmp(other.list()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// How many keys the longest lists get, fewer for Miri.
    const MANY: usize = if cfg!(miri) { 100 } else { 2000 };
    /// The greatest number of keys in a random list.
    const SOME: usize = if cfg!(miri) { 20 } else { 200 };

    /// Inserts at each place in turn, three nodes at a time that share one key.
    fn insert_all(places: &[usize]) -> Vec<(OrderKey, NodeId)> {
        insert_into(Vec::new(), places)
    }

    fn insert_into(mut list: Vec<(OrderKey, NodeId)>, places: &[usize]) -> Vec<(OrderKey, NodeId)> {
        for (number, place) in (1..).zip(places) {
            let at = place % (list.len() + 1);
            let left = at
                .checked_sub(1)
                .map(|left| list[left].0.rank(list[left].1));
            let right = list.get(at).map(|(key, id)| key.rank(*id));
            let key = OrderKey::between(left, right);
            let ids = [3 * number, 3 * number + 1, 3 * number + 2].map(NodeId::at);
            let new = ids.map(|id| (key.clone(), id));
            list.splice(at..at, new);
        }
        list
    }

    proptest! {
        #[test]
        fn there_is_room_between_any_two(places in prop::collection::vec(any::<usize>(), 0..SOME)) {
            let list = insert_all(&places);
            prop_assert!(list.is_sorted_by(|a, b| a.0.rank(a.1) < b.0.rank(b.1)));
        }
    }

    #[test]
    fn one_place_can_take_any_number() {
        for place in [0, 1, 2, 3, 4] {
            let mut places = vec![0; 4];
            places.extend([place; MANY]);
            let list = insert_all(&places);
            assert!(list.is_sorted_by(|a, b| a.0.rank(a.1) < b.0.rank(b.1)));
            let longest = list.iter().map(|(key, _)| key.words().len()).max();
            assert!(longest <= Some(5), "place {place}: {longest:?}");
        }
    }

    proptest! {
        #[test]
        fn there_is_room_before_the_least_word_and_after_the_greatest(
            places in prop::collection::vec(prop_oneof![Just(0), Just(1), Just(2), Just(usize::MAX), any::<usize>()], 0..SOME / 2)
        ) {
            let ends = [1, 2, u64::MAX - 1, u64::MAX].map(|word| OrderKey(KeyRepr::Word(word)));
            let ids = (1 << 40..).map(NodeId::at);
            let list = insert_into(ends.into_iter().zip(ids).collect(), &places);
            prop_assert!(list.is_sorted_by(|a, b| a.0.rank(a.1) < b.0.rank(b.1)));
        }
    }

    #[test]
    fn a_list_built_in_one_go_rises_to_its_end() {
        let end = u64::from(u32::MAX);
        for index in [0, 1, (1 << 31) - 3, (1 << 31) - 2, 1 << 31, end - 1] {
            assert!(nth(index) < nth(index + 1), "{index}");
        }
    }

    #[test]
    fn zigzag_grows_as_slowly_as_it_can() {
        let places: Vec<usize> = (0..MANY * 3 / 10)
            .map(|n| {
                if n % 2 == 0 {
                    3 * (n / 2)
                } else {
                    3 * (n / 2) + 3
                }
            })
            .collect();
        let list = insert_all(&places);
        assert!(list.is_sorted_by(|a, b| a.0.rank(a.1) < b.0.rank(b.1)));
        let longest = list.iter().map(|(key, _)| key.words().len()).max();
        assert!(longest <= Some(61), "{longest:?}");
    }
}
