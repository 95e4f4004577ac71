//! Shared by every Rust rival: reading the arguments, memory figures, the traffic pattern, and printing metrics.
//!
//! Invariant: nothing here runs inside a measured section except [`Tally::count`], the generator of targets and the
//! programs that fork. Any rival of this workspace may call it; it starts no thread but the one that ends a burst.

mod args;
mod forking;
mod measure;
mod report;
mod sleeping;
mod stalling;

pub use args::{Call, Kind, all_keys, split};
pub use forking::fork;
pub use measure::{
    Tally, bind_to_processors, commit_at_once, compute_for, rss_bytes, use_processors,
};
pub use report::{bad_usage, fail, locked_versions, per, print, print_metrics, tell_version};
pub use sleeping::{Captured, HOUR, figures_of_line, print_line};
pub use stalling::{OFFENCE, Offender, REST, Stall};

/// The programs that fork and join, the clients of servers, and what is measured with, from the same files that Weald
/// runs: see `lab/src/programs.rs`.
#[path = "../../../src/programs"]
pub mod programs {
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
}

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
