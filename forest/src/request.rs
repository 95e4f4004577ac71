//! What is asked of the combiner, as data; and the place where one who waits for the answer finds it.
//!
//! A request that nobody has taken up is taken back when its future is dropped. Once it is taken up it
//! happens, or is refused, whether or not somebody still waits.

use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use weald_tree::{Bytes, NodeId, Tree};

use crate::erasable::Blob;
use crate::error::CommitError;
use crate::index::Index;
use crate::line::Line;
use crate::past::Tagged;
use crate::root::Root;
use crate::version::{CommitId, Committed};

pub(crate) enum Request {
    Commit(Work),
    /// To be the only one who commits to a tree for a while.
    TakeTurn(Bid),
    LeaveTurn(Bid),
    /// Some turn may have lasted too long.
    LookAtTurns,
}

/// One commit.
pub(crate) struct Work {
    pub(crate) what: What,
    pub(crate) id: Option<CommitId>,
    pub(crate) bytes: Bytes,
    /// The turn under which it is made.
    pub(crate) turn: Option<u64>,
}

pub(crate) enum What {
    /// Edits of different trees.
    Edits(Box<Part>, Vec<Part>),
    Create(Arc<str>, Box<Tree>),
    /// The tree that has this name when it happens.
    Delete(Arc<str>),
    /// The tree that has the first name when it happens; the second is its new one.
    Rename(Arc<str>, Arc<str>),
    Restore(Arc<Line>, Arc<Root>),
    /// An index of this version of the tree.
    AddIndex(Arc<Line>, Arc<Root>, Index),
    DropIndex(Arc<Line>, Arc<str>),
    Erase(Arc<Line>, NodeId, Box<str>),
    Tag(Arc<Line>, Arc<str>, Tagged),
    Untag(Arc<Line>, Arc<str>),
}

/// The edit of one tree.
pub(crate) struct Part {
    pub(crate) line: Arc<Line>,
    pub(crate) base: Arc<Root>,
    pub(crate) edit: weald_tree::Edit,
    pub(crate) blobs: Vec<Blob>,
}

/// Who wants, has or had a turn.
#[derive(Clone)]
pub(crate) struct Bid {
    pub(crate) line: Arc<Line>,
    pub(crate) ticket: u64,
    pub(crate) caller: &'static Location<'static>,
    /// How long it may last while others wait.
    pub(crate) limit: Duration,
}

pub(crate) enum Answer {
    Committed(Result<Committed, CommitError>),
    Created(Result<Arc<Line>, CommitError>),
    /// The turn is taken, or left, or was looked at.
    Turned,
}

impl What {
    /// The trees whose turn has to be free, but for the one that is [`named`](Self::named).
    pub(crate) fn lines(&self) -> impl Iterator<Item = &Arc<Line>> {
        let (first, rest) = match self {
            Self::Create(..) | Self::Delete(_) | Self::Rename(..) => (None, &[][..]),
            Self::Edits(first, rest) => (Some(&first.line), &rest[..]),
            Self::Restore(line, _)
            | Self::AddIndex(line, ..)
            | Self::DropIndex(line, _)
            | Self::Erase(line, ..)
            | Self::Tag(line, ..)
            | Self::Untag(line, _) => (Some(line), &[][..]),
        };
        first.into_iter().chain(rest.iter().map(|part| &part.line))
    }

    /// Carries out what edits of the newest version have not carried out yet: what their authors do
    /// themselves nobody else has to wait for. If another commit comes first it was in vain.
    pub(crate) fn carry_out(&mut self) {
        let Self::Edits(first, rest) = self else {
            return;
        };
        for part in std::iter::once(&mut **first).chain(rest) {
            if part.base.number() == part.line.slot.load().number() {
                part.edit.carry_out();
            }
        }
    }

    /// The name of the tree whose turn has to be free.
    pub(crate) fn named(&self) -> Option<&Arc<str>> {
        match self {
            Self::Delete(name) | Self::Rename(name, _) => Some(name),
            _ => None,
        }
    }
}

/// A request that waits, and its answer.
pub(crate) struct Pending(Mutex<State>);

struct State {
    request: Option<Request>,
    answer: Option<Answer>,
    waker: Option<Waker>,
}

impl Pending {
    pub(crate) fn new(request: Request, waker: Option<Waker>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State {
            request: Some(request),
            answer: None,
            waker,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The request, if it was not taken back.
    pub(crate) fn take_up(&self) -> Option<Request> {
        self.state().request.take()
    }

    /// The request goes on waiting.
    pub(crate) fn put_back(&self, request: Request) {
        self.state().request = Some(request);
    }

    /// Leaves the answer; who waits is to be woken.
    #[must_use = "somebody may wait"]
    pub(crate) fn answer(&self, answer: Answer) -> Option<Waker> {
        let mut state = self.state();
        state.answer = Some(answer);
        // One who looks again of himself is not in need of it.
        let waker = state.waker.take();
        waker.filter(|waker| !waker.will_wake(Waker::noop()))
    }

    /// Wakes the one who waits, without an answer.
    pub(crate) fn nudge(&self) {
        let waker = self.state().waker.clone();
        wake(waker);
    }

    /// The answer; if it is not there, `waker` is woken when it comes.
    pub(crate) fn poll(&self, waker: &Waker) -> Option<Answer> {
        let mut state = self.state();
        let answer = state.answer.take();
        let is_known = state.waker.as_ref().is_some_and(|old| old.will_wake(waker));
        let old = match answer {
            None if !is_known => state.waker.replace(waker.clone()),
            _ => None,
        };
        drop(state);
        drop(old); // After the lock, because a foreign waker's drop may do anything.
        answer
    }

    /// Takes the request back if nobody has taken it up.
    pub(crate) fn withdraw(&self) {
        let mut state = self.state();
        let request = (state.request.take(), state.waker.take());
        drop(state);
        drop(request); // After the lock, because versions may go with it.
    }

    pub(crate) fn can_be_nudged(&self) -> bool {
        self.state().waker.is_some()
    }
}

/// A foreign waker that panics is its owner's affair; the others are still woken.
pub(crate) fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
    }
}
