//! A journal that is only read, even while a program writes to it.
//!
//! - It takes no lock, writes nothing, removes nothing and makes no key file, so it is in nobody's way.
//! - It sees the journal as it was at one moment. What it sees is durable: what lies behind the last mark is synced
//!   here before it is shown.
//! - A writer may remove files that this journal is about to read. Then the opening begins again:
//!   [`ReadOnlyJournal::open`] does that itself, and later callers find out by [`ReadOnlyJournal::is_whole`].

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use weald_forest::CommitId;
use weald_forest::journal::{
    AppendError, Appended, BlobId, BlobPlace, Capabilities, Checkpoint, CheckpointError,
    Durability, Entry, Follower, Journal, Later, Level, Position, ReadError, Record, Resolved,
    Stored, StoredCheckpoint,
};

use crate::blob_reader::BlobReader;
use crate::checkpoint;
use crate::directory::Directory;
use crate::error::OpenError;
use crate::medium::Medium;
use crate::names;
use crate::place::Place;
use crate::read_only::ReadOnly;
use crate::recover::Found;
use crate::searching::{Outcome, Searcher, Searching};
use crate::seen::{Seen, see};
use crate::segments::check_heads;
use crate::settings::Settings;

/// How many records a follower reads at once.
const MANY: usize = 256;

const REFUSED: &str = "it was opened for reading only";

/// A journal that is only read; a clone is the same. As the [`Journal`] of a forest it refuses every commit with
/// [`AppendError::ReadOnly`]. [`ReadOnlyForest`](crate::ReadOnlyForest) is the forest that it has.
///
/// ```
/// use weald::block_on;
/// use weald::forest::journal::{Journal, Position};
/// use weald::forest::disk::{DiskForest, ReadOnlyJournal};
///
/// let directory = tempfile::tempdir()?;
/// let forest = block_on(DiskForest::open(directory.path()))?;
/// block_on(forest.create("notes"))?;
///
/// // The forest is still open. Its opening is a record, too.
/// let journal = ReadOnlyJournal::open(directory.path())?;
/// assert_eq!(block_on(journal.read(Position::default(), 10))?.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ReadOnlyJournal(Arc<Seen>);

impl ReadOnlyJournal {
    /// Opens the journal in a directory of the file system for reading. The user needs no right to write there. It
    /// costs what a writer's opening costs, and a sync if something lies behind the last mark.
    ///
    /// Records behind the last mark are synced before they are shown. If an earlier sync of the same bytes has failed
    /// in the program that wrote them, the system may wrongly believe that they are durable; only an opening for
    /// writing, which writes them again, makes sure of that.
    ///
    /// # Errors
    /// [`OpenError::NoForest`], if the directory has no journal; [`OpenError::Damaged`]; [`OpenError::Failed`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::open_sealed(path, &Settings::new())
    }

    /// The same with the master key of these settings.
    ///
    /// # Errors
    /// As [`open`](Self::open), and [`OpenError::Sealed`].
    pub fn open_sealed(path: impl AsRef<Path>, settings: &Settings) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let directory = Directory::read_only(path)
            .map_err(|error| OpenError::of_directory(path, "reading it failed", error))?;
        Self::open_with(directory, settings)
    }

    /// Opens the journal of a medium for reading.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_on(medium: impl Medium) -> Result<Self, OpenError> {
        Self::open_with(medium, &Settings::new())
    }

    /// Opens the journal of a medium for reading, with the master key of these settings. If they say that it is worked
    /// [by hand](Settings::by_hand), it starts no threads either; if they say so, it [skips damaged
    /// values](Settings::skip_damaged_values). The others do not matter.
    ///
    /// # Errors
    /// As [`open`](Self::open), and [`OpenError::Sealed`].
    pub fn open_with(medium: impl Medium, settings: &Settings) -> Result<Self, OpenError> {
        Self::open_beside(Arc::new(medium), settings, None)
    }

    /// Opens the journal of a medium that somebody else may change. If it is known up to where it is durable, nothing
    /// behind that is shown, and nothing is synced.
    pub(crate) fn open_beside(
        medium: Arc<dyn Medium>,
        settings: &Settings,
        durable: Option<Position>,
    ) -> Result<Self, OpenError> {
        let medium: Arc<dyn Medium> = Arc::new(ReadOnly(medium));
        let mut before = None;
        loop {
            let error = match see(&medium, settings) {
                Ok(Some(mut seen)) => match seen.end_durably(durable) {
                    Ok(()) => return Ok(Self(Arc::new(seen))),
                    // It was trimmed meanwhile.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    // To sync again would prove nothing.
                    Err(error) => {
                        return Err(OpenError::Failed {
                            medium: medium.name(),
                            doing: "making its end durable failed",
                            error,
                        });
                    }
                },
                Ok(None) => continue,
                Err(error) => error,
            };
            // A writer may have been in the middle of a change. If two looks find the same, that was not
            // so.
            let text = error.to_string();
            if before.as_ref() == Some(&text) {
                return Err(error);
            }
            before = Some(text);
        }
    }

    /// The journal as it was when this record, which it has, was its last one. Bytes that were erased since stay
    /// erased.
    ///
    /// # Errors
    /// [`ReadError::TooOld`], if it is older than the oldest checkpoint and some of the records before that were
    /// trimmed; [`ReadError::Failed`], if the entry is no record.
    pub fn as_of(&self, entry: &Entry) -> Result<Self, ReadError> {
        let stored = Stored::read(&entry.record);
        let stored = stored.map_err(|error| ReadError::Failed(error.to_string()))?;
        let mut found = self.0.found.clone();
        found.checkpoints.retain(|at| *at <= entry.position);
        found.checkpoint = found.checkpoints.last().copied();
        if found.checkpoint.is_none() && found.chain.trimmed > Position::default() {
            let checkpoint = self.0.found.checkpoint.unwrap_or_default();
            return Err(ReadError::TooOld { checkpoint });
        }
        found.end = found.end.min(Place::of(entry.position));
        found.last = Some((entry.position, stored.id));
        Ok(self.with(found))
    }

    /// The journal as of one of its [checkpoints](Self::checkpoints): nothing follows the checkpoint.
    pub fn as_of_checkpoint(&self, at: Position) -> Self {
        let mut found = self.0.found.clone();
        found.checkpoints.retain(|other| *other <= at);
        (found.checkpoint, found.end, found.last) = (Some(at), Place::of(at), None);
        self.with(found)
    }

    /// The journal as it was when this record was its last one, from a checkpoint that has nothing behind a position.
    pub(crate) fn between(&self, begin: Position, last: &Entry) -> Result<Self, ReadError> {
        let upto = self.as_of(last)?;
        let mut found = upto.0.found.clone();
        found.checkpoints.retain(|at| *at <= begin);
        found.checkpoint = found.checkpoints.last().copied();
        Ok(self.with(found))
    }

    /// The same files, with another part of them that counts.
    fn with(&self, found: Found) -> Self {
        Self(Arc::new(Seen {
            medium: Arc::clone(&self.0.medium),
            found,
            journal: self.0.journal,
            keys: Arc::clone(&self.0.keys),
            has_threads: self.0.has_threads,
            skips_damaged: self.0.skips_damaged,
        }))
    }

    /// The positions of the checkpoints that are kept, oldest first.
    pub fn checkpoints(&self) -> Vec<Position> {
        self.0.found.checkpoints.clone()
    }

    /// At most this many records after a position.
    pub(crate) fn entries(&self, after: Position, limit: usize) -> Result<Vec<Entry>, ReadError> {
        self.0.read(after, limit)
    }

    pub(crate) fn medium(&self) -> &dyn Medium {
        &*self.0.medium
    }

    /// The number of the journal.
    pub(crate) fn number(&self) -> u128 {
        self.0.journal
    }

    /// The journal without its checkpoint, so that a forest is made of all records; `None`, if some were trimmed.
    pub fn without_checkpoint(&self) -> Option<Self> {
        let mut found = self.0.found.clone();
        found.checkpoint = None;
        (!self.is_trimmed()).then(|| self.with(found))
    }

    /// Whether the files that this journal reads are still there. If not, a writer has removed what a checkpoint has
    /// made superfluous; open it again.
    pub fn is_whole(&self) -> bool {
        let Seen { medium, found, .. } = &*self.0;
        let Ok(mut present) = medium.list() else {
            return false;
        };
        present.sort_unstable();
        let segments = found.chain.newest_first().into_iter().map(names::segment);
        // An earlier moment begins with an earlier checkpoint, and those are removed first.
        let checkpoints = found.checkpoints.iter().copied();
        let checkpoints = checkpoints.chain(found.checkpoint).map(names::checkpoint);
        let mut needed = segments.chain(checkpoints);
        needed.all(|name| present.binary_search(&name).is_ok())
    }

    /// Reads the heads of all segments. No opening and no reading of records needs those of old segments, unless the
    /// newest checkpoint is lost.
    ///
    /// # Errors
    /// [`OpenError::Damaged`], [`OpenError::Failed`].
    pub fn check_heads(&self) -> Result<(), OpenError> {
        let segments = self.0.found.chain.newest_first();
        let checked = check_heads(self.medium(), (self.number(), segments));
        checked.map_err(|error| error.at_opening(&self.name()))
    }

    /// The position after which records can be read: the default, unless records were trimmed.
    pub fn begin(&self) -> Position {
        self.0.found.chain.trimmed
    }

    /// Whether records were trimmed, so that those that are there do not begin with the first commit.
    pub fn is_trimmed(&self) -> bool {
        self.begin() > Position::default()
    }

    /// The directory.
    pub fn name(&self) -> String {
        self.0.medium.name()
    }

    pub(crate) fn end(&self) -> Position {
        self.0.found.end.position()
    }
}

impl std::fmt::Debug for ReadOnlyJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadOnlyJournal")
            .field("medium", &self.name())
            .field("end", &self.end())
            .finish_non_exhaustive()
    }
}

fn now<'a, T: Send + 'a>(answer: T) -> Later<'a, T> {
    Box::pin(std::future::ready(answer))
}

impl Journal for ReadOnlyJournal {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            level: Level::Durable,
            max_record: usize::MAX,
            pipelined: 1,
        }
    }

    fn append(&self, _: &Record<'_>) -> Result<Appended, AppendError> {
        Err(AppendError::ReadOnly)
    }

    fn reached(&self, _: Level) -> Position {
        self.end()
    }

    fn when_reached(&self, position: Position, _: Level) -> Later<'static, Durability> {
        now(match position <= self.end() {
            true => Durability::Reached,
            false => Durability::Unknown,
        })
    }

    /// If the record is not there, a writer may still write it, so the outcome is unknown. The search runs on a thread,
    /// unless the journal may have none.
    fn resolve(&self, id: CommitId) -> Later<'static, Resolved> {
        let (seen, has_threads) = (Arc::clone(&self.0), self.0.has_threads);
        Box::pin(async move {
            match Searching::begin((seen, id), has_threads).await {
                Ok(Some((position, version))) => Resolved::Stored { position, version },
                Ok(None) | Err(_) => Resolved::Unknown,
            }
        })
    }

    fn last(&self) -> Later<'_, Result<Option<(Position, CommitId)>, ReadError>> {
        now(Ok(self.0.found.last))
    }

    fn read(&self, after: Position, limit: usize) -> Later<'_, Result<Vec<Entry>, ReadError>> {
        now(self.0.read(after, limit))
    }

    fn blob(&self, id: BlobId) -> Later<'_, Result<Option<Vec<u8>>, ReadError>> {
        let Seen { medium, keys, .. } = &*self.0;
        let go_on = |place| self.0.found.chain.go_on(place);
        let read = |entry| BlobReader::for_one(medium, &go_on).read(id, &entry);
        now(keys.get(id).map(read).transpose().map_err(ReadError::from))
    }

    fn blobs<'a>(
        &'a self,
        ids: Vec<BlobId>,
        take: &'a mut (dyn FnMut(BlobId, Option<Vec<u8>>) + Send),
    ) -> Later<'a, Result<(), ReadError>> {
        let Seen { medium, keys, .. } = &*self.0;
        let go_on = |place| self.0.found.chain.go_on(place);
        let asked = ids.into_iter().map(|id| (id, keys.get(id))).collect();
        let skipped_in = self.0.skips_damaged.then(|| self.name());
        let mut reader = BlobReader::for_many(medium, &go_on);
        let read = reader.read_all(asked, skipped_in.as_deref(), take);
        now(read.map_err(ReadError::from))
    }

    fn has_blob(&self, id: BlobId) -> Later<'_, Result<bool, ReadError>> {
        now(Ok(self.0.keys.get(id).is_some()))
    }

    fn keep_blob(&self, id: BlobId) -> Later<'_, Result<Option<(u64, BlobPlace)>, ReadError>> {
        let entry = self.0.keys.get(id);
        now(Ok(entry.map(|entry| entry.place(id))))
    }

    /// The records that the journal has. After them it fails, because it does not learn of later
    /// ones.
    fn follow(&self, after: Position) -> Box<dyn Follower> {
        Box::new(Remaining {
            seen: Arc::clone(&self.0),
            last: after,
        })
    }

    fn put_checkpoint(&self, _: Checkpoint) -> Later<'_, Result<(), CheckpointError>> {
        now(Err(CheckpointError::Failed(REFUSED.into())))
    }

    fn checkpoint(&self) -> Later<'_, Result<Option<StoredCheckpoint>, ReadError>> {
        let read = |at| checkpoint::get(&*self.0.medium, self.0.journal, at);
        let checkpoint = self.0.found.checkpoint.map(read);
        now(checkpoint.transpose().map_err(ReadError::from))
    }

    fn trim(&self, _: Position) -> Later<'_, Result<(), CheckpointError>> {
        now(Err(CheckpointError::Failed(REFUSED.into())))
    }
}

/// The record with an id is looked for.
impl Searcher for (Arc<Seen>, CommitId) {
    fn search(&self) -> Outcome {
        self.0.search(self.1)
    }

    fn wake(&self, waker: Waker) {
        waker.wake();
    }
}

struct Remaining {
    seen: Arc<Seen>,
    last: Position,
}

impl Follower for Remaining {
    fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Result<Vec<Entry>, ReadError>> {
        let entries = self.seen.read(self.last, MANY)?;
        let Some(last) = entries.last() else {
            let text =
                "it was opened for reading only, and ends here; open it again for later records";
            return Poll::Ready(Err(ReadError::Failed(text.into())));
        };
        self.last = last.position;
        Poll::Ready(Ok(entries))
    }
}
