//! The one place that chooses between `std` and loom.

#[cfg(loom)]
pub(crate) use loom::{
    sync::atomic::{AtomicUsize, fence},
    thread::yield_now,
};
#[cfg(not(loom))]
pub(crate) use std::{
    sync::atomic::{AtomicUsize, fence},
    thread::yield_now,
};

pub(crate) use std::sync::atomic::Ordering;
