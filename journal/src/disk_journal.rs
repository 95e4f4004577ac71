//! The journal on a medium: the trait of the forest, on what the other files do.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, JoinHandle, ThreadId};

use weald_forest::CommitId;
use weald_forest::journal::{
    AppendError, Appended, Blob, BlobId, BlobPlace, Capabilities, Checkpoint, CheckpointError,
    Durability, Entry, Follower, Journal, Later, Level, Position, ReadError, Record, Resolved,
    Room, StoredCheckpoint,
};

use crate::blob;
use crate::body::{Body, Share};
use crate::checkpoint;
use crate::core::{Core, Work};
use crate::directory::Directory;
use crate::error::OpenError;
use crate::follow::{self, Following};
use crate::lead::Buffering;
use crate::medium::Medium;
use crate::open;
use crate::room::MAX_RECORD;
use crate::search;
use crate::searching::Searching;
use crate::settings::Settings;
use crate::waiting::Due;

/// A journal on a medium. A clone is the same journal; when the last one goes, everything is written and synced, and
/// the lock is given back.
#[derive(Clone)]
pub struct DiskJournal {
    core: Arc<Core>,
    threads: Arc<Threads>,
}

/// The threads of a journal. They end when this is dropped.
struct Threads {
    core: Arc<Core>,
    /// Held by the caller that ends them.
    handles: Mutex<Vec<JoinHandle<()>>>,
    own: Vec<ThreadId>,
}

impl DiskJournal {
    /// Opens the journal in a directory of the file system for writing, with the default settings. A missing directory
    /// is created, as are those above it. Other files in it stay as they are, and their names do not matter.
    ///
    /// # Errors
    /// [`OpenError`]. If it is [`Damaged`](OpenError::Damaged), no record, key or checkpoint has changed.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let directory = Directory::create(path)
            .map_err(|error| OpenError::of_directory(path, "creating it failed", error))?;
        Self::open_on(directory, Settings::new())
    }

    /// Opens the journal of a medium for writing.
    ///
    /// # Errors
    /// [`OpenError`]. If it is [`Damaged`](OpenError::Damaged), no record, key or checkpoint has changed.
    pub fn open_on(medium: impl Medium, settings: Settings) -> Result<Self, OpenError> {
        let medium: Arc<dyn Medium> = Arc::new(medium);
        let name = medium.name();
        let core = Arc::new(open::open(medium, settings)?);
        let mut threads = Threads::none(&core);
        if core.settings.has_threads {
            threads.begin().map_err(|error| OpenError::Failed {
                medium: name,
                doing: "starting a thread failed",
                error,
            })?;
        }
        Ok(Self {
            core,
            threads: Arc::new(threads),
        })
    }

    /// Without threads.
    #[cfg(test)]
    pub(crate) fn of(core: Core) -> Self {
        let core = Arc::new(core);
        let threads = Arc::new(Threads::none(&core));
        Self { core, threads }
    }

    /// The threads of the journal.
    pub(crate) fn threads(&self) -> &[ThreadId] {
        &self.threads.own
    }

    pub(crate) fn core(&self) -> Arc<Core> {
        Arc::clone(&self.core)
    }

    pub(crate) fn medium(&self) -> Arc<dyn Medium> {
        Arc::clone(&self.core.medium)
    }

    /// Does a part of the work of a journal that has no threads, see [`Settings::by_hand`]; returns whether there was
    /// any.
    pub fn work(&self, work: Work) -> bool {
        self.core.work(work)
    }

    /// Writes and syncs everything, writes a mark, and gives the lock back. Everything that is appended later is
    /// refused. It returns when that is done, even if another caller began it.
    pub fn close(&self) {
        self.threads.end();
    }
}

impl Threads {
    fn none(core: &Arc<Core>) -> Self {
        Self {
            core: Arc::clone(core),
            handles: Mutex::default(),
            own: Vec::new(),
        }
    }

    fn begin(&mut self) -> std::io::Result<()> {
        let handles = self.handles.get_mut();
        let handles = handles.unwrap_or_else(PoisonError::into_inner);
        let names = ["journal-1", "journal-2", "journal-space"];
        for (name, is_preparer) in names.into_iter().zip([false, false, true]) {
            let core = Arc::clone(&self.core);
            let body = move || {
                if is_preparer {
                    core.serve_preparer();
                } else {
                    core.serve();
                }
            };
            let handle = thread::Builder::new().name(name.into()).spawn(body)?;
            self.own.push(handle.thread().id());
            handles.push(handle);
        }
        Ok(())
    }

    /// Returns when everything has ended, even if another thread ends it at the same time.
    fn end(&self) {
        // A child that was forked has none of the threads, and must not note an end for its parent.
        if self.core.is_forked() {
            return;
        }
        self.core.begin_close();
        let joined = self.core.wakes.uncounted(|| self.join());
        if joined.is_some() {
            self.core.end_close();
        }
    }

    /// Waits until the threads have ended; other callers wait meanwhile. `None` on a thread for which somebody else
    /// waits.
    fn join(&self) -> Option<MutexGuard<'_, Vec<JoinHandle<()>>>> {
        // A waker that the journal wakes may drop or close the journal, on a thread of the journal. Another thread that
        // has the handles then waits for that thread.
        let here = thread::current().id();
        let mut handles = match self.handles.try_lock() {
            Ok(handles) => handles,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) if self.own.contains(&here) => return None,
            Err(TryLockError::WouldBlock) => {
                let handles = self.handles.lock();
                handles.unwrap_or_else(PoisonError::into_inner)
            }
        };
        let is_other = |handle: &JoinHandle<()>| handle.thread().id() != here;
        for handle in handles.drain(..).filter(is_other) {
            let _ = handle.join();
        }
        Some(handles)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.end();
    }
}

impl std::fmt::Debug for DiskJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.core.state();
        f.debug_struct("DiskJournal")
            .field("medium", &self.core.medium.name())
            .field("last", &state.log.last.map(|(last, _)| last))
            .field("written", &state.log.written.position())
            .field("durable", &state.log.synced.position())
            .field("failed", &state.failed)
            .finish_non_exhaustive()
    }
}

fn now<'a, T: Send + 'a>(answer: T) -> Later<'a, T> {
    Box::pin(std::future::ready(answer))
}

impl Journal for DiskJournal {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            level: Level::Durable,
            max_record: MAX_RECORD,
            pipelined: 1024,
        }
    }

    fn append(&self, record: &Record<'_>) -> Result<Appended, AppendError> {
        let len = record.len();
        if len > MAX_RECORD {
            return Err(AppendError::TooLarge { max: MAX_RECORD });
        }
        let mut guard = self.core.state();
        let state = &mut *guard;
        if let Some(error) = state.failed {
            return Err(error);
        }
        // The threads end once everything is written that was accepted before.
        if state.is_closing {
            return Err(AppendError::Poisoned);
        }
        if state.waiting.is_behind(record.version) {
            return Err(AppendError::Behind);
        }
        // Another forest has appended, or this one does not know what the journal has: nobody could open it any more.
        if record.version.number <= state.log.newest {
            let current = state
                .log
                .last
                .map_or_else(Position::default, |(last, _)| last);
            return Err(AppendError::Conflict { current });
        }
        let limits = state.log.limits();
        let max = blob::longest_name(limits.1);
        let erased = record.erases.map(|erasure| &erasure.place.2);
        let mut names = record.blobs.iter().map(|blob| &blob.name).chain(erased);
        if names.any(|name| name.len() > max) {
            return Err(AppendError::TooLarge { max });
        }
        let is_next = state.waiting.is_empty();
        let number = record.version.number;
        // Its bytes are written, so it may go into a full buffer.
        if is_next && let Some(position) = state.put_ahead(record) {
            state.log.newest = number;
            self.core.wake_threads(guard);
            return Ok(Appended::Accepted(position));
        }
        let has_room = is_next && state.log.unwritten < self.core.settings.buffer;
        let is_plain = record.blobs.is_empty() && record.erases.is_none() && len <= limits.0;
        if has_room
            && is_plain
            && let Some(position) = state
                .log
                .put_short((len, Share::Most), record.id, |out| record.write(out))
        {
            state.log.newest = number;
            self.core.wake_threads(guard);
            return Ok(Appended::Accepted(position));
        }
        // Without random bytes for a key nothing can be kept.
        let body = Body::of(record, limits, &mut state.sealed).map_err(|_| AppendError::Full)?;
        let position = has_room.then(|| state.log.put(&body, record.id)).flatten();
        let appended = match position {
            Some(position) => {
                state.log.newest = number;
                Appended::Accepted(position)
            }
            // No thread makes room in a forked child.
            None if self.core.is_forked() => {
                drop(guard);
                self.core.end(AppendError::Fenced);
                return Err(AppendError::Fenced);
            }
            None => {
                let answer = state.waiting.push(body, (record.id, record.version));
                Appended::Sent(Box::pin(answer))
            }
        };
        self.core.wake_threads(guard);
        Ok(appended)
    }

    fn reached(&self, level: Level) -> Position {
        self.core.marks.reached(level)
    }

    fn when_reached(&self, position: Position, level: Level) -> Later<'static, Durability> {
        if level == Level::Buffered && self.core.settings.has_threads {
            return Box::pin(Buffering::new(&self.core, position));
        }
        if level == Level::Durable {
            self.core.refuse_if_forked();
            let mut state = self.core.state();
            state.wanted = state.wanted.max(position);
            state.expect(position);
            self.core.wake_threads(state);
        }
        Box::pin(self.core.marks.when(position, level))
    }

    fn when_room(
        &self,
        bytes: usize,
        changes: &[Arc<Vec<u8>>],
        blobs: &[Blob],
    ) -> Option<Later<'static, Room>> {
        match bytes {
            0 => self.core.when_buffered(),
            _ => self.core.when_room(bytes, changes, blobs),
        }
    }

    fn when_failed(&self) -> Later<'static, ()> {
        Box::pin(self.core.marks.when_failed())
    }

    fn refusal(&self) -> AppendError {
        self.core.state().failed.unwrap_or(AppendError::Poisoned)
    }

    fn resolve(&self, id: CommitId) -> Later<'static, Resolved> {
        let (due, last) = {
            let mut state = self.core.state();
            // The refusal is final: the records that wait for room are never stored, nor are those
            // that were built on them.
            let due = state.waiting.refuse(id);
            (due, state.log.last)
        };
        let has_waited = !due.is_empty();
        due.into_iter().for_each(Due::give);
        let core = Arc::clone(&self.core);
        let last = last.map_or(Position::default(), |(last, _)| last);
        Box::pin(async move {
            let durability = core.when_written(last).await;
            let has_threads = core.settings.has_threads;
            match Searching::begin((Arc::clone(&core), id), has_threads).await {
                // After a failure nobody knows whether records that were not durable stay.
                Ok(Some((position, version)))
                    if position <= core.marks.reached(Level::Durable)
                        || !core.marks.has_failed() =>
                {
                    Resolved::Stored { position, version }
                }
                // It may be in a segment that was trimmed, unless it has waited until now.
                Ok(None) if !has_waited && core.is_trimmed() => Resolved::Unknown,
                Ok(None) if durability == Durability::Reached => Resolved::NotStored,
                _ => Resolved::Unknown,
            }
        })
    }

    fn last(&self) -> Later<'_, Result<Option<(Position, CommitId)>, ReadError>> {
        now(Ok(self.core.state().log.last))
    }

    fn read(&self, after: Position, limit: usize) -> Later<'_, Result<Vec<Entry>, ReadError>> {
        let last = self.core.last();
        Box::pin(async move {
            // An accepted record is in no file before it is buffered, and never if the journal has failed.
            self.core.when_written(last).await;
            follow::read(&self.core, after, limit)
        })
    }

    fn follow(&self, after: Position) -> Box<dyn Follower> {
        Box::new(Following::new(Arc::clone(&self.core), after))
    }

    fn put_checkpoint(&self, checkpoint: Checkpoint) -> Later<'_, Result<(), CheckpointError>> {
        Box::pin(async move {
            let at = checkpoint.at;
            let (newest, last) = {
                let state = self.core.state();
                (state.checkpoint(), state.log.last)
            };
            if newest.is_some_and(|newest| at < newest) {
                return Err(CheckpointError::Older);
            }
            if last.is_none_or(|(last, _)| at > last) {
                return Err(CheckpointError::NoSuchPosition);
            }
            // A checkpoint never has what the journal has lost.
            if self.when_reached(at, Level::Durable).await == Durability::Unknown {
                return Err(CheckpointError::Failed("the journal has failed".into()));
            }
            if newest != Some(at) {
                search::must_be_record(&self.core, at)?;
            }
            self.core.put_checkpoint(checkpoint)
        })
    }

    fn blob(&self, id: BlobId) -> Later<'_, Result<Option<Vec<u8>>, ReadError>> {
        let last = self.core.last();
        Box::pin(async move {
            self.core.when_written(last).await;
            Ok(self.core.blob(id)?)
        })
    }

    fn blobs<'a>(
        &'a self,
        ids: Vec<BlobId>,
        take: &'a mut (dyn FnMut(BlobId, Option<Vec<u8>>) + Send),
    ) -> Later<'a, Result<(), ReadError>> {
        let last = self.core.last();
        Box::pin(async move {
            self.core.when_written(last).await;
            Ok(self.core.blobs(ids, take)?)
        })
    }

    fn has_blob(&self, id: BlobId) -> Later<'_, Result<bool, ReadError>> {
        Box::pin(self.core.of_keys(move |keys| keys.has(id)))
    }

    fn keep_blob(&self, id: BlobId) -> Later<'_, Result<Option<(u64, BlobPlace)>, ReadError>> {
        Box::pin(self.core.of_keys(move |keys| keys.keep(id)))
    }

    fn checkpoint(&self) -> Later<'_, Result<Option<StoredCheckpoint>, ReadError>> {
        let (at, journal) = {
            let state = self.core.state();
            (state.checkpoint(), state.log.head.journal)
        };
        let read = |at| checkpoint::get(&*self.core.medium, journal, at);
        now(at.map(read).transpose().map_err(ReadError::from))
    }

    fn trim(&self, upto: Position) -> Later<'_, Result<(), CheckpointError>> {
        now(self.core.trim(upto))
    }
}
