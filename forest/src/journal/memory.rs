//! A journal in memory. It outlives a forest, not the program.
//!
//! Made with [`MemoryJournal::by_hand`], it plays a medium: records are accepted, refused and synced when the caller
//! says so, and answers are lost. So forests and other code can be tested against slow and failing journals.

mod following;
mod state;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use super::contract::{
    Appended, Capabilities, Checkpoint, CheckpointError, Durability, Entry, Follower, Journal,
    Later, ReadError, Resolved, Room, StoredCheckpoint,
};
use super::mark::Marks;
use super::record::Record;
use crate::content::erasable::{Blob, BlobId, BlobPlace};
use crate::error::AppendError;
use crate::level::{Level, Position};
use crate::version::CommitId;
use crate::wake::wake;

use following::Following;
use state::{KeptState, MemoryState, Sent, Taken};

/// When an append is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    AtOnce,
    ByHand,
}

/// A journal in memory. A clone is the same journal.
///
/// ```
/// use weald::block_on;
/// use weald::forest::Forest;
/// use weald::forest::journal::{Journal, MemoryJournal, Position, Stored};
///
/// let journal = MemoryJournal::new();
/// let forest = Forest::builder().journal(journal.clone()).build();
/// block_on(forest.create("notes"))?;
///
/// let entries = block_on(journal.read(Position::default(), 10))?;
/// assert_eq!(Stored::read(&entries[0].record)?.version.number, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct MemoryJournal {
    inner: Arc<Mutex<MemoryState>>,
    marks: Marks,
    capabilities: Capabilities,
    answers: Answers,
}

impl MemoryJournal {
    /// One that accepts each record at once.
    pub fn new() -> Self {
        Self::with(Level::Accepted, Answers::AtOnce)
    }

    /// One that plays a medium of the strongest level: it answers when it is told to.
    pub fn by_hand() -> Self {
        Self::with(Level::Durable, Answers::ByHand)
    }

    /// One that accepts each record at once, and whose levels are reached by [`sync`](Self::sync).
    pub fn synced_by_hand() -> Self {
        Self::with(Level::Durable, Answers::AtOnce)
    }

    fn with(level: Level, answers: Answers) -> Self {
        Self {
            inner: Arc::default(),
            marks: Marks::default(),
            capabilities: Capabilities {
                level,
                max_record: usize::MAX,
                pipelined: 1024,
            },
            answers,
        }
    }

    /// With a limit of bytes for each record.
    #[must_use]
    pub fn max_record(mut self, bytes: usize) -> Self {
        self.capabilities.max_record = bytes;
        self
    }

    /// With a limit of records that may be on their way.
    #[must_use]
    pub fn pipelined(mut self, records: usize) -> Self {
        self.capabilities.pipelined = records;
        self
    }

    /// Another journal with the present records, erasable bytes and checkpoint of this one. It is what another program
    /// would find if this one ended now. So a forest can be read back from it, while this one continues.
    #[must_use]
    pub fn copy(&self) -> Self {
        let inner = self.inner().copy();
        let copy = Self {
            inner: Arc::default(),
            marks: Marks::default(),
            ..*self
        };
        let last = inner.last.map_or(Position::default(), |(last, _)| last);
        copy.marks.raise(Level::Durable, last);
        *copy.inner() = inner;
        copy
    }

    fn inner(&self) -> MutexGuard<'_, MemoryState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on there is room for this many more records; `None` for any number.
    pub fn set_room(&self, records: Option<usize>) {
        self.inner().room = records;
    }

    /// How many records wait for their answer.
    pub fn waiting(&self) -> usize {
        self.inner().sent.len()
    }

    /// Accepts the oldest records that wait, at most this many.
    pub fn accept(&self, records: usize) {
        for _ in 0..records {
            let Some((sent, position)) = self.keep_next() else {
                return;
            };
            sent.answer(Ok(position));
        }
    }

    fn keep_next(&self) -> Option<(Arc<Sent>, Position)> {
        let mut inner = self.inner();
        let sent = inner.sent.pop_front()?;
        let position = inner.keep(sent.taken.clone());
        let mut due = std::mem::take(&mut inner.followers);
        due.extend(inner.take_crowded());
        drop(inner);
        due.into_iter().for_each(|waker| wake(Some(waker)));
        Some((sent, position))
    }

    /// Refuses the oldest record that waits, and so all that are behind it
    /// ([`for_those_behind`](AppendError::for_those_behind)).
    pub fn refuse(&self, error: AppendError) {
        let mut inner = self.inner();
        let sent = inner.refuse_from(0);
        let due = inner.take_crowded();
        drop(inner);
        due.into_iter().for_each(|waker| wake(Some(waker)));
        let errors = std::iter::once(error).chain(std::iter::repeat(error.for_those_behind()));
        sent.into_iter()
            .zip(errors)
            .for_each(|(sent, error)| sent.answer(Err(error)));
    }

    /// Loses the answer to the oldest record that waits, which was stored or not. If not, those behind it are not
    /// either.
    pub fn lose_answer(&self, is_stored: bool) {
        if is_stored {
            if let Some((sent, _)) = self.keep_next() {
                sent.answer(Err(AppendError::Unknown));
            }
        } else {
            self.refuse(AppendError::Unknown);
        }
    }

    /// From now on authors wait as long as this many records wait for their answer; `None` for any number.
    pub fn set_crowd(&self, records: Option<usize>) {
        let mut inner = self.inner();
        inner.crowd = records;
        let due = inner.take_crowded();
        drop(inner);
        due.into_iter().for_each(|waker| wake(Some(waker)));
    }

    fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        let waker = cx.waker().clone();
        let mut inner = self.inner();
        if !inner.is_crowded() {
            return Poll::Ready(());
        }
        inner.crowded.push(waker);
        Poll::Pending
    }

    /// Whether [`resolve`](Journal::resolve) can tell what became of a commit.
    pub fn set_reachable(&self, is_reachable: bool) {
        self.inner().is_unreachable = !is_reachable;
    }

    /// All that was accepted reaches a level.
    pub fn sync(&self, level: Level) {
        let last = self.inner().last;
        self.marks
            .raise(level, last.map_or(Position::default(), |(last, _)| last));
    }

    /// Fails: nothing is synced or taken any more.
    pub fn fail(&self) {
        self.inner().refuses.get_or_insert(AppendError::Poisoned);
        self.marks.fail();
        self.refuse(AppendError::Poisoned);
    }

    /// Another writer takes over: nothing is taken from this one any more.
    pub fn fence(&self) {
        self.inner().refuses = Some(AppendError::Fenced);
    }
}

impl Default for MemoryJournal {
    fn default() -> Self {
        Self::new()
    }
}

fn now<'a, T: Send + 'a>(answer: T) -> Later<'a, T> {
    Box::pin(std::future::ready(answer))
}

impl Journal for MemoryJournal {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn append(&self, record: &Record<'_>) -> Result<Appended, AppendError> {
        let max = self.capabilities.max_record;
        if record.len() > max {
            return Err(AppendError::TooLarge { max });
        }
        let mut bytes = Vec::with_capacity(record.len());
        record.write(&mut bytes);
        let taken = Taken {
            record: bytes,
            id: record.id,
            version: record.version,
            blobs: record.blobs.to_vec(),
            erases: record.erases.cloned(),
        };
        let mut inner = self.inner();
        if let Some(error) = inner.refuses {
            return Err(error);
        }
        if inner.is_behind(record.version) {
            return Err(AppendError::Behind);
        }
        match &mut inner.room {
            Some(0) => return Err(AppendError::Full),
            Some(room) => *room -= 1,
            None => {}
        }
        if self.answers == Answers::AtOnce {
            let position = inner.keep(taken);
            let followers = std::mem::take(&mut inner.followers);
            drop(inner);
            followers.into_iter().for_each(|waker| wake(Some(waker)));
            return Ok(Appended::Accepted(position));
        }
        let sent = Arc::new(Sent {
            taken,
            answer: Mutex::default(),
        });
        inner.sent.push_back(Arc::clone(&sent));
        Ok(Appended::Sent(Box::pin(poll_fn(move |cx| sent.poll(cx)))))
    }

    fn reached(&self, level: Level) -> Position {
        self.marks.reached(level)
    }

    fn when_reached(&self, position: Position, level: Level) -> Later<'static, Durability> {
        Box::pin(self.marks.when(position, level))
    }

    fn when_failed(&self) -> Later<'static, ()> {
        Box::pin(self.marks.when_failed())
    }

    fn when_room(&self, _: usize, _: &[Arc<Vec<u8>>], _: &[Blob]) -> Option<Later<'static, Room>> {
        let inner = self.inner();
        inner.is_crowded().then(|| {
            let journal = self.clone();
            let has_room = poll_fn(move |cx| journal.poll_room(cx).map(|()| Room::default()));
            Box::pin(has_room) as Later<'static, Room>
        })
    }

    fn refusal(&self) -> AppendError {
        self.inner().refuses.unwrap_or(AppendError::Poisoned)
    }

    fn resolve(&self, id: CommitId) -> Later<'static, Resolved> {
        let mut inner = self.inner();
        if inner.is_unreachable {
            return now(Resolved::Unknown);
        }
        if let Some(kept) = inner.entries.iter().find(|kept| kept.id == id) {
            return now(Resolved::Stored {
                position: kept.entry.position,
                version: kept.version,
            });
        }
        // The answer is final: a record that is still on its way will not arrive, nor will those
        // that were built on it.
        let left = match inner.sent.iter().position(|sent| sent.taken.id == id) {
            Some(at) => inner.refuse_from(at),
            None => VecDeque::new(),
        };
        drop(inner);
        for sent in left {
            let is_asked = sent.taken.id == id;
            sent.answer(Err(if is_asked {
                AppendError::Lost
            } else {
                AppendError::Behind
            }));
        }
        now(Resolved::NotStored)
    }

    fn last(&self) -> Later<'_, Result<Option<(Position, CommitId)>, ReadError>> {
        now(Ok(self.inner().last))
    }

    fn read(&self, after: Position, limit: usize) -> Later<'_, Result<Vec<Entry>, ReadError>> {
        now(self.inner().after(after, limit))
    }

    fn follow(&self, after: Position) -> Box<dyn Follower> {
        Box::new(Following::new(Arc::clone(&self.inner), after))
    }

    fn put_checkpoint(&self, checkpoint: Checkpoint) -> Later<'_, Result<(), CheckpointError>> {
        let inner = self.inner();
        let is_known = inner
            .entries
            .iter()
            .any(|kept| kept.entry.position == checkpoint.at);
        let before = inner.checkpoint.as_ref().map(|before| before.at);
        if before.is_some_and(|before| checkpoint.at < before) {
            return now(Err(CheckpointError::Older));
        }
        if !is_known && before != Some(checkpoint.at) {
            return now(Err(CheckpointError::NoSuchPosition));
        }
        // The pieces are made without the lock, because they are made by foreign code.
        drop(inner);
        let Checkpoint { at, blobs, pieces } = checkpoint;
        let pieces = pieces.collect();
        let mut made = KeptState { at, blobs, pieces };
        let mut inner = self.inner();
        made.blobs.extend(&inner.kept);
        if inner.checkpoint.as_ref().is_some_and(|known| known.at > at) {
            return now(Err(CheckpointError::Older));
        }
        inner.checkpoint = Some(made);
        now(Ok(()))
    }

    fn blob(&self, id: BlobId) -> Later<'_, Result<Option<Vec<u8>>, ReadError>> {
        let inner = self.inner();
        let found = inner.blobs.get(&id).map(|(_, blob)| blob.bytes.to_vec());
        now(Ok(found))
    }

    fn has_blob(&self, id: BlobId) -> Later<'_, Result<bool, ReadError>> {
        now(Ok(self.inner().blobs.contains_key(&id)))
    }

    fn keep_blob(&self, id: BlobId) -> Later<'_, Result<Option<(u64, BlobPlace)>, ReadError>> {
        let mut inner = self.inner();
        let found = inner.blobs.get(&id).map(|(_, blob)| {
            let (node, name) = (blob.node, blob.name.clone());
            (blob.tree, BlobPlace { id, node, name })
        });
        inner.kept.extend(found.is_some().then_some(id));
        now(Ok(found))
    }

    fn checkpoint(&self) -> Later<'_, Result<Option<StoredCheckpoint>, ReadError>> {
        let inner = self.inner();
        let found = inner.checkpoint.as_ref().map(|kept| StoredCheckpoint {
            at: kept.at,
            pieces: Box::new(kept.pieces.clone().into_iter().map(Ok)),
        });
        now(Ok(found))
    }

    fn trim(&self, upto: Position) -> Later<'_, Result<(), CheckpointError>> {
        let mut inner = self.inner();
        let MemoryState {
            checkpoint,
            blobs,
            kept,
            ..
        } = &mut *inner;
        let Some(checkpoint) = checkpoint.as_ref().filter(|known| known.at >= upto) else {
            return now(Err(CheckpointError::NoCheckpoint));
        };
        let is_referred = |id: &BlobId| checkpoint.blobs.contains(id) || kept.contains(id);
        blobs.retain(|id, (position, _)| *position > upto || is_referred(id));
        inner.entries.retain(|kept| kept.entry.position > upto);
        inner.trimmed = inner.trimmed.max(upto);
        now(Ok(()))
    }
}
