//! Stack contexts: how a stack is suspended, and how it is resumed.
//!
//! Jobs are run by a *loop*, which itself runs on a stack of ours. When a job waits with its stack, [`suspend`] leaves
//! the loop's stack as it is, with the job's frames on it, and switches to a new loop on another stack, which runs
//! other jobs. When the job is woken, the loop that takes the job calls [`resume`]: this loop leaves its own stack for
//! good and switches to the suspended one. There the job continues, and after it the old loop below the job's frames.
//! So a thread has one loop at work at any moment, and a wait costs two switches, no thread and no allocation.
//!
//! ```text
//!   job J waits:    stack A [ loop | J ]  suspend ──► stack B [ new loop ] runs other jobs
//!   J is woken:     stack B takes J,      resume ───► stack A [ loop | J ] continues; B goes back to the stack pool
//! ```
//!
//! A fiber is simpler ([`crate::scheduler::stackful::fiber`]): its stack holds nothing but its own frames. To wait, it
//! switches back to the loop that polled it; the next poll resumes it. Where the next job is a fiber, too, the one
//! switches to the other ([`crate::scheduler::stackful::direct`]).
//!
//! What a switch restores, and where: the stack pointer and the registers that a callee saves are on the stack
//! ([`crate::stack`]); [`suspend`] restores the stack context, the root fork and whether a future is being dropped; the
//! wait (`first_poll::end`, or `SavedFlags` in `wait_on`; a common one `Unit::end_first_poll` of `sync`) restores what
//! the poll had noted (listening, yielded); a common wait of a pinned fiber (`switch_to_next_pinned` in `direct`), a
//! direct yield of one (`yields`), and a direct switch of one that migrates (`switch_to_next_migrating` in `direct`)
//! restore the stack context alone; the loop's next poll, or
//! `Context::begin_nested`, restores the job and its budget. A fiber that migrates then parks or queues the one that
//! was left (`Context::settle_left`), before anything else of the runtime is called.
//!
//! The stack that called [`run_loop`] is the *base*: it waits in the call while a loop is at work, and its [`Duty`]
//! defines what the loop does. A loop asks the base again before each step, because a stack that was suspended under
//! one base may be resumed under another.
//!
//! # Safety
//! - **at the top**: a context is at the top of its stack, above all frames, and lives as long as anything runs or is
//!   suspended on the stack.
//! - **pinned**: a job whose stack is suspended is woken to the pinned queue of the thread that suspended it, so only
//!   that thread resumes it, unless it migrates. Only a migrating fiber changes threads, and not in the poll of a wait
//!   ([`suspend`]).
//! - **abandoned**: a loop that is left for good holds nothing that needs a destructor: the job that it was about to
//!   run has passed to the stack that resumes, and everything else belongs to the base.
//! - **base**: a loop runs only while its base waits in `run_loop`, so what a step begins with is alive. A step may end
//!   under another base, because a job in it may suspend the stack. So whatever is used after a job ran (a pool
//!   thread's service, a test runtime's driver) outlives every stack of the thread; the other duties use nothing then.
//! - **its stack**: the argument for a fiber's stack, at the head of [`crate::scheduler::stackful::fiber`].

#![allow(unsafe_code)]

use std::{
    any::Any,
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    ptr::{self, NonNull},
};

use crate::{
    job::{self, JobPtr, body_bit, runnable::Runnable},
    report,
    scheduler::{
        stackful::pinned::{PinChange, PinnedQueue},
        workers::{
            context::{self, Context, PollNotes},
            run,
            shared::Shared,
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
    /// A call that continues here from another stack, and returns there.
    Segment,
}

/// What is kept at the top of a stack.
#[repr(C, align(64))]
pub(crate) struct StackContext {
    /// Where it was suspended.
    pub(crate) saved_sp: Cell<SavedSp>,
    /// For a fiber: where the loop that polled it resumes, and that loop's context.
    pub(crate) caller: Cell<(*const SavedSp, *const StackContext)>,
    /// The context of the stack on which the frames began: itself, except for a segment. Null: a thread's own stack.
    pub(crate) root: Cell<*const StackContext>,
    /// In a suspended root: the context of the stack with its newest frames, which is itself or a segment.
    newest: Cell<*const StackContext>,
    /// The pinned queue of the thread that suspended it; see [`StackContext::pinned`].
    pinned: Cell<*const PinnedQueue>,
    pub(crate) kind: StackKind,
    /// Whether another thread than the one that suspended it may resume it. Set when a fiber starts, and never changed.
    pub(crate) migrates: Cell<bool>,
    /// The [foreign runtime](crate::scheduler::stackful::foreign_runtime) that the job of a root has entered, or null.
    pub(crate) foreign_runtime: Cell<*const Shared>,
    /// What a fiber's code keeps with its stack.
    pub(crate) word: Cell<*const ()>,
    /// Whether a fiber's code has ended, so that its next poll collects the result.
    pub(crate) has_ended: Cell<bool>,
    /// Set while the code is no job ([`crate::api::jobless`]).
    pub(crate) jobless: Cell<*const ()>,
    /// The fiber that such code has become, or null.
    pub(crate) fiber: Cell<*const ()>,
    stack: Stack,
}

impl StackContext {
    /// Begins a context on `stack`.
    #[inline(always)]
    pub(crate) fn on(stack: Stack, kind: StackKind) -> NonNull<StackContext> {
        let top = stack.top();
        // SAFETY: at the top: the stack is far larger than the context, and nothing runs on it.
        let context = unsafe { top.cast::<StackContext>().sub(1) };
        let stack_context = StackContext {
            saved_sp: Cell::new(SavedSp::NONE),
            caller: Cell::new((ptr::null(), ptr::null())),
            root: Cell::new(context.as_ptr()),
            newest: Cell::new(context.as_ptr()),
            pinned: Cell::new(ptr::null()),
            kind,
            migrates: Cell::new(false),
            foreign_runtime: Cell::new(ptr::null()),
            word: Cell::new(ptr::null()),
            has_ended: Cell::new(false),
            jobless: Cell::new(ptr::null()),
            fiber: Cell::new(ptr::null()),
            stack,
        };
        // SAFETY: as above; the top is a multiple of 64.
        unsafe { context.write(stack_context) };
        context
    }

    /// The context of the fiber that `job` is, if its code has begun and the job holds it. Whoever runs the job may use
    /// it until the fiber's end is collected.
    #[inline(always)]
    pub(crate) fn of_fiber(job: &Runnable) -> Option<&StackContext> {
        let own_stack = job.header().vtable.own_stack?;
        if !job.header().has_own_stack() {
            return None;
        }
        // SAFETY: one runner: `job` is the right to run; what has frames on a stack holds its fiber.
        let context = unsafe { own_stack(job.ptr().as_raw()) };
        // SAFETY: at the top: a fiber keeps its stack until its end is collected.
        unsafe { context.cast::<StackContext>().as_ref() }
    }

    /// Where the frames begin: right below the context.
    #[inline(always)]
    pub(crate) fn frames(stack_context: NonNull<StackContext>) -> NonNull<u8> {
        const { assert!(size_of::<StackContext>().is_multiple_of(16)) };
        stack_context.cast()
    }

    /// Takes the stack, on which nothing runs any longer.
    ///
    /// # Safety
    /// Called once, as the last access to the context.
    #[inline(always)]
    pub(crate) unsafe fn into_stack(stack_context: NonNull<StackContext>) -> Stack {
        // SAFETY: the caller's promise.
        let stack_context = unsafe { stack_context.read() };
        stack_context.stack
    }

    /// The context with the newest frames, on whose stack it resumes.
    #[inline(always)]
    pub(crate) fn newest(&self) -> &StackContext {
        // SAFETY: at the top: the newest context of a suspended root is suspended too.
        unsafe { &*self.newest.get() }
    }

    /// The stack is about to be suspended, and the newest frames are on it, not on a segment.
    #[inline(always)]
    pub(crate) fn suspends_itself(&self) {
        self.newest.set(self);
    }

    /// The stack.
    pub(crate) fn stack(&self) -> &Stack {
        &self.stack
    }

    /// The queue of the only thread that resumes the stack. A loop's stack has none while it runs. A fiber keeps the
    /// queue from its first wait to its end; one that migrates has a queue only while it waits in the poll of another
    /// wait.
    #[inline(always)]
    pub(crate) fn pinned(&self) -> *const PinnedQueue {
        self.pinned.get()
    }

    /// The stack of `job` is suspended from now on: wakes send the job to `pinned`.
    pub(crate) fn suspend_job(&self, job: &job::Header, pinned: &PinnedQueue) {
        self.pinned.set(pinned);
        job.set_link(ptr::from_ref(self).cast_mut().cast());
        // The orderings are those of the state, which gives the runnable away after this.
        job.set_body_bit(body_bit::PINNED_STACK);
        pinned.count_pinned(PinChange::Pinned);
    }

    /// The stack of `job` is no longer suspended.
    pub(crate) fn resume_job(&self, job: &job::Header) {
        // SAFETY: pinned: this is the queue's thread.
        let pinned = unsafe { &*self.pinned.replace(ptr::null()) };
        pinned.count_pinned(PinChange::Unpinned);
        job.clear_body_bit(body_bit::PINNED_STACK);
    }
}

/// What a thread's loop does, one step at a time.
pub(crate) trait Duty {
    /// One step. What it uses after a job ran must outlive every stack of the thread; see *base*.
    fn step(&self, cx: &Context) -> Flow;
}

/// What a loop does after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Another step.
    Continue,
    /// It ends, and the base continues.
    End,
}

/// The stack that called [`run_loop`], while a loop is at work for it.
pub(crate) struct Base<'a> {
    saved_sp: Cell<SavedSp>,
    /// The context of its stack; null for the thread's own stack.
    stack_context: *const StackContext,
    duty: &'a dyn Duty,
    panic: Cell<Option<Box<dyn Any + Send>>>,
}

/// Runs a loop that does `duty`, on a stack of `class`. Returns when the loop has ended.
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
        saved_sp: Cell::new(SavedSp::NONE),
        stack_context: cx.stack_context(),
        duty,
        panic: Cell::new(None),
    };
    let stack_context = StackContext::on(stack, StackKind::Loop);
    let base_before = cx.set_base(ptr::from_ref(&base).cast());
    let context_before = cx.set_stack_context(stack_context.as_ptr());
    let had_none = cx.set_no_stack(false);
    // SAFETY: nothing runs on the new stack.
    let begin = unsafe { switch::begin(StackContext::frames(stack_context), begin_loop) };
    // SAFETY: at the top.
    let onto = Onto::Ours(unsafe { stack_context.as_ref() }.stack());
    // SAFETY: the loop that switches back here is on this thread, because a loop never changes threads.
    unsafe { stack::switch(base.saved_sp.as_ptr(), begin, onto, 0) };
    cx.set_no_stack(had_none);
    cx.set_stack_context(context_before);
    cx.set_base(base_before);
    cx.give_abandoned();
    if let Some(payload) = base.panic.take() {
        resume_unwind(payload);
    }
}

/// The first function of a loop's stack. `job`: the address of a job that has just been suspended, and that the new
/// loop must park; or zero.
extern "C" fn begin_loop(job: usize) -> ! {
    switch::arrived();
    let cx = context::here();
    if let Some(job) = NonNull::new(ptr::with_exposed_provenance_mut(job)) {
        // SAFETY: the job was running when it was suspended, so this thread has its right to run.
        let job = unsafe { Runnable::new(JobPtr::from_raw(job)) };
        // What is told that the job goes on must not suspend this stack in the job's name.
        let ending = cx.set_ending(true);
        run::park(cx, job);
        cx.set_ending(ending);
        cx.set_job(None);
    }
    let ran = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: base.
        while unsafe { &*cx.base() }.duty.step(cx) == Flow::Continue {}
    }));
    // SAFETY: base: it may be another base than at the start.
    let base = unsafe { &*cx.base() };
    base.panic.set(ran.err());
    abandon(cx);
    // SAFETY: at the top: a base may be on a stack of ours too.
    let onto = match unsafe { base.stack_context.as_ref() } {
        Some(stack_context) => Onto::Ours(&stack_context.stack),
        None => Onto::ThreadStack,
    };
    // SAFETY: the base waits there; nothing is left on this stack.
    unsafe { switch::leave(base.saved_sp.get(), onto) }
}

/// The running stack is about to be left for good: the stack that resumes next gives it back.
fn abandon(cx: &Context) {
    let stack_context =
        NonNull::new(cx.stack_context().cast_mut()).expect("a loop runs on a stack of ours");
    // SAFETY: at the top; the loop's frames no longer need the context.
    cx.set_abandoned(unsafe { StackContext::into_stack(stack_context) });
}

/// The root of the stack on which the thread runs. None on a stack that cannot be suspended: a thread's own.
#[inline(always)]
pub(crate) fn root(cx: &Context) -> Option<&'static StackContext> {
    // SAFETY: at the top: the caller runs on it.
    let stack_context = unsafe { cx.stack_context().as_ref() }?;
    // SAFETY: at the top: the root of a segment waits for it to return.
    unsafe { stack_context.root.get().as_ref() }
}

/// The stack of ours on which the thread runs.
pub(crate) fn stack(cx: &Context) -> Option<&Stack> {
    // SAFETY: at the top: the caller runs on it.
    unsafe { cx.stack_context().as_ref() }.map(StackContext::stack)
}

/// Suspends the running stack, whose root is `root`, until `job`, which runs on it, is woken. A fiber switches to the
/// next fiber ([`crate::scheduler::stackful::direct`]) or back to its caller; for any other job a new loop takes over
/// the thread. Only in a poll of `job`; while the stack unwinds, only inside [`Context::suspend_unwinding`].
///
/// `before`: what was noted when the wait began. If that was in a poll of another wait, a fiber that migrates resumes
/// on this thread: what that poll inlines may keep the address of a thread-local in a register of the poll's frame.
///
/// # Errors
/// If there is no stack for the loop; nothing has happened then.
#[inline]
pub(crate) fn suspend(
    cx: &Context,
    root: &StackContext,
    (job, before): (JobPtr, PollNotes),
) -> Result<(), StackError> {
    let newest = cx.stack_context();
    let fork = cx.set_thread_fork(None);
    let dropping = cx.set_dropping(false);
    root.newest.set(newest);
    let suspended = match root.kind {
        StackKind::Fiber if before.waits() && root.migrates.get() => {
            suspend_fiber_here(cx, root, job);
            Ok(())
        }
        StackKind::Fiber => {
            suspend_fiber(root, job);
            Ok(())
        }
        StackKind::Loop | StackKind::Segment => suspend_under_new_loop(cx, root, job),
    };
    // Read again: a fiber that migrates may be on another thread.
    let cx = context::again();
    cx.set_stack_context(newest);
    if root.migrates.get() {
        cx.settle_left();
    }
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
    let pinned = cx
        .pinned_here()
        .expect("a thread with a loop has a pinned queue");
    stack_context.suspend_job(header, pinned);
    cx.set_stack_context(next.as_ptr());
    // SAFETY: nothing runs on the new stack.
    let begin = unsafe { switch::begin(StackContext::frames(next), begin_loop) };
    // SAFETY: at the top.
    let onto = Onto::Ours(unsafe { next.as_ref() }.stack());
    let address = job.as_raw().as_ptr().expose_provenance();
    // SAFETY: pinned: the same thread resumes here.
    unsafe { stack::switch(stack_context.saved_sp.as_ptr(), begin, onto, address) };
    cx.give_abandoned();
    stack_context.resume_job(header);
    Ok(())
}

/// Resumes the suspended stack of a loop. The calling loop is left for good; the right to run the job passes from its
/// frames to the resumed ones.
pub(crate) fn resume(cx: &Context, stack_context: &StackContext) -> ! {
    let (saved_sp, onto) = (
        stack_context.saved_sp.get(),
        Onto::Ours(&stack_context.newest().stack),
    );
    abandon(cx);
    // SAFETY: pinned, and abandoned; the stack is suspended there until now.
    unsafe { switch::leave(saved_sp, onto) }
}

/// Where the fiber's caller resumes, and on which stack.
#[inline(always)]
pub(crate) fn caller(stack_context: &StackContext) -> (SavedSp, Onto<'_>) {
    let (saved_sp, on) = stack_context.caller.get();
    // SAFETY: its stack: the caller waits in its call, and so does the stack that it runs on.
    let onto = match unsafe { on.as_ref() } {
        Some(on) => Onto::Ours(on.stack()),
        None => Onto::ThreadStack,
    };
    // SAFETY: as above.
    (unsafe { *saved_sp }, onto)
}

/// [`suspend_fiber`] of a fiber that migrates, which is pinned to this thread meanwhile.
#[cold]
#[inline(never)]
fn suspend_fiber_here(cx: &Context, stack_context: &StackContext, job: JobPtr) {
    // SAFETY: the caller runs the job.
    let header = unsafe { job.header() };
    let pinned = cx
        .pinned_here()
        .expect("a thread that runs jobs has a pinned queue");
    stack_context.suspend_job(header, pinned);
    suspend_fiber(stack_context, job);
    stack_context.resume_job(header);
}

/// Suspends the running fiber's stack until its job is woken.
// Not inlined: a fiber that migrates resumes on another thread, and nothing that depends on the thread may be kept in a
// register over the switch.
#[inline(never)]
fn suspend_fiber(stack_context: &StackContext, job: JobPtr) {
    let next = match stack_context.migrates.get() {
        true => context::here().begin_next_migrating_apart(stack_context, job),
        false => context::here().begin_next(stack_context, job),
    };
    let (to, onto) = match next {
        Some(next) => (next.saved_sp.get(), Onto::Ours(next.newest().stack())),
        None => caller(stack_context),
    };
    // SAFETY: its stack: the next fiber is suspended there, or the caller waits there; and the job's next run resumes
    // here.
    unsafe { stack::switch(stack_context.saved_sp.as_ptr(), to, onto, 0) };
}
