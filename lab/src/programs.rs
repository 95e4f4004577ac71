//! The programs that fork and join, written once for Weald and for its rivals in Rust.
//!
//! Invariant: nothing here knows a system or any other module of this crate, because the rivals'
//! workspace takes these files by their path. So all systems in Rust run the same source, and their
//! serial programs are that source with two calls in the place of a fork.

pub mod fib;
pub mod fork;
pub mod measure;
pub mod queens;
pub mod quicksort;
pub mod slope;
pub mod threads;
pub mod tree;
