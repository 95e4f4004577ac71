//! The one runtime of the program: it starts at the first call that needs it, and ends at `myth_fini`.
//!
//! It has a monitor that never judges: a thread that computes or blocks keeps its worker, however long. Programs for
//! MassiveThreads count on it that no more threads run at once than there are workers. So a call that blocks holds up a
//! whole worker; what waits there goes to other workers as soon as one of them is free.

#![allow(unsafe_code)]

use std::{
    ffi::c_int,
    ptr,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{
            AtomicPtr,
            Ordering::{Acquire, Release},
        },
    },
    time::{Duration, Instant},
};

use weald_kernel::{Runtime, with_fiber_word};

use crate::{
    bind, ending, main_thread,
    saved::across,
    settings::{self, GlobalAttributes},
    thread::Thread,
};

/// Longer than any program runs.
const NEVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
/// How long the end of the runtime waits for a thread that computes.
const END_LIMIT: Duration = Duration::from_millis(100);

/// The runtime, with what it was started with.
pub(crate) struct Global {
    runtime: Runtime,
    pub(crate) workers: usize,
    pub(crate) stack_size: usize,
    pub(crate) child_first: bool,
    /// Where to bind workers; empty: nowhere.
    pub(crate) cores: Vec<usize>,
}

impl Global {
    /// Runs `future` on an OS thread of the program.
    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }
}

static GLOBAL: AtomicPtr<Global> = AtomicPtr::new(ptr::null_mut());
/// Held while the runtime starts or ends.
static CHANGES: Mutex<()> = Mutex::new(());

/// The runtime, if it runs.
pub(crate) fn running() -> Option<&'static Global> {
    // Pairs with the release in `start`.
    // SAFETY: it is freed only in `end`, during which the program uses nothing else of this library (myth.h).
    unsafe { GLOBAL.load(Acquire).as_ref() }
}

/// The runtime, which starts if it does not run.
///
/// # Errors
/// As [`start`].
#[inline]
pub(crate) fn ensure() -> Result<&'static Global, c_int> {
    match running() {
        Some(global) => Ok(global),
        None => start(None),
    }
}

/// [`ensure`], for a wait that nothing can replace.
pub(crate) fn get() -> &'static Global {
    ensure().unwrap_or_else(|_| panic!("the runtime for the wait could not start"))
}

/// Starts the runtime with `settings`, or those of the program, and makes a thread of it of the caller. Does nothing if
/// it runs already.
///
/// # Errors
/// `EINVAL` if a setting is out of range, `EAGAIN` if the system refuses OS threads, `ECANCELED` if the caller is a
/// thread of a runtime that ends.
#[cold]
pub(crate) fn start(settings: Option<GlobalAttributes>) -> Result<&'static Global, c_int> {
    if running().is_none() && is_one_of_ours() {
        return Err(libc::ECANCELED);
    }
    let changes = CHANGES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(global) = running() {
        return Ok(global);
    }
    across(|| start_first(settings, changes))
}

fn start_first(
    settings: Option<GlobalAttributes>,
    changes: MutexGuard<'_, ()>,
) -> Result<&'static Global, c_int> {
    let settings = settings.unwrap_or_else(|| settings::with_next(|next| *next));
    let workers = settings::worker_count(settings.workers);
    if workers > 1024 {
        return Err(libc::EINVAL);
    }
    let runtime = Runtime::builder()
        .name("myth")
        .workers(workers)
        .stuck_after(NEVER)
        .shutdown_deadline(END_LIMIT)
        .build()
        .map_err(|_refused| libc::EAGAIN)?;
    let cores = match settings.bind_workers {
        0 => Vec::new(),
        _ => bind::cores(),
    };
    bind::bind_all(&runtime, workers, &cores);
    let global = Box::new(Global {
        runtime,
        workers,
        stack_size: settings.stack_size,
        child_first: settings.child_first != 0,
        cores,
    });
    let global = Box::into_raw(global);
    GLOBAL.store(global, Release);
    drop(changes);
    // SAFETY: it was just made; as in `running`.
    let global = unsafe { &*global };
    main_thread::enter(global);
    Ok(global)
}

/// Whether the caller is a thread of this library, whose runtime may have ended.
fn is_one_of_ours() -> bool {
    with_fiber_word(|word| !word.get().is_null()).unwrap_or(false)
}

/// Ends the runtime. Threads that have not ended are ended in their waits.
pub(crate) fn end() {
    if running().is_none() || !main_thread::leave() {
        return;
    }
    let _changes = CHANGES.lock().unwrap_or_else(PoisonError::into_inner);
    let global = GLOBAL.swap(ptr::null_mut(), Acquire);
    if !global.is_null() {
        let begin = Instant::now();
        ending::begin();
        // SAFETY: `start` made it from a box, and the swap gives it to one caller.
        drop(unsafe { Box::from_raw(global) });
        // It returns before its limit if all threads have ended.
        let have_ended = begin.elapsed() < END_LIMIT;
        ending::finish(have_ended);
        // SAFETY: as it says.
        unsafe { Thread::free_kept(have_ended) };
    }
}
