//! The programs that fork and join, the clients of servers, and what workloads are measured with, written once for
//! Weald and its rivals.
//!
//! Invariant: nothing here depends on a particular system or on any other module of this crate, because the
//! rivals' workspace includes these files by path. So all systems in Rust run the same source, and their
//! serial programs are that source with two calls in place of a fork.

mod alarm;
pub mod board;
pub mod board_size;
pub mod clients;
pub mod dialogue;
pub mod epoll;
pub mod fib;
pub mod fork;
pub mod items;
pub mod lateness;
pub mod listeners;
pub mod load;
pub mod measure;
pub mod memory;
mod processors;
pub mod quantile;
pub mod queens;
pub mod quicksort;
pub mod scenes;
pub mod served;
mod slices;
pub mod slope;
pub mod threads;
pub mod ticks;
pub mod tree;
pub mod visitors;
pub mod xorshift;
