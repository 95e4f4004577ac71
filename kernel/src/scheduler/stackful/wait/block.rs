//! Holding the OS thread: `blocking`, and waits that may not leave their stack.
//!
//! The worker's right goes to a stand-in first, so that nobody else waits.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::Duration,
};

use crate::{
    FEATURES,
    job::JobRef,
    report::{self, JobName},
    scheduler::{
        stackful::{
            pinned::Home,
            wait::{is_unwinding, unwind_if_cancelled},
        },
        threads::{detached::Does, pool::Right, serve},
        workers::{context, shared::Shared},
    },
    sys::lock,
};

/// How often a job that holds its thread looks whether others are to run there.
pub(super) const LOOK: Duration = Duration::from_millis(10);

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
        let Some(shared) = cx
            .shared()
            .map(Shared::id)
            .and_then(crate::scheduler::workers::shared::find)
        else {
            return;
        };
        if shared.is_driven() {
            return;
        }
        if !shared.crew.has_stand_in(&shared) {
            serve::report_no_stand_in(&shared);
            return;
        }
        let right = serve::renew(&shared, worker.index, epoch);
        cx.lose();
        let Some(right) = right else { return };
        shared
            .relieved
            .add(shared.thread_number(), job, Does::Block);
        shared.counters.announced.fetch_add(1, Ordering::Relaxed);
        give(&shared, right);
    });
}

fn give(shared: &Arc<Shared>, right: Right) {
    if let Err(refused) = serve::hand_over(shared, right) {
        report::no_thread(refused.error.as_ref());
        // The monitor tries again each round.
        lock(&shared.orphans).push(refused.right);
    }
}

/// Wakes a parked thread.
pub(super) struct ThreadWaker {
    thread: Thread,
    woken: AtomicBool,
}

impl ThreadWaker {
    pub(super) fn new() -> Arc<ThreadWaker> {
        Arc::new(ThreadWaker {
            thread: thread::current(),
            woken: AtomicBool::new(true),
        })
    }

    /// Whether there was a wake since the last call.
    pub(super) fn take(&self) -> bool {
        self.woken.swap(false, Ordering::AcqRel)
    }

    pub(super) fn is_woken(&self) -> bool {
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
pub(super) fn block_in_job<F: Future>(future: Pin<&mut F>) -> F::Output {
    match hold_in_job(future, &|| false) {
        Some(output) => output,
        None => report::impossible("a wait gave way that must not"),
    }
}

/// As [`block_in_job`], until `gives_way`, which is asked from time to time: nothing comes back then.
#[cold]
pub(super) fn hold_in_job<F: Future>(
    mut future: Pin<&mut F>,
    gives_way: &dyn Fn() -> bool,
) -> Option<F::Output> {
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
                return Some(output);
            }
            continue;
        }
        if FEATURES.driver.is_driving() {
            FEATURES
                .driver
                .drive_until(&|| signal.is_woken() || job.header().state.is_cancelled());
            continue;
        }
        if gives_way() {
            return None;
        }
        let _waiting = Waiting::begin(&job);
        let _parked = context::here().fork_wait();
        release(job.clone());
        park_in_job(&job, &signal, gives_way);
    }
}

/// While it lives, the job's thread does not count against the bound of stand-ins.
struct Waiting(Option<Arc<Shared>>);

impl Waiting {
    fn begin(job: &JobRef) -> Waiting {
        let shared = crate::scheduler::workers::shared::find(job.header().runtime());
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

fn park_in_job(job: &JobRef, signal: &ThreadWaker, gives_way: &dyn Fn() -> bool) {
    let header = job.header();
    header.extras.parts().blocked = Some(thread::current());
    // A job that unwinds waits to the end: it cannot be unwound twice.
    let unwinding = is_unwinding(header);
    if header.state.block() || unwinding {
        let mut told = false;
        let is_over = || signal.is_woken() || !unwinding && header.state.is_cancelled();
        while !is_over() && !gives_way() {
            thread::park_timeout(LOOK);
            let bound = context::here().home_here().map_or(0, Home::len);
            if !told && bound > 0 && !is_over() && !gives_way() {
                report::holds_bound_jobs(&JobName::of(header), bound);
                told = true;
            }
        }
        header.state.unblock();
    }
}
