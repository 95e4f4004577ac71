//! A job's body: its future, then its output, and the calls that know their types.
//!
//! Everything here is called through a [`VTable`]. [`crate::job::header`] makes the argument for its safety;
//! the blocks below point to the situations named there.

#![allow(unsafe_code)]

use std::{
    alloc::Layout,
    any::TypeId,
    marker::PhantomData,
    mem,
    pin::Pin,
    ptr::{self, NonNull},
    task::{Context, Poll},
};

use crate::{
    job::Header,
    memory::{self, BlockKind, Class},
    report::{
        panic_message,
        payload::{self, Payload},
    },
};

/// The values of [`Header::stage`], which say what the body holds.
pub(crate) mod stage {
    pub(crate) const NOTHING: u8 = 0;
    pub(crate) const FUTURE: u8 = 1;
    pub(crate) const OUTPUT: u8 = 2;
}

/// Why a job has no output.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Its future panicked, with this payload.
    Panicked(Payload),
    /// It was cancelled.
    Cancelled,
}

/// The message of a panic with another job's [`payload::CancelUnwind`].
const FOREIGN_CANCEL: &str =
    "the unwinding of another job's cancel, which was caught and raised again here";

impl Failure {
    /// What `job` has unwound with.
    pub(crate) fn of(payload: Payload, job: &Header) -> Failure {
        match payload::is_cancel(&payload) {
            true if job.state.is_cancelled() => Failure::Cancelled,
            true => Failure::Panicked(Box::new(FOREIGN_CANCEL)),
            false => Failure::Panicked(payload),
        }
    }
}

/// The message in `payload`.
pub(crate) fn message_of(payload: &Payload) -> String {
    match payload::is_cancel(payload) {
        true => FOREIGN_CANCEL.to_owned(),
        false => panic_message(payload.as_ref()),
    }
}

/// What a job leaves behind.
pub(crate) type Outcome<T> = Result<T, Failure>;

/// The calls that a job's body needs; one table for each type of future, possibly at several addresses.
#[derive(Clone, Copy)]
pub(crate) struct VTable {
    pub(crate) poll: unsafe fn(NonNull<Header>, &mut Context<'_>) -> Poll<()>,
    /// Puts a failure in the output's place. The body must hold nothing.
    pub(crate) fail: unsafe fn(NonNull<Header>, Failure),
    pub(crate) drop_future: unsafe fn(NonNull<Header>),
    pub(crate) drop_output: unsafe fn(NonNull<Header>),
    /// Moves the output to the second pointer's target.
    pub(crate) take_output: unsafe fn(NonNull<Header>, *mut ()),
    pub(crate) layout: Layout,
    /// The class of the job's block.
    pub(crate) class: Option<Class>,
    /// Only a fiber's: its first run, by a joiner.
    pub(crate) run_fresh: Option<RunFresh>,
    /// Only a fiber's: where it keeps its stack.
    pub(crate) own_stack: Option<OwnStack>,
    pub(crate) type_name: fn() -> &'static str,
    /// Tells the types of futures apart, except those that differ in lifetimes only. The address of the table does not.
    pub(crate) type_id: fn() -> TypeId,
}

/// Runs the code of a fiber that has not started, until it waits or ends, on a stack that the thread keeps. If it ends
/// without a panic, moves the output to the second pointer's target; the body then holds nothing.
///
/// # Safety
/// The caller has the job's right to run. The second pointer has room for the output, which nobody takes from the job.
pub(crate) type RunFresh = unsafe fn(NonNull<Header>, *mut ()) -> FreshRun;

/// The context of a fiber's stack, at the top of that; null before the fiber's code has started.
///
/// # Safety
/// The caller has the job's right to run, and the body holds the fiber.
pub(crate) type OwnStack = unsafe fn(NonNull<Header>) -> *const ();

/// How the first run of a fiber ended.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FreshRun {
    /// Nothing has happened: the thread keeps no such stack.
    Declined,
    /// The fiber waits.
    Waits,
    /// It has ended, and its output is where the caller wants it.
    Ended,
    /// It has panicked, or unwound for a cancel. A poll collects that.
    Unwound,
}

/// The id of a type whose lifetimes count as `'static`.
fn type_id<T>() -> TypeId {
    trait Identified {
        fn id(&self) -> TypeId
        where
            Self: 'static;
    }
    impl<T> Identified for PhantomData<T> {
        fn id(&self) -> TypeId
        where
            Self: 'static,
        {
            TypeId::of::<T>()
        }
    }
    let phantom = PhantomData::<T>;
    let any: &dyn Identified = &phantom;
    // SAFETY: it changes a lifetime only, and `id` reads nothing of that lifetime: it has no value of `T`.
    let any = unsafe { mem::transmute::<&dyn Identified, &(dyn Identified + 'static)>(any) };
    any.id()
}

/// A whole job: the layout of its block.
#[repr(C)]
pub(crate) struct JobCell<F: Future> {
    header: Header,
    body: Body<F>,
}

/// Either member; `Header::stage` says which.
#[repr(C)]
pub(crate) union Body<F: Future> {
    future: mem::ManuallyDrop<F>,
    output: mem::ManuallyDrop<Outcome<F::Output>>,
}

impl<F: Future> JobCell<F> {
    pub(crate) const VTABLE: VTable = VTable {
        poll: Self::poll,
        fail: Self::fail,
        drop_future: Self::drop_future,
        drop_output: Self::drop_output,
        take_output: Self::take_output,
        layout: Layout::new::<Self>(),
        class: memory::class_of(BlockKind::Job, Layout::new::<Self>()),
        run_fresh: None,
        own_stack: None,
        type_name: std::any::type_name::<F>,
        type_id: type_id::<F>,
    };

    /// The address of the body of `job`.
    pub(crate) fn body(job: NonNull<Header>) -> *mut Body<F> {
        let cell = job.cast::<Self>().as_ptr();
        // SAFETY: layout: the pointer has the whole cell's provenance, and the block is alive.
        unsafe { &raw mut (*cell).body }
    }

    unsafe fn poll(job: NonNull<Header>, cx: &mut Context<'_>) -> Poll<()> {
        let future = Self::body(job).cast::<F>();
        // SAFETY: one runner; the stage is FUTURE.
        let pinned = unsafe { &mut *future };
        // SAFETY: the body never moves before it is dropped.
        let pinned = unsafe { Pin::new_unchecked(pinned) };
        let Poll::Ready(output) = pinned.poll(cx) else {
            return Poll::Pending;
        };
        set_stage(job, stage::NOTHING);
        // SAFETY: one runner; the stage set above keeps the future from being dropped again if this panics.
        unsafe { ptr::drop_in_place(future) };
        // SAFETY: one runner; the body holds nothing and has room for either member.
        unsafe {
            Self::body(job)
                .cast::<Outcome<F::Output>>()
                .write(Ok(output))
        };
        set_stage(job, stage::OUTPUT);
        Poll::Ready(())
    }

    unsafe fn fail(job: NonNull<Header>, failure: Failure) {
        // SAFETY: one runner; the body holds nothing.
        unsafe {
            Self::body(job)
                .cast::<Outcome<F::Output>>()
                .write(Err(failure))
        };
        set_stage(job, stage::OUTPUT);
    }

    unsafe fn drop_future(job: NonNull<Header>) {
        set_stage(job, stage::NOTHING);
        // SAFETY: one runner, and not Send on its own thread; the stage was FUTURE.
        unsafe { ptr::drop_in_place(Self::body(job).cast::<F>()) };
    }

    unsafe fn drop_output(job: NonNull<Header>) {
        set_stage(job, stage::NOTHING);
        // SAFETY: output: the caller owns it; the stage was OUTPUT.
        unsafe { ptr::drop_in_place(Self::body(job).cast::<Outcome<F::Output>>()) };
    }

    unsafe fn take_output(job: NonNull<Header>, place: *mut ()) {
        set_stage(job, stage::NOTHING);
        // SAFETY: output: the caller owns it; the stage was OUTPUT.
        let output = unsafe { Self::body(job).cast::<Outcome<F::Output>>().read() };
        // SAFETY: the caller's promise: a place for this type.
        unsafe { place.cast::<Outcome<F::Output>>().write(output) };
    }
}

/// Names the vtable of a job whose future is `F`.
pub(crate) struct HasVTable<F: Future>(std::marker::PhantomData<F>);

impl<F: Future> HasVTable<F> {
    pub(crate) const TABLE: &'static VTable = &JobCell::<F>::VTABLE;
}

/// Notes what the body holds.
pub(crate) fn set_stage(job: NonNull<Header>, stage: u8) {
    // SAFETY: alive: every caller holds the runnable or owns the output.
    unsafe { job.as_ref() }.set_stage(stage);
}
