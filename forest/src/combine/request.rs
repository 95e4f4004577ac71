//! What the combiner is asked to do, and what it answers, as data.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use weald_tree::{Bytes, Script, Tree};

use super::commit_ids::Entries;
use crate::content::erasable::{Blob, Place, Referred};
use crate::content::index::{Index, Indexes};
use crate::error::{CommitError, MAX_ERASABLE_NAME};
use crate::journal::{Digest, Level, Position};
use crate::state::history::Tagged;
use crate::state::name::Name;
use crate::state::root::{RootRef, Snapshot};
use crate::state::tree::{HeldTree, TreeRef};
use crate::version::{CommitId, Committed, Version};

pub(crate) enum Request {
    Commit(CommitRequest),
    /// Asks to be the only one that commits to a tree for a while.
    TakeLease(LeaseRequest),
    ReleaseLease(LeaseRequest),
    /// Asks for this refusal, which an author found, once everything that it depends on is visible.
    Refuse(CommitError),
    /// Asks for the receipt of the commit with this id, if there is one.
    Look(CommitId),
    /// Some lease may have lasted too long.
    CheckLeases,
    /// The journal may have answered.
    CheckJournal,
    /// The journal may have failed.
    CheckFailure,
    /// Asks what is visible now.
    Checkpoint,
}

/// One commit. It is moved a lot, so what few commits have is behind a pointer.
pub(crate) struct CommitRequest {
    pub(crate) action: Action,
    pub(crate) terms: Option<Box<RequestTerms>>,
    /// How often it was given back to its author because it was large and overtaken.
    pub(crate) overtaken: u32,
}

/// How a commit is to be made, unless in the usual way.
#[derive(Default)]
pub(crate) struct RequestTerms {
    /// The id that its author gave it, and the digest of what it does.
    pub(crate) id: Option<(CommitId, Digest)>,
    /// What its author attached to it.
    pub(crate) bytes: Option<Bytes>,
    /// The number of the write leases under which it is made.
    pub(crate) lease: Option<u64>,
    /// The level that it must have reached before it is acknowledged; `None` for the usual one of the
    /// forest.
    pub(crate) level: Option<Level>,
}

impl CommitRequest {
    #[inline]
    pub(crate) fn new(action: Action) -> Self {
        Self {
            action,
            terms: None,
            overtaken: 0,
        }
    }

    #[inline]
    pub(crate) fn id(&self) -> Option<(CommitId, Digest)> {
        self.terms.as_ref()?.id
    }

    #[inline]
    pub(crate) fn lease(&self) -> Option<u64> {
        self.terms.as_ref()?.lease
    }

    #[inline]
    pub(crate) fn level(&self) -> Option<Level> {
        self.terms.as_ref()?.level
    }

    /// The terms, to be changed.
    pub(crate) fn terms(&mut self) -> &mut RequestTerms {
        self.terms.get_or_insert_default()
    }
}

/// What a commit does.
pub(crate) enum Action {
    /// Edits of different trees.
    Edits(Box<TreeEdit>, Vec<TreeEdit>),
    /// The name, the nodes with the references among their values, and their encoding once the author has made it.
    Create(Arc<str>, Box<(Tree, Vec<Referred>)>, Option<Piece>),
    /// The tree that has this name when the commit is made.
    Delete(Arc<str>),
    /// The tree that has the first name when the commit is made; the second is its new name.
    Rename(Arc<str>, Arc<str>),
    /// The version to restore, and the parts of the commit that its author has made.
    Restore(TreeRef, RootRef, Option<Box<Restored>>),
    /// An index of this version of the tree.
    AddIndex(TreeRef, RootRef, Index),
    DropIndex(TreeRef, Arc<str>),
    /// The attribute, and its tree, unless the tree was deleted and has no handle.
    Erase(Option<TreeRef>, Place),
    Tag(TreeRef, Arc<str>, Box<Tagged>),
    Untag(TreeRef, Arc<str>),
    /// What its author has found to be impossible, and why.
    Refused(Box<(CommitError, Action)>),
}

/// The edit of one tree.
pub(crate) struct TreeEdit {
    pub(crate) state: TreeRef,
    pub(crate) base: Snapshot,
    pub(crate) work: Work,
    pub(crate) blobs: Vec<Blob>,
    /// The next version, if its author has finished it.
    pub(crate) finished: Option<Box<Finished>>,
}

/// What an edit did.
pub(crate) enum Work {
    /// As its author left it.
    Edit(weald_tree::Edit),
    /// Finished, or replayed.
    Script(Script),
}

/// The version that follows a head, with its indexes.
pub(crate) struct Finished {
    pub(crate) head: RootRef,
    pub(crate) tree: Tree,
    pub(crate) indexes: Indexes,
    pub(crate) piece: Option<Piece>,
    pub(crate) references: Vec<Referred>,
    pub(crate) last_id: u64,
}

/// What it takes to restore a version after a head.
pub(crate) struct Restored {
    pub(crate) head: RootRef,
    pub(crate) indexes: Indexes,
    /// The difference between the head and the restored version.
    pub(crate) piece: Option<Piece>,
}

/// A change, encoded for the journal.
pub(crate) type Piece = Arc<Vec<u8>>;

/// Identifies an update or a large edit that wants, has or had a write lease.
#[derive(Clone)]
pub(crate) struct LeaseRequest {
    pub(crate) state: TreeRef,
    /// The same for all leases that one commit gets.
    pub(crate) lease_number: u64,
    pub(crate) caller: &'static Location<'static>,
    /// How long the lease may last while others wait.
    pub(crate) limit: Duration,
    /// That of a large edit: set when its author begins to replay it. From then on it is not revoked.
    pub(crate) is_begun: Option<Arc<AtomicBool>>,
}

/// A large commit that was overtaken, on its way back to its author, who brings it to the newest versions.
pub(crate) struct Overtaken {
    pub(crate) commit: CommitRequest,
    /// The newest versions of its trees, in their order.
    pub(crate) heads: Vec<RootRef>,
    pub(crate) leases: HeldLeases,
}

/// The write leases of all trees of a large commit, while its author replays it. Dropping it ends them.
pub(crate) struct HeldLeases {
    pub(crate) requests: Vec<LeaseRequest>,
    pub(crate) is_begun: Arc<AtomicBool>,
    pub(crate) submitter: Weak<dyn SubmitUnawaited>,
}

/// Takes requests for whose answers nothing waits.
pub(crate) trait SubmitUnawaited: Send + Sync {
    fn submit_unawaited(&self, request: Request);
}

impl HeldLeases {
    /// From now on the leases are not revoked.
    pub(crate) fn begin(&self) {
        // Relaxed: whether the combiner sees it a moment later makes no difference; the commit is checked anyway.
        self.is_begun.store(true, Ordering::Relaxed);
    }
}

impl Drop for HeldLeases {
    fn drop(&mut self) {
        if let Some(submitter) = self.submitter.upgrade() {
            for request in self.requests.drain(..) {
                submitter.submit_unawaited(Request::ReleaseLease(request));
            }
        }
    }
}

/// What a commit leaves behind, which may be large; its author frees it.
#[derive(Default)]
pub(crate) struct Garbage(Option<Box<dyn Any + Send>>);

impl Garbage {
    pub(crate) const NONE: Self = Self(None);

    pub(crate) fn of(left: impl Any + Send) -> Self {
        Self(Some(Box::new(left)))
    }

    /// An edit that is over, with its operations and its base.
    #[inline]
    pub(crate) fn of_edit(edit: Box<TreeEdit>) -> Self {
        Self(Some(edit))
    }

    pub(crate) fn is_none(&self) -> bool {
        self.0.is_none()
    }
}

/// A tree at one moment.
pub(crate) struct TreeMoment {
    pub(crate) name: Name,
    pub(crate) state: HeldTree,
    pub(crate) newest: RootRef,
    /// The number of the newest version that had been let go.
    pub(crate) gone: u64,
    /// Later they may be others, and that may be lost with the power.
    pub(crate) tags: BTreeMap<Arc<str>, Tagged>,
    /// Versions that get a tag behind this moment, and that may have left the history before.
    pub(crate) coming: Vec<RootRef>,
}

/// What is visible at one moment. The versions are in the histories of the trees, up to this one, even if the trees let
/// them go meanwhile.
pub(crate) struct Moment {
    pub(crate) version: Version,
    pub(crate) time: SystemTime,
    /// Of the newest record that it contains.
    pub(crate) position: Option<Position>,
    /// By name.
    pub(crate) trees: Vec<TreeMoment>,
    pub(crate) ids: Vec<Entries>,
}

pub(crate) enum Answer {
    Committed(Result<Committed, CommitError>, Garbage),
    Created(Result<TreeRef, CommitError>, Garbage),
    /// The commit was not made: it is large, and its author is to bring it to the newest versions.
    Overtaken(Box<Overtaken>),
    /// What is visible now.
    Moment(Box<Moment>),
    /// The lease was taken or released, or the leases were checked.
    Done,
}

impl Answer {
    pub(crate) fn refused((error, garbage): (CommitError, Garbage), is_create: bool) -> Self {
        match is_create {
            true => Self::Created(Err(error), garbage),
            false => Self::Committed(Err(error), garbage),
        }
    }

    /// Frees what the commit left behind. Only the author may do so, without the right to commit.
    pub(crate) fn free_garbage(&mut self) {
        if let Self::Committed(_, garbage) | Self::Created(_, garbage) = self {
            *garbage = Garbage::NONE;
        }
    }

    /// Leaves more to free.
    pub(crate) fn leave(&mut self, large: Vec<RootRef>) {
        if let Self::Committed(_, garbage) = self
            && !large.is_empty()
        {
            *garbage = Garbage::of((std::mem::take(garbage), large));
        }
    }
}

impl Action {
    /// Erases what an attribute refers to, or ever did.
    pub(crate) fn erase(state: Option<TreeRef>, place: Place) -> Result<Self, CommitError> {
        let len = place.2.len();
        match len > MAX_ERASABLE_NAME {
            true => Err(CommitError::NameTooLong(len)),
            false => Ok(Self::Erase(state, place)),
        }
    }

    /// What the author asked for, even if it was found to be impossible.
    fn meant(&self) -> &Self {
        match self {
            Self::Refused(refused) => &refused.1,
            _ => self,
        }
    }

    /// Whether the answer is to be a tree.
    pub(crate) fn is_create(&self) -> bool {
        matches!(self.meant(), Self::Create(..))
    }

    /// The trees whose write lease must be free, except the tree that is [`named`](Self::named).
    pub(crate) fn trees(&self) -> impl Iterator<Item = &TreeRef> {
        let (first, rest) = match self.meant() {
            Self::Create(..) | Self::Delete(_) | Self::Rename(..) | Self::Refused(_) => {
                (None, &[][..])
            }
            Self::Edits(first, rest) => (Some(&first.state), &rest[..]),
            Self::Restore(state, ..)
            | Self::AddIndex(state, ..)
            | Self::DropIndex(state, _)
            | Self::Tag(state, ..)
            | Self::Untag(state, _) => (Some(state), &[][..]),
            Self::Erase(state, _) => (state.as_ref(), &[][..]),
        };
        first.into_iter().chain(rest.iter().map(|edit| &edit.state))
    }

    /// The name of the tree whose write lease must be free.
    pub(crate) fn named(&self) -> Option<&Arc<str>> {
        match self.meant() {
            Self::Delete(name) | Self::Rename(name, _) => Some(name),
            _ => None,
        }
    }
}
