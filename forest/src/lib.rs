//! The database: named trees that keep their versions, and commits that advance them.
//!
#![doc = include_str!("page.md")]
//!
//! Absent: runtimes, files, and the representation of a tree (`weald-tree`).

// To follow a commit read `tree_handle` (`edit`) → `commit` → `combine/submission` → `combine/publication_list` →
// `combine/combiner` → `combine/prepare` → `combine/acceptance` (the journal) → `combine/at_risk` → `combine/apply` →
// `combine/publish` → `state/deferred`; and, until it is durable, `combine/submission/reaching` (`poll_level`) →
// `state/forest_journal` (`when_reached`) → the journal's `when_reached`, which waits on its `journal/mark` (`when`),
// until the journal raises that (`raise`). `weald-journal` has the part between.
//
// To follow an opening read `recover/open` (`recover`) → `recover/recovery` → `recover/recovered_tree`, and then
// `note_opening` in `recover/open`, which appends the record of the opening. Many records are decoded by one thread and
// applied by another (`recover/pipeline`). Of a tree only what is kept becomes a version. A checkpoint is made in
// `recover/checkpoint`, of a moment that the combiner names (`combine/checkpoint_moment`).
//
// A read: `tree_handle` (`snapshot`, `view`) → `state/root`; of several trees, `read/together`. The head of `update`
// has the steps of an update. A failure of the journal: `combine/fall_back`. The versions that a tree keeps
// (`state/history`, `state/kept`) are also those that its watches read (`read/watch`). Indexes belong to a version as
// its nodes do (`content/index`, `content/sorted`). The journal is a trait, which takes a record for each commit
// (`journal/record`); `journal/conformance` is what every journal must pass. Waits are futures, for any executor. Time
// comes from a clock that the builder is given (`clock`).
//
// The modules are in layers: a file imports only from its own layer and from earlier ones in this list.

#![forbid(unsafe_code)]

// What identifies commits and versions, why something is refused, and where the time comes from.
mod clock;
mod error;
mod level;
mod version;
mod wake;

// What a version has besides its nodes, and the record of a commit.
mod content {
    pub(crate) mod erasable_bytes;
    pub(crate) mod shelves;

    pub(crate) mod erasable;

    pub(crate) mod brought;
    pub(crate) mod held;
    pub(crate) mod index;
    pub(crate) mod many;
    pub(crate) mod references;
    pub(crate) mod sorted;
}
pub mod journal;

// The state of trees and of the forest: the versions that are kept, names, counters.
mod state {
    pub(crate) mod deferred;
    pub(crate) mod forest;
    pub(crate) mod forest_journal;
    pub(crate) mod happenings;
    pub(crate) mod history;
    mod kept;
    pub(crate) mod name;
    pub(crate) mod names;
    pub(crate) mod reentrancy;
    pub(crate) mod root;
    pub(crate) mod stats;
    pub(crate) mod tree;
}

// The way of a commit: flat combining, from the request to the published version.
mod combine {
    pub(crate) mod acceptance;
    pub(crate) mod apply;
    pub(crate) mod at_risk;
    pub(crate) mod author;
    pub(crate) mod bring_back;
    pub(crate) mod checkpoint_moment;
    pub(crate) mod combiner;
    pub(crate) mod commit_ids;
    pub(crate) mod digest;
    pub(crate) mod fall_back;
    pub(crate) mod forest_events;
    pub(crate) mod leases;
    pub(crate) mod make_versions;
    pub(crate) mod new_versions;
    pub(crate) mod outstanding;
    pub(crate) mod pending;
    pub(crate) mod prepare;
    pub(crate) mod publication_list;
    pub(crate) mod publish;
    pub(crate) mod request;
    pub(crate) mod rollback;
    pub(crate) mod shared;
    pub(crate) mod start;
    pub(crate) mod submission;
    pub(crate) mod unaccepted;
    pub(crate) mod write_leases;
}

// Writing, as users see it: an edit, its commit, and the handle of a tree.
mod commit;
mod edit;
mod requested;
mod tree_handle;
mod update;

// Reading beyond one version: queries, several trees at once, watches.
mod read {
    pub(crate) mod find;
    pub(crate) mod query;
    pub(crate) mod together;
    pub(crate) mod watch;
}

// The forest itself, as users see it.
mod builder;
mod events;
mod export;
mod forest;
mod undo;
mod update_all;
mod weight;

// A forest that is read back from its journal, and the checkpoints that shorten that.
mod recover {
    pub(crate) mod checkpoint;
    pub(crate) mod decoded;
    pub(crate) mod error;
    pub(crate) mod frames;
    pub(crate) mod happened;
    pub(crate) mod open;
    pub(crate) mod pipeline;
    pub(crate) mod recovered_tree;
    pub(crate) mod recovery;
}

// How errors are printed.
mod sentences;

pub use builder::{Builder, KEPT};
pub use clock::{Clock, SystemClock};
pub use commit::{Commit, Committing};
pub use content::erasable::{Blob, BlobId, ErasableBytes, Value};
pub use edit::Edit;
pub use error::{
    AppendError, CommitError, Conflict, DurableError, LostBytes, MAX_ERASABLE_NAME, MAX_NAME,
    NameError, VersionError,
};
pub use events::Events;
pub use forest::Forest;
pub use journal::{Journal, MemoryJournal};
pub use level::Level;
pub use read::find::{Found, Plan};
pub use read::query::{Cursor, NotACursor, Query};
pub use read::watch::{Seen, Since, Watch, WatchEnd, WatchError};
pub use recover::error::RecoverError;
pub use requested::Requested;
pub use state::happenings::Happening;
pub use state::root::{Root, Snapshot, View};
pub use state::stats::Stats;
pub use tree_handle::TreeHandle;
pub use update::{Terms, UpdateError};
pub use version::{CommitId, Committed, MAX_BYTES, NotAVersion, Version};
pub use weald_tree::{
    Attributes, BreadthFirst, Builder as TreeBuilder, Bytes, Census, Change, Climb, Diff,
    DocumentError, DocumentPieces, DocumentReader, EditError, Ids, JsonError, JsonPieces,
    JsonReader, Node, NodeId, NodeRecord, NotADocument, NotANodeId, NotXml, Operation, OrderKey,
    Outline, Path, PathError, Postorder, Preorder, Read, RecordsError, Replay, Script, Siblings,
    Sortable, Subtree, Target, Tree, ValueError, Where, XmlError, XmlPieces, XmlReader, shown,
    trim, value, write_value,
};
pub use weight::Weight;

pub mod commits {
    //! What commutes, what conflicts, and what a commit has read.
    //!
    #![doc = include_str!("../docs/commits.md")]
}
