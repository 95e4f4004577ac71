//! Records that were appended when there was no room for them, in the order in which they came.
//!
//! Their answers come when the medium has made room, or has none. Records that were appended behind a refused one were
//! built on it, so they are refused, too.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use weald_forest::journal::{AppendError, Position, catch_foreign};
use weald_forest::{CommitId, Version};

use crate::ahead::Asked;
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

/// An answer that is to be given outside every lock, because that runs foreign code; and what is then needed no more.
#[must_use]
pub(crate) struct Due {
    /// To whom. Nobody, if the author is gone.
    to: Option<Arc<Mutex<AnswerState>>>,
    answer: Result<Position, AppendError>,
    /// These may be the last to have 100 MB, and to free them takes long.
    _unneeded: (Option<Body>, Option<Want>),
}

/// All records without a place.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    waiters: VecDeque<Waiter>,
    /// The version of a record that was refused. Until the forest has noticed, it appends records with higher numbers,
    /// which were built on that one.
    refused: Option<Version>,
    /// The authors of large records that have not appended them.
    ahead: VecDeque<(Want, Weak<Mutex<AnswerState>>)>,
    /// How many of them have asked to have it written ahead.
    asked: u64,
}

/// What an author waits for before its large record.
#[derive(Debug)]
enum Want {
    /// This many bytes of room.
    Room(u64),
    Ahead(Asked),
}

impl Want {
    fn has(&self, log: &Log) -> bool {
        match self {
            Self::Room(bytes) => *bytes <= log.room(),
            Self::Ahead(asked) => log.has_segments(asked),
        }
    }
}

fn lock(state: &Mutex<AnswerState>) -> MutexGuard<'_, AnswerState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Due {
    fn new(waiter: Waiter, answer: Result<Position, AppendError>) -> Self {
        Self {
            to: Some(waiter.answer),
            answer,
            _unneeded: (Some(waiter.body), None),
        }
    }

    pub(crate) fn give(self) {
        let waker = self.to.and_then(|to| {
            let mut state = lock(&to);
            state.answer = Some(self.answer);
            state.waker.take()
        });
        if let Some(waker) = waker {
            catch_foreign(|| waker.wake());
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
            log.newest = waiter.version.number;
            let waiter = self.waiters.pop_front();
            due.extend(waiter.map(|waiter| Due::new(waiter, Ok(position))));
        }
        due
    }

    /// Adds the author to those that wait for room before they append.
    pub(crate) fn ask_for(&mut self, bytes: u64) -> Answer {
        self.ask(Want::Room(bytes))
    }

    /// Joins them, to have the changes of the record written ahead, if they are long enough for that. With the number
    /// of what is written then.
    pub(crate) fn ask_ahead(
        &mut self,
        changes: &[Arc<Vec<u8>>],
        log: &Log,
    ) -> Option<(Answer, u64)> {
        let asked = log.ask_ahead(self.asked + 1, changes)?;
        self.asked += 1;
        Some((self.ask(Want::Ahead(asked)), self.asked))
    }

    fn ask(&mut self, want: Want) -> Answer {
        let answer = Arc::default();
        self.ahead.push_back((want, Arc::downgrade(&answer)));
        Answer(answer)
    }

    /// Whether an author waits ahead of a record.
    pub(crate) fn waits_ahead(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// Whether an author waits for more room than there is.
    pub(crate) fn lacks_ahead(&self, log: &Log) -> bool {
        let front = self.ahead.front();
        log.ahead.is_none() && front.is_some_and(|(want, _)| !want.has(log))
    }

    /// Whether there is room for what is to be written ahead.
    pub(crate) fn may_begin_ahead(&self, log: &Log) -> bool {
        let front = self.ahead.front();
        front.is_some_and(|(want, _)| matches!(want, Want::Ahead(_)) && want.has(log))
    }

    /// What is to be written ahead, if its author still waits. It waits until that is done, or all are let in.
    pub(crate) fn begin_ahead(&self, log: &Log) -> Option<Asked> {
        if !self.may_begin_ahead(log) {
            return None;
        }
        match self.ahead.front() {
            Some((Want::Ahead(asked), answer)) if answer.strong_count() > 0 => Some(asked.clone()),
            // `let_in` removes it next.
            _ => None,
        }
    }

    /// Lets in the author for whom that was to be written.
    pub(crate) fn end_ahead(&mut self, number: u64) -> Option<Due> {
        let front = self.ahead.front();
        let is_it = matches!(front, Some((Want::Ahead(asked), _)) if asked.number == number);
        is_it.then(|| self.let_in_first())?
    }

    fn let_in_first(&mut self) -> Option<Due> {
        let (want, answer) = self.ahead.pop_front()?;
        Some(Due {
            to: answer.upgrade(),
            answer: Ok(Position::default()),
            _unneeded: (None, Some(want)),
        })
    }

    /// Lets in the authors for whom there is room, and those who are gone; or all of them, because there will be none.
    pub(crate) fn let_in(&mut self, log: Option<&Log>) -> Vec<Due> {
        let mut due = Vec::new();
        while let Some((want, answer)) = self.ahead.front() {
            let is_there = log.is_none_or(|log| matches!(want, Want::Room(_)) && want.has(log));
            if !is_there && answer.strong_count() > 0 {
                break;
            }
            due.extend(self.let_in_first());
        }
        due
    }

    /// What the oldest record waits for.
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
        due.map(|(waiter, error)| Due::new(waiter, Err(error)))
            .collect()
    }

    /// Refuses all records that were appended, and lets in the authors that wait to append.
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
