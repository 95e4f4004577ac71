//! Which process this is: one that was forked (`fork(2)`) has none of the runtime's threads, and must notice that.
//!
//! The number of a process stands in a page of its own that the system wipes in a forked process, before anything runs
//! there. So to ask costs two loads; and a process that has the pid of its parent, in a namespace of its own, is told
//! apart, too. Where the system does not wipe pages, the pid is the number.
//!
//! # Safety
//! *Never unmapped*: the page stays until the program ends.

#![allow(unsafe_code)]

use std::{
    process, ptr,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};

use crate::stack::PAGE;

/// The number of a process that has asked for it. No process that it forks has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessNumber(u64);

impl ProcessNumber {
    /// That of the calling process.
    pub(crate) fn here() -> ProcessNumber {
        /// A forked process goes on counting where the other one was.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let Some(page) = page() else {
            return ProcessNumber(u64::from(process::id()));
        };
        // Relaxed: it guards no other memory.
        let (new, order) = (NEXT.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        match page.compare_exchange(0, new, order, order) {
            Ok(_) => ProcessNumber(new),
            Err(number) => ProcessNumber(number),
        }
    }

    /// Whether the calling process is that one.
    #[inline(always)]
    pub(crate) fn is_here(self) -> bool {
        match page() {
            Some(page) => page.load(Ordering::Relaxed) == self.0,
            None => u64::from(process::id()) == self.0,
        }
    }

    /// # Panics
    /// In another process: what the caller is about to wait for will not happen there.
    #[inline]
    pub(crate) fn assert_here(self) {
        if !self.is_here() {
            not_here();
        }
    }
}

/// The page that the system wipes in a forked process. None if it does not.
#[inline(always)]
fn page() -> Option<&'static AtomicU64> {
    static WIPED: OnceLock<Option<&'static AtomicU64>> = OnceLock::new();
    *WIPED.get_or_init(map)
}

#[cold]
fn not_here() -> ! {
    panic!(
        "the runtime's threads are in the process that forked this one: start a runtime here, or call exec"
    )
}

#[cold]
fn map() -> Option<&'static AtomicU64> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the address is chosen by the system, so nothing else is there.
    let mapped = unsafe { mmap_anonymous(ptr::null_mut(), PAGE, protection, MapFlags::PRIVATE) };
    let page = mapped.ok()?;
    // SAFETY: the page was just mapped, and a forked process expects nothing in it.
    unsafe { madvise(page, PAGE, Advice::LinuxWipeOnFork) }.ok()?;
    // SAFETY: never unmapped, and its zeroes are a valid value.
    Some(unsafe { &*page.cast::<AtomicU64>() })
}
