//! Where versions are published: a root behind an arc-swap, and a map of names behind another one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, ArcSwapOption};
use imbl::OrdMap;

use super::document::Node;
use super::library::Library;

/// A tree that is published version by version.
pub(crate) struct Published<L: Library> {
    pub(crate) root: ArcSwap<Node<L>>,
    pub(crate) retries: AtomicUsize,
    /// The versions that stay as long as the tree does.
    kept: OnceLock<Kept<L>>,
}

impl<L: Library> Published<L> {
    pub(crate) fn new(root: Arc<Node<L>>) -> Self {
        Self {
            root: ArcSwap::new(root),
            retries: AtomicUsize::new(0),
            kept: OnceLock::new(),
        }
    }

    /// Keeps these versions as long as the tree.
    pub(crate) fn keep_until_the_end(&self, kept: Kept<L>) {
        _ = self.kept.set(kept);
    }

    /// Derives a version from the newest one and publishes it; starts again if another came first.
    pub(crate) fn commit(&self, change: impl Fn(&Arc<Node<L>>) -> Arc<Node<L>>) -> Arc<Node<L>> {
        loop {
            let newest = self.root.load();
            let next = change(&newest);
            let before = self.root.compare_and_swap(&*newest, Arc::clone(&next));
            if Arc::ptr_eq(&before, &newest) {
                return next;
            }
            self.retries.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn append(&self, path: &[usize], number: u64) -> Arc<Node<L>> {
        let child = Node::leaf(number);
        self.commit(|newest| {
            let mut next = Arc::clone(newest);
            Node::append(&mut next, path, Arc::clone(&child));
            next
        })
    }
}

/// The newest versions of a tree, so that they can be read again: a ring of slots.
pub(crate) struct Kept<L: Library> {
    slots: Vec<ArcSwapOption<Node<L>>>,
    published: AtomicUsize,
}

impl<L: Library> Kept<L> {
    /// Keeps this many; or none at all.
    pub(crate) fn new(versions: usize) -> Self {
        Self {
            slots: (0..versions).map(|_| ArcSwapOption::empty()).collect(),
            published: AtomicUsize::new(0),
        }
    }

    /// Keeps a version in place of the oldest one.
    pub(crate) fn keep(&self, version: Arc<Node<L>>) {
        if !self.slots.is_empty() {
            let number = self.published.fetch_add(1, Ordering::Relaxed);
            self.slots[number % self.slots.len()].store(Some(version));
        }
    }
}

/// Trees by their names.
pub(crate) struct Names<L: Library>(ArcSwap<OrdMap<String, Arc<Published<L>>>>);

impl<L: Library> Names<L> {
    pub(crate) fn new() -> Self {
        Self(ArcSwap::from_pointee(OrdMap::new()))
    }

    pub(crate) fn register(&self, name: &str, tree: &Arc<Published<L>>) {
        self.0
            .rcu(|names| names.update(name.to_owned(), Arc::clone(tree)));
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<Published<L>>> {
        self.0.load().get(name).cloned()
    }
}
