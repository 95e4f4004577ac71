//! A commit, from its author's side: what is committed, and the future of its outcome.
//!
//! The story goes on in `asking.rs` (who does the work), `combiner.rs` (the work), `prepare.rs` (is it
//! possible) and `publish.rs` (readers see it).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use weald_tree::Bytes;

use crate::asking::Asking;
use crate::edit::Edit;
use crate::error::CommitError;
use crate::forest::Shared;
use crate::request::{Answer, Request, What, Work};
use crate::version::{CommitId, Committed};

/// How many bytes a commit carries for its author at most.
pub const MAX_BYTES: usize = 1024;

/// A commit to be. It happens when it is awaited.
///
/// It is published as it is if no other commit came since the edit began. Else the edit is brought to
/// the newest version, if what it relied on is still so there; if not, it is a [`Conflict`](crate::Conflict),
/// and nothing has happened.
///
/// ```
/// use weald_forest::{Attributes, Commit, CommitId, Forest, Wait};
///
/// let forest = Forest::new();
/// let (accounts, log) = (forest.create("accounts").wait()?, forest.create("log").wait()?);
///
/// let (mut one, mut other) = (accounts.edit(), log.edit());
/// let (root, top) = (one.root(), other.root());
/// one.put_attribute(root, "balance", "7")?;
/// other.append(top, Attributes::new().with("text", "opened with 7"))?;
/// let commit = Commit::of([one, other])?.id(CommitId(42)).bytes(b"by Ada").wait()?;
///
/// let [accounts, log] = forest.snapshot([&accounts, &log])?;
/// assert_eq!(accounts.version(), commit.version);
/// assert_eq!(log.version(), commit.version);
/// assert_eq!(log.bytes(), b"by Ada");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a commit happens when it is awaited, or waited for with `wait()`"]
pub struct Commit {
    shared: Arc<Shared>,
    work: Result<Work, CommitError>,
}

impl Commit {
    pub(crate) fn of_one(edit: Edit) -> Self {
        let (shared, part) = edit.into_part();
        Self::new(shared, What::Edits(Box::new(part), Vec::new()))
    }

    fn new(shared: Arc<Shared>, what: What) -> Self {
        let work = Work {
            what,
            id: None,
            bytes: Bytes::new(&[]),
            turn: None,
        };
        Self {
            shared,
            work: Ok(work),
        }
    }

    /// The commit of edits of several trees: all happen, or none, and readers see all or none.
    ///
    /// # Errors
    /// `TreeTwice` and `OtherForest`, which are mistakes in the program.
    ///
    /// # Panics
    /// If there are no edits.
    pub fn of(edits: impl IntoIterator<Item = Edit>) -> Result<Self, CommitError> {
        let edits: Vec<Edit> = edits.into_iter().collect();
        for (at, edit) in edits.iter().enumerate() {
            if edits[..at]
                .iter()
                .any(|other| edit.is_of_the_same_tree(other))
            {
                return Err(CommitError::TreeTwice(edit.tree_name()));
            }
            if !Arc::ptr_eq(&edit.shared, &edits[0].shared) {
                return Err(CommitError::OtherForest(edit.tree_name()));
            }
        }
        let shared = Arc::clone(&edits.first().expect("a commit has an edit").shared);
        let mut parts = edits.into_iter().map(|edit| edit.into_part().1);
        let first = parts.next().expect("a commit has an edit");
        Ok(Self::new(
            shared,
            What::Edits(Box::new(first), parts.collect()),
        ))
    }

    /// Gives the commit an id. If a commit with this id happened before, and is among the newest 65,536
    /// of those that were given an id, this one does not happen again: its outcome is that of the first.
    pub fn id(mut self, id: CommitId) -> Self {
        if let Ok(work) = &mut self.work {
            work.id = Some(id);
        }
        self
    }

    /// Gives the commit bytes that stand beside it in every version, watch and journal; at most
    /// [`MAX_BYTES`], else the outcome is `TooManyBytes`.
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        if bytes.len() > MAX_BYTES {
            self.work = self.work.and(Err(CommitError::TooManyBytes(bytes.len())));
        } else if let Ok(work) = &mut self.work {
            work.bytes = Bytes::new(bytes);
        }
        self
    }

    /// Makes it under a turn.
    pub(crate) fn under(mut self, turn: Option<u64>) -> Self {
        if let Ok(work) = &mut self.work {
            work.turn = turn;
        }
        self
    }
}

impl IntoFuture for Commit {
    type Output = Result<Committed, CommitError>;
    type IntoFuture = Committing;

    fn into_future(self) -> Committing {
        let Self { shared, work } = self;
        let asking = work.map(|work| Asking::new(shared, Request::Commit(work)));
        Committing(asking.map_err(Some))
    }
}

/// The outcome of a commit, to wait for. Most are ready at the first poll.
///
/// Dropped before its first poll the commit has not happened. Dropped later it may have: it is taken back
/// if nobody has taken it up yet. Give it an id and commit again to learn which.
#[must_use = "a commit happens when it is awaited, or waited for with `wait()`"]
pub struct Committing(Result<Asking, Option<CommitError>>);

impl Future for Committing {
    type Output = Result<Committed, CommitError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let asking = match &mut self.0 {
            Ok(asking) => asking,
            Err(error) => return Poll::Ready(Err(error.take().expect("polled once only"))),
        };
        match ready!(Pin::new(asking).poll(cx)) {
            Answer::Committed(outcome) => Poll::Ready(outcome),
            _ => unreachable!("who commits edits is told whether they were committed"),
        }
    }
}
