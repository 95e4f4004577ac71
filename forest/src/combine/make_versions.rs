//! Makes the new versions of a commit that has its number. Nothing of the forest changes here.

use std::sync::Arc;

use weald_tree::Bytes;

use super::new_versions::{Made, NewRoot};
use super::prepare::{NewTree, Prepared};
use super::request::Garbage;
use crate::content::index::Indexes;
use crate::state::root::{Beside, Root, RootRef};
use crate::state::tree::{TreeRef, TreeState};
use crate::version::Committed;

impl Made {
    /// What a commit makes, and what is left to be freed. `None`, if it changes nothing.
    #[inline]
    pub(crate) fn of(
        prepared: Prepared,
        (commit, bytes): (Committed, Bytes),
    ) -> Option<(Self, Garbage)> {
        let root = |state: &TreeState, new: NewTree, beside: Option<Arc<Beside>>| {
            let root = Root::new(state.number, new.content, (commit, bytes.clone()), beside);
            let root = RootRef::new(root);
            let (erasable, last_id) = (new.erasable, new.last_id);
            let made = NewRoot {
                root,
                erasable,
                last_id,
            };
            (made, new.left)
        };
        Some(match prepared {
            Prepared::Nothing(..) => return None,
            Prepared::One(state, new) => {
                let (root, garbage) = root(&state, new, None);
                (Self::One(state, root), garbage)
            }
            Prepared::Many(versions) => {
                let mut left = Vec::new();
                let numbers = versions.iter().map(|(state, _)| state.number);
                let beside = Arc::new(Beside::Trees(numbers.collect()));
                let roots = versions.into_iter().map(|(state, new)| {
                    let (root, garbage) = root(&state, new, Some(Arc::clone(&beside)));
                    left.extend((!garbage.is_none()).then_some(garbage));
                    (state, root)
                });
                let made = Self::Many(roots.collect());
                (made, Garbage::of(left))
            }
            Prepared::Create(name, tree, _) => {
                // A tree has the number of the commit that creates it.
                let number = commit.version.number;
                let (tree, references) = *tree;
                let content = (tree.numbered(number), Indexes::default(), 0);
                let first = RootRef::new(Root::new(number, content, (commit, bytes), None));
                let state = TreeRef::new(TreeState::new(number, &name, first));
                (Self::Create(name, state, references), Garbage::NONE)
            }
            Prepared::Delete(name, state) => (Self::Delete(name, state), Garbage::NONE),
            Prepared::Rename(old, new, state) => (Self::Rename(old, new, state), Garbage::NONE),
            Prepared::Erase(erasure) => (Self::Erase(erasure), Garbage::NONE),
            Prepared::Tag(state, tag, tagged) => (Self::Tag(state, tag, tagged), Garbage::NONE),
            Prepared::Untag(state, tag) => (Self::Untag(state, tag), Garbage::NONE),
        })
    }
}
