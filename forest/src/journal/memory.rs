//! A journal in memory. It outlives a forest, not the program.
//!
//! Made with [`MemoryJournal::by_hand`], it plays a medium: records are accepted, refused and synced when the caller
//! says so, and answers are lost. That is how forests and other code are tested against slow and failing journals.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::contract::{
    Appended, Capabilities, Checkpoint, CheckpointError, Durability, Entry, Follower, Journal,
    Later, ReadError, Resolved,
};
use super::mark::Marks;
use super::record::Record;
use crate::error::AppendError;
use crate::level::{Level, Position};
use crate::version::{CommitId, Version};
use crate::wake::wake;

/// How many records a follower may be behind.
const BEHIND: usize = 1024;

/// A journal in memory. A clone is the same journal.
///
/// ```
/// use pollster::block_on;
/// use weald_forest::Forest;
/// use weald_forest::journal::{Journal, MemoryJournal, Position, Stored};
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
    is_by_hand: bool,
}

#[derive(Debug, Default)]
struct MemoryState {
    entries: Vec<Kept>,
    last: Option<(Position, CommitId)>,
    sent: VecDeque<Arc<Sent>>,
    /// The version of a record that was refused after it was sent. Until the forest has noticed, it appends records
    /// with higher numbers, which were built on that one.
    refused: Option<Version>,
    checkpoint: Option<Checkpoint>,
    trimmed: Position,
    room: Option<usize>,
    /// Why every record is refused from now on.
    refuses: Option<AppendError>,
    /// Whether `resolve` cannot be answered now.
    is_unreachable: bool,
    followers: Vec<Waker>,
}

#[derive(Clone, Debug)]
struct Kept {
    entry: Entry,
    id: CommitId,
    version: Version,
}

/// A record on its way, and its answer.
#[derive(Debug)]
struct Sent {
    record: Vec<u8>,
    id: CommitId,
    version: Version,
    answer: Mutex<SentAnswer>,
}

#[derive(Debug, Default)]
struct SentAnswer {
    answer: Option<Result<Position, AppendError>>,
    waker: Option<Waker>,
}

impl MemoryJournal {
    /// One that accepts each record at once.
    pub fn new() -> Self {
        Self::with(Level::Accepted, false)
    }

    /// One that plays a medium of the strongest level: it answers when it is told to.
    pub fn by_hand() -> Self {
        Self::with(Level::Durable, true)
    }

    /// One that accepts each record at once, and whose levels are reached by [`sync`](Self::sync).
    pub fn synced_by_hand() -> Self {
        Self::with(Level::Durable, false)
    }

    fn with(level: Level, is_by_hand: bool) -> Self {
        Self {
            inner: Arc::default(),
            marks: Marks::default(),
            capabilities: Capabilities {
                level,
                max_record: usize::MAX,
                pipelined: 1024,
            },
            is_by_hand,
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
        let position = inner.keep(sent.record.clone(), sent.id, sent.version);
        let followers = std::mem::take(&mut inner.followers);
        drop(inner);
        followers.into_iter().for_each(|waker| wake(Some(waker)));
        Some((sent, position))
    }

    /// Refuses the oldest record that waits, and so all that are behind it.
    pub fn refuse(&self, error: AppendError) {
        let sent = self.inner().refuse_from(0);
        for (at, sent) in sent.into_iter().enumerate() {
            let behind = if at == 0 { error } else { AppendError::Behind };
            sent.answer(Err(behind));
        }
    }

    /// Loses the answer to the oldest record that waits, which was stored or not. If not, those behind it are not either.
    pub fn lose_answer(&self, is_stored: bool) {
        if is_stored {
            if let Some((sent, _)) = self.keep_next() {
                sent.answer(Err(AppendError::Unknown));
            }
        } else {
            self.refuse(AppendError::Unknown);
        }
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
        self.inner().refuses = Some(AppendError::Poisoned);
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

impl MemoryState {
    fn keep(&mut self, record: Vec<u8>, id: CommitId, version: Version) -> Position {
        // Positions are not dense, so that nobody relies on it.
        let last = self.last.map_or(Position::default(), |(last, _)| last);
        let position = Position(last.0 + 1 + record.len() as u128);
        let entry = Entry { position, record };
        self.entries.push(Kept { entry, id, version });
        self.last = Some((position, id));
        position
    }

    /// Takes back what was sent, from a place on.
    fn refuse_from(&mut self, at: usize) -> VecDeque<Arc<Sent>> {
        let left = self.sent.split_off(at);
        if let Some(first) = left.front() {
            self.refused = Some(first.version);
        }
        left
    }

    /// Whether a record was built on one that was refused.
    fn is_behind(&mut self, version: Version) -> bool {
        let is_behind = self.refused.is_some_and(|refused| {
            version.incarnation == refused.incarnation && version.number > refused.number
        });
        if !is_behind {
            self.refused = None;
        }
        is_behind
    }

    fn after(&self, after: Position, limit: usize) -> Result<Vec<Entry>, ReadError> {
        if after < self.trimmed {
            let checkpoint = self
                .checkpoint
                .as_ref()
                .map_or(self.trimmed, |found| found.at);
            return Err(ReadError::TooOld { checkpoint });
        }
        let entries = self.entries.iter().map(|kept| &kept.entry);
        let entries = entries.filter(|entry| entry.position > after);
        Ok(entries.take(limit).cloned().collect())
    }
}

impl Sent {
    fn answer(&self, answer: Result<Position, AppendError>) {
        let waker = {
            let mut state = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
            state.answer = Some(answer);
            state.waker.take()
        };
        wake(waker);
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<Position, AppendError>> {
        let waker = cx.waker().clone();
        let mut state = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        match state.answer {
            Some(answer) => Poll::Ready(answer),
            None => {
                let old = state.waker.replace(waker);
                drop(state);
                drop(old);
                Poll::Pending
            }
        }
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
        if !self.is_by_hand {
            let position = inner.keep(bytes, record.id, record.version);
            let followers = std::mem::take(&mut inner.followers);
            drop(inner);
            followers.into_iter().for_each(|waker| wake(Some(waker)));
            return Ok(Appended::Accepted(position));
        }
        let sent = Arc::new(Sent {
            record: bytes,
            id: record.id,
            version: record.version,
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
        // It is final: what is still on its way arrives no more, nor does what was built on it.
        let left = match inner.sent.iter().position(|sent| sent.id == id) {
            Some(at) => inner.refuse_from(at),
            None => VecDeque::new(),
        };
        drop(inner);
        for sent in left {
            let is_asked = sent.id == id;
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
        Box::new(Following {
            journal: self.clone(),
            last: after,
            is_old: true,
        })
    }

    fn put_checkpoint(&self, checkpoint: Checkpoint) -> Later<'_, Result<(), CheckpointError>> {
        let mut inner = self.inner();
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
        inner.checkpoint = Some(checkpoint);
        now(Ok(()))
    }

    fn checkpoint(&self) -> Later<'_, Result<Option<Checkpoint>, ReadError>> {
        now(Ok(self.inner().checkpoint.clone()))
    }

    fn trim(&self, upto: Position) -> Later<'_, Result<(), CheckpointError>> {
        let mut inner = self.inner();
        let checkpoint = inner.checkpoint.as_ref();
        if checkpoint.is_none_or(|checkpoint| checkpoint.at < upto) {
            return now(Err(CheckpointError::NoCheckpoint));
        }
        inner.entries.retain(|kept| kept.entry.position > upto);
        inner.trimmed = inner.trimmed.max(upto);
        now(Ok(()))
    }
}

/// A follower reads the journal itself, so its buffer is what it has not read yet.
struct Following {
    journal: MemoryJournal,
    last: Position,
    /// Whether it still reads what was there before it began, which may be any amount.
    is_old: bool,
}

impl Follower for Following {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Vec<Entry>, ReadError>> {
        let waker = cx.waker().clone();
        let mut inner = self.journal.inner();
        let limit = if self.is_old { BEHIND } else { BEHIND + 1 };
        let entries = inner.after(self.last, limit)?;
        if entries.len() > BEHIND {
            let resume_at = self.last;
            return Poll::Ready(Err(ReadError::Lagged { resume_at }));
        }
        match entries.last() {
            Some(last) => {
                self.is_old &= entries.len() == BEHIND;
                self.last = last.position;
                Poll::Ready(Ok(entries))
            }
            None => {
                self.is_old = false;
                inner.followers.retain(|known| !known.will_wake(&waker));
                inner.followers.push(waker);
                Poll::Pending
            }
        }
    }
}
