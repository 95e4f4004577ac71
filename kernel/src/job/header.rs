//! A job: the unit that the kernel schedules, in one allocation of header and body.
//!
//! The header has 48 bytes. The threads that may touch each field:
//!
//! ```text
//!  0 state       any thread, by the transitions of `state`
//!  8 vtable      constant
//! 16 next        holder of the runnable: a batch's or the injector's link, or the context of the suspended stack
//! 24 refs        any thread with a reference; a walk over all blocks reads it in free blocks too
//! 28 runtime     constant; a walk over all blocks reads it in free blocks too
//! 30 body        holder of the runnable, after completion the owner of the output; others may peek
//! 31 flags       any thread, bit by bit
//! 32 waits_for   written by the runner, read by reports
//! 40 extensions  any thread, under its lock
//! ```
//!
//! The byte `body` holds the [`stage`](crate::job::body::stage) (what the body holds) and the bits of [`body_bit`]
//! (where the job may run):
//!
//! ```text
//! bit 4      bit 3         bit 2   bits 1..0
//! MIGRATING  PINNED_STACK  PINNED  stage
//!    -          -            -     any worker may run the job
//!    -          -            1     one thread only, that of the pinned queue in the extensions
//!    -          1           any    one thread only, which suspended the stack: `next` is its context
//!    1          -           any    any worker; its next poll resumes the stack, whose context the fiber has (`next` is free)
//! ```
//!
//! # Safety
//!
//! The argument is made here once, by situation; the blocks below and in the neighbouring files point to it.
//!
//! - **alive**: a block lives while its reference count is above zero. Each [`JobRef`](crate::job::JobRef) holds one
//!   count; one more belongs to the job itself from spawn until
//!   [`Runnable::complete`](crate::job::runnable::Runnable::complete).
//! - **one runner**: the body (future, then output) is touched only by the holder of the one
//!   [`Runnable`](crate::job::runnable::Runnable), which the state word passes from thread to thread with release and
//!   acquire.
//! - **output**: once the job is done, the state says who owns the body: the join handle, if `HANDLE` was
//!   set at completion; otherwise the thread that completed the job.
//! - **not Send**: the future of a pinned job is polled and dropped on its own thread only: every wake sends
//!   its runnable to that thread's queue ([`crate::scheduler::stackful::pinned`]), and a runnable that cannot
//!   get there leaks.
//! - **suspended**: a job whose stack is suspended is pinned to the thread that suspended it, unless it migrates. That
//!   thread does not end before the job has resumed; and only the holder of the runnable resumes it.
//! - **layout**: `JobCell<F>` is `repr(C)` and begins with its header, so a pointer to the header that
//!   derives from the allocation's pointer is also a pointer to the cell.

#![allow(unsafe_code)]

mod create;

use std::{panic::Location, ptr::NonNull};

use weald_sync::reason::{self, Reason};

pub(crate) use self::create::{NoMemory, Room, Spec, new, new_with};
use crate::{
    job::{body::VTable, extensions::ExtensionsWord, state::State},
    sys::{AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering},
};

/// The part of a job that does not depend on its future's type.
#[repr(C)]
pub(crate) struct Header {
    /// Whether the job is parked, awake or done, and its messages.
    pub(crate) state: State,
    /// The calls that the body's type needs.
    pub(crate) vtable: &'static VTable,
    /// The job behind this one in the injector, an overflow queue or any batch; while its stack is suspended, the
    /// stack's context.
    next: AtomicPtr<Header>,
    /// How many references there are. Zero exactly while the block holds no job: a walk over all blocks
    /// ([`JobRef::from_block`](crate::job::JobRef::from_block)) reads the count and the runtime of free and of new
    /// blocks too.
    pub(super) refs: AtomicU32,
    /// Which runtime the job belongs to. Never changes while there are references.
    pub(super) runtime: AtomicU16,
    /// What the body holds, and where the job may run: a [`stage`](crate::job::body::stage) and bits of
    /// [`body_bit`].
    body: AtomicU8,
    /// Further facts, a bit each; see [`flag`].
    flags: AtomicU8,
    /// What the job waits for, as the word of a [`Reason`], for reports.
    waits_for: AtomicU64,
    /// What only some jobs have.
    pub(crate) extensions: ExtensionsWord,
}

/// The bit in a runtime's number that is set for a test runtime. Its jobs are numbered when they are spawned, so that
/// their order never depends on addresses.
pub(crate) const REPEATS: u16 = 1 << 15;

/// The bits of [`Header::flags`].
pub(crate) mod flag {
    /// The job counts against the process limit. Never changes.
    pub(crate) const COUNTED: u8 = 1 << 0;
    /// The job was unparked and has not parked since.
    pub(super) const PERMIT: u8 = 1 << 1;
    /// The job is a fiber. Never changes.
    pub(crate) const FIBER: u8 = 1 << 2;
    /// The job holds its thread in a wait: its stack must not be suspended. In a join, the joined job waits.
    pub(super) const HOLDS_IN_WAIT: u8 = 1 << 3;
    /// The panic hook runs for a panic of the job.
    pub(super) const IN_PANIC_HOOK: u8 = 1 << 4;
    /// The monitor has seen the panic hook that runs. Set only with `IN_PANIC_HOOK`, and cleared with it.
    pub(super) const HOOK_SEEN: u8 = 1 << 5;
    /// The job is proven: its runs were short; see [`crate::scheduler::threads::suspects`].
    pub(super) const PROVEN: u8 = 1 << 6;
    /// A cancel ended the job, or is ending it.
    pub(super) const CANCELLED: u8 = 1 << 7;
}

/// Bits of [`Header::body`]. All except `SHARED_BY_UNITS`, `OF_ONE_UNIT` and `PART` say where the job may run, and
/// `Header::placement` turns them into a value: without any of them every worker may run it.
pub(crate) mod body_bit {
    /// The job's future is not `Send`, so only one thread may run it. Never changes.
    pub(crate) const PINNED: u8 = 1 << 2;
    /// The job has frames on a stack that resumes only on the thread that suspended it. A loop's stack has the bit
    /// while it is suspended, and so has a fiber that migrates if it waits in the poll of another wait; other fibers
    /// keep it from their first wait to their end, even while they run.
    pub(crate) const PINNED_STACK: u8 = 1 << 3;
    /// The job is a fiber that has waited and resumes on any thread. It keeps the bit to its end.
    pub(crate) const MIGRATING: u8 = 1 << 4;
    /// With one of these bits, only one thread may run the job.
    pub(super) const ONE_THREAD: u8 = PINNED | PINNED_STACK;
    /// With one of these bits, the job has frames on a stack.
    pub(super) const OWN_STACK: u8 = PINNED_STACK | MIGRATING;
    /// The job runs the code of several units in turn, which have no jobs of their own. Its kind is that of the unit
    /// that it runs, and it does not run in quarantine. Set at creation, and never cleared.
    pub(crate) const SHARED_BY_UNITS: u8 = 1 << 5;
    /// The job runs a part of other units' work, or several, and its site is where that work was divided. Set at
    /// creation, and never cleared.
    pub(crate) const PART: u8 = 1 << 6;
    /// Beside `SHARED_BY_UNITS`: the job runs one unit only, and so may run in quarantine. Set at creation, and
    /// never cleared.
    pub(crate) const OF_ONE_UNIT: u8 = 1 << 7;
    /// Beside `PART`: a job that waits, or blocks, may wait for this one, so this one does not wait for a thread of
    /// the quarantine. Set at creation, or while the job waits in the quarantine, and never cleared.
    pub(crate) const RELIEVES: u8 = 1 << 7;
}

/// The bits of [`Header::body`] that are a [`stage`](crate::job::body::stage).
const STAGE: u8 = 3;

/// The address of a job. It keeps nothing alive.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct JobPtr(NonNull<Header>);

// SAFETY: an address; each use is justified where it happens.
unsafe impl Send for JobPtr {}
// SAFETY: as above.
unsafe impl Sync for JobPtr {}

impl JobPtr {
    #[inline]
    pub(crate) fn from_raw(job: NonNull<Header>) -> JobPtr {
        JobPtr(job)
    }

    #[inline]
    pub(crate) fn as_raw(self) -> NonNull<Header> {
        self.0
    }

    /// # Safety
    /// The job is alive for as long as the result is used.
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
        // Relaxed: whoever has a reference reads what was stored before there was any.
        self.runtime.load(Ordering::Relaxed)
    }

    /// Whether any worker of its runtime may run the job. Only the holder of the runnable.
    #[inline(always)]
    pub(crate) fn runs_anywhere(&self) -> bool {
        self.body_bits() & body_bit::ONE_THREAD == 0
    }

    /// Whether the job has frames on a stack: one that is suspended, or that of a fiber that has waited, even while
    /// the fiber runs. A moment old, unless the caller holds the runnable.
    #[inline(always)]
    pub(crate) fn has_own_stack(&self) -> bool {
        self.body_bits() & body_bit::OWN_STACK != 0
    }

    /// The bits of [`body_bit`].
    #[inline(always)]
    pub(crate) fn body_bits(&self) -> u8 {
        self.body.load(Ordering::Relaxed) & !STAGE
    }

    /// Sets a bit of [`body_bit`]. Only the holder of the runnable.
    pub(crate) fn set_body_bit(&self, bit: u8) {
        let body = self.body.load(Ordering::Relaxed);
        self.body.store(body | bit, Ordering::Relaxed);
    }

    /// Clears a bit of [`body_bit`]. Only the holder of the runnable.
    pub(crate) fn clear_body_bit(&self, bit: u8) {
        let body = self.body.load(Ordering::Relaxed);
        self.body.store(body & !bit, Ordering::Relaxed);
    }

    /// The content of the link word while the job is in no queue: the context of a suspended stack.
    #[inline(always)]
    pub(crate) fn link(&self) -> *mut () {
        self.next.load(Ordering::Relaxed).cast()
    }

    /// Stores a stack context in the link word. Only the holder of the runnable; no injector may hold the job until
    /// the word is no longer needed.
    #[inline(always)]
    pub(crate) fn set_link(&self, link: *mut ()) {
        self.next.store(link.cast(), Ordering::Relaxed);
    }

    /// Whether the job counts against the process limit.
    pub(crate) fn is_counted(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & flag::COUNTED != 0
    }

    /// Whether the end of the job needs no more than its completion: any worker may run it, it does not count, and it
    /// has no extensions. Only the holder of the runnable, while no code of the job runs.
    #[inline(always)]
    pub(crate) fn ends_plainly(&self) -> bool {
        self.runs_anywhere() && !self.is_counted() && self.extensions.is_empty()
    }

    /// Whether the job is a fiber.
    pub(crate) fn is_fiber(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & flag::FIBER != 0
    }

    /// Whether the job runs the code of several units in turn, which have no jobs of their own.
    pub(crate) fn is_shared_by_units(&self) -> bool {
        self.body_bits() & body_bit::SHARED_BY_UNITS != 0
    }

    /// Whether the job may run on a thread without a worker while its kind is suspect: any worker may run it, it has no
    /// stack of its own, and it is not shared by units. A moment old, unless the caller holds the runnable.
    pub(crate) fn may_be_quarantined(&self) -> bool {
        let of_units = body_bit::SHARED_BY_UNITS | body_bit::OF_ONE_UNIT;
        let is_shared = self.body_bits() & of_units == body_bit::SHARED_BY_UNITS;
        self.runs_anywhere() && !self.has_own_stack() && !is_shared
    }

    /// Whether the job's runs were short, as far as was seen.
    pub(crate) fn is_proven(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & flag::PROVEN != 0
    }

    /// The job is about to run, and counts as proven if it has run and waited before. Only the holder of the runnable.
    #[inline]
    pub(crate) fn prove_if_it_waited(&self) {
        // Relaxed: a hint.
        if !self.is_proven() && self.waits_for.load(Ordering::Relaxed) != 0 {
            self.flags.fetch_or(flag::PROVEN, Ordering::Relaxed);
        }
    }

    /// The job had a short run in quarantine.
    pub(crate) fn prove(&self) {
        self.flags.fetch_or(flag::PROVEN, Ordering::Relaxed);
    }

    /// The job had a long run. Returns whether it was proven before. Any thread.
    pub(crate) fn clear_proven(&self) -> bool {
        self.flags.fetch_and(!flag::PROVEN, Ordering::Relaxed) & flag::PROVEN != 0
    }

    /// Notes whether this job holds its thread in a wait, which is no join of a job that computes. Only the job itself,
    /// or a nested run on top of it.
    pub(crate) fn set_holds_in_wait(&self, holds: bool) {
        // Relaxed: a hint.
        match holds {
            true => self.flags.fetch_or(flag::HOLDS_IN_WAIT, Ordering::Relaxed),
            false => self
                .flags
                .fetch_and(!flag::HOLDS_IN_WAIT, Ordering::Relaxed),
        };
    }

    /// Whether the job waits with its stack: the stack is suspended, or the job holds its thread in a wait. Not if it
    /// joins a job that computes. A moment old.
    pub(crate) fn waits_with_stack(&self) -> bool {
        self.has_own_stack() || self.flags.load(Ordering::Relaxed) & flag::HOLDS_IN_WAIT != 0
    }

    /// Notes that a cancel ends the job. Only the holder of the runnable.
    pub(crate) fn note_cancelled(&self) {
        // Relaxed: the completion publishes it.
        self.flags.fetch_or(flag::CANCELLED, Ordering::Relaxed);
    }

    /// Whether a cancel ended the job. Exact once it is done.
    pub(crate) fn was_cancelled(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & flag::CANCELLED != 0
    }

    /// Whether a cancel has reached the job, its future is being dropped, or its stack unwound, or would end no wait of
    /// it. A moment old.
    pub(crate) fn is_being_ended(&self) -> bool {
        self.was_cancelled() || self.waits_to_the_end()
    }

    /// Whether a cancel ends no wait of the job: its stack unwinds for one already, or it is shielded. A moment old,
    /// unless the caller runs the job.
    pub(crate) fn waits_to_the_end(&self) -> bool {
        let extensions = self.extensions.lock_existing();
        extensions.is_some_and(|extensions| extensions.unwound || extensions.shields > 0)
    }

    /// Leaves a permit for the job's next park; the caller then wakes the job. Any thread.
    pub(crate) fn leave_permit(&self) {
        // Release: pairs with `take_permit`: the parking job sees what came before the unpark.
        self.flags.fetch_or(flag::PERMIT, Ordering::Release);
    }

    /// Takes the permit, if there is one. Only the job itself.
    pub(crate) fn take_permit(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & flag::PERMIT != 0
            && self.flags.fetch_and(!flag::PERMIT, Ordering::Acquire) & flag::PERMIT != 0
    }

    /// Whether the job runs a part, or parts, of other units' work.
    pub(crate) fn is_part(&self) -> bool {
        self.body_bits() & body_bit::PART != 0
    }

    /// Whether the job is a part that goes before all others in the quarantine: see
    /// [`body_bit::RELIEVES`].
    pub(crate) fn relieves(&self) -> bool {
        let bits = body_bit::PART | body_bit::RELIEVES;
        self.body_bits() & bits == bits
    }

    /// The panic hook begins for a panic of the job. Only the job itself.
    pub(crate) fn begin_panic_hook(&self) {
        // Relaxed: a hint for reports.
        self.flags.fetch_or(flag::IN_PANIC_HOOK, Ordering::Relaxed);
    }

    /// That hook has ended. Only the job itself.
    pub(crate) fn end_panic_hook(&self) {
        let hook = flag::IN_PANIC_HOOK | flag::HOOK_SEEN;
        self.flags.fetch_and(!hook, Ordering::Relaxed);
    }

    /// The monitor checks whether the panic hook runs for a panic of the job, and whether it has seen that hook before.
    pub(crate) fn see_panic_hook(&self) -> SeenHook {
        // In one step: if the hook ended in between, the bit would be that of the next one.
        let see = |flags| (flags & flag::IN_PANIC_HOOK != 0).then_some(flags | flag::HOOK_SEEN);
        let relaxed = Ordering::Relaxed;
        match self.flags.fetch_update(relaxed, relaxed, see) {
            Err(_) => SeenHook::None,
            Ok(before) if before & flag::HOOK_SEEN == 0 => SeenHook::New,
            Ok(_) => SeenHook::Again,
        }
    }

    /// Whether the panic hook runs for a panic of the job. A moment old.
    pub(crate) fn is_in_panic_hook(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & flag::IN_PANIC_HOOK != 0
    }

    /// Whether nothing but its spawn has happened to the job, except that it may have run, and it has no extensions.
    #[inline(always)]
    pub(crate) fn is_untouched(&self) -> bool {
        self.state.is_untouched() && self.extensions.is_empty()
    }

    /// What the body holds.
    pub(crate) fn stage(&self) -> u8 {
        self.body.load(Ordering::Relaxed) & STAGE
    }

    /// Notes what the body holds.
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

    /// Adds the line of the wait to what the job waits for, unless it has one. Called by its runner.
    pub(crate) fn note_site(&self, site: &'static Location<'static>) {
        let word = self.waits_for.load(Ordering::Relaxed);
        self.set_waits_for(reason::word_at(word, site));
    }

    /// Whether the job has noted a wait in this poll. Asked by its runner.
    #[inline(always)]
    pub(crate) fn has_noted_wait(&self) -> bool {
        self.waits_for.load(Ordering::Relaxed) != 0
    }

    /// As [`waits_for`](Header::waits_for), if that is all that the job waits for.
    #[inline]
    pub(crate) fn waits_only_for(&self) -> Option<Reason> {
        let word = self.waits_for.load(Ordering::Relaxed);
        Reason::of_word(word).filter(|_| !reason::is_beside_others(word))
    }

    /// The last [`set_waits_for`](Header::set_waits_for), if it names a reason.
    pub(crate) fn waits_for(&self) -> Option<Reason> {
        Reason::of_word(self.waits_for.load(Ordering::Relaxed))
    }
}

/// What a check of the monitor finds of the panic hook of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SeenHook {
    /// None runs.
    None,
    /// One runs that no check has seen before.
    New,
    /// The one that the last check has seen still runs.
    Again,
}

impl crate::queue::injector::Linked for Header {
    fn next(&self) -> &AtomicPtr<Header> {
        &self.next
    }
}

#[cfg(test)]
mod tests;
