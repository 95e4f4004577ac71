//! The one place that chooses between `std` and loom, for what models explore: queues, and the tools that wait in them.

#[cfg(loom)]
pub(crate) use loom::{
    sync::atomic::{AtomicU8, AtomicU32, AtomicUsize},
    thread::yield_now,
};
#[cfg(not(loom))]
pub(crate) use std::{
    sync::atomic::{AtomicU8, AtomicU32, AtomicUsize},
    thread::yield_now,
};

/// Lets the processor rest while another thread does its next few instructions.
pub(crate) fn spin() {
    #[cfg(loom)]
    yield_now();
    #[cfg(not(loom))]
    std::hint::spin_loop();
}

/// As [`spin`], between a few looks. No step of a model: a thread that yields there runs on only when no other can, and
/// would always find what it looks for.
pub(crate) fn pause() {
    #[cfg(not(loom))]
    spin();
}
