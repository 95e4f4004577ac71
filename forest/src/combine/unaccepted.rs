//! Prepared commits that are not yet accepted: the heads and names against which the next commits are prepared.
//!
//! It is empty unless the journal answers later. An accepted commit leaves it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::new_versions::{Made, NewRoot};
use crate::state::root::RootRef;
use crate::state::tree::{TreeRef, TreeState};

#[derive(Default)]
pub(crate) struct Unaccepted {
    /// By the numbers of the trees.
    heads: HashMap<u64, RootRef>,
    /// With the number of the commit; `None` for a name that is free.
    names: HashMap<Arc<str>, (u64, Option<TreeRef>)>,
    deleted: HashSet<u64>,
}

impl Unaccepted {
    /// Takes a commit that is on its way as the new head.
    pub(crate) fn add(&mut self, made: &Made, number: u64) {
        match made {
            Made::One(state, new) => {
                self.heads.insert(state.number, new.root.clone());
            }
            Made::Many(versions) => {
                for (state, new) in versions {
                    self.heads.insert(state.number, new.root.clone());
                }
            }
            Made::Create(name, state, _) => {
                let state = Some(state.clone());
                self.names.insert(Arc::clone(name), (number, state));
            }
            Made::Delete(name, state) => {
                self.names.insert(Arc::clone(name), (number, None));
                self.deleted.insert(state.number);
            }
            Made::Rename(old, new, state) => {
                self.names.insert(Arc::clone(old), (number, None));
                let state = Some(state.clone());
                self.names.insert(Arc::clone(new), (number, state));
            }
            Made::Erase(..) | Made::Tag(..) | Made::Untag(..) => {}
        }
    }

    /// Forgets a commit that is applied, unless a later one was prepared against it. A busy journal may at no time have
    /// answered all commits.
    pub(crate) fn remove(&mut self, made: &Made, number: u64) {
        let mut forget = |name: &Arc<str>| {
            let is_it = |(known, _): &(u64, _)| *known == number;
            if self.names.get(name).is_some_and(is_it) {
                self.names.remove(name);
            }
        };
        match made {
            Made::One(state, new) => self.pass(state, new),
            Made::Many(versions) => versions
                .iter()
                .for_each(|(state, new)| self.pass(state, new)),
            Made::Create(name, ..) => forget(name),
            Made::Delete(name, state) => {
                forget(name);
                self.deleted.remove(&state.number);
                self.heads.remove(&state.number);
            }
            Made::Rename(old, new, _) => [old, new].into_iter().for_each(forget),
            Made::Erase(..) | Made::Tag(..) | Made::Untag(..) => {}
        }
    }

    fn pass(&mut self, state: &TreeState, new: &NewRoot) {
        let head = self.heads.get(&state.number);
        if head.is_some_and(|head| RootRef::is(head, &new.root)) {
            self.heads.remove(&state.number);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.heads.clear();
        self.names.clear();
        self.deleted.clear();
    }

    #[inline]
    pub(crate) fn head(&self, state: &TreeState) -> Option<&RootRef> {
        if self.heads.is_empty() {
            return None;
        }
        self.heads.get(&state.number)
    }

    /// Which tree will have a name; the outer `None`, if nothing on its way changes that.
    pub(crate) fn named(&self, name: &str) -> Option<Option<&TreeRef>> {
        let (_, state) = self.names.get(name)?;
        Some(state.as_ref())
    }

    pub(crate) fn is_deleted(&self, state: &TreeState) -> bool {
        !self.deleted.is_empty() && self.deleted.contains(&state.number)
    }
}
