//! A job: the unit that the kernel schedules, in one allocation of header and body.
//!
//! # Safety
//!
//! The argument is made here once, by situation; the blocks below point to it.
//!
//! - **alive**: a block lives while its reference count is above zero. Each [`JobRef`] holds one
//!   count; one more belongs to the job itself from spawn until [`Runnable::complete`].
//! - **one runner**: the body (future, then output) is touched only by the holder of the one
//!   [`Runnable`], which the state word hands from thread to thread with release and acquire.
//! - **output**: once the job is done, the body belongs to whom the state says: to the join handle
//!   while `HANDLE` is set at completion, else to the thread that completed it.
//! - **not Send**: the future of a local job is polled and dropped on its home thread only: every
//!   wake sends its runnable there ([`crate::scheduler::stackful::pinned`]), and a runnable that cannot get there leaks.
//! - **stands**: a job whose stack stands is resident at its strand's home, whose thread does not end
//!   before the job has gone on; and only the holder of the runnable makes it go on.
//! - **layout**: `JobCell<F>` is `repr(C)` and begins with its header, so a pointer to the one,
//!   made from the allocation's own pointer, is a pointer to the other.

#![allow(unsafe_code)]

use std::{
    alloc::Layout,
    any::Any,
    mem,
    panic::Location,
    ptr::{self, NonNull},
    sync::Arc,
};

use weald_sync::reason::Reason;

pub(crate) use crate::job::body::stage;
use crate::{
    job::{
        body::{HasVTable, JobCell, Outcome, VTable, set_stage},
        extensions::ExtensionsWord,
        runnable::Runnable,
        state::State,
        transition::Inbox,
    },
    memory::{self, BlockKind},
    sys::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering},
};

/// Beyond this many references the program aborts: a count that wraps would free a job in use. It
/// lies far enough from the wrap that as many threads as fit on a machine may overshoot it at once.
pub(crate) const MAX_REFS: u32 = u32::MAX / 2;

/// The part of a job that does not depend on its future's type.
#[repr(C)]
pub(crate) struct Header {
    /// Where the job is. Anyone.
    pub(crate) state: State,
    /// What to do with the body; never changes.
    pub(crate) vtable: &'static VTable,
    /// The job behind this one in an injector; while its stack stands, the strand. Only the holder of the
    /// runnable.
    next: AtomicPtr<Header>,
    /// How many references there are. Zero exactly while the block holds no job: whoever looks through
    /// all blocks ([`JobRef::from_block`]) reads it of free and of new blocks too.
    refs: AtomicU32,
    /// Which runtime the job belongs to. Never changes.
    runtime: u16,
    /// What lies in the body, and where the job may run: a [`stage`] and bits of [`place`]. Written only by the holder
    /// of the runnable, then by the owner of the output.
    body: AtomicU8,
    /// Further facts, a bit each; see [`flag`].
    flags: AtomicU8,
    /// What the job waits for, as the word of a [`Reason`], for reports. Written by its runner.
    waits_for: AtomicU64,
    /// What only some jobs have. Anyone.
    pub(crate) extensions: ExtensionsWord,
}

/// The bits of [`Header::flags`].
pub(crate) mod flag {
    /// The job counts against the process limit. Never changes.
    pub(crate) const COUNTED: u8 = 1 << 0;
    /// The job was unparked, and has not parked since.
    pub(super) const PERMIT: u8 = 1 << 1;
    /// The job is a fiber. Never changes.
    pub(crate) const FIBER: u8 = 1 << 2;
    /// The job holds its thread in a join, and what it joins waits.
    pub(super) const JOINS_WAITING: u8 = 1 << 3;
}

/// The bits of [`Header::body`] that say where the job may run; none of them: anywhere. `Header::placement` turns them
/// into a value.
pub(crate) mod place {
    /// The job's future is not `Send`, so that only one thread may run it. Never changes.
    pub(crate) const PINNED: u8 = 1 << 2;
    /// A stack with the job's frames is suspended, and resumes on the thread that suspended it. A fiber keeps the bit
    /// from its first wait to its end, also while it runs.
    pub(crate) const SUSPENDED: u8 = 1 << 3;
    /// The job is a fiber that has waited, and resumes on any thread. It keeps the bit to its end.
    pub(crate) const MIGRATING: u8 = 1 << 4;
}

/// The bits of [`Header::body`] that are a [`stage`].
const STAGE: u8 = 3;

/// What a job is made of, besides its future.
pub(crate) struct Spec {
    pub(crate) runtime: u16,
    pub(crate) site: &'static Location<'static>,
    pub(crate) inbox: Inbox,
    /// The job's home, if it may run on one thread only.
    pub(crate) pinned: Option<Arc<dyn Any + Send + Sync>>,
    /// Whether the job counts against the process limit, and whether it is a fiber; see [`flag`].
    pub(crate) flags: u8,
    /// How many [`JobRef`]s are made at once, so that none needs counting one by one.
    pub(crate) refs: u32,
}

/// Makes a job. The caller gets its runnable and `spec.refs` uncounted claims to references, each of
/// which it turns into a [`JobRef`] by [`Runnable::claim_ref`]. `make` makes the future, and may
/// already use the job's address. If it panics, the job is cancelled and the panic goes on.
#[inline]
pub(crate) fn new<F: Future>(spec: Spec, make: impl FnOnce(&Runnable) -> F) -> Runnable {
    let block = memory::alloc(BlockKind::Job, Layout::new::<JobCell<F>>());
    let job = block.cast::<Header>();
    let header = Header {
        state: State::new(spec.inbox),
        vtable: HasVTable::<F>::TABLE,
        next: AtomicPtr::new(ptr::null_mut()),
        refs: AtomicU32::new(0),
        runtime: spec.runtime,
        body: AtomicU8::new(match spec.pinned {
            Some(_) => stage::NOTHING | place::PINNED,
            None => stage::NOTHING,
        }),
        flags: AtomicU8::new(spec.flags),
        waits_for: AtomicU64::new(0),
        extensions: ExtensionsWord::new(spec.site),
    };
    if let Some(pinned) = spec.pinned {
        header.extensions.lock().pinned = Some(pinned);
    }
    write(job, header);
    // SAFETY: the header was written above. Release: pairs with the exchange in `from_block`: who
    // finds a count finds the header complete.
    unsafe { job.as_ref() }
        .refs
        .store(1 + spec.refs, Ordering::Release);
    // SAFETY: a job begins awake, and this is its first runnable.
    let runnable = unsafe { Runnable::new(JobPtr(job)) };
    let future = make(&runnable);
    // SAFETY: one runner: the body is still empty, and the runnable is here.
    unsafe { JobCell::<F>::body(job).cast::<F>().write(future) };
    set_stage(job, stage::FUTURE);
    runnable
}

/// Writes the header of a new job, all but its count, which lies in the block already: a free block's is
/// zero, and whoever looks through all blocks reads it as an atomic at any moment.
#[inline(always)]
fn write(job: NonNull<Header>, header: Header) {
    macro_rules! write_fields {
        ($($field:ident),*) => {
            // Without `..`, so that no field is forgotten.
            let Header { refs: _, $($field),* } = header;
            $(
                // SAFETY: the caller's block is new, and has room for a header.
                let place = unsafe { &raw mut (*job.as_ptr()).$field };
                // SAFETY: as above.
                unsafe { place.write($field) };
            )*
        };
    }
    write_fields!(
        state, vtable, next, runtime, body, flags, waits_for, extensions
    );
}

/// The address of a job, with the calls that its body needs. No claim to anything.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct JobPtr(NonNull<Header>);

// SAFETY: an address; whoever uses it answers for what it does.
unsafe impl Send for JobPtr {}
// SAFETY: as above.
unsafe impl Sync for JobPtr {}

impl JobPtr {
    pub(crate) fn from_raw(job: NonNull<Header>) -> JobPtr {
        JobPtr(job)
    }

    pub(crate) fn as_raw(self) -> NonNull<Header> {
        self.0
    }

    /// # Safety
    /// The job is alive for as long as the answer is used.
    #[inline(always)]
    pub(crate) unsafe fn header<'a>(self) -> &'a Header {
        // SAFETY: the caller's promise.
        unsafe { self.0.as_ref() }
    }
}

impl Header {
    /// The number of the job's runtime.
    #[inline(always)]
    pub(crate) fn runtime(&self) -> u16 {
        self.runtime
    }

    /// Whether any worker of its runtime may run the job. Only the holder of the runnable.
    #[inline(always)]
    pub(crate) fn runs_anywhere(&self) -> bool {
        self.body.load(Ordering::Relaxed) & (place::PINNED | place::SUSPENDED) == 0
    }

    /// Whether a stack with the job's frames is suspended, or is that of a fiber which has waited. A moment old, unless
    /// the caller holds the runnable.
    #[inline(always)]
    pub(crate) fn is_suspended(&self) -> bool {
        self.body.load(Ordering::Relaxed) & (place::SUSPENDED | place::MIGRATING) != 0
    }

    /// The bits of [`place`].
    #[inline(always)]
    pub(crate) fn place(&self) -> u8 {
        self.body.load(Ordering::Relaxed) & !STAGE
    }

    /// Sets a bit of [`place`]. Only the holder of the runnable.
    pub(crate) fn set_place(&self, bit: u8) {
        let body = self.body.load(Ordering::Relaxed);
        self.body.store(body | bit, Ordering::Relaxed);
    }

    /// Clears a bit of [`place`]. Only the holder of the runnable.
    pub(crate) fn clear_place(&self, bit: u8) {
        let body = self.body.load(Ordering::Relaxed);
        self.body.store(body & !bit, Ordering::Relaxed);
    }

    /// What is kept in the link word while the job is in no queue: the context of a stack that is suspended.
    #[inline(always)]
    pub(crate) fn link(&self) -> *mut () {
        self.next.load(Ordering::Relaxed).cast()
    }

    /// Keeps something in the link word. Only the holder of the runnable, of a job that no injector holds until the
    /// word is not needed any longer.
    #[inline(always)]
    pub(crate) fn set_link(&self, link: *mut ()) {
        self.next.store(link.cast(), Ordering::Relaxed);
    }

    /// Whether the job counts against the process limit.
    pub(crate) fn is_counted(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & flag::COUNTED != 0
    }

    /// Whether the job is a fiber.
    pub(crate) fn is_fiber(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & flag::FIBER != 0
    }

    /// Notes whether what the job joins, holding its thread, waits. Only the job itself.
    pub(crate) fn set_joins_waiting(&self, does: bool) {
        // Relaxed: a hint.
        match does {
            true => self.flags.fetch_or(flag::JOINS_WAITING, Ordering::Relaxed),
            false => self
                .flags
                .fetch_and(!flag::JOINS_WAITING, Ordering::Relaxed),
        };
    }

    /// Whether the job's stack stands, or it joins one whose does. A moment old.
    pub(crate) fn waits_with_stack(&self) -> bool {
        self.is_suspended() || self.flags.load(Ordering::Relaxed) & flag::JOINS_WAITING != 0
    }

    /// Leaves a permit for the job's next park; the caller wakes it then. Anyone.
    pub(crate) fn leave_permit(&self) {
        // Release: pairs with `take_permit`: who parks sees what came before the unpark.
        self.flags.fetch_or(flag::PERMIT, Ordering::Release);
    }

    /// Takes the permit, if there is one. Only the job itself.
    pub(crate) fn take_permit(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & flag::PERMIT != 0
            && self.flags.fetch_and(!flag::PERMIT, Ordering::Acquire) & flag::PERMIT != 0
    }

    /// The name that the job was given, if any.
    pub(crate) fn name(&self) -> Option<String> {
        let extensions = self.extensions.lock_existing()?;
        let callback = extensions
            .callback
            .map(|name| format!("callback {}", name()));
        callback.or_else(|| extensions.name.as_deref().map(str::to_owned))
    }

    /// What lies in the body.
    pub(crate) fn stage(&self) -> u8 {
        self.body.load(Ordering::Relaxed) & STAGE
    }

    /// Notes what lies in the body.
    pub(crate) fn set_stage(&self, stage: u8) {
        let body = self.body.load(Ordering::Relaxed);
        self.body.store(body & !STAGE | stage, Ordering::Relaxed);
    }

    pub(crate) fn type_name(&self) -> &'static str {
        (self.vtable.type_name)()
    }

    /// Notes what the job is about to wait for. Called by its runner.
    #[inline(always)]
    pub(crate) fn set_waits_for(&self, what: u64) {
        self.waits_for.store(what, Ordering::Relaxed);
    }

    /// What the job noted last.
    pub(crate) fn waits_for(&self) -> Option<Reason> {
        Reason::of_word(self.waits_for.load(Ordering::Relaxed))
    }
}

/// A counted reference to a job's header. The body may be long gone.
pub(crate) struct JobRef(JobPtr);

impl JobRef {
    #[inline(always)]
    pub(crate) fn header(&self) -> &Header {
        // SAFETY: alive: this is one of the counts.
        unsafe { self.0.header() }
    }

    pub(crate) fn ptr(&self) -> JobPtr {
        self.0
    }

    /// Gives the count to whoever keeps the pointer.
    pub(crate) fn into_ptr(self) -> JobPtr {
        let job = self.0;
        mem::forget(self);
        job
    }

    /// # Safety
    /// The caller owns a count that it now gives to the new reference.
    pub(crate) unsafe fn from_ptr(job: JobPtr) -> JobRef {
        JobRef(job)
    }

    /// # Safety
    /// The job is alive during the call.
    pub(crate) unsafe fn new_for(job: JobPtr) -> JobRef {
        // SAFETY: the caller's promise.
        let refs = &unsafe { job.header() }.refs;
        // Relaxed: a new reference is always made from one that orders the access already.
        if refs.fetch_add(1, Ordering::Relaxed) > MAX_REFS {
            too_many_references();
        }
        JobRef(job)
    }

    /// A reference to the job in `block`, if it holds one.
    ///
    /// # Safety
    /// `block` is a job block, which stays mapped; it may be free.
    pub(crate) unsafe fn from_block(block: NonNull<u8>) -> Option<JobRef> {
        let job = block.cast::<Header>();
        // SAFETY: the caller's promise; nothing of the header but its count is looked at.
        let refs = unsafe { &raw const (*job.as_ptr()).refs };
        // SAFETY: the count is only ever accessed as an atomic: `write` leaves it out.
        let refs = unsafe { &*refs };
        let more = |refs: u32| (refs > 0).then(|| refs + 1);
        let taken = refs.fetch_update(Ordering::Acquire, Ordering::Relaxed, more);
        // Made only now: a reference that is dropped gives a count back.
        taken.ok().map(|_| JobRef(JobPtr(job)))
    }

    /// Moves the output of a job that is done to the caller.
    ///
    /// # Safety
    /// The caller owns the output, and `T` is the type of the job's output.
    pub(crate) unsafe fn take_output<T>(&self) -> Outcome<T> {
        let mut place = mem::MaybeUninit::<Outcome<T>>::uninit();
        let take = self.header().vtable.take_output;
        // SAFETY: output: the caller's promise; the place has the output's type.
        unsafe { take(self.0.0, place.as_mut_ptr().cast()) };
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
            unsafe { drop_output(self.0.0) };
        }
    }
}

impl Clone for JobRef {
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
            // SAFETY: alive: that was the last count, and the body was dropped at completion, which
            // comes before the job's own count goes.
            unsafe { free(self.0) };
        }
    }
}

#[cold]
fn too_many_references() -> ! {
    // An abort and not a panic: the count must not be seen at its edge by anyone who goes on.
    eprintln!(
        "weald: a job has more than {MAX_REFS} references; pids or wakers are being forgotten"
    );
    std::process::abort()
}

#[inline(never)]
unsafe fn free(job: JobPtr) {
    // SAFETY: alive: the caller holds the last count.
    let VTable { layout, class, .. } = *unsafe { job.header() }.vtable;
    // SAFETY: as above.
    let extensions = unsafe { &raw mut (*job.0.as_ptr()).extensions };
    // SAFETY: nobody else has access any more.
    unsafe { ptr::drop_in_place(extensions) };
    // SAFETY: `new` took the block from the same kind and layout.
    unsafe { memory::free_of(class, BlockKind::Job, layout, job.0.cast()) };
}

impl crate::queue::injector::Linked for Header {
    fn next(&self) -> &AtomicPtr<Header> {
        &self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_48_bytes_and_its_count_is_not_in_the_first_word() {
        assert_eq!(size_of::<Header>(), 48);
        assert!(
            mem::offset_of!(Header, refs) >= 8,
            "the first word of a free block is a link"
        );
    }
}
