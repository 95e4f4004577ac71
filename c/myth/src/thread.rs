//! A thread: what C knows as `myth_thread_t`, from its start to its join.
//!
//! A thread is a migrating fiber of the kernel, and a block of its own that stays until the thread is joined, or has
//! been detached and has ended. With one worker, a new thread runs at once, in the middle of its creator's run, until
//! it waits or ends: child first, as programs for MassiveThreads expect. It is no job of the kernel before it waits
//! ([`saved::across`]), so a thread that never waits has no handle. With several workers it is left to whoever joins
//! it, or to another worker ([`lazy`]). (MassiveThreads begins it there, too, and lets others steal its creator.)
//!
//! # Safety
//! - *Three holds*: the block is freed by whoever sets the last of `STORED`, `DETACHED` and `ENDED`, or by the one that
//!   joins the thread, after it has ended.
//! - *Its own*: only the thread itself uses its keys and the place of its call, and its result until it has ended.
//! - *One joiner*: a program joins a thread once (myth.h), so the joiner alone has the handle. While it waits, the
//!   thread's end leaves the block to it, and wakes it as its last step.
//! - *Movable*: code in C keeps nothing that depends on the OS thread over a call of this library, as its header says.

#![allow(unsafe_code)]

mod blocks;
mod join;
mod kept;
mod lazy;
pub(crate) mod state;

use std::{
    cell::{Cell, UnsafeCell},
    ffi::{c_int, c_void},
    mem::{self, MaybeUninit},
    process, ptr,
};

use weald_kernel::{
    JoblessCode, JoblessRun, JoinHandle, LazyJob, Spawn, SpawnError, is_in_job, is_jobless,
    run_jobless, with_fiber_word, yield_with_stack,
};

pub(crate) use join::{TimeLimit, detach, join};

use blocks::Spare;
use state::{AfterEnd, BEGUN, DETACHED, ENDED, STORED, State};

use crate::{
    bind,
    keys::Values,
    machine::{self, Function, Place},
    runtime::{self, Global},
    saved::{self, across, around, around_a_begin},
};

/// The result of a thread that was cancelled: `MYTH_CANCELED`.
pub(crate) const CANCELED: *mut c_void = ptr::without_provenance_mut(usize::MAX);

/// A thread.
#[repr(C)]
pub(crate) struct Thread {
    /// What it is while it is not known whether it needs a job ([`lazy`]), and what it is to do then.
    lazy: LazyJob,
    function: Cell<Option<Function>>,
    argument: Cell<*mut c_void>,
    stack_size: Cell<usize>,
    state: State,
    result: Cell<*mut c_void>,
    /// Where its function was called.
    call: Cell<Place>,
    handle: UnsafeCell<Option<JoinHandle<()>>>,
    pub(crate) keys: Values,
}

/// What a thread is to do.
#[derive(Clone, Copy)]
pub(crate) struct Start {
    pub(crate) function: Function,
    pub(crate) argument: *mut c_void,
    pub(crate) stack_size: usize,
    pub(crate) detached: bool,
    pub(crate) child_first: bool,
}

impl Start {
    /// With the settings of the runtime.
    pub(crate) fn new(function: Function, argument: *mut c_void, global: &Global) -> Start {
        Start {
            function,
            argument,
            stack_size: global.stack_size,
            detached: false,
            child_first: global.child_first,
        }
    }
}

impl Thread {
    fn new(state: u32) -> Thread {
        Thread {
            lazy: LazyJob::new(),
            function: Cell::new(None),
            argument: Cell::new(ptr::null_mut()),
            stack_size: Cell::new(0),
            state: State::new(state),
            result: Cell::new(ptr::null_mut()),
            call: Cell::new(Place::NONE),
            handle: UnsafeCell::new(None),
            keys: Values::new(),
        }
    }

    /// One that nobody has created, and that nobody joins.
    pub(crate) fn of_main() -> Thread {
        Thread::new(STORED | DETACHED | BEGUN)
    }

    /// Asks it to end.
    pub(crate) fn cancel(&self) {
        self.state.cancel();
    }

    /// Whether it is to end now.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.state.is_cancelled()
    }

    /// Sets whether cancels are disabled, and returns whether they were.
    pub(crate) fn disable_cancel(&self, disable: bool) -> bool {
        self.state.disable_cancel(disable)
    }
}

thread_local! {
    /// The thread that an OS thread of the program is, which is none of this library.
    static OUTSIDE: Thread = Thread::of_main();
}

/// The calling thread.
pub(crate) fn current() -> *const Thread {
    let inside = with_fiber_word(Cell::get).unwrap_or(ptr::null());
    match inside.is_null() {
        true => outside(),
        false => inside.cast(),
    }
}

/// [`current`], for what stays with the caller: if the runtime does not run, it starts, so that the caller, which then
/// is another thread than before, is one of its threads already. If it cannot start, the caller stays what it is.
pub(crate) fn settled() -> *const Thread {
    let _refused = runtime::ensure();
    current()
}

#[cold]
#[inline(never)]
fn outside() -> *const Thread {
    OUTSIDE.with(ptr::from_ref)
}

thread_local! {
    /// The blocks of threads that have ended.
    static SPARE: Spare<Thread> = const { Spare::new() };
}

/// A block for a new thread, which `give_back` takes.
// Not inlined, as `give_back`: the place of the spare ones belongs to the OS thread, and the caller may switch later.
#[inline(never)]
fn new_block(state: u32) -> *const Thread {
    let spare = SPARE.try_with(Spare::take).ok().flatten();
    let block = spare.unwrap_or_else(|| Box::into_raw(Box::new_uninit()));
    let thread: *mut Thread = block.cast();
    // SAFETY: it has room, and nobody uses it.
    unsafe { thread.write(Thread::new(state)) };
    thread
}

/// Ends a block.
///
/// # Safety
/// *Three holds*: nobody uses it any longer.
#[inline(never)]
unsafe fn give_back(thread: *const Thread) {
    // SAFETY: the caller's promise.
    unsafe { thread.cast_mut().drop_in_place() };
    let block: *mut MaybeUninit<Thread> = thread.cast_mut().cast();
    // SAFETY: as above; `new_block` made it.
    let keep = |spare: &Spare<Thread>| unsafe { spare.keep(block) };
    if !SPARE.try_with(keep).unwrap_or(false) {
        // SAFETY: as above.
        drop(unsafe { Box::from_raw(block) });
    }
}

/// A block, for the code of its thread.
struct Block(*const Thread);

// SAFETY: *three holds*, *its own*.
unsafe impl Send for Block {}

/// A start, for the code of its thread.
struct Sent(Start);

// SAFETY: the program passes the argument from one thread to the other.
unsafe impl Send for Sent {}

/// Creates a thread, and writes it to `id` before it begins.
///
/// # Errors
/// `EAGAIN` if the system refuses a stack or memory.
pub(crate) fn create(
    global: &'static Global,
    start: Start,
    id: &Cell<*const Thread>,
) -> Result<(), c_int> {
    let state = if start.detached { DETACHED } else { 0 };
    let thread = new_block(state);
    id.set(thread);
    // Outside of jobs both are refused.
    let is_created = match global.workers {
        1 => start.child_first && begin_jobless(global, thread, start),
        _ => Thread::leave_to_joiner(global, thread, &start),
    };
    if is_created {
        return Ok(());
    }
    let created = create_as_job(global, thread, start);
    if created.is_err() {
        id.set(ptr::null());
    }
    created
}

/// As [`create`], of a thread that is a job from the beginning.
// In a frame of its own: that of `create` stays small.
#[inline(never)]
fn create_as_job(
    global: &'static Global,
    thread: *const Thread,
    start: Start,
) -> Result<(), c_int> {
    let in_job = is_in_job();
    let spawned = match in_job {
        true => spawn(global, thread, start),
        false => global.block_on(async { spawn(global, thread, start) }),
    };
    let Ok(mut handle) = spawned else {
        // SAFETY: *three holds*: its code was dropped.
        unsafe { give_back(thread) };
        return Err(libc::EAGAIN);
    };
    if start.child_first && in_job && global.workers == 1 {
        begin_at_once(thread, &mut handle);
    }
    // SAFETY: its creator is the caller.
    unsafe { store(thread, handle) };
    Ok(())
}

/// Spawns a thread as a job, in the runtime that the caller works for.
fn spawn(
    global: &'static Global,
    thread: *const Thread,
    start: Start,
) -> Result<JoinHandle<()>, SpawnError> {
    let (block, sent) = (Block(thread), Sent(start));
    let code = move || run_to_the_end(global, block, sent);
    // SAFETY: *movable*.
    unsafe { Spawn::new().spawn_migrating_fiber(start.stack_size, code) }
}

/// Stores the handle of a thread.
///
/// # Safety
/// *Three holds*: the caller is its creator, and calls this once.
unsafe fn store(thread: *const Thread, handle: JoinHandle<()>) {
    // SAFETY: the caller's promise.
    let this = unsafe { &*thread };
    // SAFETY: nobody else uses it before it is stored.
    unsafe { *this.handle.get() = Some(handle) };
    if this.state.set(STORED) {
        // SAFETY: *three holds*.
        unsafe { give_back(thread) };
    }
}

/// Begins a thread in the middle of its creator's run, without a job as long as it does not wait. False if that is not
/// possible here.
fn begin_jobless(global: &'static Global, thread: *const Thread, start: Start) -> bool {
    match run_on_top(global, thread, &start, Begins::Created) {
        JoblessRun::Refused => return false,
        // SAFETY: its creator is the caller.
        JoblessRun::Job(handle) => unsafe { store(thread, handle) },
        JoblessRun::Ended => {
            // SAFETY: *three holds*: its creator has not stored its handle.
            if unsafe { &*thread }.state.set(STORED | ENDED) {
                // SAFETY: *three holds*.
                unsafe { give_back(thread) };
            }
        }
    }
    true
}

/// Who begins a thread in the middle of its run.
#[derive(Clone, Copy, PartialEq)]
enum Begins {
    Created,
    /// Its joiner. That it is one is not noted in the thread's state.
    Joined,
}

/// Runs a thread in the middle of the caller's run, until it waits or ends.
#[inline(always)]
fn run_on_top(
    global: &'static Global,
    thread: *const Thread,
    start: &Start,
    begins: Begins,
) -> JoblessRun {
    let first = First {
        global,
        thread,
        begins,
        function: start.function,
        argument: start.argument,
    };
    let argument: *mut () = ptr::from_ref(&first).cast_mut().cast();
    let code = (run_first as JoblessCode, argument);
    // SAFETY: *movable*; each wait of this library is in `across`. It copies what is in this frame before.
    around_a_begin(|| unsafe { run_jobless(start.stack_size, code, thread.cast()) })
}

/// What a thread is told that its creator or its joiner begins.
struct First {
    global: &'static Global,
    thread: *const Thread,
    begins: Begins,
    function: Function,
    argument: *mut c_void,
}

/// The code of a thread that its creator or its joiner begins.
///
/// # Safety
/// `first` is the caller's [`First`], and the caller waits in [`run_on_top`] until the thread has ended or waits.
unsafe fn run_first(first: *mut ()) {
    // SAFETY: the caller waits in `run_on_top`.
    let first = unsafe { &*first.cast::<First>() };
    let (thread, begins) = (first.thread, first.begins);
    bind_here(first.global);
    call(thread, first.function, first.argument);
    if !is_jobless() {
        // SAFETY: *three holds*: it is the caller that ends, as a job.
        unsafe { end(thread, begins == Begins::Joined) };
    }
}

/// Runs a thread that was just created, until it waits or ends.
fn begin_at_once(thread: *const Thread, handle: &mut JoinHandle<()>) {
    // SAFETY: *three holds*: its creator has not stored its handle.
    let thread = unsafe { &*thread };
    if around(|| handle.run_if_newest()).is_some() {
        return;
    }
    // The creator has used up its turn, so it goes behind all others. The new thread, which is the next to run, may
    // have to wait for others, too, which were woken before.
    while !thread.state.has(BEGUN) {
        across(yield_with_stack);
    }
}

/// The code of a thread that is a job.
fn run_to_the_end(global: &'static Global, Block(thread): Block, Sent(start): Sent) {
    // SAFETY: *three holds*: it has not ended.
    unsafe { &*thread }.state.begin();
    bind_here(global);
    with_fiber_word(|word| word.set(thread.cast()));
    saved::begin();
    call(thread, start.function, start.argument);
    // SAFETY: *three holds*: it is the caller that ends.
    unsafe { end(thread, false) };
}

/// The code of a thread has ended, which somebody joins, as far as the caller knows.
///
/// # Safety
/// *Three holds*: called once.
unsafe fn end(thread: *const Thread, is_joined: bool) {
    let may_be_last = !is_joined && runtime::running().is_none();
    // SAFETY: *three holds*.
    match unsafe { &*thread }.state.end(may_be_last) {
        AfterEnd::Nothing => {}
        // SAFETY: *three holds*.
        AfterEnd::Free => unsafe { give_back(thread) },
        // SAFETY: its joiner waits until the node is marked, and then frees the thread.
        AfterEnd::Wake(joiner) => unsafe { &*joiner }.take_and_wake(),
        // SAFETY: *three holds*.
        AfterEnd::Keep => unsafe { Thread::keep(thread) },
    }
}

/// Binds the OS thread, if the program wants that.
#[inline(always)]
fn bind_here(global: &Global) {
    if !global.cores.is_empty() {
        bind::bind_here(&global.cores);
    }
}

/// The code of a thread, up to its end.
#[inline(always)]
fn call(thread: *const Thread, function: Function, argument: *mut c_void) {
    // SAFETY: *three holds*: it has not ended.
    let this = unsafe { &*thread };
    let alarm = ForeignException;
    // SAFETY: the program's promise to `myth_create`; *its own*.
    let result = unsafe { machine::call(function, argument, this.call.as_ptr()) };
    this.result.set(result);
    if this.keys.are_used() {
        // In a call that `exit` can end, too.
        // SAFETY: as above.
        unsafe { machine::call(end_keys, ptr::null_mut(), this.call.as_ptr()) };
    }
    mem::forget(alarm);
}

/// Calls the destructors of what the calling thread keeps.
unsafe extern "C-unwind" fn end_keys(_: *mut c_void) -> *mut c_void {
    // SAFETY: the calling thread has not ended.
    unsafe { &*current() }.keys.end();
    ptr::null_mut()
}

/// Dropped only if an exception leaves a thread's function.
struct ForeignException;

impl Drop for ForeignException {
    fn drop(&mut self) {
        eprintln!("myth: an exception has left the function of a thread; aborting");
        process::abort();
    }
}

/// Ends the calling thread with `result`. An OS thread of the program, `main` among them, ends the program.
pub(crate) fn exit(result: *mut c_void) -> ! {
    // SAFETY: the calling thread has not ended.
    let this = unsafe { &*current() };
    let call = this.call.get();
    if call == Place::NONE {
        process::exit(0);
    }
    // SAFETY: its function is being called; the frames of C above it are left as by a long jump (myth.h).
    unsafe { machine::leave(call, result) }
}
