//! A commit, from its author's side: what is committed, and the future of its outcome.
//!
//! The story continues in `combine/submission.rs` (which thread does the work), `combine/combiner.rs` (the
//! work), `combine/prepare.rs` (is the commit possible) and `combine/publish.rs` (readers see it).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use weald_tree::Bytes;

use crate::combine::request::{Action, Answer, CommitRequest, Request};
use crate::combine::shared::Shared;
use crate::combine::submission::Submission;
use crate::edit::Edit;
use crate::error::CommitError;
use crate::journal::Level;
use crate::version::{CommitId, Committed, MAX_BYTES};

/// A commit that is not made until it is awaited.
///
/// If there was no other commit since the edit began, the edit's version is published as it is. Otherwise the edit
/// is rebased to the newest version, if everything that it relied on is unchanged there. If not, the outcome is a
/// [`Conflict`](crate::Conflict), and nothing has changed.
///
/// ```
/// use weald::block_on;
/// use weald::forest::{Attributes, Commit, CommitId, Forest};
///
/// let forest = Forest::new();
/// let accounts = block_on(forest.create("accounts"))?;
/// let log = block_on(forest.create("log"))?;
///
/// let (mut one, mut other) = (accounts.edit(), log.edit());
/// let (root, top) = (one.root(), other.root());
/// one.put_attribute(root, "balance", "7")?;
/// other.append(top, Attributes::new().with("text", "opened with 7"))?;
/// let both = Commit::of([one, other])?.id(CommitId(42)).bytes(b"by Ada");
/// let commit = block_on(both)?;
///
/// let [accounts, log] = forest.snapshot([&accounts, &log])?;
/// assert_eq!(accounts.version(), commit.version);
/// assert_eq!(log.version(), commit.version);
/// assert_eq!(log.bytes(), b"by Ada");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// It becomes a future when it is awaited. A job of its own makes it in
/// `weald::spawn(async move { edit.commit().await })`.
#[must_use = "a commit is made when it is awaited"]
pub struct Commit {
    shared: Arc<Shared>,
    request: Result<CommitRequest, CommitError>,
}

impl Commit {
    fn of_one(edit: Edit) -> Self {
        let (shared, edit) = edit.into_parts();
        Self::new(shared, Action::Edits(edit, Vec::new()))
    }

    fn new(shared: Arc<Shared>, action: Action) -> Self {
        let request = Ok(CommitRequest::new(action));
        Self { shared, request }
    }

    /// The commit of edits of several trees: all are made, or none, and readers see all or none.
    ///
    /// # Errors
    /// `NoEdits`, if there are none; `TreeTwice` and `OtherForest`, which are bugs in the caller.
    pub fn of(edits: impl IntoIterator<Item = Edit>) -> Result<Self, CommitError> {
        let edits: Vec<Edit> = edits.into_iter().collect();
        for (at, edit) in edits.iter().enumerate() {
            if edits[..at].iter().any(|other| edit.is_of_same_tree(other)) {
                return Err(CommitError::TreeTwice(edit.tree_name()));
            }
            if !Arc::ptr_eq(&edit.shared, &edits[0].shared) {
                return Err(CommitError::OtherForest(edit.tree_name()));
            }
        }
        let mut edits = edits.into_iter().map(Edit::into_parts);
        let (shared, first) = edits.next().ok_or(CommitError::NoEdits)?;
        let rest = edits.map(|(_, edit)| *edit).collect();
        Ok(Self::new(shared, Action::Edits(first, rest)))
    }

    /// Gives the commit an id. If one of the newest 65,536 commits that were given an id has this one, the commit is
    /// not made again: its outcome is that of the first, if both ask for the same, and
    /// [`IdTaken`](CommitError::IdTaken) otherwise. The comparison leaves out the ids of added nodes and the bytes of
    /// erasable values, because it is still made after those are erased. It costs a look at everything that the commit
    /// asks for.
    pub fn id(mut self, id: CommitId) -> Self {
        if let Ok(request) = &mut self.request {
            let digest = request.action.digest();
            request.terms().id = Some((id, digest));
        }
        self
    }

    /// Attaches bytes to the commit, which its version, watches and the journal show; at most [`MAX_BYTES`],
    /// or the outcome is `TooManyBytes`.
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        if bytes.len() > MAX_BYTES {
            self.request = self
                .request
                .and(Err(CommitError::TooManyBytes(bytes.len())));
        } else if let Ok(request) = &mut self.request {
            request.terms().bytes = Some(Bytes::new(bytes));
        }
        self
    }

    /// The level that the commit must have reached before it is acknowledged; by default the one that the forest was
    /// built with. The commit is visible to readers before that. If the journal cannot reach the level, the outcome is
    /// [`CommitError::Level`], and nothing was committed.
    pub fn level(mut self, level: Level) -> Self {
        let most = self.shared.forest.most();
        if level > most {
            let asked = level;
            self.request = self.request.and(Err(CommitError::Level { asked, most }));
        } else if let Ok(request) = &mut self.request {
            request.terms().level = Some(level);
        }
        self
    }

    /// Commits under a write lease.
    pub(crate) fn under(mut self, lease: Option<u64>) -> Self {
        if let Ok(request) = &mut self.request
            && lease.is_some()
        {
            request.terms().lease = lease;
        }
        self
    }
}

impl Edit {
    /// The commit of this edit, which is made when it is awaited.
    #[must_use = "a commit is made when it is awaited"]
    pub fn commit(self) -> Commit {
        Commit::of_one(self)
    }
}

impl IntoFuture for Commit {
    type Output = Result<Committed, CommitError>;
    type IntoFuture = Committing;

    fn into_future(self) -> Committing {
        let Self { shared, request } = self;
        let submission = request.map(|request| Submission::new(shared, Request::Commit(request)));
        Committing(submission.map_err(Some))
    }
}

/// The future of a commit's outcome. Most are ready at the first poll.
///
/// If the future is dropped before its first poll, the commit is not made. If it is dropped later, the commit
/// is withdrawn, unless the thread that serves requests has taken it up. To learn which, give the commit an id
/// and commit again.
#[must_use = "a commit is made when it is awaited"]
pub struct Committing(Result<Submission, Option<CommitError>>);

impl Future for Committing {
    type Output = Result<Committed, CommitError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let submission = match &mut self.0 {
            Ok(submission) => submission,
            Err(error) => return Poll::Ready(Err(error.take().expect("polled once only"))),
        };
        match ready!(Pin::new(submission).poll(cx)) {
            Answer::Committed(outcome, garbage) => {
                drop(garbage); // Outside the right to commit, by the author.
                Poll::Ready(outcome)
            }
            _ => unreachable!("a commit of edits is answered with its outcome"),
        }
    }
}
