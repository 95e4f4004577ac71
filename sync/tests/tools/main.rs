//! The tools: what each promises, one file for each of them. One program, so that it is linked once.
//!
//! What is about order, or about a wait that is dropped, is polled by hand, so that each step happens when
//! the test says so; what is about contention runs on OS threads.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod hand;

mod channel;
mod mutex;

mod barrier;
mod condvar;
mod exchanger;
mod ivar;
mod mvar;
mod once;
mod oneshot;
mod rwlock;
mod semaphore;
mod user_panics;
mod wait_group;
