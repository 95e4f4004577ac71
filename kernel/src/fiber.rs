//! A fiber: direct-style code on a stack of its own, as the future of a job.
//!
//! Polling it switches to its stack, where its closure runs; to wait, it switches back to the loop that
//! polled it, and its job is parked as any other. So a fiber is woken, cancelled, joined and reported by
//! what does so for every job, and costs a switch each way.
//!
//! Before it starts, a fiber is a closure, which any worker may take. Once it has waited, its stack may hold
//! what must not change threads (a borrow of a thread-local, a guard of `std`), so its job is bound to the
//! home of that thread; except for those that were made to migrate, by a promise of their maker's.
//!
//! # Safety
//! - **pinned**: the fiber lies in the body of its job, which never moves, so its own code may hold its
//!   address while it runs or stands.
//! - **its stack**: nothing but the fiber's frames runs on its stack; the stack is given back only after the
//!   fiber's code has ended, which its own last switch says. A fiber that is dropped earlier, in the middle of
//!   its code, would lose live frames: the state of its job excludes that (`STARTED`).

#![allow(unsafe_code)]

use std::{
    any::Any,
    cell::Cell,
    mem,
    panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind},
    pin::Pin,
    ptr::{self, NonNull},
    task::{Context as TaskContext, Poll},
};

use crate::{
    JoinHandle, Spawn, SpawnError, StackError,
    context::{self, Context},
    job::stage,
    spawn,
    stack::{self, Onto, Place, Stack, switch},
    strand::{self, Kind, Strand},
};

/// The stack that a fiber gets if nobody asks for another: 128 KiB, of which those pages are committed that
/// it touches.
pub const DEFAULT_STACK: usize = 128 << 10;

/// Whether a fiber may go on with another OS thread than the one that it waited on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moves {
    /// Not after its first wait.
    Never,
    /// At each wait: its maker promises that it holds nothing that depends on the thread.
    Freely,
}

/// The future.
pub(crate) struct Fiber<F, T> {
    state: State<F, T>,
    class: u32,
    moves: Moves,
}

enum State<F, T> {
    /// Its code has not begun.
    Fresh(F),
    /// Its code runs, or stands.
    Started(NonNull<Strand>),
    /// Its code has ended; the stack is still its.
    Ended(NonNull<Strand>, Result<T, Box<dyn Any + Send>>),
    /// Nothing is left of it.
    Gone,
}

// SAFETY: before it starts it is its closure; afterwards its job is bound to one thread, or its maker has
// promised that it may move.
unsafe impl<F: Send, T: Send> Send for Fiber<F, T> {}

impl<F: FnOnce() -> T, T> Fiber<F, T> {
    fn new(code: F, stack: usize, moves: Moves) -> Fiber<F, T> {
        Fiber {
            state: State::Fresh(code),
            class: Stack::class_of(stack),
            moves,
        }
    }

    /// Where its code goes on, on which strand.
    fn place(&mut self) -> (Place, NonNull<Strand>) {
        if let State::Started(strand) = self.state {
            // SAFETY: its stack: the strand stands.
            return (unsafe { strand.as_ref() }.place.get(), strand);
        }
        let stack = context::again().take_stack(self.class);
        let stack = stack.unwrap_or_else(|error| panic!("{error}"));
        let strand = Strand::on(stack, Kind::Fiber);
        // SAFETY: its stack.
        unsafe { strand.as_ref() }
            .moves
            .set(self.moves == Moves::Freely);
        // SAFETY: its stack: nothing runs on it yet.
        let place = unsafe { switch::begin(Strand::frames(strand), begin::<F, T>) };
        (place, strand)
    }

    /// Runs its code until it waits or ends.
    #[inline]
    fn run(&mut self, cx: &Context) {
        let (place, strand) = self.place();
        let outer = cx.set_strand(strand.as_ptr());
        // Its code may leave its stack, whatever its caller may do.
        let ending = cx.set_ending(false);
        let here = Cell::new(Place::NONE);
        let this = ptr::from_mut(self).expose_provenance();
        // SAFETY: its stack.
        let record = unsafe { strand.as_ref() };
        record.caller.set((here.as_ptr(), outer));
        let onto = Onto::Ours(record.newest().stack());
        // SAFETY: its stack: the place is where the fiber's code stands or begins. It comes back to `here` on
        // this thread, because this frame is on a loop's stack, which waits in this call.
        unsafe { stack::switch(here.as_ptr(), place, onto, this) };
        cx.set_ending(ending);
        cx.set_strand(outer);
    }

    /// Its code waits: from now on its job is bound, unless it moves freely.
    fn settle_wait(&self, cx: &Context, strand: NonNull<Strand>) {
        let job = cx.job().expect("a fiber is polled in its job");
        // SAFETY: the thread that runs a job keeps it alive.
        let header = unsafe { job.header() };
        // SAFETY: its stack.
        let strand = unsafe { strand.as_ref() };
        match self.moves {
            Moves::Freely => header.set_stage(stage::STARTED),
            Moves::Never if strand.home().is_null() => {
                let home = cx.home_here().expect("a thread that runs jobs has a home");
                strand.bind(header, stage::STARTED, home);
            }
            Moves::Never => {}
        }
    }

    /// Its code has ended: its stack goes back, and its job is no longer bound.
    fn settle_end(&self, cx: &Context, strand: NonNull<Strand>) {
        let job = cx.job().expect("a fiber is polled in its job");
        // SAFETY: the thread that runs a job keeps it alive.
        let header = unsafe { job.header() };
        // SAFETY: its stack.
        let record = unsafe { strand.as_ref() };
        match record.home().is_null() {
            true => header.set_stage(stage::FUTURE),
            false => record.unbind(header, stage::FUTURE),
        }
        // SAFETY: its stack: its code has ended.
        cx.give_stack(unsafe { Strand::into_stack(strand) });
    }
}

impl<F: FnOnce() -> T, T> Future for Fiber<F, T> {
    type Output = T;

    #[inline]
    fn poll(self: Pin<&mut Self>, _: &mut TaskContext<'_>) -> Poll<T> {
        // SAFETY: pinned: nothing is moved out but what is not pinned: the closure, and the result.
        let this = unsafe { self.get_unchecked_mut() };
        let cx = context::here();
        this.run(cx);
        if let State::Started(strand) = this.state {
            this.settle_wait(cx, strand);
            return Poll::Pending;
        }
        let State::Ended(strand, result) = mem::replace(&mut this.state, State::Gone) else {
            unreachable!("a fiber that ran has started")
        };
        this.settle_end(cx, strand);
        Poll::Ready(result.unwrap_or_else(|payload| resume_unwind(payload)))
    }
}

/// The first function of a fiber's stack; `this` is the fiber's address.
extern "C" fn begin<F: FnOnce() -> T, T>(this: usize) -> ! {
    switch::arrived();
    let strand = NonNull::new(context::here().strand().cast_mut()).expect("it was just set");
    let this = ptr::with_exposed_provenance_mut::<Fiber<F, T>>(this);
    // SAFETY: pinned; the loop that polls waits in its call.
    let state = unsafe { &raw mut (*this).state };
    // SAFETY: as above.
    let before = unsafe { state.replace(State::Started(strand)) };
    let State::Fresh(code) = before else {
        unreachable!("a fiber begins once")
    };
    let result = catch_unwind(AssertUnwindSafe(code));
    // SAFETY: pinned; as above. What was there needs no destructor.
    unsafe { state.write(State::Ended(strand, result)) };
    // SAFETY: its stack.
    let (caller, onto) = caller(unsafe { strand.as_ref() });
    // SAFETY: its stack: whoever called last waits there; nothing is left in this frame.
    unsafe { switch::leave(caller, onto) }
}

/// Where whoever called the fiber goes on, and on which stack.
#[inline(always)]
fn caller(strand: &Strand) -> (Place, Onto<'_>) {
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
pub(crate) fn suspend(strand: &Strand) {
    let (caller, onto) = caller(strand);
    // SAFETY: its stack: whoever called waits at its place, and the job's next poll goes on here.
    unsafe { stack::switch(strand.place.as_ptr(), caller, onto, 0) };
}

impl Spawn {
    /// Spawns a fiber on the current runtime: `code`, in direct style, on a stack of its own of `stack` bytes
    /// (rounded up to a power of two between 16 KiB and 1 GiB; see [`DEFAULT_STACK`]). Other units go on while
    /// it waits with [`wait()`](crate::Wait::wait).
    ///
    /// Before it starts, it may be taken by any worker; once it has waited, it stays on its OS thread.
    ///
    /// # Errors
    /// If the runtime shuts down, or if the system has no room for its guard page.
    #[track_caller]
    pub fn spawn_fiber<F, T>(self, stack: usize, code: F) -> Result<JoinHandle<T>, SpawnError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        // SAFETY: what is `'static` outlives the fiber.
        unsafe { self.spawn_fiber_unchecked(stack, code) }
    }

    /// As [`spawn_fiber`](Spawn::spawn_fiber), for code that borrows.
    ///
    /// # Safety
    /// What `code` and its result borrow lives until the job has ended.
    ///
    /// # Errors
    /// As [`spawn_fiber`](Spawn::spawn_fiber).
    #[track_caller]
    pub unsafe fn spawn_fiber_unchecked<F, T>(
        self,
        stack: usize,
        code: F,
    ) -> Result<JoinHandle<T>, SpawnError>
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        stack::pool::admit()?;
        spawn::fiber(
            self,
            Fiber::new(code, stack, Moves::Never),
            Location::caller(),
        )
    }

    /// As [`spawn_fiber`](Spawn::spawn_fiber), for a fiber that may go on with another OS thread after each of
    /// its waits. On a runtime with such fibers thieves find more to take.
    ///
    /// # Safety
    /// Over a wait the code keeps nothing that depends on the OS thread: no borrow of a thread-local, no guard
    /// of a `std` lock, no `Rc` that a thread-local holds too; neither does any function that it calls.
    ///
    /// # Errors
    /// As [`spawn_fiber`](Spawn::spawn_fiber).
    #[track_caller]
    pub unsafe fn spawn_migrating_fiber<F, T>(
        self,
        stack: usize,
        code: F,
    ) -> Result<JoinHandle<T>, SpawnError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        stack::pool::admit()?;
        spawn::fiber(
            self,
            Fiber::new(code, stack, Moves::Freely),
            Location::caller(),
        )
    }
}

impl From<StackError> for SpawnError {
    fn from(error: StackError) -> SpawnError {
        SpawnError::NoStack(error)
    }
}

/// Calls `with` with a word that belongs to the running fiber, null at its start; not at all if the calling code
/// does not run on a fiber's stack.
pub fn with_fiber_word<R>(with: impl FnOnce(&Cell<*const ()>) -> R) -> Option<R> {
    let strand = strand::root(context::again()).filter(|strand| strand.kind == Kind::Fiber)?;
    Some(with(&strand.word))
}
