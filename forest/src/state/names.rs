//! The trees of a forest by their names.
//!
//! A tree has its name itself, so this has a pointer to each tree and nothing else. The name of a tree that is here
//! changes only in [`Names::rename`], so the order stays right.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Bound;

use super::name::Name;
use super::tree::TreeRef;

/// Trees that are sorted by their names, no two of which are equal.
#[derive(Default)]
pub(crate) struct Names(BTreeSet<Named>);

/// A tree that is compared by its name.
struct Named(TreeRef);

/// What has a name: a tree, or the name that is looked for.
trait HasName {
    fn name(&self) -> Name;

    /// How its name compares with another one; it is not cloned for that.
    fn compare(&self, other: &Name) -> Ordering;
}

impl Names {
    pub(crate) fn get(&self, name: &str) -> Option<&TreeRef> {
        self.0.get(sought(&Name::new(name))).map(|named| &named.0)
    }

    /// Adds a tree. Returns the one that had its name.
    pub(crate) fn insert(&mut self, tree: TreeRef) -> Option<TreeRef> {
        self.0.replace(Named(tree)).map(|former| former.0)
    }

    pub(crate) fn remove(&mut self, name: &str) -> Option<TreeRef> {
        self.0.take(sought(&Name::new(name))).map(|named| named.0)
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
        self.0.iter().map(|named| &named.0)
    }

    /// The names from this one on, in their order.
    pub(crate) fn names_from(&self, first: &str) -> impl Iterator<Item = Name> {
        let first = Name::new(first);
        let from = (Bound::Included(sought(&first)), Bound::Unbounded);
        let trees = self.0.range::<dyn HasName + 'static, _>(from);
        trees.map(|named| named.0.name())
    }
}

fn sought(name: &Name) -> &(dyn HasName + 'static) {
    name
}

impl HasName for Name {
    fn name(&self) -> Name {
        self.clone()
    }

    fn compare(&self, other: &Name) -> Ordering {
        self.cmp(other)
    }
}

impl HasName for Named {
    fn name(&self) -> Name {
        self.0.name()
    }

    fn compare(&self, other: &Name) -> Ordering {
        self.0.compare_name(other)
    }
}

impl Borrow<dyn HasName> for Named {
    fn borrow(&self) -> &(dyn HasName + 'static) {
        self
    }
}

impl Ord for dyn HasName {
    fn cmp(&self, other: &Self) -> Ordering {
        other.compare(&self.name()).reverse()
    }
}

impl PartialOrd for dyn HasName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for dyn HasName {
    fn eq(&self, other: &Self) -> bool {
        other.compare(&self.name()).is_eq()
    }
}

impl Eq for dyn HasName {}

impl Ord for Named {
    fn cmp(&self, other: &Self) -> Ordering {
        other.compare(&self.0.name()).reverse()
    }
}

impl PartialOrd for Named {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        other.compare(&self.0.name()).is_eq()
    }
}

impl Eq for Named {}
