//! A forest on disk: a commit that it has acknowledged as durable survives everything short of losing the medium.
//!
#![doc = include_str!("page.md")]
// To follow a commit read `disk_journal` (`append`) → `log` (its place) → `threads` (`serve`, the life of a thread) →
// `next_step` (what is to be done) → `core` (`write`) → `directory`. The forest then calls `disk_journal`
// (`when_reached`). An author that waits until its commit is buffered may write it itself (`lead`). For one that waits
// until it is durable a sync is due: `threads` → `core` (`sync`) → `wakes` (`run`) → the mark of the forest (`raise`).
//
// To follow an opening read `open` (its steps) → `recover` → `needed_keys` → `disk_forest` (`recover`), and then
// `recover/open` of the forest. A torn tail is cut off by `open` (`begin_segment`), on a full disk with the room of
// `reserve`. For reading, even while a program writes: `read_only_forest` → `read_only_journal` → `seen` (`see`) →
// `recover` (`find`).
//
// Erasable bytes: `blob` (sealed, each under a key of its own), `keys` and `key_file` (the keys), `blob_reader`.
// Reading: `follow` and `search` → `reader` → `frame`. An earlier moment: `past` (`at`). Checkpoints are written, and
// history that is too old is removed, on a thread of the forest (`keeper`). Files are on a medium (`medium`): a
// `directory`, or a `simulated` disk that fails on a seed.
//
// The modules are in layers: a file imports only from its own layer and from earlier ones in this list.
#![forbid(unsafe_code)]

// Places and names.
mod medium;
mod names;
mod place;

// What a medium may be.
mod directory;
mod faults;
mod read_only;
mod sectors;
mod simulated;

// Files on a medium.
mod unfinished;

// The bytes.
mod blob;
mod chain;
mod checkpoint;
mod erased;
mod error;
mod frame;
mod head;
mod key_file;
mod keys;
mod master_key;
mod reader;
mod segment_list;
mod segments;

// What several of the files above make together.
mod blob_reader;
mod reserve;

// The end of the journal in memory, and what is to be done next.
mod ahead;
mod body;
mod item;
mod leading;
mod log;
mod next_step;
mod put_ahead;
mod regroup;
mod settings;
mod waiting;
mod wakes;

// The work, the opening, and reading what is there.
mod close;
mod core;
mod failing;
mod follow;
mod lead;
mod maintenance;
mod needed_keys;
mod open;
mod prepare;
mod recover;
mod removed;
mod room;
mod search;
mod searching;
mod seen;
mod threads;
mod together;
mod write_ahead;

// The journal, as users see it.
mod disk_journal;
mod past;
mod read_only_journal;
mod sizes;

// The forest on it.
mod commits_after;
mod disk_forest;
mod keeper;
mod open_forest_error;
mod read_only_forest;

// How errors are printed.
mod sentences;

#[cfg(test)]
mod interleaved;
#[cfg(test)]
mod standing;

pub use core::Work;
pub use directory::Directory;
pub use disk_forest::DiskForest;
pub use disk_journal::DiskJournal;
pub use error::{Damage, OpenError};
pub use master_key::MasterKey;
pub use medium::{LockError, Medium, MediumFile};
pub use open_forest_error::OpenForestError;
pub use past::{Moment, PastError};
pub use read_only_forest::ReadOnlyForest;
pub use read_only_journal::ReadOnlyJournal;
pub use settings::Settings;
pub use simulated::SimulatedDisk;
pub use sizes::{Size, Sizes};

pub mod format {
    //! The files of a journal byte by byte: what a medium must do, and what happens after each kind of end.
    //!
    #![doc = include_str!("../docs/journal.md")]
}
