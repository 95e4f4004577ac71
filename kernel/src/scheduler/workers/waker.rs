//! The waker of a job: a counted reference to its header, which any thread may use and keep.
//!
//! The kernel's own waits do not clone wakers. They see that a waker is the running job's ([`is_of`]) and keep the
//! job's address, which costs no atomic operation.

#![allow(unsafe_code)]

pub(crate) mod several;

use std::{
    mem::{self, ManuallyDrop},
    panic::{AssertUnwindSafe, catch_unwind},
    ptr::{self, NonNull},
    task::{RawWaker, RawWakerVTable, Waker},
};

use weald_sync::hooks::Parker;

use crate::{
    job::{
        Header, JobPtr, JobRef,
        foreign_call::{FiredBy, ForeignCall, ForeignCalls},
        foreign_waker, kept_waker,
        reference::LastRef,
        runnable::Runnable,
        transition::Owes,
    },
    memory::Owned,
    scheduler::{
        stackful::pinned::PinnedQueue,
        workers::{
            context,
            ready::{inject, ready, ready_calls},
            shared::{self, Shared},
        },
    },
};

// A static, not a constant: its address distinguishes our wakers from foreign ones.
static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop_waker);

/// The functions of the wakers of jobs.
pub(crate) fn table() -> &'static RawWakerVTable {
    &VTABLE
}

/// A waker for `job` that holds no count.
///
/// # Safety
/// The job is alive for as long as the waker is used.
#[inline(always)]
pub(crate) unsafe fn borrowed(job: JobPtr) -> ManuallyDrop<Waker> {
    let raw = RawWaker::new(job.as_raw().as_ptr().cast(), &VTABLE);
    // SAFETY: the functions below keep the contract of `RawWaker`; the caller keeps the job alive.
    ManuallyDrop::new(unsafe { Waker::from_raw(raw) })
}

/// Whether `waker` wakes `job` and nothing else.
#[inline(always)]
pub(crate) fn is_of(waker: &Waker, job: JobPtr) -> bool {
    ptr::eq(waker.data(), job.as_raw().as_ptr().cast()) && is_of_job(waker)
}

/// Whether `waker` wakes a job of the kernel.
#[inline]
fn is_of_job(waker: &Waker) -> bool {
    ptr::eq(waker.vtable(), &VTABLE)
}

/// Wakes the job of `waker`, which [`is_of_job`]. If any worker of this runtime may run it, returns the right to run
/// it, which is in no queue.
#[inline]
fn wake_to_run(waker: &Waker, runtime: u16) -> Option<Runnable> {
    debug_assert!(is_of_job(waker));
    let job = ptr_of(waker.data());
    // SAFETY: the waker keeps the job alive.
    let header = unsafe { job.header() };
    if header.state.wake() != Owes::Schedule {
        return None;
    }
    // SAFETY: the state just granted it.
    let woken = unsafe { Runnable::new(job) };
    // Asked only now: before, the job may have run, and pinned itself to another thread.
    if header.runs_anywhere() && header.runtime() == runtime {
        return Some(woken);
    }
    ready(woken);
    None
}

/// The job that a look lets run next, in front of the ring: the first that its timers have woken, else the oldest of
/// the injector. All others go behind the ring. The job is in no queue; if this is dropped, it goes to the injector.
///
/// The ring may be long, and each of its jobs may run for a while: beside processes that receive what others send
/// without end, a round of the ring takes more than a tick. A unit that sleeps now and then, or that waits for a file,
/// would be late by that each time. And while the ring is more than half full, no other job leaves the injector.
///
/// What does not starve:
/// - the ring, where each look finds such a job: at least one job of the core runs between two looks
///   ([`until_look`](crate::scheduler::workers::worker_core));
/// - the jobs that are pinned to the thread: while one is runnable, no further job goes first;
/// - the injector, where each look finds a due timer: those that are not first leave it as ever.
///
/// A test runtime draws the order of its jobs, so no job goes first there.
pub(crate) struct FirstOfLook<'a> {
    shared: &'a Shared,
    pinned: &'a PinnedQueue,
    job: Option<Runnable>,
}

impl<'a> FirstOfLook<'a> {
    /// For a look of a worker whose thread has this pinned queue.
    pub(crate) fn of(shared: &'a Shared, pinned: &'a PinnedQueue) -> FirstOfLook<'a> {
        FirstOfLook {
            shared,
            pinned,
            job: None,
        }
    }

    /// Whether the next job that the look finds goes first. Asked each time: this look may have made a pinned job
    /// runnable.
    fn is_wanted(&self) -> bool {
        self.job.is_none() && !self.shared.is_driven() && !self.pinned.has_runnable()
    }

    /// As [`call`]. A job that is to run next is kept back.
    #[inline]
    pub(crate) fn wake(&mut self, by: FiredBy, waker: Waker, calls: &mut ForeignCalls) {
        if by == FiredBy::Timer && is_of_job(&waker) && self.is_wanted() {
            self.job = wake_to_run(&waker, self.shared.id());
        } else {
            call(by, waker, calls);
        }
    }

    /// Takes the oldest job of the injector, if none goes first yet.
    pub(crate) fn take_injected(&mut self) {
        if self.shared.injector.len() == 0 || !self.is_wanted() {
            return;
        }
        let oldest = self.shared.injector.pop(1).pop().and_then(NonNull::new);
        // SAFETY: the injector held the job's right to run.
        self.job = oldest.map(|job| unsafe { Runnable::new(JobPtr::from_raw(job)) });
    }

    /// How many jobs go first.
    pub(crate) fn count(&self) -> usize {
        usize::from(self.job.is_some())
    }

    /// The job, which the caller runs.
    pub(crate) fn take(mut self) -> Option<Runnable> {
        self.job.take()
    }
}

impl Drop for FirstOfLook<'_> {
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            inject(self.shared, job);
        }
    }
}

/// Whether `waker` is the kernel's own, so that waking it only makes a job runnable or unparks a thread.
#[inline]
pub(crate) fn is_own(waker: &Waker) -> bool {
    is_of_job(waker) || Parker::is_waker(waker)
}

/// Wakes those of the wakers that `next` returns which [are own](is_own), and leaves the others in `foreign`. A thread
/// that waits on this OS thread is queued without the way through [`ready`].
pub(crate) fn wake_own(next: &mut dyn FnMut() -> Option<Waker>, foreign: &mut Vec<Waker>) {
    while let Some(last) = wake_until_last(next, foreign) {
        free_caught(last);
    }
}

/// [`wake_own`] until there is a job of which this was the last reference.
// In a frame of its own: what `free_caught` drops is user code, which may wait, so that a fiber migrates between two
// wakes.
#[inline(never)]
fn wake_until_last(
    next: &mut dyn FnMut() -> Option<Waker>,
    foreign: &mut Vec<Waker>,
) -> Option<LastRef> {
    let pinned = context::here().pinned_here();
    while let Some(waker) = next() {
        if !is_of_job(&waker) {
            match Parker::is_waker(&waker) {
                true => waker.wake(),
                false => foreign.push(waker),
            }
            continue;
        }
        // SAFETY: the waker's count is given to the reference.
        let job = unsafe { JobRef::from_ptr(ptr_of(waker.data())) };
        mem::forget(waker);
        if job.header().state.wake() == Owes::Schedule {
            // SAFETY: the state just granted it.
            let woken = unsafe { Runnable::new(job.ptr()) };
            match pinned {
                Some(pinned) if woken.header().is_suspended_at(pinned) => pinned.push_own(woken),
                _ => ready(woken),
            }
        }
        if let Some(last) = job.give_up() {
            return Some(last);
        }
    }
    None
}

/// In a frame of its own: between two wakes there may be user code, which may wait, so that a fiber migrates. A frame
/// that has read the thread's context must not do so again then.
#[inline(never)]
fn queue_woken(woken: Runnable) {
    match context::here().pinned_here() {
        Some(pinned) if woken.header().is_suspended_at(pinned) => pinned.push_own(woken),
        _ => ready(woken),
    }
}

/// The values that the job has left are dropped, which is user code.
#[cold]
fn free_caught(last: LastRef) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(last))) {
        foreign_waker::report_panic(payload);
    }
}

/// A clone of `waker` that waits until something fires it. A foreign waker is kept together with the job that
/// registered it, for reports.
#[inline]
pub(crate) fn kept(waker: &Waker) -> Waker {
    keep(waker.clone())
}

/// As [`kept`], of a clone that the caller has made.
#[inline]
pub(crate) fn keep(waker: Waker) -> Waker {
    match is_own(&waker) {
        true => waker,
        false => keep_foreign(waker),
    }
}

#[cold]
fn keep_foreign(waker: Waker) -> Waker {
    match context::with(context::Context::job_ref) {
        Some(job) => kept_waker::keep(waker, job),
        None => waker,
    }
}

/// Wakes `waker`, or drops it if its wait was cancelled. A waker of the kernel is called at once, a foreign one is left
/// in `calls`.
#[inline]
pub(crate) fn call(by: FiredBy, waker: Waker, calls: &mut ForeignCalls) {
    match is_own(&waker) {
        true if by == FiredBy::Cancel => drop(waker),
        true => waker.wake(),
        false => calls.push(ForeignCall::new(by, waker)),
    }
}

/// As [`call`], for a waker that a job of this `runtime` leaves behind at its end. The call is made as soon as a worker
/// is free.
pub(crate) fn call_at_end(runtime: u16, by: FiredBy, waker: Waker) {
    let mut calls = ForeignCalls::default();
    call(by, waker, &mut calls);
    if !calls.is_empty() {
        make_calls(runtime, calls);
    }
}

/// Makes a call in a job of its own, in the runtime with this number. The call is made here if the runtime is gone.
pub(crate) fn make_call(runtime: u16, call: ForeignCall) {
    let mut calls = ForeignCalls::default();
    calls.push(call);
    make_calls(runtime, calls);
}

fn make_calls(runtime: u16, calls: ForeignCalls) {
    let here = context::here().shared();
    match here.filter(|shared| shared.id() == runtime) {
        Some(shared) => ready_calls(shared, calls),
        None => match shared::find(runtime) {
            Some(shared) => ready_calls(&shared, calls),
            // Without a runtime, this thread makes the call.
            None => drop(calls),
        },
    }
}

/// Wakes `wakers`, which descriptors fired.
pub(crate) fn wake_ready(shared: &Shared, wakers: impl IntoIterator<Item = Waker>) {
    let mut calls = ForeignCalls::default();
    for waker in wakers {
        call(FiredBy::Descriptor, waker, &mut calls);
    }
    ready_calls(shared, calls);
}

/// Makes `job` runnable, if it waits. Every wait ends here, except one for a message (`api/mailbox.rs`, `post_link`).
#[inline(always)]
pub(crate) fn wake_job(job: &Header, ptr: JobPtr) {
    match job.state.wake() {
        // SAFETY: the state just granted it.
        Owes::Schedule => ready(unsafe { Runnable::new(ptr) }),
        Owes::Nothing | Owes::Unblock => {}
    }
}

/// The bit of a [word](into_word) that tells a block with a waker from a job: both are aligned to 8.
const IN_BLOCK: usize = 1;

/// A waker as one word, which is neither null nor 8 or 16: the address of the job that it wakes, with the waker's
/// count, or of a block with any other waker.
pub(crate) fn into_word(waker: Waker) -> *mut () {
    match is_of_job(&waker) {
        true => ManuallyDrop::new(waker).data().cast_mut(),
        false => into_block(waker),
    }
}

#[cold]
fn into_block(waker: Waker) -> *mut () {
    let block: NonNull<Waker> = Owned::new(waker).into_raw();
    block.as_ptr().cast::<()>().map_addr(|a| a | IN_BLOCK)
}

/// Whether `word` came from the waker of the same job as `waker`.
#[inline(always)]
pub(crate) fn is_word_of(word: *mut (), waker: &Waker) -> bool {
    ptr::eq(waker.data(), word) && is_of_job(waker)
}

/// # Safety
/// `word` came from [`into_word`], and is turned back once.
pub(crate) unsafe fn from_word(word: *mut ()) -> Waker {
    if word.addr() & IN_BLOCK == 0 {
        let raw = RawWaker::new(word, &VTABLE);
        // SAFETY: the caller's promise: the count of such a waker.
        return unsafe { Waker::from_raw(raw) };
    }
    let block: *mut Waker = word.map_addr(|a| a & !IN_BLOCK).cast();
    let block = NonNull::new(block).expect("the address of a block");
    // SAFETY: the caller's promise: the block is that of `into_block`.
    unsafe { Owned::from_raw(block) }.into_inner()
}

/// Wakes the waker of `word`. A panic of a foreign waker is reported and ends here.
///
/// # Safety
/// As [`from_word`].
pub(crate) unsafe fn wake_word(word: *mut ()) {
    if word.addr() & IN_BLOCK == 0 {
        // SAFETY: the caller's promise: the count of such a waker.
        return unsafe { wake(word) };
    }
    // SAFETY: the caller's promise.
    let waker = unsafe { from_word(word) };
    match Parker::is_waker(&waker) {
        true => waker.wake(),
        false => foreign_waker::wake(waker),
    }
}

#[inline]
fn ptr_of(data: *const ()) -> JobPtr {
    let header = NonNull::new(data.cast_mut().cast::<Header>());
    JobPtr::from_raw(header.expect("a waker's data is a job's address"))
}

unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: the waker that is being cloned keeps the job alive.
    let clone = unsafe { JobRef::new_for(ptr_of(data)) };
    RawWaker::new(clone.into_ptr().as_raw().as_ptr().cast(), &VTABLE)
}

unsafe fn wake(data: *const ()) {
    // SAFETY: the waker's count is given to the reference, which is dropped after the wake.
    let job = unsafe { JobRef::from_ptr(ptr_of(data)) };
    wake_job(job.header(), job.ptr());
}

unsafe fn wake_by_ref(data: *const ()) {
    let job = ptr_of(data);
    // SAFETY: the waker keeps the job alive.
    wake_job(unsafe { job.header() }, job);
}

unsafe fn drop_waker(data: *const ()) {
    // SAFETY: the waker's count is given to the reference, which is dropped here.
    drop(unsafe { JobRef::from_ptr(ptr_of(data)) });
}
