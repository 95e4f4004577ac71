//! A journal that lets a test do something while it takes a record. At that moment the combiner is taken.

#![allow(dead_code, reason = "each test uses some of it")]

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use weald_forest::journal::{
    AppendError, Appended, Blob, BlobId, BlobPlace, Capabilities, Change, Checkpoint,
    CheckpointError, Durability, Entry, Follower, Journal, Later, Level, MemoryJournal, Position,
    ReadError, Record, Resolved, Room, Stored, StoredCheckpoint,
};
use weald_forest::{CommitId, Version};

/// Looks at each record before it is taken, and may refuse it.
type Look = Box<dyn FnMut(&Record<'_>) -> Result<(), AppendError> + Send>;

type Asked = Box<dyn FnMut() + Send>;

/// A journal in memory, with a look at each record.
#[derive(Clone)]
pub(crate) struct Hooks {
    look: Arc<Mutex<Option<Look>>>,
    asked: Arc<Mutex<Option<Asked>>>,
    asked_for_blob: Arc<Mutex<Option<Asked>>>,
    restless: Arc<AtomicUsize>,
    /// Whether records of many bytes find no room, and how many bytes their authors have asked for.
    narrow: Arc<AtomicBool>,
    wanted: Arc<Mutex<Vec<usize>>>,
    /// What the last of them will change, and what each holds that was let in.
    told: Arc<Mutex<Vec<Arc<Vec<u8>>>>>,
    held: Arc<AtomicUsize>,
    journal: MemoryJournal,
}

struct HeldRoom(Arc<AtomicUsize>);

impl Drop for HeldRoom {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Default for Hooks {
    fn default() -> Self {
        Self::of(MemoryJournal::new())
    }
}

impl Hooks {
    pub(crate) fn of(journal: MemoryJournal) -> Self {
        Self {
            look: Arc::default(),
            asked: Arc::default(),
            asked_for_blob: Arc::default(),
            restless: Arc::default(),
            narrow: Arc::default(),
            wanted: Arc::default(),
            told: Arc::default(),
            held: Arc::default(),
            journal,
        }
    }

    /// From now on each answer comes when it was asked for this many times; each time it wakes its caller.
    pub(crate) fn set_restless(&self, times: usize) {
        self.restless.store(times, Ordering::Relaxed);
    }

    /// Whether records of many bytes find no room from now on.
    pub(crate) fn set_narrow(&self, is_narrow: bool) {
        self.narrow.store(is_narrow, Ordering::Relaxed);
    }

    /// How many bytes authors have asked for, one after the other.
    pub(crate) fn wanted(&self) -> Vec<usize> {
        self.wanted
            .lock()
            .unwrap_or_else(|lock| lock.into_inner())
            .clone()
    }

    /// What the last of them was to change.
    pub(crate) fn told(&self) -> Vec<Arc<Vec<u8>>> {
        let told = self.told.lock().unwrap_or_else(|lock| lock.into_inner());
        told.clone()
    }

    /// How many authors hold the room that they were given.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// How often the answer is still to be asked for.
    pub(crate) fn restless(&self) -> usize {
        self.restless.load(Ordering::Relaxed)
    }

    /// Does this each time the journal is asked for a mark, except from within.
    pub(crate) fn when_asked(&self, work: impl FnMut() + Send + 'static) {
        let mut known = self.asked.lock().unwrap_or_else(|lock| lock.into_inner());
        *known = Some(Box::new(work));
    }

    /// Does this once, when the journal is asked for the first time whether it has a blob.
    pub(crate) fn when_asked_for_blob(&self, work: impl FnOnce() + Send + 'static) {
        let mut work = Some(work);
        let asked = Box::new(move || work.take().into_iter().for_each(|work| work()));
        let known = self.asked_for_blob.lock();
        *known.unwrap_or_else(|lock| lock.into_inner()) = Some(asked);
    }

    /// Looks at each record from now on.
    pub(crate) fn look(
        &self,
        look: impl FnMut(&Record<'_>) -> Result<(), AppendError> + Send + 'static,
    ) {
        let mut known = self.look.lock().unwrap_or_else(|lock| lock.into_inner());
        *known = Some(Box::new(look));
    }

    /// Does this, on another thread, while the next record is taken.
    pub(crate) fn during_next(&self, work: impl FnOnce() + Send + 'static) {
        let mut work = Some(work);
        self.look(move |_| {
            work.take().into_iter().for_each(elsewhere);
            Ok(())
        });
    }
}

/// Does something on another thread, which is not the one that is in the journal.
pub(crate) fn elsewhere<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap())
}

/// What a record changes; it splices into no tree.
pub(crate) fn changes(record: &Record<'_>) -> Vec<Change> {
    let mut bytes = Vec::new();
    record.write(&mut bytes);
    assert_eq!(bytes.len(), record.len());
    let stored = Stored::read(&bytes).unwrap();
    stored
        .changes(&mut |_| Some(weald_tree::Ids::new()))
        .unwrap()
}

impl Journal for Hooks {
    fn append(&self, record: &Record<'_>) -> Result<Appended, AppendError> {
        if let Some(look) = &mut *self.look.lock().unwrap_or_else(|lock| lock.into_inner()) {
            look(record)?;
        }
        let taken = self.journal.append(record)?;
        if let Appended::Accepted(position) = taken
            && self.restless() > 0
        {
            let restless = Arc::clone(&self.restless);
            return Ok(Appended::Sent(Box::pin(poll_fn(move |cx| {
                if restless.load(Ordering::Relaxed) == 0 {
                    return Poll::Ready(Ok(position));
                }
                restless.fetch_sub(1, Ordering::Relaxed);
                cx.waker().wake_by_ref();
                Poll::Pending
            }))));
        }
        Ok(taken)
    }

    fn capabilities(&self) -> Capabilities {
        self.journal.capabilities()
    }

    fn reached(&self, level: Level) -> Position {
        if let Ok(mut asked) = self.asked.try_lock()
            && let Some(asked) = &mut *asked
        {
            asked();
        }
        self.journal.reached(level)
    }

    fn when_reached(&self, position: Position, level: Level) -> Later<'static, Durability> {
        self.journal.when_reached(position, level)
    }

    fn resolve(&self, id: CommitId) -> Later<'static, Resolved> {
        self.journal.resolve(id)
    }

    fn last(&self) -> Later<'_, Result<Option<(Position, CommitId)>, ReadError>> {
        self.journal.last()
    }

    fn read(&self, after: Position, limit: usize) -> Later<'_, Result<Vec<Entry>, ReadError>> {
        self.journal.read(after, limit)
    }

    fn follow(&self, after: Position) -> Box<dyn Follower> {
        self.journal.follow(after)
    }

    fn put_checkpoint(&self, checkpoint: Checkpoint) -> Later<'_, Result<(), CheckpointError>> {
        self.journal.put_checkpoint(checkpoint)
    }

    fn blob(&self, id: BlobId) -> Later<'_, Result<Option<Vec<u8>>, ReadError>> {
        self.journal.blob(id)
    }

    fn has_blob(&self, id: BlobId) -> Later<'_, Result<bool, ReadError>> {
        let asked = self.asked_for_blob.lock();
        let asked = asked.unwrap_or_else(|lock| lock.into_inner()).take();
        asked.into_iter().for_each(|mut asked| asked());
        self.journal.has_blob(id)
    }

    fn keep_blob(&self, id: BlobId) -> Later<'_, Result<Option<(u64, BlobPlace)>, ReadError>> {
        self.journal.keep_blob(id)
    }

    fn when_room(
        &self,
        bytes: usize,
        changes: &[Arc<Vec<u8>>],
        blobs: &[Blob],
    ) -> Option<Later<'static, Room>> {
        if bytes == 0 {
            return self.journal.when_room(bytes, changes, blobs);
        }
        let mut told = self.told.lock().unwrap_or_else(|lock| lock.into_inner());
        *told = changes.to_vec();
        let mut wanted = self.wanted.lock().unwrap_or_else(|lock| lock.into_inner());
        wanted.push(bytes);
        let narrow = Arc::clone(&self.narrow);
        let held = Arc::clone(&self.held);
        Some(Box::pin(poll_fn(move |_| {
            if narrow.load(Ordering::Relaxed) {
                Poll::Pending
            } else {
                held.fetch_add(1, Ordering::Relaxed);
                Poll::Ready(Room::held(HeldRoom(Arc::clone(&held))))
            }
        })))
    }

    fn when_failed(&self) -> Later<'static, ()> {
        self.journal.when_failed()
    }

    fn checkpoint(&self) -> Later<'_, Result<Option<StoredCheckpoint>, ReadError>> {
        self.journal.checkpoint()
    }

    fn trim(&self, upto: Position) -> Later<'_, Result<(), CheckpointError>> {
        self.journal.trim(upto)
    }
}

/// The version of this number in the same opening.
pub(crate) fn numbered(version: Version, number: u64) -> Version {
    Version { number, ..version }
}
