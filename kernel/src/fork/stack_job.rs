//! A forked half: a closure in the stack frame of its join, which the owner or a thief runs.
//!
//! Who may touch it, by situation:
//! - *owner*: the join that made it, before it is pushed and after it was popped or given back;
//! - *thief*: the one that stole it, until its job is done;
//! - *after*: the owner again, once that job is done.
//!
//! The [`Deque`](crate::fork::deque::Deque) and the end of the thief's job hand it from one to the next. It does
//! not move in between, and its frame stays until the join has it back, also when it unwinds.

#![allow(unsafe_code)]

use std::{
    any::Any,
    cell::UnsafeCell,
    mem::MaybeUninit,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// What a closure left: its result, or the payload of its panic.
pub(super) type ClosureResult<B> = Result<B, Box<dyn Any + Send>>;

/// What thieves see of a half.
pub(super) struct EntryHeader {
    /// Runs the closure, and keeps its outcome in the half.
    run: unsafe fn(*const EntryHeader),
}

/// A half whose closure is `G`.
#[repr(C)]
pub(super) struct StackJob<G, B> {
    header: EntryHeader,
    func: UnsafeCell<MaybeUninit<G>>,
    outcome: UnsafeCell<MaybeUninit<ClosureResult<B>>>,
}

impl<G: FnOnce() -> B, B> StackJob<G, B> {
    #[inline(always)]
    pub(super) fn new(func: G) -> StackJob<G, B> {
        StackJob {
            header: EntryHeader { run: Self::run },
            func: UnsafeCell::new(MaybeUninit::new(func)),
            outcome: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// The address by which thieves know it.
    #[inline(always)]
    pub(super) fn as_entry(&self) -> *mut EntryHeader {
        std::ptr::from_ref(self).cast::<EntryHeader>().cast_mut()
    }

    /// Takes the closure out.
    ///
    /// # Safety
    /// Owner; nobody has taken the closure.
    #[inline(always)]
    pub(super) unsafe fn take(&self) -> G {
        // SAFETY: owner: nobody else touches the half.
        let func = unsafe { &*self.func.get() };
        // SAFETY: the caller's promise: it is still there, and is read once.
        unsafe { func.assume_init_read() }
    }

    /// Takes the outcome out.
    ///
    /// # Safety
    /// After: the thief has run the half, and its job is done.
    pub(super) unsafe fn take_outcome(&self) -> ClosureResult<B> {
        // SAFETY: after: nobody else touches the half.
        let outcome = unsafe { &*self.outcome.get() };
        // SAFETY: `run` wrote it, and it is read once.
        unsafe { outcome.assume_init_read() }
    }

    unsafe fn run(half: *const EntryHeader) {
        // SAFETY: `half` came from `as_entry` of a half of this very type, whose frame stays.
        let half = unsafe { &*half.cast::<StackJob<G, B>>() };
        // SAFETY: thief: the closure is its own.
        let func = unsafe { half.take() };
        let outcome = catch_unwind(AssertUnwindSafe(func));
        // SAFETY: thief: nobody else touches the half.
        unsafe { (*half.outcome.get()).write(outcome) };
    }
}

/// A half in the hands of its thief.
pub(super) struct StolenEntry(*const EntryHeader);

// SAFETY: thief: the closure and its result may move between threads: `join` asks for it.
unsafe impl Send for StolenEntry {}

impl StolenEntry {
    /// # Safety
    /// The caller has just stolen `entry`.
    pub(super) unsafe fn new(entry: *mut EntryHeader) -> StolenEntry {
        StolenEntry(entry)
    }

    /// Runs the closure; a panic is kept in the half.
    pub(super) fn run(self) {
        // SAFETY: thief: alive, because its join waits for the thief.
        let run = unsafe { (*self.0).run };
        // SAFETY: thief, once: `self` is consumed.
        unsafe { run(self.0) };
    }
}
