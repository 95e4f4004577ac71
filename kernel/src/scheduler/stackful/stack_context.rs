//! A strand: what runs on one of our stacks; how it is left standing, and how it goes on.
//!
//! Jobs are run by a *loop*, which itself runs on a stack of ours. A job that waits with its stack leaves
//! the loop's stack standing, with the job's frames on it; a loop on a further stack goes on with other
//! jobs. When the job is woken, whichever loop takes it leaves its own stack for good, and the old one goes
//! on: first the job, then the loop below its frames. So at any moment a thread has one loop at work, and
//! a wait costs two switches, no thread, and no allocation.
//!
//! A fiber is simpler ([`crate::scheduler::stackful::fiber`]): its stack holds nothing but its own frames, and to wait it goes
//! back to the loop that called it.
//!
//! The thread's own stack is the *base*: it waits in [`run_loop`] while a loop is at work, and says in its
//! [`Duty`] what the loop has to do. A loop asks the base anew before each step, because a stack that was
//! left under one base may go on under another.
//!
//! # Safety
//! - **at the top**: a strand lies at the top of its stack, above all frames, and lives as long as anything
//!   runs or stands on the stack.
//! - **bound**: a job whose strand stands is woken to the home of the thread that left it, so only that
//!   thread goes on with it. Nothing else moves a strand to another thread.
//! - **abandoned**: a loop that is left for good holds nothing that needs a destructor: the job that it was
//!   about to run has passed to the strand that goes on, and everything else belongs to the base.
//! - **base**: a loop runs only while its base waits in `run_loop`, so what a step begins with is alive. A step may
//!   end under another base, because a job in it may leave the stack: what is used after a job ran outlives every
//!   stack of the thread (a crew's service, a test runtime's driver), and the other duties use nothing then.

#![allow(unsafe_code)]

use std::{
    any::Any,
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    ptr::{self, NonNull},
};

use crate::{
    job::{self, JobPtr, place, runnable::Runnable},
    report,
    scheduler::{
        stackful::pinned::{PinChange, PinnedQueue},
        workers::{
            context::{self, Context},
            run,
        },
    },
    stack::{self, Onto, SavedSp, Stack, StackError, switch},
};

/// What runs on a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StackKind {
    /// A loop that runs jobs.
    Loop,
    /// The frames of one fiber.
    Fiber,
    /// A call that went on here from another stack, and returns there.
    Segment,
}

/// The record at the top of a stack.
#[repr(C, align(64))]
pub(crate) struct StackContext {
    /// Where it was left.
    pub(crate) place: Cell<SavedSp>,
    /// For a fiber: where the place is noted at which the loop that called it goes on, and that loop's strand.
    pub(crate) caller: Cell<(*const SavedSp, *const StackContext)>,
    /// The strand whose stack the frames began on: itself, but for a further one. Null: a thread's own stack.
    pub(crate) root: Cell<*const StackContext>,
    /// Where a root's newest frames are, while it stands: on itself, or on a further strand.
    newest: Cell<*const StackContext>,
    /// The home of the thread that left it; while it stands.
    pinned: Cell<*const PinnedQueue>,
    pub(crate) kind: StackKind,
    /// Whether it may go on with another thread than that which left it.
    pub(crate) migrates: Cell<bool>,
    /// What a fiber's code keeps with its stack.
    pub(crate) word: Cell<*const ()>,
    stack: Stack,
}

impl StackContext {
    /// Begins a strand on `stack`.
    #[inline(always)]
    pub(crate) fn on(stack: Stack, kind: StackKind) -> NonNull<StackContext> {
        let top = stack.top();
        // SAFETY: at the top: the stack is far larger than the record, and nothing runs on it.
        let place = unsafe { top.cast::<StackContext>().sub(1) };
        let stack_context = StackContext {
            place: Cell::new(SavedSp::NONE),
            caller: Cell::new((ptr::null(), ptr::null())),
            root: Cell::new(place.as_ptr()),
            newest: Cell::new(place.as_ptr()),
            pinned: Cell::new(ptr::null()),
            kind,
            migrates: Cell::new(false),
            word: Cell::new(ptr::null()),
            stack,
        };
        // SAFETY: as above; the top is a multiple of 64.
        unsafe { place.write(stack_context) };
        place
    }

    /// Where the frames begin: right below the record.
    #[inline(always)]
    pub(crate) fn frames(stack_context: NonNull<StackContext>) -> NonNull<u8> {
        const { assert!(size_of::<StackContext>().is_multiple_of(16)) };
        stack_context.cast()
    }

    /// Takes the stack, on which nothing runs any more.
    ///
    /// # Safety
    /// Called once, as the last access to the strand.
    #[inline(always)]
    pub(crate) unsafe fn into_stack(stack_context: NonNull<StackContext>) -> Stack {
        // SAFETY: the caller's promise.
        let stack_context = unsafe { stack_context.read() };
        stack_context.stack
    }

    /// The strand on which it goes on: where its newest frames are.
    #[inline(always)]
    pub(crate) fn newest(&self) -> &StackContext {
        // SAFETY: at the top: the newest strand of a root that stands does so too.
        unsafe { &*self.newest.get() }
    }

    /// The stack.
    pub(crate) fn stack(&self) -> &Stack {
        &self.stack
    }

    /// Whose thread goes on with it; null while it runs.
    #[inline(always)]
    pub(crate) fn pinned(&self) -> *const PinnedQueue {
        self.pinned.get()
    }

    /// The stack of `job` is suspended from now on: wakes send the job to `pinned`.
    pub(crate) fn suspend_job(&self, job: &job::Header, pinned: &PinnedQueue) {
        self.pinned.set(pinned);
        job.set_link(ptr::from_ref(self).cast_mut().cast());
        // The orderings are those of the state, which gives the runnable away after this.
        job.set_place(place::SUSPENDED);
        pinned.count_pinned(PinChange::Pinned);
    }

    /// The stack of `job` is no longer suspended.
    pub(crate) fn resume_job(&self, job: &job::Header) {
        // SAFETY: bound: this is the home's thread.
        let pinned = unsafe { &*self.pinned.replace(ptr::null()) };
        pinned.count_pinned(PinChange::Unpinned);
        job.clear_place(place::SUSPENDED);
    }
}

/// What a thread's loop has to do, a step at a time.
pub(crate) trait Duty {
    /// One step. What it uses after a job ran must outlive every stack of the thread; see *base*.
    fn step(&self, cx: &Context) -> Flow;
}

/// Whether a loop goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// With a further step.
    Continue,
    /// The base goes on.
    End,
}

/// A thread's own stack, while a loop is at work for it.
pub(crate) struct Base<'a> {
    place: Cell<SavedSp>,
    /// The strand that it is itself; null for the thread's own stack.
    stack_context: *const StackContext,
    duty: &'a dyn Duty,
    panic: Cell<Option<Box<dyn Any + Send>>>,
}

/// Lets a loop do `duty`, on a stack of `class`; returns when the loop has ended.
///
/// # Panics
/// If a step does.
pub(crate) fn run_loop(cx: &Context, class: u32, duty: &dyn Duty) {
    let stack = match stack::take(class) {
        Ok(stack) => stack,
        Err(error) => {
            report::no_stack(&error);
            while duty.step(cx) == Flow::Continue {}
            return;
        }
    };
    let base = Base {
        place: Cell::new(SavedSp::NONE),
        stack_context: cx.stack_context(),
        duty,
        panic: Cell::new(None),
    };
    let stack_context = StackContext::on(stack, StackKind::Loop);
    let base_before = cx.set_base(ptr::from_ref(&base).cast());
    let context_before = cx.set_stack_context(stack_context.as_ptr());
    // SAFETY: nothing runs on the new stack.
    let begin = unsafe { switch::begin(StackContext::frames(stack_context), begin_loop) };
    // SAFETY: at the top.
    let onto = Onto::Ours(unsafe { stack_context.as_ref() }.stack());
    // SAFETY: whoever goes on here does so on this thread, because a loop never changes threads.
    unsafe { stack::switch(base.place.as_ptr(), begin, onto, 0) };
    cx.set_stack_context(context_before);
    cx.set_base(base_before);
    cx.give_abandoned();
    if let Some(payload) = base.panic.take() {
        resume_unwind(payload);
    }
}

/// The first function of a loop's stack. `job`: the address of a job that has just left its stack, and
/// whose poll is to be settled here; or zero.
extern "C" fn begin_loop(job: usize) -> ! {
    switch::arrived();
    let cx = context::here();
    if let Some(job) = NonNull::new(ptr::with_exposed_provenance_mut(job)) {
        // SAFETY: the job was running when it left its stack, so this thread has its right to run.
        run::park(cx, unsafe { Runnable::new(JobPtr::from_raw(job)) });
        cx.set_job(None);
    }
    let ran = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: base.
        while unsafe { &*cx.base() }.duty.step(cx) == Flow::Continue {}
    }));
    // SAFETY: base: it may be another one than at the start.
    let base = unsafe { &*cx.base() };
    base.panic.set(ran.err());
    abandon(cx);
    // SAFETY: at the top: a base may run on another strand.
    let onto = match unsafe { base.stack_context.as_ref() } {
        Some(stack_context) => Onto::Ours(&stack_context.stack),
        None => Onto::ThreadStack,
    };
    // SAFETY: the base waits there; nothing is left on this stack.
    unsafe { switch::leave(base.place.get(), onto) }
}

/// The running stack will be left for good: whoever goes on next gives it back.
fn abandon(cx: &Context) {
    let stack_context =
        NonNull::new(cx.stack_context().cast_mut()).expect("a loop runs on a strand");
    // SAFETY: at the top; the loop's frames need the record no more.
    cx.set_abandoned(unsafe { StackContext::into_stack(stack_context) });
}

/// The root of the strand on which the thread runs, if that can be left standing.
#[inline(always)]
pub(crate) fn root(cx: &Context) -> Option<&'static StackContext> {
    // SAFETY: at the top: the caller runs on it.
    let stack_context = unsafe { cx.stack_context().as_ref() }?;
    // SAFETY: at the top: a further strand's root waits for it to return.
    unsafe { stack_context.root.get().as_ref() }
}

/// The stack of ours on which the thread runs.
pub(crate) fn stack(cx: &Context) -> Option<&Stack> {
    // SAFETY: at the top: the caller runs on it.
    unsafe { cx.stack_context().as_ref() }.map(StackContext::stack)
}

/// Leaves the running stack, whose root is `root`, standing until `job`, which runs on it, is woken. A fiber goes
/// back to its caller; below any other job a new loop takes over. On the strand's thread, in a poll of `job`, not
/// while unwinding.
///
/// # Errors
/// If there is no stack for the loop; nothing has happened then.
#[inline]
pub(crate) fn suspend(cx: &Context, root: &StackContext, job: JobPtr) -> Result<(), StackError> {
    let newest = cx.stack_context();
    let fork = cx.set_thread_fork(None);
    let dropping = cx.set_dropping(false);
    root.newest.set(newest);
    let suspended = match root.kind {
        StackKind::Fiber => {
            suspend_fiber(root);
            Ok(())
        }
        StackKind::Loop | StackKind::Segment => suspend_under_new_loop(cx, root, job),
    };
    // Asked for anew: a fiber that moves may be on another thread.
    let cx = context::again();
    cx.set_stack_context(newest);
    cx.set_thread_fork(fork);
    cx.set_dropping(dropping);
    suspended
}

fn suspend_under_new_loop(
    cx: &Context,
    stack_context: &StackContext,
    job: JobPtr,
) -> Result<(), StackError> {
    let next = StackContext::on(stack::take(stack_context.stack.class())?, StackKind::Loop);
    // SAFETY: the caller runs the job.
    let header = unsafe { job.header() };
    let pinned = cx.pinned_here().expect("a thread with a loop has a home");
    stack_context.suspend_job(header, pinned);
    cx.set_stack_context(next.as_ptr());
    // SAFETY: nothing runs on the new stack.
    let begin = unsafe { switch::begin(StackContext::frames(next), begin_loop) };
    // SAFETY: at the top.
    let onto = Onto::Ours(unsafe { next.as_ref() }.stack());
    let address = job.as_raw().as_ptr().expose_provenance();
    // SAFETY: bound: the same thread goes on here.
    unsafe { stack::switch(stack_context.place.as_ptr(), begin, onto, address) };
    cx.give_abandoned();
    stack_context.resume_job(header);
    Ok(())
}

/// Resumes the stack of a loop, which `stack_context` is the context of. The loop that calls is left for good; the right to run
/// the job passes from its frames to those that are suspended.
pub(crate) fn resume(cx: &Context, stack_context: &StackContext) -> ! {
    let (place, onto) = (
        stack_context.place.get(),
        Onto::Ours(&stack_context.newest().stack),
    );
    abandon(cx);
    // SAFETY: bound, and abandoned; the stack is suspended at this place until now.
    unsafe { switch::leave(place, onto) }
}

/// Where whoever called the fiber goes on, and on which stack.
#[inline(always)]
pub(crate) fn caller(stack_context: &StackContext) -> (SavedSp, Onto<'_>) {
    let (place, on) = stack_context.caller.get();
    // SAFETY: its stack: whoever called waits in its call, and so does the strand that it runs on.
    let onto = match unsafe { on.as_ref() } {
        Some(on) => Onto::Ours(on.stack()),
        None => Onto::ThreadStack,
    };
    // SAFETY: as above.
    (unsafe { *place }, onto)
}

/// Leaves the running fiber's stack until its job is woken.
// Not inlined: a fiber that moves comes back on another thread, and nothing that depends on the thread may be
// kept in a register over the switch.
#[inline(never)]
fn suspend_fiber(stack_context: &StackContext) {
    let (caller, onto) = caller(stack_context);
    // SAFETY: its stack: whoever called waits at its place, and the job's next poll goes on here.
    unsafe { stack::switch(stack_context.place.as_ptr(), caller, onto, 0) };
}
