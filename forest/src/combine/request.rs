//! What the combiner is asked to do, as data; and the place where a waiter finds the answer.
//!
//! A request that the combiner has not yet taken up is withdrawn when its future is dropped. Once taken up,
//! it is carried out or refused, whether or not anything still waits for the answer.

use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use weald_tree::{Bytes, NodeId, Tree};

use crate::content::erasable::Blob;
use crate::content::index::Index;
use crate::error::CommitError;
use crate::state::deferred::wake;
use crate::state::history::Tagged;
use crate::state::root::Root;
use crate::state::tree::TreeState;
use crate::version::{CommitId, Committed};

pub(crate) enum Request {
    Commit(CommitRequest),
    /// To be the only one that commits to a tree for a while.
    TakeLease(Bid),
    ReleaseLease(Bid),
    /// Some lease may have lasted too long.
    CheckLeases,
}

/// One commit.
pub(crate) struct CommitRequest {
    pub(crate) action: Action,
    pub(crate) id: Option<CommitId>,
    pub(crate) bytes: Bytes,
    /// The ticket of the write lease under which it is made.
    pub(crate) lease: Option<u64>,
}

/// What a commit does.
pub(crate) enum Action {
    /// Edits of different trees.
    Edits(Box<TreeEdit>, Vec<TreeEdit>),
    Create(Arc<str>, Box<Tree>),
    /// The tree that has this name when the commit is made.
    Delete(Arc<str>),
    /// The tree that has the first name when the commit is made; the second is its new name.
    Rename(Arc<str>, Arc<str>),
    Restore(Arc<TreeState>, Arc<Root>),
    /// An index of this version of the tree.
    AddIndex(Arc<TreeState>, Arc<Root>, Index),
    DropIndex(Arc<TreeState>, Arc<str>),
    Erase(Arc<TreeState>, NodeId, Box<str>),
    Tag(Arc<TreeState>, Arc<str>, Tagged),
    Untag(Arc<TreeState>, Arc<str>),
}

/// The edit of one tree.
pub(crate) struct TreeEdit {
    pub(crate) state: Arc<TreeState>,
    pub(crate) base: Arc<Root>,
    pub(crate) edit: weald_tree::Edit,
    pub(crate) blobs: Vec<Blob>,
}

/// Identifies an update that wants, has or had a write lease.
#[derive(Clone)]
pub(crate) struct Bid {
    pub(crate) state: Arc<TreeState>,
    pub(crate) ticket: u64,
    pub(crate) caller: &'static Location<'static>,
    /// How long the lease may last while others wait.
    pub(crate) limit: Duration,
}

pub(crate) enum Answer {
    Committed(Result<Committed, CommitError>),
    Created(Result<Arc<TreeState>, CommitError>),
    /// The lease was taken or released, or the leases were checked.
    Done,
}

impl Action {
    /// The trees whose write lease must be free, except the tree that is [`named`](Self::named).
    pub(crate) fn trees(&self) -> impl Iterator<Item = &Arc<TreeState>> {
        let (first, rest) = match self {
            Self::Create(..) | Self::Delete(_) | Self::Rename(..) => (None, &[][..]),
            Self::Edits(first, rest) => (Some(&first.state), &rest[..]),
            Self::Restore(state, _)
            | Self::AddIndex(state, ..)
            | Self::DropIndex(state, _)
            | Self::Erase(state, ..)
            | Self::Tag(state, ..)
            | Self::Untag(state, _) => (Some(state), &[][..]),
        };
        first.into_iter().chain(rest.iter().map(|edit| &edit.state))
    }

    /// Carries out what edits of the newest version have postponed: work that the author does here delays
    /// nobody else. It is wasted if another commit comes first.
    pub(crate) fn carry_out(&mut self) {
        let Self::Edits(first, rest) = self else {
            return;
        };
        for edit in std::iter::once(&mut **first).chain(rest) {
            if edit.base.number() == edit.state.slot.load().number() {
                edit.edit.carry_out();
            }
        }
    }

    /// The name of the tree whose write lease must be free.
    pub(crate) fn named(&self) -> Option<&Arc<str>> {
        match self {
            Self::Delete(name) | Self::Rename(name, _) => Some(name),
            _ => None,
        }
    }
}

/// A request that waits, and its answer.
pub(crate) struct Pending(Mutex<Waiting>);

struct Waiting {
    request: Option<Request>,
    answer: Option<Answer>,
    waker: Option<Waker>,
}

impl Pending {
    pub(crate) fn new(request: Request, waker: Option<Waker>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Waiting {
            request: Some(request),
            answer: None,
            waker,
        })))
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the request, unless it was withdrawn.
    pub(crate) fn take_up(&self) -> Option<Request> {
        self.waiting().request.take()
    }

    /// Returns a request that must wait longer.
    pub(crate) fn put_back(&self, request: Request) {
        self.waiting().request = Some(request);
    }

    /// Leaves the answer, and returns the waker to wake.
    #[must_use = "the waiter must be woken"]
    pub(crate) fn answer(&self, answer: Answer) -> Option<Waker> {
        let mut waiting = self.waiting();
        waiting.answer = Some(answer);
        // A waiter that polls on its own needs no wake.
        let waker = waiting.waker.take();
        waker.filter(|waker| !waker.will_wake(Waker::noop()))
    }

    /// Wakes the waiter without an answer.
    pub(crate) fn nudge(&self) {
        let waker = self.waiting().waker.clone();
        wake(waker);
    }

    /// The answer; if there is none yet, `waker` is woken when it is there.
    pub(crate) fn poll(&self, waker: &Waker) -> Option<Answer> {
        let mut waiting = self.waiting();
        let answer = waiting.answer.take();
        let is_known = waiting
            .waker
            .as_ref()
            .is_some_and(|old| old.will_wake(waker));
        let old = match answer {
            None if !is_known => waiting.waker.replace(waker.clone()),
            _ => None,
        };
        drop(waiting);
        drop(old); // After the lock, because a foreign waker's drop may do anything.
        answer
    }

    /// Withdraws the request, unless the combiner has taken it up.
    pub(crate) fn withdraw(&self) {
        let mut waiting = self.waiting();
        let request = (waiting.request.take(), waiting.waker.take());
        drop(waiting);
        drop(request); // After the lock, because versions may be freed with it.
    }

    pub(crate) fn can_be_nudged(&self) -> bool {
        self.waiting().waker.is_some()
    }
}
