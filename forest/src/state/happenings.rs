//! What happens to trees besides their versions: names, tags and erasures. The newest are kept for watches.
//!
//! The combiner adds an entry when it applies a commit; while nobody watches, nothing is kept. A reader gets only
//! entries whose number is visible, so it finds what they are about.

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
    /// With their places, which rise by one.
    pub(crate) newest: VecDeque<(Committed, Happening)>,
    /// The place of the first of them.
    pub(crate) first: u64,
    /// The version of the last one that was let go.
    pub(crate) gone: Option<Version>,
    pub(crate) wakers: BTreeMap<u64, Waker>,
    /// How many watches there are.
    readers: usize,
}

impl Happenings {
    pub(crate) fn log(&self) -> MutexGuard<'_, HappeningLog> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, commit: Committed, happening: Happening) {
        let mut log = self.log();
        if log.readers == 0 {
            return;
        }
        log.newest.push_back((commit, happening));
        if log.newest.len() > HAPPENINGS
            && let Some((gone, _)) = log.newest.pop_front()
        {
            log.first += 1;
            log.gone = Some(gone.version);
        }
    }

    pub(crate) fn take_wakers(&self) -> BTreeMap<u64, Waker> {
        std::mem::take(&mut self.log().wakers)
    }
}

impl HappeningLog {
    /// Somebody watches from now on. Returns the place of what comes next.
    pub(crate) fn begin(&mut self) -> u64 {
        self.readers += 1;
        self.first + self.newest.len() as u64
    }

    /// Somebody watches no more.
    pub(crate) fn end(&mut self) {
        self.readers -= 1;
        if self.readers == 0 {
            self.first += self.newest.len() as u64;
            self.newest = VecDeque::new();
        }
    }
}
