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
        stackful::pinned::{Home, Resident},
        workers::{
            context::{self, Context},
            run,
        },
    },
    stack::{self, Onto, Place, Stack, StackError, switch},
};

/// What runs on a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A loop that runs jobs.
    Loop,
    /// The frames of one fiber.
    Fiber,
    /// A call that went on here from another stack, and returns there.
    Further,
}

/// The record at the top of a stack.
#[repr(C, align(64))]
pub(crate) struct Strand {
    /// Where it was left.
    pub(crate) place: Cell<Place>,
    /// For a fiber: where the place is noted at which the loop that called it goes on, and that loop's strand.
    pub(crate) caller: Cell<(*const Place, *const Strand)>,
    /// The strand whose stack the frames began on: itself, but for a further one. Null: a thread's own stack.
    pub(crate) root: Cell<*const Strand>,
    /// Where a root's newest frames are, while it stands: on itself, or on a further strand.
    newest: Cell<*const Strand>,
    /// The home of the thread that left it; while it stands.
    home: Cell<*const Home>,
    pub(crate) kind: Kind,
    /// Whether it may go on with another thread than that which left it.
    pub(crate) moves: Cell<bool>,
    /// What a fiber's code keeps with its stack.
    pub(crate) word: Cell<*const ()>,
    stack: Stack,
}

impl Strand {
    /// Begins a strand on `stack`.
    #[inline(always)]
    pub(crate) fn on(stack: Stack, kind: Kind) -> NonNull<Strand> {
        let top = stack.top();
        // SAFETY: at the top: the stack is far larger than the record, and nothing runs on it.
        let place = unsafe { top.cast::<Strand>().sub(1) };
        let strand = Strand {
            place: Cell::new(Place::NONE),
            caller: Cell::new((ptr::null(), ptr::null())),
            root: Cell::new(place.as_ptr()),
            newest: Cell::new(place.as_ptr()),
            home: Cell::new(ptr::null()),
            kind,
            moves: Cell::new(false),
            word: Cell::new(ptr::null()),
            stack,
        };
        // SAFETY: as above; the top is a multiple of 64.
        unsafe { place.write(strand) };
        place
    }

    /// Where the frames begin: right below the record.
    #[inline(always)]
    pub(crate) fn frames(strand: NonNull<Strand>) -> NonNull<u8> {
        const { assert!(size_of::<Strand>().is_multiple_of(16)) };
        strand.cast()
    }

    /// Takes the stack, on which nothing runs any more.
    ///
    /// # Safety
    /// Called once, as the last access to the strand.
    #[inline(always)]
    pub(crate) unsafe fn into_stack(strand: NonNull<Strand>) -> Stack {
        // SAFETY: the caller's promise.
        let strand = unsafe { strand.read() };
        strand.stack
    }

    /// The strand on which it goes on: where its newest frames are.
    #[inline(always)]
    pub(crate) fn newest(&self) -> &Strand {
        // SAFETY: at the top: the newest strand of a root that stands does so too.
        unsafe { &*self.newest.get() }
    }

    /// The stack.
    pub(crate) fn stack(&self) -> &Stack {
        &self.stack
    }

    /// Whose thread goes on with it; null while it runs.
    #[inline(always)]
    pub(crate) fn home(&self) -> *const Home {
        self.home.get()
    }

    /// The stack of `job` is suspended from now on: wakes send the job to `home`.
    pub(crate) fn bind(&self, job: &job::Header, home: &Home) {
        self.home.set(home);
        job.set_link(ptr::from_ref(self).cast_mut().cast());
        // The orderings are those of the state, which gives the runnable away after this.
        job.set_place(place::SUSPENDED);
        home.count_resident(Resident::MovesIn);
    }

    /// The stack of `job` is no longer suspended.
    pub(crate) fn unbind(&self, job: &job::Header) {
        // SAFETY: bound: this is the home's thread.
        let home = unsafe { &*self.home.replace(ptr::null()) };
        home.count_resident(Resident::MovesOut);
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
    place: Cell<Place>,
    /// The strand that it is itself; null for the thread's own stack.
    strand: *const Strand,
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
        place: Cell::new(Place::NONE),
        strand: cx.strand(),
        duty,
        panic: Cell::new(None),
    };
    let strand = Strand::on(stack, Kind::Loop);
    let base_before = cx.set_base(ptr::from_ref(&base).cast());
    let strand_before = cx.set_strand(strand.as_ptr());
    // SAFETY: nothing runs on the new stack.
    let begin = unsafe { switch::begin(Strand::frames(strand), begin_loop) };
    // SAFETY: at the top.
    let onto = Onto::Ours(unsafe { strand.as_ref() }.stack());
    // SAFETY: whoever goes on here does so on this thread, because a loop never changes threads.
    unsafe { stack::switch(base.place.as_ptr(), begin, onto, 0) };
    cx.set_strand(strand_before);
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
    let onto = match unsafe { base.strand.as_ref() } {
        Some(strand) => Onto::Ours(&strand.stack),
        None => Onto::TheThreads,
    };
    // SAFETY: the base waits there; nothing is left on this stack.
    unsafe { switch::leave(base.place.get(), onto) }
}

/// The running stack will be left for good: whoever goes on next gives it back.
fn abandon(cx: &Context) {
    let strand = NonNull::new(cx.strand().cast_mut()).expect("a loop runs on a strand");
    // SAFETY: at the top; the loop's frames need the record no more.
    cx.set_abandoned(unsafe { Strand::into_stack(strand) });
}

/// The root of the strand on which the thread runs, if that can be left standing.
#[inline(always)]
pub(crate) fn root(cx: &Context) -> Option<&'static Strand> {
    // SAFETY: at the top: the caller runs on it.
    let strand = unsafe { cx.strand().as_ref() }?;
    // SAFETY: at the top: a further strand's root waits for it to return.
    unsafe { strand.root.get().as_ref() }
}

/// The stack of ours on which the thread runs.
pub(crate) fn stack(cx: &Context) -> Option<&Stack> {
    // SAFETY: at the top: the caller runs on it.
    unsafe { cx.strand().as_ref() }.map(Strand::stack)
}

/// Leaves the running stack, whose root is `root`, standing until `job`, which runs on it, is woken. A fiber goes
/// back to its caller; below any other job a new loop takes over. On the strand's thread, in a poll of `job`, not
/// while unwinding.
///
/// # Errors
/// If there is no stack for the loop; nothing has happened then.
#[inline]
pub(crate) fn stand(cx: &Context, root: &Strand, job: JobPtr) -> Result<(), StackError> {
    let newest = cx.strand();
    let fork = cx.set_root_fork(None);
    let dropping = cx.set_dropping(false);
    root.newest.set(newest);
    let stood = match root.kind {
        Kind::Fiber => {
            suspend_fiber(root);
            Ok(())
        }
        Kind::Loop | Kind::Further => stand_below_a_loop(cx, root, job),
    };
    // Asked for anew: a fiber that moves may be on another thread.
    let cx = context::again();
    cx.set_strand(newest);
    cx.set_root_fork(fork);
    cx.set_dropping(dropping);
    stood
}

fn stand_below_a_loop(cx: &Context, strand: &Strand, job: JobPtr) -> Result<(), StackError> {
    let next = Strand::on(stack::take(strand.stack.class())?, Kind::Loop);
    // SAFETY: the caller runs the job.
    let header = unsafe { job.header() };
    let home = cx.home_here().expect("a thread with a loop has a home");
    strand.bind(header, home);
    cx.set_strand(next.as_ptr());
    // SAFETY: nothing runs on the new stack.
    let begin = unsafe { switch::begin(Strand::frames(next), begin_loop) };
    // SAFETY: at the top.
    let onto = Onto::Ours(unsafe { next.as_ref() }.stack());
    let address = job.as_raw().as_ptr().expose_provenance();
    // SAFETY: bound: the same thread goes on here.
    unsafe { stack::switch(strand.place.as_ptr(), begin, onto, address) };
    cx.give_abandoned();
    strand.unbind(header);
    Ok(())
}

/// Resumes the stack of a loop, which `strand` is the context of. The loop that calls is left for good; the right to run
/// the job passes from its frames to those that are suspended.
pub(crate) fn go_on(cx: &Context, strand: &Strand) -> ! {
    let (place, onto) = (strand.place.get(), Onto::Ours(&strand.newest().stack));
    abandon(cx);
    // SAFETY: bound, and abandoned; the stack is suspended at this place until now.
    unsafe { switch::leave(place, onto) }
}

/// Where whoever called the fiber goes on, and on which stack.
#[inline(always)]
pub(crate) fn caller(strand: &Strand) -> (Place, Onto<'_>) {
    let (place, on) = strand.caller.get();
    // SAFETY: its stack: whoever called waits in its call, and so does the strand that it runs on.
    let onto = match unsafe { on.as_ref() } {
        Some(on) => Onto::Ours(on.stack()),
        None => Onto::TheThreads,
    };
    // SAFETY: as above.
    (unsafe { *place }, onto)
}

/// Leaves the running fiber's stack until its job is woken.
// Not inlined: a fiber that moves comes back on another thread, and nothing that depends on the thread may be
// kept in a register over the switch.
#[inline(never)]
fn suspend_fiber(strand: &Strand) {
    let (caller, onto) = caller(strand);
    // SAFETY: its stack: whoever called waits at its place, and the job's next poll goes on here.
    unsafe { stack::switch(strand.place.as_ptr(), caller, onto, 0) };
}
