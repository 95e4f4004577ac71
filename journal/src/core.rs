//! What the threads of a journal (`threads.rs`) do: write, sync, prepare the next segment. No call of the medium is
//! made under the lock of the state, so `append` never waits for the medium. The locks of the syncs, of the keys and of
//! the note may be held during such a call.
//!
//! 1. `append` (`disk_journal.rs`) gives a record its place, and wakes a thread, unless one is writing or is about to
//!    look for work.
//! 2. A thread, or an author that leads (`lead.rs`), takes everything that has a place, and writes it: it is
//!    *buffered*.
//! 3. A thread syncs everything that was written: it is *durable*.
//!
//! Any failure and any short write ends the journal: nothing more is written to its files, and the outcome of what
//! waits is unknown.

use std::collections::BTreeMap;
use std::io;
use std::process;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;

use weald_forest::journal::{AppendError, Level, Marks, catch_foreign};

use crate::body::{keys_len, slices};
use crate::frame::{self, Kind};
use crate::item::Item;
use crate::keys::Keys;
use crate::log::Batch;
use crate::medium::{Medium, MediumFile};
use crate::next_step::{NextStep, State};
use crate::place::{Place, SegmentId};
use crate::reserve::Reserve;
use crate::settings::Settings;
use crate::waiting::Due;
use crate::wakes::Wakes;

pub(crate) struct Core {
    pub(crate) medium: Arc<dyn Medium>,
    pub(crate) settings: Settings,
    pub(crate) marks: Marks,
    state: Mutex<State>,
    /// Threads that write and sync wait here for work.
    pub(crate) threads: Condvar,
    /// The thread that prepares segments waits here.
    pub(crate) preparer: Condvar,
    /// The thread that puts checkpoints waits here.
    pub(crate) keeper: Condvar,
    /// Whether it is to end.
    pub(crate) is_keeper_over: AtomicBool,
    pub(crate) wakes: Wakes,
    files: Mutex<BTreeMap<SegmentId, Arc<dyn MediumFile>>>,
    /// The locked file, until the journal is closed.
    pub(crate) lock: Mutex<Option<Box<dyn MediumFile>>>,
    /// What this writer has noted there.
    pub(crate) note: Vec<u8>,
    /// The process that opened the journal.
    pub(crate) pid: u32,
    /// Held while a checkpoint is written.
    pub(crate) checkpoints: Mutex<()>,
    /// Room for an opening on a full disk. Only the thread that prepares segments locks it.
    pub(crate) reserve: Mutex<Reserve>,
    /// The keys of the blobs. Only threads that may wait for the medium lock it.
    keys: Mutex<Keys>,
    /// Held during a sync.
    has_failed_to_sync: Mutex<bool>,
}

/// A part of a journal's work. See [`DiskJournal::work`](crate::DiskJournal::work).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Write what was accepted.
    Write,
    /// Sync what was written.
    Sync,
    /// Write a mark, if the last mark is older than the last sync.
    Mark,
    /// Prepare the next segment, if it is missing.
    Prepare,
}

/// How bytes are written to a file: by `write_all`, or, where nothing counts yet, by `write_whole`.
type Write = fn(&dyn MediumFile, &[u8], u64) -> io::Result<()>;

/// Why the journal has to end.
pub(crate) enum Failure {
    Medium(&'static str, io::Error),
    Fenced,
}

impl Failure {
    pub(crate) fn refusal(&self) -> AppendError {
        match self {
            Self::Medium(..) => AppendError::Poisoned,
            Self::Fenced => AppendError::Fenced,
        }
    }
}

impl Core {
    pub(crate) fn new(
        (medium, settings): (Arc<dyn Medium>, Settings),
        (mut state, keys, reserve): (State, Keys, Reserve),
        first: Arc<dyn MediumFile>,
        (lock, note): (Box<dyn MediumFile>, Vec<u8>),
    ) -> Self {
        let segment = state.log.cursor.segment;
        let marks = Marks::default();
        marks.raise(Level::Durable, state.log.synced.position());
        state.log.keys.free = keys.free();
        Self {
            medium,
            settings,
            marks,
            state: Mutex::new(state),
            threads: Condvar::new(),
            preparer: Condvar::new(),
            keeper: Condvar::new(),
            wakes: Wakes::default(),
            is_keeper_over: AtomicBool::new(false),
            files: Mutex::new(BTreeMap::from([(segment, first)])),
            lock: Mutex::new(Some(lock)),
            note,
            pid: process::id(),
            checkpoints: Mutex::new(()),
            reserve: Mutex::new(reserve),
            keys: Mutex::new(keys),
            has_failed_to_sync: Mutex::new(false),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn keys(&self) -> MutexGuard<'_, Keys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same for whoever may hold them already, or must not wait.
    pub(crate) fn try_keys(&self) -> Option<MutexGuard<'_, Keys>> {
        match self.keys.try_lock() {
            Ok(keys) => Some(keys),
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    pub(crate) fn files(&self) -> MutexGuard<'_, BTreeMap<SegmentId, Arc<dyn MediumFile>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does a part of the work on this thread; returns whether there was any.
    pub(crate) fn work(&self, work: Work) -> bool {
        let mut state = self.state();
        if state.failed.is_some() {
            return false;
        }
        let step = match work {
            Work::Write if state.may_write() => state.begin_write(),
            Work::Sync if !state.is_syncing && state.log.written > state.log.synced => {
                state.begin_sync()
            }
            Work::Mark if !state.is_writing && state.log.wants_mark() => {
                state.log.put_mark();
                state.begin_write()
            }
            Work::Prepare if !state.is_preparing && state.must_prepare() => {
                state.is_preparing = true;
                drop(state);
                self.prepare();
                return true;
            }
            _ => return false,
        };
        drop(state);
        self.carry_out(step);
        true
    }

    /// Does on the medium what was decided.
    pub(crate) fn carry_out(&self, step: NextStep) {
        let outcome = match step {
            NextStep::Write(batch, upto) => self.write(batch, upto),
            NextStep::Sync(from, upto) => self.sync(from, upto),
            NextStep::Gather
            | NextStep::Rest(_)
            | NextStep::Watch
            | NextStep::Await(_)
            | NextStep::Stop => Ok(()),
        };
        if let Err(failure) = outcome {
            self.fail(&failure);
        }
    }

    fn write(&self, mut batch: Batch, upto: Place) -> Result<(), Failure> {
        let outcome = self.caught("writing", || self.write_batch(&batch, upto));
        let mut state = self.state_after(&outcome);
        state.is_writing = false;
        outcome?;
        state.active = Instant::now();
        state.log.written = upto;
        state.log.unwritten -= batch.bytes;
        state.grown += batch.bytes as u64;
        let is_enough = state.grown >= state.grown_enough;
        state.log.reuse(&mut batch);
        let due = self.admit(&mut state);
        self.wake_threads(state);
        self.wakes.run(|| {
            self.marks.raise(Level::Buffered, upto.position());
            due.into_iter().for_each(Due::give);
        });
        if is_enough {
            self.keeper.notify_all();
        }
        Ok(())
    }

    fn write_batch(&self, batch: &Batch, upto: Place) -> Result<(), Failure> {
        if self.is_forked() {
            return Err(Failure::Fenced);
        }
        let failed = |error| Failure::Medium("writing", error);
        // Without its key a blob is erased, so no record is ever found before the keys of its blobs.
        if !batch.keys.is_empty() {
            self.must_be_newest()?;
            let taken = keys_len(batch.keys.iter().map(|(_, sealing)| sealing));
            let added = self.change_keys(taken, |keys| {
                keys.add(&*self.medium, &batch.keys)?;
                keys.sync()
            });
            added.map_err(failed)?;
        }
        self.write_items(&batch.items).map_err(failed)?;
        self.must_be_newest()?;
        if batch.erasures.is_empty() {
            return Ok(());
        }
        // The keys of erased bytes go before anybody is told that the erasure is buffered, but not before it is certain
        // that the bytes are to be erased.
        let from = self.state().log.synced.segment;
        self.sync_files(from, upto)?;
        let erased = self.change_keys(0, |keys| keys.erase(&*self.medium, &batch.erasures));
        erased.map_err(|error| Failure::Medium("erasing", error))
    }

    /// Changes the keys, uses up this much of the promised room, and notes how much room there is now, even if the
    /// medium panics: a checkpoint that fails does not end the journal.
    pub(crate) fn change_keys<T>(
        &self,
        taken: u64,
        change: impl FnOnce(&mut Keys) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut keys = self.keys();
        let changed = catch_foreign(|| change(&mut keys));
        // Under the lock of the keys, so that nobody notes an older room later.
        let room = &mut self.state().log.keys;
        room.promised -= taken;
        room.free = keys.free();
        changed.unwrap_or_else(|| Err(io::Error::other("the medium has panicked")))
    }

    pub(crate) fn file(&self, segment: SegmentId) -> io::Result<Arc<dyn MediumFile>> {
        let known = self.files().get(&segment).map(Arc::clone);
        known.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Writes a part of a batch.
    pub(crate) fn write_item_with(&self, item: &Item, write: Write) -> io::Result<()> {
        match item {
            Item::Bytes(place, bytes) => {
                let file = self.file(place.segment)?;
                write(&*file, bytes, place.offset.into())
            }
            Item::Frame(place, kind, body, part) => {
                let file = self.file(place.segment)?;
                let header = frame::header(*place, *kind, slices(body, *part));
                write(&*file, &header, place.offset.into())?;
                let mut offset = u64::from(place.offset) + header.len() as u64;
                for slice in slices(body, *part) {
                    write(&*file, slice, offset)?;
                    offset += slice.len() as u64;
                }
                Ok(())
            }
            Item::Sealed(place, sealing, part) => {
                let file = self.file(place.segment)?;
                let body = sealing.body(*part);
                let header = frame::header(*place, Kind::Blob, std::iter::once(&body[..]));
                let bytes = [&header[..], &body].concat();
                write(&*file, &bytes, place.offset.into())
            }
        }
    }

    /// Syncs segments. After a failure no sync is tried again: it could succeed although bytes were lost.
    fn sync_files(&self, from: SegmentId, upto: Place) -> Result<(), Failure> {
        let mut has_failed = self
            .has_failed_to_sync
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if *has_failed {
            let error = io::Error::other("a sync before has failed");
            return Err(Failure::Medium("syncing", error));
        }
        let files: Vec<_> = {
            let files = self.files();
            let files = files.range(from..=upto.segment);
            files.map(|(_, file)| Arc::clone(file)).collect()
        };
        // Also if it panics.
        *has_failed = true;
        let synced = files.iter().try_for_each(|file| file.sync());
        *has_failed = synced.is_err();
        synced.map_err(|error| Failure::Medium("syncing", error))?;
        self.must_be_newest()
    }

    fn sync(&self, from: SegmentId, upto: Place) -> Result<(), Failure> {
        let outcome = self.caught("syncing", || self.sync_files(from, upto));
        let mut state = self.state_after(&outcome);
        state.is_syncing = false;
        state.regroup.end_sync(Instant::now(), upto.position());
        outcome?;
        if state.failed.is_some() {
            return Ok(());
        }
        state.log.synced = upto;
        self.wake_threads(state);
        // The segments that are full are not written any more.
        let full = {
            let mut files = self.files();
            let open = files.split_off(&upto.segment);
            std::mem::replace(&mut *files, open)
        };
        // The mark is raised first, because a destructor of the medium may block.
        self.wakes
            .run(|| self.marks.raise(Level::Durable, upto.position()));
        discard(full);
        Ok(())
    }
}

/// Drops files of the medium. A destructor that panics ends no thread, and the other files go as well.
pub(crate) fn discard(files: BTreeMap<SegmentId, Arc<dyn MediumFile>>) {
    for file in files.into_values() {
        catch_foreign(|| drop(file));
    }
}
