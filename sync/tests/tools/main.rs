//! The tools: what each promises, one file for each of them. One program, so that it is linked once.
//!
//! Tests about order, or about a dropped wait, poll by hand, so that each step happens when the test says so;
//! tests about contention run on OS threads.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod hand;

mod channel;
mod mutex;

mod barrier;
mod condvar;
mod exchanger;
mod full_empty;
mod ivar;
mod mvar;
mod once;
mod oneshot;
mod rwlock;
mod semaphore;
mod uncond;
mod user_panics;
mod wait_group;
