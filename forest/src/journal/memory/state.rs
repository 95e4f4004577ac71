//! What a journal in memory holds: records, those on their way, erasable bytes, a checkpoint.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use super::super::contract::{Entry, ReadError};
use crate::content::erasable::{Blob, BlobId, Erasure};
use crate::error::AppendError;
use crate::level::Position;
use crate::version::{CommitId, Version};
use crate::wake::wake;

#[derive(Debug, Default)]
pub(super) struct MemoryState {
    pub(super) entries: Vec<Kept>,
    pub(super) last: Option<(Position, CommitId)>,
    pub(super) sent: VecDeque<Arc<Sent>>,
    /// The version of a record that was refused after it was sent. Until the forest has noticed, it appends records
    /// with higher numbers, which were built on that one.
    pub(super) refused: Option<Version>,
    pub(super) checkpoint: Option<KeptState>,
    /// The erasable bytes, with the positions of the records that brought them.
    pub(super) blobs: BTreeMap<BlobId, (Position, Blob)>,
    /// Those that are kept although the checkpoint may not refer to them.
    pub(super) kept: BTreeSet<BlobId>,
    pub(super) trimmed: Position,
    pub(super) room: Option<usize>,
    /// Why every record is refused from now on.
    pub(super) refuses: Option<AppendError>,
    /// Whether `resolve` cannot be answered now.
    pub(super) is_unreachable: bool,
    pub(super) followers: Vec<Waker>,
    /// How many records may wait for their answer before authors wait.
    pub(super) crowd: Option<usize>,
    /// Authors that wait.
    pub(super) crowded: Vec<Waker>,
}

#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) entry: Entry,
    pub(super) id: CommitId,
    pub(super) version: Version,
}

/// A checkpoint that is kept.
#[derive(Clone, Debug)]
pub(super) struct KeptState {
    pub(super) at: Position,
    pub(super) blobs: Vec<BlobId>,
    pub(super) pieces: Vec<Vec<u8>>,
}

/// A record with what comes with it.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    pub(super) record: Vec<u8>,
    pub(super) id: CommitId,
    pub(super) version: Version,
    pub(super) blobs: Vec<Blob>,
    pub(super) erases: Option<Erasure>,
}

/// A record on its way, and its answer.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) taken: Taken,
    pub(super) answer: Mutex<SentAnswer>,
}

#[derive(Debug, Default)]
pub(super) struct SentAnswer {
    pub(super) answer: Option<Result<Position, AppendError>>,
    pub(super) waker: Option<Waker>,
}

impl MemoryState {
    /// What was kept, without those that wait.
    pub(super) fn copy(&self) -> Self {
        Self {
            entries: self.entries.clone(),
            last: self.last,
            checkpoint: self.checkpoint.clone(),
            blobs: self.blobs.clone(),
            trimmed: self.trimmed,
            ..Self::default()
        }
    }

    pub(super) fn is_crowded(&self) -> bool {
        self.crowd.is_some_and(|crowd| self.sent.len() >= crowd)
    }

    /// The authors that need not wait any longer.
    pub(super) fn take_crowded(&mut self) -> Vec<Waker> {
        match self.is_crowded() {
            true => Vec::new(),
            false => std::mem::take(&mut self.crowded),
        }
    }

    pub(super) fn keep(&mut self, taken: Taken) -> Position {
        let Taken {
            record,
            id,
            version,
            blobs,
            erases,
        } = taken;
        // Positions are not dense, so that nobody relies on it.
        let last = self.last.map_or(Position::default(), |(last, _)| last);
        let position = Position(last.0 + 1 + record.len() as u128);
        if let Some(erasure) = erases {
            self.blobs.retain(|id, (_, blob)| {
                let (tree, node, name) = &erasure.place;
                let is_there = (blob.tree, blob.node, &blob.name) == (*tree, *node, name);
                !is_there && !erasure.ids.contains(id)
            });
        }
        let blobs = blobs.into_iter().map(|blob| (blob.id, (position, blob)));
        self.blobs.extend(blobs);
        let entry = Entry { position, record };
        self.entries.push(Kept { entry, id, version });
        self.last = Some((position, id));
        position
    }

    /// Takes back what was sent, from a place on.
    pub(super) fn refuse_from(&mut self, at: usize) -> VecDeque<Arc<Sent>> {
        let left = self.sent.split_off(at);
        if let Some(first) = left.front() {
            self.refused = Some(first.taken.version);
        }
        left
    }

    /// Whether a record was built on one that was refused.
    pub(super) fn is_behind(&mut self, version: Version) -> bool {
        let is_behind = self.refused.is_some_and(|refused| {
            version.incarnation == refused.incarnation && version.number > refused.number
        });
        if !is_behind {
            self.refused = None;
        }
        is_behind
    }

    pub(super) fn after(&self, after: Position, limit: usize) -> Result<Vec<Entry>, ReadError> {
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
    pub(super) fn answer(&self, answer: Result<Position, AppendError>) {
        let waker = {
            let mut state = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
            state.answer = Some(answer);
            state.waker.take()
        };
        wake(waker);
    }

    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<Position, AppendError>> {
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
