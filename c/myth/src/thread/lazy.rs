//! Threads on several workers: mostly no jobs. A thread is left to whoever joins it, who runs it as a call; if its
//! creator waits, it is joined with a limit, or another worker has nothing to do, a job is made of it
//! ([`weald_kernel::push_lazy`]).
//!
//! # Safety
//! *Three holds*, *one joiner*: at the head of [`super`].

#![allow(unsafe_code)]

use std::mem::offset_of;

use weald_kernel::{JoblessRun, LazyJob, push_lazy, put_back_lazy, take_lazy};

use super::{Begins, Start, Thread, run_on_top, spawn, store};
use crate::runtime::{self, Global};

impl Thread {
    /// Leaves a thread to whoever joins it, or to another worker. False if that is not possible here, if nobody joins
    /// it, or if its stack is of another size than most, so that the system may refuse it.
    #[inline(always)]
    pub(super) fn leave_to_joiner(global: &Global, thread: *const Thread, start: &Start) -> bool {
        if start.detached || start.stack_size != global.stack_size {
            return false;
        }
        // SAFETY: *three holds*: it has not ended.
        let this = unsafe { &*thread };
        // One by one: a copy of what was just written waits until all parts of it are written.
        this.function.set(Some(start.function));
        this.argument.set(start.argument);
        this.stack_size.set(start.stack_size);
        // SAFETY: *three holds*: the block stays until the thread has ended, for which somebody must take it out.
        unsafe { push_lazy(&this.lazy, make_job) }
    }

    /// The joiner of a thread that was left to it runs it, or makes a job of it. True if it has ended without a job, so
    /// that only the joiner knows it.
    ///
    /// # Safety
    /// *One joiner*: the caller is it.
    pub(super) unsafe fn run_lazy(thread: *const Thread) -> bool {
        // SAFETY: the caller's promise.
        let this = unsafe { &*thread };
        let Some(global) = runtime::running().filter(|_| this.take_back()) else {
            return false;
        };
        let Some(start) = left(this, global) else {
            return false;
        };
        match run_on_top(global, thread, &start, Begins::Joined) {
            JoblessRun::Ended => return true,
            // SAFETY: the caller stands for its creator.
            JoblessRun::Job(handle) => unsafe { store(thread, handle) },
            // SAFETY: it was taken out above.
            JoblessRun::Refused => unsafe { this.make_job_or_put_back() },
        }
        false
    }

    /// Makes a job of a thread if it was left to its joiner, by whom this is called. If the system has refused it a
    /// stack, that is left to the workers, which try again at times.
    pub(super) fn make_job_if_left(&self) {
        if !self.lazy.is_refused() && self.take_back() {
            // SAFETY: it was taken out above.
            unsafe { self.make_job_or_put_back() };
        }
    }

    /// Takes it back from whichever worker has it.
    fn take_back(&self) -> bool {
        // SAFETY: there is one runtime at a time, and no thread is used after the end of its own (myth.h).
        unsafe { take_lazy(&self.lazy) }
    }

    /// # Safety
    /// The caller has taken it out.
    unsafe fn make_job_or_put_back(&self) {
        // SAFETY: the caller's promise.
        if !unsafe { make_job(&raw const self.lazy) } {
            // SAFETY: as in `leave_to_joiner`. If the runtime ends, those that wait for it are ended in their waits.
            unsafe { put_back_lazy(&self.lazy, make_job) };
        }
    }
}

/// What a thread is to do that was left to its joiner. By whoever has taken it out.
fn left(this: &Thread, global: &Global) -> Option<Start> {
    Some(Start {
        function: this.function.get()?,
        argument: this.argument.get(),
        stack_size: this.stack_size.get(),
        detached: false,
        child_first: global.child_first,
    })
}

/// Makes a job of a thread that was left to its joiner. False if there is no stack for it, or if the runtime ends.
///
/// # Safety
/// It was, and the caller has taken it out.
unsafe fn make_job(lazy: *const LazyJob) -> bool {
    // SAFETY: it is in its thread's block.
    let thread: *const Thread = unsafe { lazy.byte_sub(offset_of!(Thread, lazy)) }.cast();
    let Some(global) = runtime::running() else {
        return false;
    };
    // SAFETY: *three holds*: it has not ended.
    let Some(start) = left(unsafe { &*thread }, global) else {
        return false;
    };
    match spawn(global, thread, start) {
        Ok(handle) => {
            // SAFETY: the caller stands for its creator.
            unsafe { store(thread, handle) };
            true
        }
        Err(_refused) => false,
    }
}
