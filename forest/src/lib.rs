//! The database: named trees of which every version is kept, and commits that bring them forward.
//!
//! - A [`Forest`] has trees by name; a [`Trunk`] is one of them.
//! - Reading: a [`Snapshot`] is owned, a [`View`] borrowed; neither waits, and nobody waits for them.
//! - Writing: an [`Edit`] is private; its [`Commit`] is published, brought to a newer version, or refused
//!   with a typed [`Conflict`]. `docs/commits.md` says what goes together.
//! - It lies in memory only: what shall outlive the program a [`Journal`] has to keep.
//! - A [`Version`] numbers a moment of the whole forest.
//!
//! To follow a commit read `commit` → `asking` → `combiner` → `prepare` → `publish`.
//!
//! Every wait is a future and any executor will do; [`Wait`] waits with the thread. Absent: runtimes,
//! files, and the tree's own representation (`weald-tree`).

#![forbid(unsafe_code)]

// What the forest has.
mod builder;
mod forest;
mod line;
mod past;
mod root;
mod trunk;
mod version;

mod erasable;
mod index;
mod sorted;

// Writing.
mod commit;
mod edit;
mod update;

mod aftermath;
mod asking;
mod combiner;
mod desk;
mod inside;
mod known;
mod prepare;
mod publish;
mod request;
mod turn;

// Reading.
mod query;
mod together;
mod watch;

// What stands around it.
mod clock;
mod error;
mod journal;
mod stats;
mod wait;
mod weight;

pub use builder::{Builder, KEPT};
pub use clock::{Clock, SystemClock};
pub use commit::{Commit, Committing, MAX_BYTES};
pub use edit::Edit;
pub use erasable::{Blob, BlobId, Value};
pub use error::{CommitError, Conflict, NameError, VersionError};
pub use forest::Forest;
pub use journal::{Change, Journal, Record};
pub use query::{Found, Plan, Query};
pub use root::{Root, Snapshot, View};
pub use stats::Stats;
pub use trunk::Trunk;
pub use update::UpdateError;
pub use version::{CommitId, Committed, Version};
pub use wait::Wait;
pub use watch::{Seen, Since, Watch, WatchEnd, WatchError};
pub use weald_tree::{
    Attributes, Bytes, Census, Diff, EditError, Node, NodeId, Operation, Path, PathError, Read,
    Subtree, Tree, Where,
};
pub use weight::Weight;
