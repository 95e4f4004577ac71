//! Waiting with the stack: `block_on` and `wait()`, from any context.
//!
//! - On a foreign thread the thread parks, and meanwhile runs the jobs that are bound to it.
//! - Inside a job the job's stack stays, and its OS thread parks: the worker's right goes to a stand-in
//!   first, so that nobody else waits. Fibers will leave their stack instead.
//! - Inside a job of a test runtime, which has no other thread, other jobs run on top of the stack.
//!
//! Cancelling a job that is in `wait()` unwinds its stack, once, with a private payload; never while it
//! is already unwinding.

use std::{
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
    job::JobRef,
    local::{self, Home},
    report, run,
    runtime::Runtime,
    shared::Shared,
    sys::lock,
    testing,
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
    match context::with(|cx| cx.job_ref()) {
        Some(job) => wait_in_job(&job, future),
        None => wait_outside(shared, future),
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

fn wait_in_job<F: Future>(job: &JobRef, mut future: Pin<&mut F>) -> F::Output {
    let signal = ThreadWaker::new();
    let waker = Waker::from(signal.clone());
    loop {
        unwind_if_cancelled(job);
        if signal.take() {
            let here = context::here();
            here.refill(
                here.shared()
                    .map_or(u32::MAX, |shared| shared.config.poll_budget),
            );
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                // The job goes on, and its next wait may be one that notes nothing.
                job.header().set_waits_for(0);
                return output;
            }
            continue;
        }
        if testing::is_driver() {
            testing::drive_nested(|| signal.is_woken() || job.header().state.is_cancelled());
            continue;
        }
        let _waiting = Waiting::begin(job);
        release(job.clone());
        // Jobs that are bound to this thread can run nowhere else.
        let home = context::here().home();
        if home.as_ref().is_none_or(|home| !run_local(home)) {
            park_in_job(job, &signal, home.as_deref());
        }
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
fn is_unwinding(job: &JobRef) -> bool {
    thread::panicking()
        || context::here().is_dropping()
        || job
            .header()
            .extras
            .existing()
            .is_some_and(|parts| parts.unwound)
}

fn park_in_job(job: &JobRef, signal: &ThreadWaker, home: Option<&Home>) {
    let header = job.header();
    header.extras.parts().blocked = Some(thread::current());
    // A job that unwinds waits to the end: it cannot be unwound twice.
    let unwinding = is_unwinding(job);
    if header.state.block() || unwinding {
        while !signal.is_woken()
            && !home.is_some_and(Home::has_runnable)
            && (unwinding || !header.state.is_cancelled())
        {
            thread::park();
        }
        header.state.unblock();
    }
}

fn unwind_if_cancelled(job: &JobRef) {
    if job.header().state.is_cancelled() && !is_unwinding(job) {
        job.header().extras.parts().unwound = true;
        run::unwind_cancelled();
    }
}

/// Runs the jobs bound to this thread that can run now, each once. False if there was none.
fn run_local(home: &Home) -> bool {
    let here = context::here();
    let budget = here
        .shared()
        .map_or(u32::MAX, |shared| shared.config.poll_budget);
    let there = home.len();
    for _ in 0..there {
        let Some(job) = home.pop() else { break };
        run::run_outside(here, job, budget);
    }
    there > 0
}

fn wait_outside<F: Future>(shared: &Arc<Shared>, mut future: Pin<&mut F>) -> F::Output {
    let signal = ThreadWaker::new();
    let waker = Waker::from(signal.clone());
    let visit = Visit::begin(shared);
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
        run_local(&visit.home);
        while !signal.is_woken() && !visit.home.has_runnable() {
            thread::park();
        }
    }
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
