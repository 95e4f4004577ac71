//! A submission: the future of a request to the combiner.
//!
//! If the combiner is free, the first poll takes it, serves the request itself and then all requests that
//! were queued meanwhile, and is ready. Otherwise the request waits on the publication list, with the waker.

mod reaching;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use super::author::Beforehand;
use super::bring_back::bring_back;
use super::combiner::Served;
use super::pending::Pending;
use super::request::{
    Action, Answer, CommitRequest, Garbage, HeldLeases, Overtaken, Piece, Request,
};
use super::shared::Shared;
use crate::content::erasable::Blob;
use crate::error::CommitError;
use crate::journal::{Durability, Later, Level, Room};
use crate::state::forest::ForestState;

/// If it is dropped before its first poll, it has submitted nothing. If it is dropped later, it withdraws the
/// request, unless the combiner has taken that up.
pub(crate) struct Submission {
    shared: Arc<Shared>,
    stage: Stage,
    /// The write leases of a large commit that was overtaken, until it is answered.
    leases: Option<Box<HeldLeases>>,
    /// What the commit has to reach before the answer.
    level: Level,
    /// Whether it has waited for the room that its bytes take, and what it was given, until it is answered.
    has_asked_for_room: bool,
    room: Room,
    /// Whether the bytes to which the commit refers were looked for.
    has_looked: bool,
}

enum Stage {
    New(Option<Request>),
    /// The journal has no room for the commit.
    Crowded(Later<'static, Room>, Option<Request>),
    /// The journal reads back the bytes to which the commit refers.
    Reading(Later<'static, Result<(), CommitError>>, Option<Request>),
    Waiting(Arc<Pending>),
    /// The commit is visible, and has not reached its level.
    Reaching(Later<'static, Durability>, Option<Answer>),
    Over,
}

/// What a commit waits for before its request.
enum Wait {
    Reading(Later<'static, Result<(), CommitError>>),
    Crowded(Later<'static, Room>),
}

impl Submission {
    pub(crate) fn new(shared: Arc<Shared>, request: Request) -> Self {
        Self {
            shared,
            stage: Stage::New(Some(request)),
            leases: None,
            level: Level::Accepted,
            has_asked_for_room: false,
            has_looked: false,
            room: Room::default(),
        }
    }

    /// Waits until the journal has room for a commit, before anything is done for it.
    fn enter(&mut self, request: Request, waker: &Waker) -> Option<Answer> {
        if matches!(request, Request::Commit(_))
            && let Err(room) = ask_whether_full(&self.shared.forest, waker)
        {
            self.stage = Stage::Crowded(room, Some(request));
            return None;
        }
        self.begin(request, waker)
    }

    fn begin(&mut self, mut request: Request, waker: &Waker) -> Option<Answer> {
        if let Err(error) = self.shared.forest.reentrancy.must_be_outside() {
            return Some(Answer::Committed(Err(error), Garbage::NONE));
        }
        if let Request::Commit(commit) = &mut request
            && let Some(wait) = self.make_ready(commit, waker)
        {
            self.stage = match wait {
                Wait::Reading(bytes) => Stage::Reading(bytes, Some(request)),
                Wait::Crowded(room) => Stage::Crowded(room, Some(request)),
            };
            return None;
        }
        let Shared { forest, list } = &*self.shared;
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

impl Submission {
    /// Does what the author does for a commit before the request. Returns what there is to wait for.
    fn make_ready(&mut self, commit: &mut CommitRequest, waker: &Waker) -> Option<Wait> {
        let Shared { forest, list } = &*self.shared;
        self.level = commit.level().unwrap_or(forest.level);
        // If the combiner is taken, others come first. Then the thread that serves this request carries it out,
        // once, on the right version, unless the request is large.
        let edits = match list.looks_free() {
            true => Beforehand::All,
            false => Beforehand::Large,
        };
        commit.action.carry_out(edits, forest.recording());
        if !std::mem::replace(&mut self.has_looked, true)
            && let Some(mut bytes) = bring_back(forest, &commit.action)
        {
            match bytes.as_mut().poll(&mut Context::from_waker(waker)) {
                Poll::Ready(read) => commit.refuse_unless(read),
                Poll::Pending => return Some(Wait::Reading(bytes)),
            }
        }
        let bytes = commit.long_bytes();
        if bytes > 0 && !std::mem::replace(&mut self.has_asked_for_room, true) {
            match ask_for_room(forest, (bytes, &commit.changes(), &commit.blobs()), waker) {
                Ok(room) => self.room = room,
                Err(room) => return Some(Wait::Crowded(room)),
            }
        }
        None
    }
}

/// The wait until the journal is not full any more, if it is. That is asked before it is known what the record will be:
/// a record of no bytes stands for any.
fn ask_whether_full(forest: &ForestState, waker: &Waker) -> Result<Room, Later<'static, Room>> {
    ask_for_room(forest, (0, &[], &[]), waker)
}

/// The room for a record with at least this many bytes, or the wait for it.
fn ask_for_room(
    forest: &ForestState,
    (bytes, changes, blobs): (usize, &[Piece], &[Blob]),
    waker: &Waker,
) -> Result<Room, Later<'static, Room>> {
    let journal = forest.journal.as_ref();
    let journal = journal.filter(|_| !forest.reentrancy.is_in_journal());
    let Some(mut room) = journal.and_then(|journal| journal.inner.when_room(bytes, changes, blobs))
    else {
        return Ok(Room::default());
    };
    match room.as_mut().poll(&mut Context::from_waker(waker)) {
        Poll::Ready(room) => Ok(room),
        Poll::Pending => Err(room),
    }
}

impl Submission {
    /// Brings a large commit that was overtaken to the newest versions, and requests it again. It asks for no room any
    /// more: it now holds write leases, and the wait would depend on its author's being polled. Without room its record
    /// waits in the journal.
    fn begin_again(&mut self, overtaken: Overtaken, waker: &Waker) -> Option<Answer> {
        match overtaken.replay(self.shared.forest.recording()) {
            Ok((commit, leases)) => {
                self.leases = Some(Box::new(leases));
                self.has_asked_for_room = true;
                self.begin(Request::Commit(commit), waker)
            }
            Err(error) => {
                self.shared.forest.stats.refused(&error);
                self.begin(Request::Refuse(error), waker)
            }
        }
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
                this.room = ready!(room.as_mut().poll(cx));
                let request = request.take();
                request.and_then(|request| this.begin(request, cx.waker()))
            }
            Stage::Reading(bytes, request) => {
                let read = ready!(bytes.as_mut().poll(cx));
                request.take().and_then(|mut request| {
                    if let Request::Commit(commit) = &mut request {
                        commit.refuse_unless(read);
                    }
                    this.begin(request, cx.waker())
                })
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
            // What it changes is another thing then.
            this.room = Room::default();
            answer = this.begin_again(*overtaken, cx.waker());
        }
        match answer {
            Some(answer) => {
                this.stage = Stage::Over;
                this.leases = None;
                this.room = Room::default();
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
        let mut commit = CommitRequest::new(action);
        if level.is_some() {
            commit.terms().level = level;
        }
        Submission::new(Arc::clone(self), Request::Commit(commit))
    }
}
