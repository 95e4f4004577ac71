//! Creating a job: a block, its header, and the future in it.
//!
//! The block is taken before anything else ([`Room`]), so a spawn that is refused for lack of memory has nothing to
//! undo. If the job is the kernel's own, a block that cannot be had ends the program.

#![allow(unsafe_code)]

use std::{
    alloc::{Layout, handle_alloc_error},
    any::Any,
    marker::PhantomData,
    mem::ManuallyDrop,
    panic::Location,
    ptr::{self, NonNull},
    sync::Arc,
};

use crate::{
    job::{
        body::{HasVTable, JobCell, VTable, set_stage, stage},
        extensions::ExtensionsWord,
        header::{Header, JobPtr, REPEATS, body_bit},
        runnable::Runnable,
        state::State,
        transition::Inbox,
    },
    memory::{self, BlockKind},
    sys::{AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering},
};

/// What a new job needs besides its future.
pub(crate) struct Spec {
    pub(crate) runtime: u16,
    pub(crate) site: &'static Location<'static>,
    pub(crate) inbox: Inbox,
    /// The pinned queue of the only thread that may run the job, if it is pinned.
    pub(crate) pinned: Option<Arc<dyn Any + Send + Sync>>,
    /// The constant flags of the job: `COUNTED`, `FIBER`; see [`flag`](super::flag).
    pub(crate) flags: u8,
    /// How many [`JobRef`](crate::job::JobRef)s are created at once, so that none is counted one by one.
    pub(crate) refs: u32,
}

/// The system has no memory for a job of this many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoMemory {
    pub(crate) bytes: usize,
}

/// The memory of a job that is about to be created. It comes before anything else that the job needs, so that nothing
/// has to be undone if it cannot be had.
pub(crate) struct Room<F: Future> {
    /// A new block for a `JobCell<F>`, which nobody else knows.
    block: NonNull<u8>,
    future: PhantomData<fn() -> F>,
}

impl<F: Future> Room<F> {
    const LAYOUT: Layout = Layout::new::<JobCell<F>>();

    /// # Errors
    /// If the system refuses the memory.
    #[inline(always)]
    pub(crate) fn new() -> Result<Room<F>, NoMemory> {
        Room::get().ok_or(NoMemory {
            bytes: Self::LAYOUT.size(),
        })
    }

    /// For a job of the kernel's own, which must exist. Without memory the program ends: a worker that panics would
    /// leave others waiting for it.
    #[inline(always)]
    pub(crate) fn needed() -> Room<F> {
        Room::get().unwrap_or_else(|| handle_alloc_error(Self::LAYOUT))
    }

    #[inline(always)]
    fn get() -> Option<Room<F>> {
        let block = memory::try_alloc(BlockKind::Job, Self::LAYOUT)?;
        let future = PhantomData;
        Some(Room { block, future })
    }

    /// Gives the block up to the job.
    #[inline(always)]
    fn into_block(self) -> NonNull<u8> {
        ManuallyDrop::new(self).block
    }
}

impl<F: Future> Drop for Room<F> {
    fn drop(&mut self) {
        // SAFETY: the block came from `try_alloc` with this layout, and nobody else knows it.
        unsafe { memory::free(BlockKind::Job, Self::LAYOUT, self.block) };
    }
}

/// Creates a job. The caller gets its runnable and `spec.refs` references that are already counted; it turns
/// each into a [`JobRef`](crate::job::JobRef) by [`Runnable::claim_ref`]. `make` builds the future, and may
/// already use the job's address. If it panics, the job is cancelled and the panic continues.
#[inline]
pub(crate) fn new<F: Future>(
    room: Room<F>,
    spec: Spec,
    make: impl FnOnce(&Runnable) -> F,
) -> Runnable {
    // SAFETY: the table of this type of future.
    unsafe { new_with(HasVTable::<F>::TABLE, room, spec, make) }
}

/// As [`new`], with this table.
///
/// # Safety
/// The table is that of `F`, or does the same, and more.
#[inline(always)]
pub(crate) unsafe fn new_with<F: Future>(
    vtable: &'static VTable,
    room: Room<F>,
    spec: Spec,
    make: impl FnOnce(&Runnable) -> F,
) -> Runnable {
    let job = room.into_block().cast::<Header>();
    let header = Header {
        state: State::new(spec.inbox),
        vtable,
        next: AtomicPtr::new(ptr::null_mut()),
        refs: AtomicU32::new(0),
        runtime: AtomicU16::new(0),
        body: AtomicU8::new(match spec.pinned {
            Some(_) => stage::NOTHING | body_bit::PINNED,
            None => stage::NOTHING,
        }),
        flags: AtomicU8::new(spec.flags),
        waits_for: AtomicU64::new(0),
        extensions: ExtensionsWord::new(spec.site),
    };
    write(job, header);
    // SAFETY: the header was written above.
    let header = unsafe { job.as_ref() };
    // Not before the write: a header whose address is used is built in memory and then copied.
    if let Some(pinned) = spec.pinned {
        header.extensions.lock().pinned = Some(pinned);
    }
    // Relaxed: the store of the count makes it visible.
    header.runtime.store(spec.runtime, Ordering::Relaxed);
    // Release: pairs with the exchange in `from_block`, which finds the header complete if it finds a count.
    header.refs.store(1 + spec.refs, Ordering::Release);
    // SAFETY: a job begins awake, and this is its first runnable.
    let runnable = unsafe { Runnable::new(JobPtr(job)) };
    if spec.runtime & REPEATS != 0 {
        assign_number(&runnable);
    }
    let future = make(&runnable);
    // SAFETY: one runner: the body is still empty, and this thread has the runnable.
    unsafe { JobCell::<F>::body(job).cast::<F>().write(future) };
    set_stage(job, stage::FUTURE);
    runnable
}

#[cold]
fn assign_number(runnable: &Runnable) {
    runnable.header().extensions.lock().number();
}

/// Writes the header of a new job except its count and its runtime: a free block's count is zero, and a walk over all
/// blocks may read both, as atomics, at any moment.
#[inline(always)]
fn write(job: NonNull<Header>, header: Header) {
    macro_rules! write_fields {
        ($($field:ident),*) => {
            // Without `..`, so that no field is forgotten.
            let Header { refs: _, runtime: _, $($field),* } = header;
            $(
                // SAFETY: the caller's block is new, and has room for a header.
                let place = unsafe { &raw mut (*job.as_ptr()).$field };
                // SAFETY: as above.
                unsafe { place.write($field) };
            )*
        };
    }
    write_fields!(state, vtable, next, body, flags, waits_for, extensions);
}
