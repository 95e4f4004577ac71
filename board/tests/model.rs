//! The boards without HTTP, each test on a forest in memory and on one on disk.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

#[path = "model/changing.rs"]
mod changing;
#[path = "model/demo.rs"]
mod demo;
#[path = "model/erasing.rs"]
mod erasing;
#[path = "model/following.rs"]
mod following;
#[path = "model/freeing.rs"]
mod freeing;
#[path = "model/measures.rs"]
mod measures;
#[path = "model/names.rs"]
mod names;
#[path = "model/restarts.rs"]
mod restarts;
#[path = "model/searching.rs"]
mod searching;
#[path = "model/writing.rs"]
mod writing;
