//! Whether the disk has room: a commit that it refused is noted, and the next one that it takes is, too.
//!
//! While the disk is full, whoever asks whether messages are taken has that tried, at most once a second: with a commit as
//! large as a message, which changes nothing that anybody sees.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use weald::sync::Mutex;

/// What the disk has done with the last commit.
#[derive(Default)]
pub(crate) struct Refusals {
    /// It refused it. Relaxed everywhere: it is a hint, and orders nothing.
    pub(crate) is_full: AtomicBool,
    pub(crate) tried: Mutex<Option<Instant>>,
}
