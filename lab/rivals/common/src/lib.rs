//! Shared by every Rust rival: reading the arguments, memory figures, the traffic pattern, and printing metrics.
//!
//! Invariant: nothing here runs inside a measured section except [`Tally::count`], [`Xorshift::next_below`] and the
//! programs that fork. Any rival of this workspace may call it; it starts no thread but the one that ends a burst.

mod args;
mod forking;
mod measure;
mod report;
mod sleeping;
mod stalling;

pub use args::{Call, Kind, is_workload};
pub use forking::fork;
pub use measure::{
    Tally, Xorshift, bind_to_processors, commit_at_once, compute_for, expected_counts, rss_bytes,
    use_processors,
};
pub use report::{Lateness, bad_usage, fail, locked_versions, per, print, print_metrics};
pub use sleeping::{Captured, HOUR, Lateness99, print_line};
pub use stalling::{CALM, OFFENCE, Offender, REST, Stall, TICK, TickLog};

/// The programs that fork and join, and the clients of servers, from the same files that Weald runs: see
/// `lab/src/programs.rs`.
#[path = "../../../src/programs"]
pub mod programs {
    pub mod board;
    pub mod board_size;
    pub mod clients;
    pub mod dialogue;
    pub mod epoll;
    pub mod fib;
    pub mod fork;
    pub mod items;
    pub mod listeners;
    pub mod load;
    pub mod measure;
    pub mod queens;
    pub mod quicksort;
    pub mod scenes;
    pub mod served;
    pub mod slope;
    pub mod threads;
    pub mod tree;
    pub mod visitors;
}

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
