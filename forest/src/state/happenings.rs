//! What happens to trees besides their versions: names, tags and erasures. The newest are kept for watches, including
//! those that begin later and ask for what came since a version.
//!
//! The combiner adds an entry before it applies a commit. A reader gets only entries whose number is visible, so it
//! finds what they are about; and it gets all of them, because an entry is there before its number is visible.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use weald_tree::NodeId;

use crate::version::{Committed, Version};

/// How many are kept.
pub(crate) const HAPPENINGS: usize = 1000;

/// What a commit did to a forest besides making versions. Trees are named by their numbers, which stay.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Happening {
    /// A tree was created.
    Created {
        /// The number of the tree.
        tree: u64,
        /// Its name.
        name: String,
    },
    /// A tree was deleted.
    Deleted {
        /// The number of the tree.
        tree: u64,
        /// Its last name.
        name: String,
    },
    /// A tree has another name.
    Renamed {
        /// The number of the tree.
        tree: u64,
        /// Its name before.
        from: String,
        /// Its name now.
        to: String,
    },
    /// A version was given a tag, which another version may have had before.
    Tagged {
        /// The number of the tree.
        tree: u64,
        /// The tag.
        tag: String,
        /// The version that was given it.
        version: Version,
    },
    /// A tag was removed.
    Untagged {
        /// The number of the tree.
        tree: u64,
        /// The tag.
        tag: String,
    },
    /// The erasable bytes of an attribute were erased.
    Erased {
        /// The number of the tree.
        tree: u64,
        /// The node.
        node: NodeId,
        /// The attribute.
        name: String,
    },
}

#[derive(Default)]
pub(crate) struct Happenings(Mutex<HappeningLog>);

#[derive(Default)]
pub(crate) struct HappeningLog {
    /// By rising numbers; a commit has at most one.
    newest: VecDeque<(Committed, Happening)>,
    /// The version of the last one that was let go, or one after it: what came up to it is not known.
    gone: Option<Version>,
    /// Those of the watches that wait, by the number of the watch.
    pub(crate) wakers: BTreeMap<u64, Waker>,
}

impl Happenings {
    /// They continue from what was read back.
    pub(crate) fn from(log: HappeningLog) -> Self {
        Self(Mutex::new(log))
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, HappeningLog> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, commit: Committed, happening: Happening) {
        self.log().add(commit, happening);
    }

    pub(crate) fn take_wakers(&self) -> BTreeMap<u64, Waker> {
        std::mem::take(&mut self.log().wakers)
    }
}

impl HappeningLog {
    /// Nothing is known of what came up to this version.
    pub(crate) fn begin_after(&mut self, version: Version) {
        self.gone = Some(version);
    }

    pub(crate) fn add(&mut self, commit: Committed, happening: Happening) {
        self.newest.push_back((commit, happening));
        if self.newest.len() > HAPPENINGS
            && let Some((gone, _)) = self.newest.pop_front()
        {
            self.gone = Some(gone.version);
        }
    }

    /// The journal has failed, and no version after this one is left.
    pub(crate) fn fall_back(&mut self, durable: Version) {
        let is_left = |(commit, _): &(Committed, _)| commit.version.number <= durable.number;
        self.newest.truncate(self.newest.partition_point(is_left));
        let gone = self.gone.as_mut();
        if let Some(gone) = gone.filter(|gone| gone.number > durable.number) {
            *gone = durable;
        }
    }

    /// The first one after a number.
    ///
    /// # Errors
    /// The first version after which all are known, if some after the number are not.
    pub(crate) fn after(&self, number: u64) -> Result<Option<&(Committed, Happening)>, Version> {
        match self.gone {
            Some(gone) if gone.number > number => Err(gone),
            _ => {
                let is_before = |(commit, _): &(Committed, _)| commit.version.number <= number;
                let at = self.newest.partition_point(is_before);
                Ok(self.newest.get(at))
            }
        }
    }
}
