//! A counted reference to a job, and the end of its block.
//!
//! [`crate::job::header`] makes the argument for the safety of what is done here; the blocks below point to
//! the situations named there.

#![allow(unsafe_code)]

use std::{
    mem,
    ptr::{self, NonNull},
};

use crate::{
    job::{
        Header, JobPtr,
        body::{Outcome, VTable, stage},
        foreign_call,
    },
    memory::{self, BlockKind},
    report,
    sys::Ordering,
};

/// Beyond this many references the program aborts: a count that wraps would free a job in use. The bound is
/// far enough from the wrap for every thread that fits on a machine to overshoot it at once.
const MAX_REFS: u32 = u32::MAX / 2;

/// A counted reference to a job's header. The body may be gone long before.
pub(crate) struct JobRef(JobPtr);

impl JobRef {
    #[inline(always)]
    pub(crate) fn header(&self) -> &Header {
        // SAFETY: alive: this is one of the counts.
        unsafe { self.0.header() }
    }

    #[inline]
    pub(crate) fn ptr(&self) -> JobPtr {
        self.0
    }

    /// Whether there is no other reference at this moment. A walk over all jobs may create one at any time.
    #[inline(always)]
    pub(crate) fn is_last(&self) -> bool {
        // Relaxed: nothing is freed because of the answer.
        self.header().refs.load(Ordering::Relaxed) == 1
    }

    /// Gives the count up to the pointer; [`from_ptr`](JobRef::from_ptr) takes it back.
    #[inline]
    pub(crate) fn into_ptr(self) -> JobPtr {
        let job = self.0;
        mem::forget(self);
        job
    }

    /// # Safety
    /// The caller owns a count that it now gives to the new reference.
    #[inline]
    pub(crate) unsafe fn from_ptr(job: JobPtr) -> JobRef {
        JobRef(job)
    }

    /// # Safety
    /// The job is alive during the call.
    #[inline]
    pub(crate) unsafe fn new_for(job: JobPtr) -> JobRef {
        // SAFETY: the caller's promise.
        let refs = &unsafe { job.header() }.refs;
        // Relaxed: a new reference always comes from one that orders the access already.
        if refs.fetch_add(1, Ordering::Relaxed) > MAX_REFS {
            too_many_references();
        }
        JobRef(job)
    }

    /// A reference to the job in `block`, if it holds one.
    ///
    /// # Safety
    /// `block` is a job block during the call; it may be free.
    pub(crate) unsafe fn from_block(block: NonNull<u8>) -> Option<JobRef> {
        let job = block.cast::<Header>();
        // SAFETY: the caller's promise; of the header only the count is accessed.
        let refs = unsafe { &raw const (*job.as_ptr()).refs };
        // SAFETY: the count is only ever accessed as an atomic: `header::write` leaves it out.
        let refs = unsafe { &*refs };
        let more = |refs: u32| (refs > 0).then(|| refs + 1);
        let taken = refs.fetch_update(Ordering::Acquire, Ordering::Relaxed, more);
        // Created only now: dropping a reference gives a count back.
        taken.ok().map(|_| JobRef(JobPtr::from_raw(job)))
    }

    /// A reference to the job in `block`, if it holds one of the runtime with the number `runtime`. Jobs of others are
    /// left alone, because the last reference to a job may do something: for a walk of another runtime, which comes at
    /// any moment, that would be an event in a run of the test runtime.
    ///
    /// The block may become another runtime's job in this moment, so the caller reads the runtime again, when it may
    /// let go of jobs: the walk holds a lock that this needs.
    ///
    /// # Safety
    /// As [`from_block`](JobRef::from_block).
    pub(crate) unsafe fn from_block_of(block: NonNull<u8>, runtime: u16) -> Option<JobRef> {
        let job = block.cast::<Header>();
        // SAFETY: the caller's promise; of the header only the number is accessed.
        let number = unsafe { &raw const (*job.as_ptr()).runtime };
        // SAFETY: the number is only ever accessed as an atomic: `header::write` leaves it out.
        let number = unsafe { &*number };
        // Relaxed: it decides only whether the block is read more closely.
        if number.load(Ordering::Relaxed) != runtime {
            return None;
        }
        // SAFETY: the caller's promise.
        unsafe { JobRef::from_block(block) }
    }

    /// Moves the output of a job that is done to the caller.
    ///
    /// # Safety
    /// The caller owns the output, and `T` is the type of the job's output.
    pub(crate) unsafe fn take_output<T>(&self) -> Outcome<T> {
        let mut place = mem::MaybeUninit::<Outcome<T>>::uninit();
        let take = self.header().vtable.take_output;
        // SAFETY: output: the caller's promise; the place has the output's type.
        unsafe { take(self.0.as_raw(), place.as_mut_ptr().cast()) };
        // SAFETY: `take_output` wrote it.
        unsafe { place.assume_init() }
    }

    /// Drops the output of a job that is done, if it is still there.
    ///
    /// # Safety
    /// The caller owns the output.
    pub(crate) unsafe fn drop_output(&self) {
        if self.header().stage() == stage::OUTPUT {
            let drop_output = self.header().vtable.drop_output;
            // SAFETY: output: the caller's promise.
            unsafe { drop_output(self.0.as_raw()) };
        }
    }
}

/// The last reference to a job. What the job has left is dropped with it.
pub(crate) struct LastRef(JobPtr);

impl JobRef {
    /// Gives the reference up. Returns it if it was the last one.
    #[inline(always)]
    pub(crate) fn give_up(self) -> Option<LastRef> {
        let job = self.into_ptr();
        // SAFETY: alive: this was one of the counts until now.
        let refs = &unsafe { job.header() }.refs;
        // As in the drop of a reference.
        (refs.fetch_sub(1, Ordering::AcqRel) == 1).then(|| LastRef(job))
    }
}

impl Drop for LastRef {
    fn drop(&mut self) {
        // SAFETY: alive: that was the last count, and the body was dropped at completion, before the job's own count
        // was.
        unsafe { free(self.0) };
    }
}

impl Clone for JobRef {
    #[inline]
    fn clone(&self) -> JobRef {
        // SAFETY: alive: `self` is one of the counts.
        unsafe { JobRef::new_for(self.0) }
    }
}

impl Drop for JobRef {
    #[inline]
    fn drop(&mut self) {
        // Release: this thread's last accesses come before the free. Acquire: the free comes after
        // the last accesses of all others.
        if self.header().refs.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: alive: that was the last count, and the body was dropped at completion, before the
            // job's own count was.
            unsafe { free(self.0) };
        }
    }
}

#[cold]
fn too_many_references() -> ! {
    // An abort and not a panic: no thread may continue with a count at its edge.
    report::abort(format_args!(
        "weald: a job has more than {MAX_REFS} references; pids or wakers are being leaked\n"
    ))
}

/// Frees the block of a job that nobody can reach any longer.
///
/// # Safety
/// The caller had the last reference, and the body holds nothing.
#[inline(never)]
unsafe fn free(job: JobPtr) {
    // SAFETY: alive: the caller holds the last count.
    if !unsafe { job.header() }.extensions.is_empty() {
        // SAFETY: the caller's promise.
        unsafe { drop_extensions(job) };
    }
    // SAFETY: the caller's promise; without extensions the header needs no destructor.
    unsafe { give_back(job) };
}

/// # Safety
/// As [`free`].
#[cold]
#[inline(never)]
unsafe fn drop_extensions(job: JobPtr) {
    if report::forbids_user_code() {
        // SAFETY: alive: the caller holds the last count.
        foreign_call::leave(unsafe { job.header() });
    }
    // SAFETY: as above.
    let extensions = unsafe { &raw mut (*job.as_raw().as_ptr()).extensions };
    // SAFETY: no other thread has access any longer.
    unsafe { ptr::drop_in_place(extensions) };
}

/// Gives the block of a job back.
///
/// # Safety
/// Nobody can reach the job any longer, the body holds nothing, and there are no extensions, or they were dropped.
#[inline(always)]
pub(super) unsafe fn give_back(job: JobPtr) {
    // SAFETY: the block is still the job's.
    let VTable { layout, class, .. } = *unsafe { job.header() }.vtable;
    // SAFETY: `new` took the block from the same kind and layout.
    unsafe { memory::free_of(class, BlockKind::Job, layout, job.as_raw().cast()) };
}
