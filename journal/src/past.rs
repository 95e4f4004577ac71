//! The journal as of an earlier moment: the last checkpoint before the moment, and the records from there to the
//! moment.

use std::time::SystemTime;

use weald_forest::journal::{Entry, Position, ReadError, Stored};
use weald_forest::{RecoverError, Version};

use crate::checkpoint;
use crate::read_only_journal::ReadOnlyJournal;

/// How many records are looked at in one go.
const MANY: usize = 4096;

/// A moment in the life of a forest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// When this version was the newest one. It must be one that the forest had.
    Version(Version),
    /// At this time: with every commit up to then.
    Time(SystemTime),
}

impl Moment {
    /// Whether a commit was made by then.
    fn includes(self, (version, time): (Version, SystemTime)) -> bool {
        match self {
            Self::Version(asked) => version <= asked,
            Self::Time(asked) => time <= asked,
        }
    }
}

/// Why the state of a moment cannot be shown.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum PastError {
    /// It is before the history that is on the medium.
    #[error("that is before the history that is kept, which begins with version {oldest}")]
    TooOld {
        /// The first version of the history.
        oldest: Version,
    },
    /// The forest never had this version, or lost it before it was durable.
    #[error("the forest has no version {0}; it was lost, or never made")]
    NoVersion(Version),
    /// There is no commit.
    #[error("the forest has no commit yet")]
    Empty,
    /// The journal of the open forest has failed or was closed. Its files may show what was lost.
    #[error(
        "the journal of this forest has failed or was closed, and its files may show what is not durable; open the \
         forest again"
    )]
    Failed,
    /// The stored records cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The checkpoint before that cannot be read.
    #[error("the checkpoint before that cannot be read: {0}")]
    Checkpoint(RecoverError),
}

/// The records around a moment.
#[derive(Default)]
struct Nearest {
    /// The last record that the moment includes.
    last: Option<(Entry, Version)>,
    /// The version of the record after that.
    next: Option<Version>,
}

impl ReadOnlyJournal {
    /// The journal as it was at any moment within the kept history. Bytes that were erased since stay erased. It takes
    /// the time of the records since the checkpoint before the moment.
    ///
    /// # Errors
    /// [`PastError`].
    pub fn at(&self, moment: Moment) -> Result<Self, PastError> {
        let (mut begin, mut newest) = (Position::default(), None);
        for at in self.checkpoints().into_iter().rev() {
            let stored = checkpoint::get(self.medium(), self.number(), at);
            let stored = stored.map_err(ReadError::from)?;
            let found = stored.newest().map_err(PastError::Checkpoint)?;
            if moment.includes(found) {
                (begin, newest) = (at, Some(found.0));
                break;
            }
            newest = Some(found.0);
        }
        let is_known = begin > Position::default();
        if !is_known && self.is_trimmed() {
            return Err(newest.map_or(PastError::Empty, |oldest| PastError::TooOld { oldest }));
        }
        let Nearest { last, next } = self.last_before(begin, moment)?;
        let version = match &last {
            Some((_, version)) => Some(*version),
            None => newest.filter(|_| is_known),
        };
        match (moment, version, next) {
            (Moment::Version(asked), found, _) if found != Some(asked) => {
                Err(PastError::NoVersion(asked))
            }
            (_, None, Some(oldest)) => Err(PastError::TooOld { oldest }),
            (_, None, None) => Err(PastError::Empty),
            _ => Ok(match last {
                Some((entry, _)) => self.as_of(&entry)?,
                None => self.as_of_checkpoint(begin),
            }),
        }
    }

    /// The last record after a position that a moment includes.
    fn last_before(&self, mut after: Position, moment: Moment) -> Result<Nearest, PastError> {
        let mut nearest = Nearest::default();
        loop {
            let entries = self.entries(after, MANY)?;
            let Some(end) = entries.last() else {
                return Ok(nearest);
            };
            after = end.position;
            for entry in entries {
                let stored = Stored::read(&entry.record);
                let stored = stored.map_err(|error| ReadError::Failed(error.to_string()))?;
                if !moment.includes((stored.version, stored.time)) {
                    nearest.next = Some(stored.version);
                    return Ok(nearest);
                }
                nearest.last = Some((entry, stored.version));
            }
        }
    }
}
