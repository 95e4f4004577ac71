//! A submission: the future of a request to the combiner.
//!
//! If the combiner is free, the first poll takes it, serves the request itself and then all requests that
//! were queued meanwhile, and is ready. Otherwise the request waits on the publication list, with the waker.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use weald_tree::Bytes;

use super::combiner::Served;
use super::pending::Pending;
use super::request::{Action, Answer, CommitRequest, Garbage, HeldLeases, Overtaken, Request};
use super::shared::Shared;
use crate::error::CommitError;
use crate::journal::{Durability, Later, Level};
use crate::state::forest::ForestState;

/// Dropped before its first poll, it has submitted nothing; dropped later, it withdraws the request unless
/// the combiner has taken it up.
pub(crate) struct Submission {
    shared: Arc<Shared>,
    stage: Stage,
    /// The write leases of a large commit that was overtaken, until it is answered.
    leases: Option<HeldLeases>,
    /// What the commit has to reach before the answer.
    level: Level,
    /// Whether it has waited for the room that its bytes take.
    has_asked_for_room: bool,
}

enum Stage {
    New(Option<Request>),
    /// The journal has no room for the commit.
    Crowded(Later<'static, ()>, Option<Request>),
    Waiting(Arc<Pending>),
    /// The commit is visible, and has not reached its level.
    Reaching(Later<'static, Durability>, Option<Answer>),
    Over,
}

impl Submission {
    pub(crate) fn new(shared: Arc<Shared>, request: Request) -> Self {
        Self {
            shared,
            stage: Stage::New(Some(request)),
            leases: None,
            level: Level::Accepted,
            has_asked_for_room: false,
        }
    }

    /// Waits until the journal has room for a commit, before anything is done for it.
    fn enter(&mut self, request: Request, waker: &Waker) -> Option<Answer> {
        if matches!(request, Request::Commit(_))
            && let Some(room) = room_to_wait_for(&self.shared.forest, 0, waker)
        {
            self.stage = Stage::Crowded(room, Some(request));
            return None;
        }
        self.begin(request, waker)
    }

    fn begin(&mut self, mut request: Request, waker: &Waker) -> Option<Answer> {
        let Shared { forest, list } = &*self.shared;
        if let Err(error) = forest.reentrancy.must_be_outside() {
            return Some(Answer::Committed(Err(error), Garbage::NONE));
        }
        // If the combiner is taken, others come first, and the thread that serves this request carries it out
        // once, on the version where it belongs, unless it is large.
        if let Request::Commit(commit) = &mut request {
            self.level = commit.level.unwrap_or(forest.level);
            commit
                .action
                .carry_out(list.looks_free(), forest.journal.is_some());
            let bytes = commit.long_bytes();
            if bytes > 0
                && !std::mem::replace(&mut self.has_asked_for_room, true)
                && let Some(room) = room_to_wait_for(forest, bytes, waker)
            {
                self.stage = Stage::Crowded(room, Some(request));
                return None;
            }
        }
        let pending = match list.take() {
            Some(mut guard) => {
                let combiner = guard.combiner();
                let pending = match combiner.serve_own(forest, request) {
                    Served::Done(answer) => {
                        guard.serve_queue(forest);
                        return Some(answer);
                    }
                    Served::Waits(tree_number, request) => {
                        let pending = Pending::new(request, Some(waker.clone()));
                        combiner.queue_behind_lease(forest, tree_number, Arc::clone(&pending));
                        pending
                    }
                    Served::Held(request) => {
                        let pending = Pending::new(request, Some(waker.clone()));
                        combiner.hold(Arc::clone(&pending));
                        pending
                    }
                    Served::Later(at, outcome) => {
                        let pending = Pending::taken_up(waker.clone());
                        combiner.wait_for((at, outcome), Arc::clone(&pending));
                        pending
                    }
                };
                guard.serve_queue(forest);
                pending
            }
            None if forest.reentrancy.is_in_journal() => {
                return Some(Answer::Committed(
                    Err(CommitError::InJournal),
                    Garbage::NONE,
                ));
            }
            None => {
                let pending = Pending::new(request, Some(waker.clone()));
                if let Some(guard) = list.queue(Arc::clone(&pending)) {
                    guard.serve_queue(forest);
                }
                pending
            }
        };
        let answer = pending.poll(waker);
        if answer.is_none() {
            self.stage = Stage::Waiting(pending);
        }
        answer
    }
}

/// What to wait for, unless the journal has room now for a record with at least so many bytes.
fn room_to_wait_for(
    forest: &ForestState,
    bytes: usize,
    waker: &Waker,
) -> Option<Later<'static, ()>> {
    let journal = forest.journal.as_ref()?;
    if forest.reentrancy.is_in_journal() {
        return None;
    }
    let mut room = journal.inner.when_room(bytes)?;
    let polled = room.as_mut().poll(&mut Context::from_waker(waker));
    polled.is_pending().then_some(room)
}

impl Submission {
    /// Brings a large commit that was overtaken to the newest versions, and requests it again.
    fn begin_again(&mut self, overtaken: Overtaken, waker: &Waker) -> Option<Answer> {
        match overtaken.replay(self.shared.forest.journal.is_some()) {
            Ok((commit, leases)) => {
                self.leases = Some(leases);
                self.begin(Request::Commit(commit), waker)
            }
            Err(error) => {
                self.shared.forest.stats.refused(&error);
                self.begin(Request::Refuse(error), waker)
            }
        }
    }
}

impl Submission {
    /// The answer, once the commit has reached its level.
    fn poll_level(&mut self, answer: Answer, cx: &mut Context<'_>) -> Poll<Answer> {
        let Some(journal) = &self.shared.forest.journal else {
            return Poll::Ready(answer);
        };
        let number = match &answer {
            Answer::Committed(Ok(commit), _) => commit.version.number,
            Answer::Created(Ok(state), _) => state.number,
            _ => return Poll::Ready(answer),
        };
        match journal.when_reached(number, self.level) {
            None => Poll::Ready(answer),
            Some(reached) => {
                self.stage = Stage::Reaching(reached, Some(answer));
                self.poll_reaching(cx)
            }
        }
    }

    fn poll_reaching(&mut self, cx: &mut Context<'_>) -> Poll<Answer> {
        let Stage::Reaching(reached, answer) = &mut self.stage else {
            return Poll::Pending;
        };
        let durability = ready!(reached.as_mut().poll(cx));
        let answer = match (durability, answer.take()) {
            (Durability::Unknown, Some(Answer::Committed(Ok(commit), garbage))) => {
                Answer::Committed(Err(CommitError::Unknown(commit.id)), garbage)
            }
            (Durability::Unknown, Some(Answer::Created(Ok(state), garbage))) => {
                let id = state.history().first_commit();
                Answer::Created(Err(CommitError::Unknown(id)), garbage)
            }
            (_, answer) => answer.expect("it is answered once"),
        };
        self.stage = Stage::Over;
        Poll::Ready(answer)
    }
}

impl Future for Submission {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let this = &mut *self;
        let mut answer = match &mut this.stage {
            Stage::New(_) if !(this.shared.forest.pacing)(cx.waker()) => return Poll::Pending,
            Stage::New(request) => match request.take() {
                Some(request) => this.enter(request, cx.waker()),
                None => None,
            },
            Stage::Crowded(room, request) => {
                ready!(room.as_mut().poll(cx));
                let request = request.take();
                request.and_then(|request| this.begin(request, cx.waker()))
            }
            Stage::Waiting(pending) => pending.poll(cx.waker()).or_else(|| {
                // It may have been woken to take the combiner.
                let guard = this.shared.list.take()?;
                guard.serve_queue(&this.shared.forest);
                pending.poll(cx.waker())
            }),
            Stage::Reaching(..) => return this.poll_reaching(cx),
            Stage::Over => panic!("a commit was polled after it had ended"),
        };
        while let Some(Answer::Overtaken(overtaken)) = answer {
            this.stage = Stage::Over;
            answer = this.begin_again(*overtaken, cx.waker());
        }
        match answer {
            Some(answer) => {
                this.stage = Stage::Over;
                this.leases = None;
                this.poll_level(answer, cx)
            }
            None => Poll::Pending,
        }
    }
}

impl Drop for Submission {
    fn drop(&mut self) {
        if let Stage::Waiting(pending) = &self.stage {
            pending.withdraw();
            // It may have been woken to take the combiner.
            if let Some(guard) = self.shared.list.take() {
                guard.serve_queue(&self.shared.forest);
            }
        }
    }
}

impl Shared {
    /// Submits a change that is not an edit.
    pub(crate) fn submit(self: &Arc<Self>, action: Action, level: Option<Level>) -> Submission {
        let commit = CommitRequest {
            action,
            id: None,
            bytes: Bytes::new(&[]),
            lease: None,
            level,
            overtaken: 0,
        };
        Submission::new(Arc::clone(self), Request::Commit(commit))
    }
}
