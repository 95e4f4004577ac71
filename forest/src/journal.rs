//! The journal: what takes each commit before it becomes visible, and tells when it is durable.
//!
//! A forest has one journal, and one record carries one commit over any number of trees, so trees change
//! together without help from the medium. A record is the outcome of a commit ([`Record`]); replaying all records in
//! their order on an empty forest makes the same trees, with the same ids and order keys.
//!
//! - [`MemoryJournal`] is one in memory; it also plays a slow or a failing medium.
//! - [`conformance`] is what every journal must pass.
//! - [`Marks`], [`notice`] and [`catch_foreign`] are tools for authors of journals.

pub mod conformance;
mod contract;
pub(crate) mod decode;
pub(crate) mod encode;
mod mark;
mod memory;
mod notices;
mod record;

pub use crate::content::erasable::{
    Blob, BlobId, BlobPlace, ErasableBytes, Erasure, references_in,
};
pub use crate::error::AppendError;
pub use crate::level::{Level, Position};
pub use crate::wake::catch_foreign;
pub use contract::{
    Appended, Capabilities, Checkpoint, CheckpointError, Durability, Entry, Follower, Journal,
    Later, ReadError, Resolved, Room, StoredCheckpoint,
};
pub use mark::{Marks, When};
pub use memory::MemoryJournal;
pub use notices::notice;
pub use record::{Change, Digest, Record, RecordError, Stored};
