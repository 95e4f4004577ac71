//! The state of a forest: its trees by name, and what all of them share.
//!
//! Only the combiner changes the names. Everything else here is safe to use from any thread.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::task::Waker;
use std::time::SystemTime;

use super::forest_journal::ForestJournal;
use super::happenings::{HappeningLog, Happenings};
use super::names::Names;
use super::reentrancy::{Reentrancy, Running};
use super::stats::Counts;
use super::tree::TreeRef;
use crate::clock::Clock;
use crate::content::erasable::Blobs;
use crate::error::{NameError, VersionError};
use crate::journal::{AppendError, Level};
use crate::version::{CommitId, Version};

pub(crate) struct ForestState {
    names: RwLock<Names>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) stats: Counts,
    pub(crate) blobs: Arc<Blobs>,
    pub(crate) reentrancy: Reentrancy,
    pub(crate) pacing: Pacing,
    pub(crate) happenings: Happenings,
    pub(crate) incarnation: u64,
    /// The last versions of the openings before this one, as far as they are known.
    pub(crate) openings: Vec<Version>,
    /// The journal, if there is one.
    pub(crate) journal: Option<ForestJournal>,
    /// What a commit has to have reached before it is acknowledged, if its author does not say.
    pub(crate) level: Level,
    /// The upper half of the ids that the forest gives to commits.
    seed: u64,
    unique_numbers: AtomicU64,
    /// Set once, before the forest falls back to what the medium has.
    fall: OnceLock<Fall>,
    has_fallen: AtomicBool,
}

/// Asked before each change, in its author's unit, whether the unit may go on; if not, it is polled again.
pub(crate) type Pacing = Box<dyn Fn(&Waker) -> bool + Send + Sync>;

/// Whether commits go into a journal, so that each change is encoded as its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recording {
    On,
    Off,
}

impl Recording {
    /// What `encode` returns, if it is needed.
    pub(crate) fn then<T>(self, encode: impl FnOnce() -> T) -> Option<T> {
        (self == Self::On).then(encode)
    }
}

/// What a forest has lost because its journal failed: the commits between two numbers.
#[derive(Clone, Copy)]
pub(crate) struct Fall {
    /// The newest commit that is durable.
    pub(crate) durable: u64,
    /// The newest commit that was visible.
    pub(crate) visible: u64,
}

/// The latest incarnation that a clock may give, in the year 2262. So a clock that was once beyond it leaves 2⁶³
/// incarnations to later openings.
const LATEST: u64 = u64::MAX / 2;

impl ForestState {
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        (running, pacing): (Running, Pacing),
        (journal, level): (Option<ForestJournal>, Option<Level>),
    ) -> Self {
        let since = clock.now().duration_since(SystemTime::UNIX_EPOCH);
        let nanoseconds = since.unwrap_or_default().as_nanos();
        Self {
            names: RwLock::default(),
            clock,
            stats: Counts::default(),
            blobs: Arc::new(match journal {
                Some(_) => Blobs::keeping_copies(),
                None => Blobs::default(),
            }),
            reentrancy: Reentrancy::new(running),
            pacing,
            happenings: Happenings::default(),
            incarnation: u64::try_from(nanoseconds).map_or(LATEST, |now| now.min(LATEST)),
            openings: Vec::new(),
            level: level.unwrap_or(Level::Durable).min(most(journal.as_ref())),
            journal,
            seed: RandomState::new().hash_one(nanoseconds),
            unique_numbers: AtomicU64::new(1),
            fall: OnceLock::new(),
            has_fallen: AtomicBool::new(false),
        }
    }

    /// Continues from what earlier openings left; `None` if no incarnation is left.
    #[must_use]
    pub(crate) fn go_on(
        mut self,
        openings: Vec<Version>,
        (blobs, happenings): (Arc<Blobs>, HappeningLog),
    ) -> Option<Self> {
        let last = openings.last().map_or(0, |last| last.incarnation);
        self.incarnation = self.incarnation.max(last.checked_add(1)?);
        (self.openings, self.blobs) = (openings, blobs);
        self.happenings = Happenings::from(happenings);
        Some(self)
    }

    pub(crate) fn recording(&self) -> Recording {
        match self.journal {
            Some(_) => Recording::On,
            None => Recording::Off,
        }
    }

    /// Why commits are refused once the journal has failed.
    pub(crate) fn refusal(&self) -> AppendError {
        let journal = self.journal.as_ref();
        journal.map_or(AppendError::Poisoned, |journal| {
            journal.refusal(&self.reentrancy)
        })
    }

    /// The version of this opening that has a number.
    pub(crate) fn version_of(&self, number: u64) -> Version {
        Version {
            incarnation: self.incarnation,
            number,
        }
    }

    /// Whether a version is one of this opening, or of an earlier one that did not lose it.
    pub(crate) fn has_opened(&self, version: Version) -> bool {
        let at = self.openings.partition_point(|last| *last < version);
        let before = at
            .checked_sub(1)
            .map_or(0, |before| self.openings[before].number);
        let incarnation = self
            .openings
            .get(at)
            .map_or(self.incarnation, |last| last.incarnation);
        version.incarnation == incarnation && version.number > before
    }

    /// Checks that a version is one that readers can see, or that an earlier opening has left.
    ///
    /// # Errors
    /// `OtherIncarnation`, `Future` and `Lost`.
    pub(crate) fn must_exist(&self, asked: Version) -> Result<(), VersionError> {
        if asked.incarnation == self.incarnation {
            let newest = self.version_of(self.stats.newest());
            if asked > newest {
                if let Some(fall) = self.fall().filter(|fall| asked.number <= fall.visible) {
                    let durable = self.version_of(fall.durable);
                    return Err(VersionError::Lost { asked, durable });
                }
                return Err(VersionError::Future { asked, newest });
            }
        }
        if !self.has_opened(asked) && asked.number > 0 {
            return Err(VersionError::OtherIncarnation(asked));
        }
        Ok(())
    }

    /// What was lost, if the journal failed. It is known before the forest falls back.
    pub(crate) fn fall(&self) -> Option<Fall> {
        self.fall.get().copied()
    }

    /// Falls back: `switch` shows the trees and the names as of the last durable commit.
    pub(crate) fn fall_back(&self, fall: Fall, switch: impl FnOnce(&mut Names)) {
        let mut names = self.names_mut();
        if self.fall.set(fall).is_ok() {
            // Before the trees, so that nobody who sees them as they are now is told of a lost version.
            let durable = self.version_of(fall.durable);
            self.happenings.log().fall_back(durable);
            switch(&mut names);
            // Release: pairs with the load in `when_steady`.
            self.has_fallen.store(true, Ordering::Release);
        }
    }

    /// Reads several trees, again if the forest fell back meanwhile: only then does a tree have an earlier root again.
    pub(crate) fn when_steady<R>(&self, mut read: impl FnMut() -> R) -> R {
        loop {
            let had_fallen = self.has_fallen.load(Ordering::Acquire);
            let found = read();
            if had_fallen || self.fall.get().is_none() {
                return found;
            }
            drop(self.names()); // It is there again when the fall has ended.
        }
    }

    /// The strongest level that a commit reaches.
    pub(crate) fn most(&self) -> Level {
        most(self.journal.as_ref())
    }

    pub(crate) fn names(&self) -> RwLockReadGuard<'_, Names> {
        self.names.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn names_mut(&self) -> RwLockWriteGuard<'_, Names> {
        self.names.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// All trees, as they are now.
    pub(crate) fn trees(&self) -> Vec<TreeRef> {
        self.names().trees().cloned().collect()
    }

    /// The tree that has this name now.
    ///
    /// # Errors
    /// [`NameError::Missing`], if there is none.
    pub(crate) fn tree(&self, name: &str) -> Result<TreeRef, NameError> {
        let state = self.names().get(name).cloned();
        state.ok_or_else(|| NameError::Missing(name.to_owned()))
    }

    /// The nth id that the forest gives to a commit whose author gave none.
    pub(crate) fn nth_id(&self, number: u64) -> CommitId {
        CommitId(u128::from(self.seed) << 64 | u128::from(number))
    }

    /// A number that no other lease and no other blob has.
    pub(crate) fn unique_number(&self) -> u64 {
        self.unique_numbers.fetch_add(1, Ordering::Relaxed)
    }
}

fn most(journal: Option<&ForestJournal>) -> Level {
    journal.map_or(Level::Accepted, |journal| journal.most)
}
