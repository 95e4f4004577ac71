//! Shared by every Rust rival: reading the arguments, memory figures, the traffic pattern, and
//! printing metrics.
//!
//! Invariant: nothing here runs inside a measured section except [`Tally::count`],
//! [`Xorshift::next_below`] and the programs that fork. Any rival of this workspace may call it; it starts no thread.

mod args;
mod forking;
mod measure;
mod processes;
mod report;
mod sleeping;
mod stalling;
mod threading;
mod traffic;
mod waiting;

pub mod programs;
pub mod serving;

pub use args::{Call, Payload, Workload};
pub use forking::Forking;
pub use measure::{Tally, bind_to_processors, compute_for, print_footprint, rss_bytes};
pub use processes::Processes;
pub use report::{Lateness, bad_usage, fail, locked_versions, per, print_metrics};
pub use serving::Serving;
pub use sleeping::{Captured, HOUR, Lateness99, SETTLE, Sleeper, Sleeping, print_line};
pub use stalling::{CALM, OFFENCE, Offender, REST, Stall, TICK, TickLog};
pub use threading::Threading;
pub use traffic::{Xorshift, expected_counts, total_messages};
pub use waiting::{Inside, Kind, Thing, Waiting};

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
