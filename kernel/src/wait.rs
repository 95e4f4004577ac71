//! Waiting with the stack: `block_on` and `wait()`, from any context.
//!
//! - Inside a job the job's stack is left standing, and the thread goes on with other jobs on a further one
//!   ([`crate::strand`]). The job is woken, cancelled and reported as one that awaits.
//! - On a foreign thread the thread parks, and meanwhile runs the jobs that are bound to it.
//! - A wait in a destructor, while the thread unwinds or drops what a cancelled job held, blocks the OS
//!   thread: what is unwound is counted by thread, and another job's lock guards would be poisoned by it.
//!   The worker's right goes to a stand-in first. So it is, too, where no stack can be had.
//!
//! Cancelling a job that is in `wait()` unwinds its stack, once, with a private payload; never while it
//! is already unwinding.

#![allow(unsafe_code)]

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
};

use crate::{
    context,
    crew::{self, Right},
    job::{Header, JobPtr, JobRef},
    local::{self, Home},
    report, run,
    runtime::Runtime,
    shared::Shared,
    strand::{self, Duty},
    sys::lock,
    testing, waker,
};

/// Runs `future` on the calling thread until it is done, with the current runtime: the one that runs
/// the caller, else the default one. See [`Runtime::block_on`].
pub fn block_on<F: Future>(future: F) -> F::Output {
    match context::with(|cx| cx.shared().map(Shared::id)).and_then(crate::shared::find) {
        Some(shared) => block_on_in(&shared, future),
        None => block_on_in(&Runtime::default_runtime().shared, future),
    }
}

/// As [`Runtime::block_on`].
pub(crate) fn block_on_in<F: Future>(shared: &Arc<Shared>, future: F) -> F::Output {
    let future = pin!(future);
    match context::here().job() {
        Some(job) => wait_in_job(job, future),
        None => wait_outside(shared, future),
    }
}

/// As [`Wait::wait`](crate::Wait::wait), but a cancel of the running job does not end it: that is told, once, to
/// `cancelled`, and the wait goes on to the end of its future. For who must not leave before others have ended.
pub fn wait_to_the_end<F: Future>(future: F, mut cancelled: impl FnMut()) -> F::Output {
    let mut future = pin!(future);
    let mut was_told = false;
    let told = std::future::poll_fn(move |cx| {
        let is_cancelled = || context::again().job().is_some_and(is_cancelled);
        if !was_told && is_cancelled() {
            was_told = true;
            cancelled();
        }
        future.as_mut().poll(cx)
    });
    let shield = Shield::begin();
    let output = block_on(told);
    drop(shield);
    output
}

/// Unwinds the running job if it was cancelled, as a [`wait()`](crate::Wait::wait) would; for code that has none.
/// Outside of jobs, and while the stack unwinds already, it does nothing.
pub fn cancel_point() {
    if let Some(job) = context::again().job() {
        // SAFETY: the caller runs the job.
        unwind_if_cancelled(unsafe { job.header() });
    }
}

fn is_cancelled(job: JobPtr) -> bool {
    // SAFETY: the caller runs the job.
    unsafe { job.header() }.state.is_cancelled()
}

/// While it lives, no wait of the running job is unwound for a cancel.
struct Shield(Option<JobRef>);

impl Shield {
    fn begin() -> Shield {
        // Of two shields the outer one counts.
        let job = context::again().job_ref();
        Shield(job.filter(|job| !std::mem::replace(&mut job.header().extras.parts().unwound, true)))
    }
}

impl Drop for Shield {
    fn drop(&mut self) {
        if let Some(job) = &self.0 {
            job.header().extras.parts().unwound = false;
        }
    }
}

/// Runs `future` to its end in the running job.
pub(crate) fn wait_in_job<F: Future>(job: JobPtr, mut future: Pin<&mut F>) -> F::Output {
    let cx = context::here();
    if cx.strand().is_null() || cx.is_dropping() || thread::panicking() {
        return block_in_job(future);
    }
    // SAFETY: the thread that runs a job keeps it alive; so does its stack while it stands.
    let header = unsafe { job.header() };
    // SAFETY: as above; the waker leaves this frame only as clones with counts of their own.
    let waker = unsafe { waker::borrowed(job) };
    let mut noted = Noted::begin(cx);
    loop {
        unwind_if_cancelled(header);
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            // The job goes on, and its next wait may be one that notes nothing.
            header.set_waits_for(0);
            return output;
        }
        if let Err(error) = strand::stand(context::here(), job) {
            report::no_stack(&error);
            return block_in_job(future);
        }
        noted.stood = true;
    }
}

/// What the poll in which a wait happens has noted before it; comes back with the end of the wait.
struct Noted {
    before: (bool, bool),
    stood: bool,
}

impl Noted {
    fn begin(cx: &context::Context) -> Noted {
        Noted {
            before: cx.begin_wait(),
            stood: false,
        }
    }
}

impl Drop for Noted {
    #[inline]
    fn drop(&mut self) {
        // Asked for anew: a fiber that moves may be on another thread.
        context::again().end_wait(self.before, self.stood);
    }
}

/// Runs `f`, which may block its OS thread or compute for long; the worker's queue is served by
/// another thread meanwhile. Outside of a job it just runs `f`.
///
/// ```
/// # let runtime = weald_kernel::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(weald_kernel::spawn(async {
/// let text = weald_kernel::blocking(|| std::fs::read_to_string("/proc/version"));
/// # drop(text);
/// # })).unwrap();
/// ```
pub fn blocking<R>(f: impl FnOnce() -> R) -> R {
    if let Some(job) = context::with(|cx| cx.job_ref()) {
        release(job);
    }
    f()
}

/// Gives the right of the calling thread, which runs `job`, to a stand-in, if it still has it.
fn release(job: JobRef) {
    context::with(|cx| {
        let Some((worker, epoch)) = cx.worker() else {
            return;
        };
        let Some(shared) = cx.shared().map(Shared::id).and_then(crate::shared::find) else {
            return;
        };
        if shared.is_driven() {
            return;
        }
        if !shared.crew.has_stand_in(&shared) {
            report::no_stand_in(&shared);
            return;
        }
        let right = crew::renew(&shared, worker.index, epoch);
        cx.lose();
        let Some(right) = right else { return };
        lock(&shared.relieved).push((shared.thread_number(), job));
        shared.counters.announced.fetch_add(1, Ordering::Relaxed);
        give(&shared, right);
    });
}

fn give(shared: &Arc<Shared>, right: Right) {
    if let Err(refused) = crew::hand_over(shared, right) {
        report::no_thread(refused.error.as_ref());
        // The monitor tries again each round.
        lock(&shared.orphans).push(refused.right);
    }
}

/// Wakes a parked thread.
struct ThreadWaker {
    thread: Thread,
    woken: AtomicBool,
}

impl ThreadWaker {
    fn new() -> Arc<ThreadWaker> {
        Arc::new(ThreadWaker {
            thread: thread::current(),
            woken: AtomicBool::new(true),
        })
    }

    /// Whether there was a wake since the last call.
    fn take(&self) -> bool {
        self.woken.swap(false, Ordering::AcqRel)
    }

    fn is_woken(&self) -> bool {
        self.woken.load(Ordering::Acquire)
    }
}

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Release: pairs with the swap in `take`.
        if !self.woken.swap(true, Ordering::AcqRel) {
            self.thread.unpark();
        }
    }
}

/// Runs `future` to its end in the running job, and holds the OS thread meanwhile.
#[cold]
fn block_in_job<F: Future>(mut future: Pin<&mut F>) -> F::Output {
    let job = context::with(|cx| cx.job_ref()).expect("the caller runs a job");
    let signal = ThreadWaker::new();
    let waker = Waker::from(signal.clone());
    loop {
        unwind_if_cancelled(job.header());
        if signal.take() {
            let here = context::here();
            here.refill(
                here.shared()
                    .map_or(u32::MAX, |shared| shared.config.poll_budget),
            );
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                job.header().set_waits_for(0);
                return output;
            }
            continue;
        }
        if testing::is_driver() {
            testing::drive_nested(|| signal.is_woken() || job.header().state.is_cancelled());
            continue;
        }
        let _waiting = Waiting::begin(&job);
        release(job.clone());
        park_in_job(&job, &signal);
    }
}

/// While it lives, the job's thread does not count against the bound of stand-ins.
struct Waiting(Option<Arc<Shared>>);

impl Waiting {
    fn begin(job: &JobRef) -> Waiting {
        let shared = crate::shared::find(job.header().runtime());
        if let Some(shared) = &shared {
            shared.waiting.fetch_add(1, Ordering::Relaxed);
        }
        Waiting(shared)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(shared) = &self.0 {
            shared.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Whether a cancel may not unwind the running job (again).
fn is_unwinding(job: &Header) -> bool {
    thread::panicking()
        || context::here().is_dropping()
        || job.extras.existing().is_some_and(|parts| parts.unwound)
}

fn park_in_job(job: &JobRef, signal: &ThreadWaker) {
    let header = job.header();
    header.extras.parts().blocked = Some(thread::current());
    // A job that unwinds waits to the end: it cannot be unwound twice.
    let unwinding = is_unwinding(header);
    if header.state.block() || unwinding {
        while !signal.is_woken() && (unwinding || !header.state.is_cancelled()) {
            thread::park();
        }
        header.state.unblock();
    }
}

fn unwind_if_cancelled(job: &Header) {
    if job.state.is_cancelled() && !is_unwinding(job) {
        job.extras.parts().unwound = true;
        run::unwind_cancelled();
    }
}

fn wait_outside<F: Future>(shared: &Arc<Shared>, mut future: Pin<&mut F>) -> F::Output {
    let signal = ThreadWaker::new();
    let waker = Waker::from(signal.clone());
    let visit = Visit::begin(shared);
    let cx = context::here();
    // Caught, because the visit's end ends what stands on this thread, which must not be unwinding then.
    let ran = catch_unwind(AssertUnwindSafe(|| {
        loop {
            if signal.take()
                && let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker))
            {
                return output;
            }
            if testing::is_driver() {
                testing::drive_nested(|| signal.is_woken());
                continue;
            }
            // Below a loop of ours there is another base, and what is bound to this thread is that one's.
            if cx.strand().is_null() {
                run_home(shared, &visit.home, &signal);
            }
            let has_work = || cx.strand().is_null() && visit.home.has_runnable();
            while !signal.is_woken() && !has_work() {
                thread::park();
            }
        }
    }));
    drop(visit);
    ran.unwrap_or_else(|payload| resume_unwind(payload))
}

/// Runs the jobs bound to this thread that can run now, each once, and more while the future that the thread
/// waits for is not woken.
fn run_home(shared: &Shared, home: &Home, signal: &ThreadWaker) {
    let due = Cell::new(home.len());
    if due.get() == 0 {
        return;
    }
    let is_over = || match due.get() {
        0 => signal.is_woken(),
        left => {
            due.set(left - 1);
            false
        }
    };
    let duty = Duty::Visit(&is_over);
    strand::run_loop(context::here(), shared.stack_class(), duty);
}

/// A foreign thread's time inside `block_on`: it belongs to the runtime, and has a home. An inner
/// `block_on` of the same runtime shares the home of the outer one, so that its jobs go on.
struct Visit<'a> {
    shared: &'a Arc<Shared>,
    home: Arc<Home>,
    /// What the context held before; none for an inner visit.
    before: Option<(*const Shared, *const Home)>,
}

impl<'a> Visit<'a> {
    fn begin(shared: &'a Arc<Shared>) -> Visit<'a> {
        let here = context::here();
        let is_inner = here.shared().is_some_and(|outer| outer.id() == shared.id());
        if let Some(home) = here.home().filter(|_| is_inner) {
            return Visit {
                shared,
                home,
                before: None,
            };
        }
        let home = Arc::new(Home::new());
        let before = (
            here.set_shared(Arc::as_ptr(shared)),
            here.set_home(Arc::as_ptr(&home)),
        );
        Visit {
            shared,
            home,
            before: Some(before),
        }
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        if let Some((shared, home)) = self.before {
            local::evict(self.shared, &self.home);
            context::here().set_shared(shared);
            context::here().set_home(home);
        }
    }
}
