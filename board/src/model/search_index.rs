//! The words of one board's messages, brought up to date with the difference between two versions.
//!
//! The index may have more than a version has: a search looks up each message in the version that it is about.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use weald::forest::{Change, Node, NodeId, Snapshot};

use super::board_at::BoardAt;
use super::post::Post;

/// The words of one board.
#[derive(Default)]
pub(crate) struct SearchIndex {
    words: BTreeMap<Box<str>, BTreeSet<NodeId>>,
    upto: Option<Snapshot>,
}

impl SearchIndex {
    /// Adds what was written between the last version that it has and this one.
    pub(crate) fn catch_up(&mut self, newest: &BoardAt) {
        let tree = newest.snapshot().tree();
        match self.upto.replace(newest.snapshot().clone()) {
            None => tree
                .root()
                .preorder()
                .for_each(|node| self.add(newest, node)),
            Some(upto) => {
                for change in upto.tree().diff(tree) {
                    if let Change::Added(node) | Change::Changed { new: node, .. } = change {
                        self.add(newest, node);
                    }
                }
            }
        }
    }

    /// Forgets the words of a message.
    pub(crate) fn forget(&mut self, id: NodeId) {
        self.words.retain(|_, ids| {
            ids.remove(&id);
            !ids.is_empty()
        });
    }

    fn add(&mut self, board: &BoardAt, node: Node<'_>) {
        let post = board.post(node).filter(|_| node.parent().is_some());
        for word in post.iter().flat_map(all_words) {
            match self.words.get_mut(word.as_str()) {
                Some(ids) => {
                    ids.insert(node.id());
                }
                None => {
                    self.words.insert(word.into(), BTreeSet::from([node.id()]));
                }
            }
        }
    }

    /// The messages that may have all of the words.
    pub(crate) fn find(&self, sought: &[String]) -> BTreeSet<NodeId> {
        let mut all = sought.iter().map(|word| self.beginning_with(word));
        let first = all.next().unwrap_or_default();
        all.fold(first, |found, more| {
            found.intersection(&more).copied().collect()
        })
    }

    fn beginning_with(&self, beginning: &str) -> BTreeSet<NodeId> {
        let from = (Bound::Included(beginning), Bound::Unbounded);
        let range = self.words.range::<str, _>(from);
        let range = range.take_while(|(word, _)| word.starts_with(beginning));
        range.flat_map(|(_, ids)| ids.iter().copied()).collect()
    }
}

/// Whether a post has words that begin with each of these.
pub(crate) fn has_all(post: &Post, sought: &[String]) -> bool {
    let has: BTreeSet<_> = all_words(post).collect();
    !sought.is_empty()
        && sought
            .iter()
            .all(|word| has.iter().any(|it| it.starts_with(word)))
}

fn all_words(post: &Post) -> impl Iterator<Item = String> {
    [post.author(), post.title(), post.text()]
        .into_iter()
        .flat_map(words)
}

/// The words of a text, in small letters.
pub(crate) fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_lowercase)
}
