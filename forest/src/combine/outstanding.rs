//! Commits that are on their way into the journal, in the order of their numbers.
//!
//! - They are accepted in this order. One is applied when the journal has accepted it and all before it.
//! - If one is refused, so are all behind it, because they were prepared against versions that never came to be; except
//!   erasures, which are appended again.
//! - If the answer to one is lost, the journal is asked what became of the commit with this id, and nothing is appended
//!   before that is answered.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::new_versions::Made;
use super::pending::Pending;
use super::request::{Answer, Garbage};
use crate::journal::{AppendError, Digest, Durability, Journal, Later, Position, Resolved};
use crate::version::{CommitId, Committed};
use crate::wake::catch_foreign;

/// How far a record has got.
pub(crate) enum Progress {
    /// It has this position, if there is a journal.
    Accepted(Option<Position>),
    Sent(Later<'static, Result<Position, AppendError>>),
    /// The answer was lost, and the journal is asked.
    Resolving(Later<'static, Resolved>),
    /// It has this position, and is applied when it is durable. See `at_risk.rs`.
    Settling(Position, Later<'static, Durability>),
}

/// One commit on its way.
pub(crate) struct Outstanding {
    pub(crate) progress: Progress,
    pub(crate) made: Made,
    pub(crate) commit: Committed,
    /// The digest of what was asked for, if the author chose the id.
    pub(crate) digest: Option<Digest>,
    pub(crate) garbage: Garbage,
    /// The requests that wait for it.
    pub(crate) waiters: Vec<(Arc<Pending>, Outcome)>,
}

/// What a waiter gets once the commit is visible.
pub(crate) enum Outcome {
    /// The commit's own.
    Own,
    /// This receipt: there was nothing to do. The digest of what was asked for, if the author chose the id.
    Nothing(Committed, Option<Digest>),
    /// This answer: it depends on commits that are on their way, and nobody may learn of these before they are visible.
    Found(Answer),
}

/// What the journal says of the oldest commit.
pub(crate) enum Verdict {
    Accepted(Option<Position>),
    /// It is durable, at this position.
    Settled(Position),
    Refused(AppendError),
    /// It cannot tell.
    Unknown,
}

#[derive(Default)]
pub(crate) struct Queue {
    pub(crate) commits: VecDeque<Outstanding>,
}

impl Queue {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.commits.is_empty()
    }

    /// The place of the commit with this id, if its author chose it, and its digest.
    pub(crate) fn find(&self, id: CommitId) -> Option<(usize, Digest)> {
        let mut all = self.commits.iter().enumerate();
        all.find_map(|(at, known)| Some((at, known.digest.filter(|_| known.commit.id == id)?)))
    }

    /// The place of the newest commit.
    pub(crate) fn newest(&self) -> Option<usize> {
        self.commits.len().checked_sub(1)
    }

    /// The place of the commit with this number.
    pub(crate) fn at(&self, number: u64) -> Option<usize> {
        let is_it = |known: &Outstanding| known.commit.version.number == number;
        self.commits.iter().position(is_it)
    }

    /// Whether nothing may be appended now.
    pub(crate) fn must_hold(&self, pipelined: usize) -> bool {
        let is_resolving = |known: &Outstanding| matches!(known.progress, Progress::Resolving(_));
        self.commits.len() >= pipelined || self.commits.iter().any(is_resolving)
    }

    /// What the journal says of the oldest commit; otherwise `waker` is woken when there is an answer.
    pub(crate) fn poll(&mut self, journal: &dyn Journal, waker: &Waker) -> Option<Verdict> {
        let oldest = self.commits.front_mut()?;
        let mut cx = Context::from_waker(waker);
        loop {
            match &mut oldest.progress {
                Progress::Accepted(position) => return Some(Verdict::Accepted(*position)),
                Progress::Sent(answer) => match poll(answer, &mut cx, Err(AppendError::Unknown)) {
                    Poll::Pending => return None,
                    Poll::Ready(Ok(position)) => return Some(Verdict::Accepted(Some(position))),
                    Poll::Ready(Err(AppendError::Unknown)) => {
                        oldest.progress = resolve(journal, oldest.commit.id);
                    }
                    Poll::Ready(Err(error)) => return Some(Verdict::Refused(error)),
                },
                Progress::Settling(position, when) => {
                    return match poll(when, &mut cx, Durability::Unknown) {
                        Poll::Pending => None,
                        Poll::Ready(Durability::Reached) => Some(Verdict::Settled(*position)),
                        Poll::Ready(Durability::Unknown) => Some(Verdict::Unknown),
                    };
                }
                Progress::Resolving(answer) => {
                    return match poll(answer, &mut cx, Resolved::Unknown) {
                        Poll::Pending => None,
                        Poll::Ready(Resolved::Stored { position, version })
                            if version == oldest.commit.version =>
                        {
                            Some(Verdict::Accepted(Some(position)))
                        }
                        // An older commit has the id, so the id does not tell what became of this one.
                        Poll::Ready(Resolved::Stored { .. }) => Some(Verdict::Unknown),
                        Poll::Ready(Resolved::NotStored) => {
                            Some(Verdict::Refused(AppendError::Lost))
                        }
                        Poll::Ready(Resolved::Unknown) => Some(Verdict::Unknown),
                    };
                }
            }
        }
    }
}

/// Asks what became of a commit.
pub(crate) fn resolve(journal: &dyn Journal, id: CommitId) -> Progress {
    let answer = catch_foreign(|| journal.resolve(id));
    let answer = answer.unwrap_or_else(|| Box::pin(std::future::ready(Resolved::Unknown)));
    Progress::Resolving(answer)
}

/// Polls what a journal returned. One that panics does not know.
fn poll<T>(answer: &mut Later<'static, T>, cx: &mut Context<'_>, unknown: T) -> Poll<T> {
    let polled = catch_foreign(|| answer.as_mut().poll(cx));
    polled.unwrap_or(Poll::Ready(unknown))
}
