//! Records that were appended when there was no room for them, in the order in which they came.
//!
//! Their answers come when the medium has made room, or has none. What was appended behind a refused record was built on
//! it, so it is refused too.

use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use weald_forest::journal::{AppendError, Position};
use weald_forest::{CommitId, Version};

use crate::body::Body;
use crate::log::{Lack, Log};

/// A record without a place.
#[derive(Debug)]
struct Waiter {
    body: Body,
    id: CommitId,
    version: Version,
    answer: Arc<Mutex<AnswerState>>,
}

#[derive(Debug, Default)]
struct AnswerState {
    answer: Option<Result<Position, AppendError>>,
    waker: Option<Waker>,
}

/// The future of an answer.
#[derive(Debug)]
pub(crate) struct Answer(Arc<Mutex<AnswerState>>);

/// An answer that is to be given outside every lock, because that runs foreign code.
#[must_use]
pub(crate) struct Due(Arc<Mutex<AnswerState>>, Result<Position, AppendError>);

/// All records without a place.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    waiters: VecDeque<Waiter>,
    /// The version of a record that was refused. Until the forest has noticed, it appends records with higher numbers,
    /// which were built on that one.
    refused: Option<Version>,
    /// The authors of large records that have not appended them, and wait for so many bytes of room.
    ahead: VecDeque<(u64, Weak<Mutex<AnswerState>>)>,
}

fn lock(state: &Mutex<AnswerState>) -> MutexGuard<'_, AnswerState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Due {
    pub(crate) fn give(self) {
        let waker = {
            let mut state = lock(&self.0);
            state.answer = Some(self.1);
            state.waker.take()
        };
        if let Some(waker) = waker {
            // A foreign waker may panic, and others wait.
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
    }
}

impl Future for Answer {
    type Output = Result<Position, AppendError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // Before the lock, because a foreign waker's clone may do anything.
        let waker = cx.waker().clone();
        let mut state = lock(&self.0);
        if let Some(answer) = state.answer {
            return Poll::Ready(answer);
        }
        let old = state.waker.replace(waker);
        drop(state);
        drop(old);
        Poll::Pending
    }
}

impl Waiting {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    pub(crate) fn push(&mut self, body: Body, (id, version): (CommitId, Version)) -> Answer {
        let answer = Arc::default();
        self.waiters.push_back(Waiter {
            body,
            id,
            version,
            answer: Arc::clone(&answer),
        });
        Answer(answer)
    }

    /// Gives places to the oldest records for which there is room.
    pub(crate) fn admit(&mut self, log: &mut Log, most_unwritten: usize) -> Vec<Due> {
        let mut due = Vec::new();
        while log.unwritten < most_unwritten
            && let Some(waiter) = self.waiters.front()
            && let Some(position) = log.put(&waiter.body, waiter.id)
        {
            due.push(Due(Arc::clone(&waiter.answer), Ok(position)));
            self.waiters.pop_front();
        }
        due
    }

    /// Joins those who wait for room ahead of their records.
    pub(crate) fn ask_for(&mut self, bytes: u64) -> Answer {
        let answer = Arc::default();
        self.ahead.push_back((bytes, Arc::downgrade(&answer)));
        Answer(answer)
    }

    /// Whether an author waits for more room than there is.
    pub(crate) fn lacks_ahead(&self, log: &Log) -> bool {
        let is_short = |(bytes, _): &(u64, _)| *bytes > log.room();
        self.ahead.front().is_some_and(is_short)
    }

    /// Lets in the authors for whom there is room, and those who are gone; or all of them, because there will be none.
    pub(crate) fn let_in(&mut self, log: Option<&Log>) -> Vec<Due> {
        let mut due = Vec::new();
        while let Some((bytes, answer)) = self.ahead.front() {
            let is_there = log.is_none_or(|log| *bytes <= log.room());
            let answer = answer.upgrade();
            if !is_there && answer.is_some() {
                break;
            }
            due.extend(answer.map(|answer| Due(answer, Ok(Position::default()))));
            self.ahead.pop_front();
        }
        due
    }

    /// What the oldest waits for.
    pub(crate) fn lack(&self, log: &Log) -> Option<Lack> {
        log.lack(&self.waiters.front()?.body)
    }

    /// Refuses the record at a place in the row and all behind it.
    fn refuse_from(&mut self, at: usize, error: AppendError) -> Vec<Due> {
        let left = self.waiters.split_off(at);
        if let Some(first) = left.front() {
            self.refused = Some(first.version);
        }
        let errors = std::iter::once(error).chain(std::iter::repeat(error.for_those_behind()));
        let due = left.into_iter().zip(errors);
        due.map(|(waiter, error)| Due(waiter.answer, Err(error)))
            .collect()
    }

    /// Refuses all that were appended, and lets in those who wait to append.
    pub(crate) fn refuse_all(&mut self, error: AppendError) -> Vec<Due> {
        let mut due = self.refuse_from(0, error);
        due.append(&mut self.let_in(None));
        due
    }

    /// Refuses the record with this id, if it waits, so that it is never stored.
    pub(crate) fn refuse(&mut self, id: CommitId) -> Vec<Due> {
        match self.waiters.iter().position(|waiter| waiter.id == id) {
            Some(at) => self.refuse_from(at, AppendError::Lost),
            None => Vec::new(),
        }
    }

    /// Whether a record was built on one that was refused.
    pub(crate) fn is_behind(&mut self, version: Version) -> bool {
        let is_behind = self.refused.is_some_and(|refused| {
            version.incarnation == refused.incarnation && version.number > refused.number
        });
        if !is_behind {
            self.refused = None;
        }
        is_behind
    }
}
