//! The versions that a history keeps without a gap, the newest at the end; never empty.
//!
//! Very many trees may have one version each and nothing else, so such a tree has neither the list nor the record of
//! what was let go; both are made with its second version, or when there is more to keep with them.

use std::collections::VecDeque;

use super::root::RootRef;
use crate::version::{CommitId, Version};

pub(crate) enum KeptRoots<M> {
    /// No other version was ever added.
    One(RootRef),
    Many(Box<ManyRoots<M>>),
}

pub(crate) struct ManyRoots<M> {
    /// In the order of their numbers.
    roots: VecDeque<RootRef>,
    /// The version in which the tree was created, and the id of that commit.
    first: (Version, CommitId),
    /// The number of the newest version that was let go; 0, if none was.
    gone: u64,
    /// What the history has besides, if it has anything.
    pub(super) more: Option<Box<M>>,
}

impl<M> KeptRoots<M> {
    /// Those of a tree that was read back.
    pub(crate) fn recovered(
        first: (Version, CommitId),
        (roots, gone): (VecDeque<RootRef>, u64),
        more: Option<Box<M>>,
    ) -> Self {
        Self::Many(Box::new(ManyRoots {
            roots,
            first,
            gone,
            more,
        }))
    }

    /// The list, which is made if there is none.
    #[inline]
    pub(super) fn many(&mut self) -> &mut ManyRoots<M> {
        if let Self::One(first) = self {
            let many = ManyRoots {
                first: (first.version(), first.commit_id()),
                roots: VecDeque::from([first.clone()]),
                gone: 0,
                more: None,
            };
            *self = Self::Many(Box::new(many));
        }
        match self {
            Self::Many(many) => many,
            Self::One(_) => unreachable!("the list was just made"),
        }
    }

    /// What the history has besides.
    #[inline]
    pub(super) fn more(&self) -> Option<&M> {
        match self {
            Self::One(_) => None,
            Self::Many(many) => many.more.as_deref(),
        }
    }

    #[inline]
    pub(super) fn more_mut(&mut self) -> Option<&mut M> {
        match self {
            Self::One(_) => None,
            Self::Many(many) => many.more.as_deref_mut(),
        }
    }

    pub(crate) fn first(&self) -> (Version, CommitId) {
        match self {
            Self::One(root) => (root.version(), root.commit_id()),
            Self::Many(many) => many.first,
        }
    }

    pub(crate) fn gone(&self) -> u64 {
        match self {
            Self::One(_) => 0,
            Self::Many(many) => many.gone,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(many) => many.roots.len(),
        }
    }

    pub(crate) fn get(&self, at: usize) -> Option<&RootRef> {
        match self {
            Self::One(root) => (at == 0).then_some(root),
            Self::Many(many) => many.roots.get(at),
        }
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &RootRef> + ExactSizeIterator {
        (0..self.len()).map(|at| self.get(at).expect("the place is below the length"))
    }

    pub(crate) fn newest(&self) -> &RootRef {
        let newest = match self {
            Self::One(root) => Some(root),
            Self::Many(many) => many.roots.back(),
        };
        newest.expect("the newest version is kept")
    }

    pub(crate) fn oldest(&self) -> &RootRef {
        self.get(0).expect("the newest version is kept")
    }

    /// How many are at the beginning for which this is so, and not for those behind them.
    pub(crate) fn count_while(&self, is_so: impl Fn(&RootRef) -> bool) -> usize {
        match self {
            Self::One(root) => usize::from(is_so(root)),
            Self::Many(many) => many.roots.partition_point(is_so),
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, root: RootRef) {
        self.many().roots.push_back(root);
    }

    /// Lets the oldest go, unless it is the only one.
    #[inline]
    pub(crate) fn let_go(&mut self) -> Option<RootRef> {
        match self {
            Self::Many(many) if many.roots.len() > 1 => {
                let root = many.roots.pop_front()?;
                many.gone = root.number();
                Some(root)
            }
            _ => None,
        }
    }

    /// Takes back all versions after a number, and returns them with what is left of `unsettled`, which were let go
    /// before the others. If none is left, because the tree was created later, the first one stays.
    pub(crate) fn fall_back(&mut self, number: u64, unsettled: VecDeque<RootRef>) -> Vec<RootRef> {
        let Self::Many(many) = self else {
            return Vec::new(); // It is the first one, and nothing was let go.
        };
        let first_lost = many.roots.partition_point(|root| root.number() <= number);
        let mut lost: Vec<_> = many.roots.drain(first_lost..).collect();
        if many.roots.is_empty() {
            let (mut settled, gone): (Vec<_>, Vec<_>) = unsettled
                .into_iter()
                .partition(|root| root.number() <= number);
            lost.splice(0..0, gone);
            let newest = settled.pop().unwrap_or_else(|| lost.remove(0));
            many.gone = many.gone.min(newest.number() - 1);
            many.roots.push_back(newest);
            lost.extend(settled);
        } else {
            lost.extend(unsettled);
        }
        lost
    }
}
