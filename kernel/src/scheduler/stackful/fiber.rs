//! A fiber: direct-style code on a stack of its own, as the future of a job.
//!
//! A poll switches to its stack, where its closure runs. To wait, it switches back to the loop that polled it, and its
//! job is parked like any other. So a fiber is woken, cancelled, joined and reported as every job is, and costs a
//! switch each way.
//!
//! Before it starts, a fiber is a closure, which any worker may take. Once it has waited, its stack may hold something
//! that must not change threads (a borrow of a thread-local, a guard of `std`), so its job is suspended on that thread,
//! and only the thread's pinned queue receives it. Exempt are fibers that may migrate: the code that spawned them
//! promises that they hold no such thing. Code that they poll in a wait promises nothing, so a wait in such a poll ends
//! on the thread on which it began.
//!
//! # Safety
//! - **never moves**: the fiber is in the body of its job, which never moves, so its own code may hold its address
//!   while it runs or is suspended.
//! - **its stack**: nothing but the fiber's frames runs on its stack. The stack is given back only after the fiber's
//!   code has ended, as its last switch shows. A fiber that is dropped earlier, in the middle of its code, would lose
//!   live frames: the future of a job that has frames on a stack is not dropped (`has_own_stack`,
//!   [`Runnable::fail`](crate::job::runnable::Runnable::fail)).

#![allow(unsafe_code)]

use std::{
    any::Any,
    cell::Cell,
    marker::{PhantomData, PhantomPinned},
    mem::{self, ManuallyDrop},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    ptr::{self, NonNull},
    task::{Context as TaskContext, Poll},
};

use crate::{
    job::{
        Header,
        body::{FreshRun, JobCell, VTable, set_stage, stage},
        body_bit,
        runnable::Runnable,
    },
    scheduler::{
        stackful::stack_context::{self, StackContext, StackKind, caller},
        workers::context::{self, Context},
    },
    stack::{self, Claim, Onto, SavedSp, Stack, switch},
};

/// The default size of a fiber's stack: 128 KiB. Only the pages that it touches are committed.
pub const DEFAULT_STACK: usize = 128 << 10;

/// Whether a fiber may resume on another OS thread than the one that it waited on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Migration {
    /// Not after its first wait.
    Never,
    /// At each wait: the code that spawned it promises that it holds nothing that depends on the thread.
    Freely,
}

/// Which fiber has switched to the loop.
#[derive(Clone, Copy, PartialEq)]
enum CameBack {
    /// The one that the loop has polled.
    Itself,
    /// Another one.
    Other,
}

/// The future.
pub(crate) struct Fiber<F, T> {
    state: ManuallyDrop<FiberState<F, T>>,
    /// A poll may outlive the fiber that it was for ([`Fiber::run`]): the compiler must not take the fiber for valid as
    /// long as the poll lasts. An exclusive reference to a type that is not `Unpin` is given to LLVM neither as
    /// `noalias` nor as `dereferenceable`. The language does not promise that yet: `UnsafePinned` will.
    _pinned: PhantomPinned,
}

impl<F, T> Drop for Fiber<F, T> {
    // Inlined, so that a fiber of which nothing is left is dropped by one comparison.
    #[inline(always)]
    fn drop(&mut self) {
        if !matches!(*self.state, FiberState::Gone) {
            // SAFETY: a value that is being dropped; nothing uses the state any longer.
            unsafe { ManuallyDrop::drop(&mut self.state) };
        }
    }
}

enum FiberState<F, T> {
    /// Its code has not started; it has a claim to a stack.
    Fresh(F, Claim, Migration),
    /// Its code runs, or is suspended.
    Started(NonNull<StackContext>),
    /// Its code has ended; it still has its stack.
    Ended(NonNull<StackContext>, Result<T, Box<dyn Any + Send>>),
    /// Nothing is left of it.
    Gone,
}

// SAFETY: before it starts it is its closure; afterwards its job is suspended on one thread, or the code that spawned
// it has promised that it may migrate.
unsafe impl<F: Send, T: Send> Send for Fiber<F, T> {}

impl<F: FnOnce() -> T, T> Fiber<F, T> {
    pub(crate) fn new(code: F, claim: Claim, migration: Migration) -> Fiber<F, T> {
        Fiber {
            state: ManuallyDrop::new(FiberState::Fresh(code, claim, migration)),
            _pinned: PhantomPinned,
        }
    }

    /// Where its code starts or resumes, and on which stack.
    fn resume_point(&self) -> (SavedSp, NonNull<StackContext>) {
        let (claim, migration) = match &*self.state {
            FiberState::Fresh(_, claim, migration) => (claim, *migration),
            FiberState::Started(stack_context) => {
                // SAFETY: its stack: the context is suspended.
                let saved_sp = unsafe { stack_context.as_ref() }.saved_sp.get();
                return (saved_sp, *stack_context);
            }
            FiberState::Ended(..) | FiberState::Gone => {
                unreachable!("a fiber that ended runs no more")
            }
        };
        let stack = context::again().take_stack(claim);
        // The claim keeps a stack; only the memory for its guard can be missing.
        let stack = stack.unwrap_or_else(|error| panic!("{error}"));
        Self::prepare(stack, migration)
    }

    /// Prepares a stack for a fiber's code.
    #[inline(always)]
    fn prepare(stack: Stack, migration: Migration) -> (SavedSp, NonNull<StackContext>) {
        let stack_context = StackContext::on(stack, StackKind::Fiber);
        // SAFETY: its stack.
        unsafe { stack_context.as_ref() }
            .migrates
            .set(migration == Migration::Freely);
        // SAFETY: its stack: nothing runs on it yet.
        let start = unsafe { switch::begin(StackContext::frames(stack_context), begin::<F, T>) };
        (start, stack_context)
    }

    /// Switches to its stack, until one of the fibers that then run switches back.
    #[inline(always)]
    fn switch(&mut self, cx: &Context, (to, stack_context): (SavedSp, NonNull<StackContext>)) {
        let outer = cx.set_stack_context(stack_context.as_ptr());
        let here = Cell::new(SavedSp::NONE);
        let this = ptr::from_mut(self).expose_provenance();
        // SAFETY: its stack.
        let context = unsafe { stack_context.as_ref() };
        context.caller.set((here.as_ptr(), outer));
        let onto = Onto::Ours(context.newest().stack());
        // SAFETY: its stack: the fiber's code is suspended there, or starts there. It switches back to `here` on this
        // thread, because this frame is on a loop's stack, or on a joiner's, which waits in this call.
        unsafe { stack::switch(here.as_ptr(), to, onto, this) };
        cx.set_stack_context(outer);
    }

    /// Runs its code until it waits or ends. If it has switched to another fiber meanwhile, that one comes back here.
    /// If it migrates, another thread may have ended it by then, and the block may be another job's.
    #[inline]
    fn run(&mut self, cx: &Context) -> CameBack {
        let job = cx.job();
        let resume_point = self.resume_point();
        // Its code may suspend its stack, whatever its caller may do.
        let ending = cx.set_ending(false);
        // A nested poll, too, is between a poll of the loop and its end.
        let given_away = cx.set_given_away(false);
        self.switch(cx, resume_point);
        cx.set_ending(ending);
        let is_other = cx.set_given_away(given_away) || cx.job() != job;
        if is_other {
            cx.note_other_came_back();
            return CameBack::Other;
        }
        CameBack::Itself
    }

    /// Its code waits: from now on only this thread may run its job, unless it migrates freely.
    fn settle_wait(&self, cx: &Context, stack_context: NonNull<StackContext>) {
        let job = cx.job().expect("a fiber is polled in its job");
        // SAFETY: the thread that runs a job keeps it alive.
        let header = unsafe { job.header() };
        // SAFETY: its stack.
        let stack_context = unsafe { stack_context.as_ref() };
        // It keeps its placement from its first wait to its end.
        if header.has_own_stack() {
            return;
        }
        match stack_context.migrates.get() {
            true => header.set_body_bit(body_bit::MIGRATING),
            false => {
                let pinned = cx
                    .pinned_here()
                    .expect("a thread that runs jobs has a pinned queue");
                stack_context.suspend_job(header, pinned);
            }
        }
    }

    /// Its code has ended: its stack goes back, and any thread may run its job again.
    fn settle_end(&self, cx: &Context, stack_context: NonNull<StackContext>) {
        let job = cx.job().expect("a fiber is polled in its job");
        // SAFETY: the thread that runs a job keeps it alive.
        let header = unsafe { job.header() };
        // SAFETY: its stack.
        let context = unsafe { stack_context.as_ref() };
        match header.pinned_stack() {
            Some(_) => context.resume_job(header),
            None => header.clear_body_bit(body_bit::MIGRATING),
        }
        // SAFETY: its stack: its code has ended.
        cx.give_stack(unsafe { StackContext::into_stack(stack_context) });
    }
}

impl<F: FnOnce() -> T, T> Future for Fiber<F, T> {
    type Output = T;

    #[inline]
    fn poll(self: Pin<&mut Self>, _: &mut TaskContext<'_>) -> Poll<T> {
        // SAFETY: never moves: only the closure and the result are moved out, and these are not pinned.
        let this = unsafe { self.get_unchecked_mut() };
        let cx = context::here();
        // If it has ended, this poll only collects the result; see [`crate::scheduler::stackful::direct`].
        if !matches!(*this.state, FiberState::Ended(..)) && this.run(cx) == CameBack::Other {
            return Poll::Pending;
        }
        if let FiberState::Started(stack_context) = *this.state {
            this.settle_wait(cx, stack_context);
            return Poll::Pending;
        }
        let FiberState::Ended(stack_context, result) =
            mem::replace(&mut *this.state, FiberState::Gone)
        else {
            unreachable!("a fiber that ran has started")
        };
        this.settle_end(cx, stack_context);
        Poll::Ready(result.unwrap_or_else(|payload| resume_unwind(payload)))
    }
}

impl Fiber<fn(), ()> {
    /// A fiber whose code has begun on a stack before it was one.
    pub(crate) fn begun(stack_context: NonNull<StackContext>) -> Fiber<fn(), ()> {
        Fiber {
            state: ManuallyDrop::new(FiberState::Started(stack_context)),
            _pinned: PhantomPinned,
        }
    }

    /// The fiber of `job`, which is such a one.
    pub(crate) fn of(job: &Runnable) -> *const Fiber<fn(), ()> {
        JobCell::<Fiber<fn(), ()>>::body(job.ptr().as_raw()).cast()
    }

    /// The code has ended.
    ///
    /// # Safety
    /// Its stack: the caller is that code.
    pub(crate) unsafe fn end(
        this: *mut Fiber<fn(), ()>,
        stack_context: NonNull<StackContext>,
        result: Result<(), Box<dyn Any + Send>>,
    ) {
        // SAFETY: never moves.
        let state = unsafe { &raw mut (*this).state }.cast::<FiberState<fn(), ()>>();
        // SAFETY: as above. The overwritten value needs no destructor.
        unsafe { state.write(FiberState::Ended(stack_context, result)) };
    }
}

/// The calls of a job that is a fiber.
pub(crate) struct FiberTable<F, T>(PhantomData<(F, T)>);

impl<F: FnOnce() -> T, T> FiberTable<F, T> {
    pub(crate) const TABLE: &'static VTable = &VTable {
        run_fresh: Some(run_fresh::<F, T>),
        own_stack: Some(own_stack::<F, T>),
        ..JobCell::<Fiber<F, T>>::VTABLE
    };
}

/// The table of a fiber whose code [began before it was one](Fiber::begun). A static: it has one address.
pub(crate) static BEGUN: &VTable = FiberTable::<fn(), ()>::TABLE;

/// See [`RunFresh`](crate::job::body::RunFresh). The caller has begun the run of the job in the context, nested in its
/// own, and has nothing noted there that the code must not find.
///
/// # Safety
/// The caller has the right to run `job`, which is such a fiber, and has a place for its output.
unsafe fn run_fresh<F: FnOnce() -> T, T>(job: NonNull<Header>, place: *mut ()) -> FreshRun {
    let body = JobCell::<Fiber<F, T>>::body(job).cast::<Fiber<F, T>>();
    // SAFETY: the caller's promise; never moves.
    let fiber = unsafe { &mut *body };
    let cx = context::here();
    let FiberState::Fresh(_, claim, migration) = &*fiber.state else {
        return FreshRun::Declined;
    };
    let Ok(stack) = cx.take_stack(claim) else {
        return FreshRun::Declined;
    };
    let start = Fiber::<F, T>::prepare(stack, *migration);
    fiber.switch(cx, start);
    let stack_context = match &*fiber.state {
        FiberState::Ended(stack_context, Ok(output)) => {
            // The output alone: a copy of the state, which was just written, waits until all parts of it are written.
            // SAFETY: the caller's promise; the stage set below keeps what was moved out from being dropped.
            unsafe { ptr::copy_nonoverlapping(output, place.cast::<T>(), 1) };
            *stack_context
        }
        FiberState::Ended(_, Err(_)) => return FreshRun::Unwound,
        _ => {
            fiber.settle_wait(cx, start.1);
            return FreshRun::Waits;
        }
    };
    set_stage(job, stage::NOTHING);
    // It has not waited, so any worker may run its job, as before.
    // SAFETY: its stack: its code has ended.
    cx.give_stack(unsafe { StackContext::into_stack(stack_context) });
    FreshRun::Ended
}

/// See [`OwnStack`](crate::job::body::OwnStack).
///
/// # Safety
/// As there.
#[inline(always)]
unsafe fn own_stack<F: FnOnce() -> T, T>(job: NonNull<Header>) -> *const () {
    let fiber = JobCell::<Fiber<F, T>>::body(job).cast::<Fiber<F, T>>();
    // SAFETY: the caller's promise.
    match unsafe { &*(*fiber).state } {
        FiberState::Started(context) | FiberState::Ended(context, _) => context.as_ptr().cast(),
        FiberState::Fresh(..) | FiberState::Gone => ptr::null(),
    }
}

/// [`own_stack`] of a job that is a fiber. Of one whose code began before it was one, as most of those that migrate, it
/// is found without a call.
///
/// # Safety
/// As there.
#[inline(always)]
pub(crate) unsafe fn own_stack_of(job: &Runnable) -> *const () {
    let (table, job) = (job.header().vtable, job.ptr().as_raw());
    if ptr::eq(table, BEGUN) {
        // SAFETY: the caller's promise; this is its table.
        return unsafe { own_stack::<fn(), ()>(job) };
    }
    // SAFETY: the caller's promise.
    table
        .own_stack
        .map_or(ptr::null(), |own_stack| unsafe { own_stack(job) })
}

/// The first function of a fiber's stack; `this` is the fiber's address.
extern "C" fn begin<F: FnOnce() -> T, T>(this: usize) -> ! {
    switch::arrived();
    let stack_context =
        NonNull::new(context::here().stack_context().cast_mut()).expect("it was just set");
    let this = ptr::with_exposed_provenance_mut::<Fiber<F, T>>(this);
    // SAFETY: never moves; the loop that polls waits in its call.
    let state = unsafe { &raw mut (*this).state }.cast::<FiberState<F, T>>();
    // SAFETY: as above.
    let FiberState::Fresh(code, ..) = (unsafe { &*state }) else {
        unreachable!("a fiber starts once")
    };
    // SAFETY: the write below keeps what is moved out from being dropped.
    let code = unsafe { ptr::read(code) };
    // The claim, which is overwritten, needs no destructor: its stack is this one.
    // SAFETY: as above.
    unsafe { state.write(FiberState::Started(stack_context)) };
    let result = catch_unwind(AssertUnwindSafe(code));
    // SAFETY: never moves; as above. The overwritten value needs no destructor.
    unsafe { state.write(FiberState::Ended(stack_context, result)) };
    // SAFETY: its stack.
    let record = unsafe { stack_context.as_ref() };
    record.has_ended.set(true);
    let (caller, onto) = caller(record);
    // SAFETY: its stack: the last caller waits there; nothing is left in this frame.
    unsafe { switch::leave(caller, onto) }
}

/// Calls `with` with a word that belongs to the running fiber and starts as null. Returns `None`, without a call, if
/// the calling code does not run on a fiber's stack.
pub fn with_fiber_word<R>(with: impl FnOnce(&Cell<*const ()>) -> R) -> Option<R> {
    let stack_context = stack_context::root(context::again())
        .filter(|stack_context| stack_context.kind == StackKind::Fiber)?;
    Some(with(&stack_context.word))
}
