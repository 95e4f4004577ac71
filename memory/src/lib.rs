//! Shared blocks of memory behind safe types: what a persistent structure is made of.
//!
//! - [`Shared`] is a counted pointer to one value. It is changed in place while it has one owner, and copied
//!   first otherwise.
//! - [`SharedEither`] is nothing, or a counted pointer to a value of one of two types, in one word.
//! - [`Cells`] are up to sixteen small values in one counted block. Plain data is copied with the block, by one
//!   copy of memory; only the other values are looked at when the block is copied or freed. A [`Filling`] is two such
//!   blocks before anybody shares them.
//! - A [`Slot`] has the newest of a sequence of values: any thread loads it while others replace it.
//!
//! Blocks come from slabs that every thread has of its own, one for each size. A free block costs one word, and a
//! slab whose blocks are all free goes back to the allocator of the program. Needs no runtime.
//!
//! All `unsafe` of the trees is in this crate: a type whose safety needs an argument has it at its head.

// Atomics, including those of loom.
mod sys;

// Where blocks come from.
mod pool;

// The contents of blocks.
mod cells;
mod filling;
mod shared;
mod shared_either;
mod slot;

// What loom explores.
#[cfg(all(test, loom))]
mod models;

pub use cells::{CELLS, Cells, Item};
pub use filling::Filling;
pub use pool::trim;
pub use shared::Shared;
pub use shared_either::{Either, SharedEither};
pub use slot::Slot;
