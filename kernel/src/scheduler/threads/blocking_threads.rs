//! The blocking threads of a runtime: they run the closures of its blocking pool, and serve no worker.
//!
//! A thread is started when a closure needs one, none is idle and the limit allows it; an idle one retires as a spare
//! thread does. [`blocking_pool`](crate::scheduler::threads::blocking_pool) says what waits and what runs. A thread
//! whose closure computed, and whose priority was lowered for that and may not rise again, ends after the closure.
//!
//! Called by `api::blocking`, `api::offload` and `api::operation` ([`submit`]), by a foreign thread's wait
//! ([`wait_here`]), and by the monitor ([`check`]).

use std::{cell::Cell, sync::Arc, task::Waker, thread};

use crate::{
    job::foreign_call::FiredBy,
    memory, report,
    scheduler::{
        threads::{
            blocking_call::{BlockingCall, CallEnd, Caller, Purpose},
            blocking_pool::Queued,
        },
        workers::{
            context,
            shared::{self, Shared},
            waker,
        },
    },
    stack,
};

/// Queues `work` for a blocking thread. The call may be over already: if the runtime has stopped, or if the system
/// refuses the only thread.
pub(crate) fn submit(
    shared: &Arc<Shared>,
    caller: Caller,
    work: Box<dyn FnOnce() + Send>,
) -> Arc<BlockingCall> {
    let purpose = caller.purpose();
    let call = BlockingCall::new(shared.id(), fire, caller);
    match shared.blocking.of(purpose).push(work, call.clone()) {
        Queued::NeedsThread(number) => start_for_all(shared, purpose, number),
        // The monitor watches the queue.
        Queued::MustWait => shared.monitor.wake(),
        Queued::HasThread | Queued::Refused => {}
    }
    call
}

/// Fires the waker of a call that is over. A foreign waker is fired elsewhere, because a waker that blocks must not
/// hold this thread, which may be the monitor's.
fn fire(runtime: u16, waker: Waker) {
    waker::call_at_end(runtime, FiredBy::Blocking, waker);
}

/// Starts a thread, which will run closures of everybody. A job's thread whose priority is lowered leaves that to the
/// monitor: its threads would inherit the priority, and without privilege they could not raise it.
fn start_for_all(shared: &Arc<Shared>, purpose: Purpose, number: usize) {
    if shared.detached.is_lowered_here() && shared.blocking.of(purpose).leave_start() {
        shared.monitor.wake();
    } else {
        start(shared, purpose, number);
    }
}

fn start(shared: &Arc<Shared>, purpose: Purpose, number: usize) {
    let served = shared.clone();
    let name = match purpose {
        Purpose::Closures => "blocking",
        Purpose::Files => "files",
        Purpose::Names => "names",
    };
    let started = thread::Builder::new()
        .name(format!("{}-{name}-{number}", shared.config.name))
        .spawn(move || run_closures(&served, purpose));
    if let Err(error) = started {
        report::no_blocking_thread(&error);
        shared.blocking.of(purpose).not_started();
        // It watches the queue.
        shared.monitor.wake();
    }
}

/// Starts threads for operations that wait because others hold their threads for long, and reports what waits too long.
/// Returns whether the monitor must check again soon. Called by the monitor each round.
pub(crate) fn check(shared: &Arc<Shared>) -> bool {
    let mut is_soon = false;
    for purpose in [Purpose::Closures, Purpose::Files, Purpose::Names] {
        let found = shared.blocking.of(purpose).check();
        is_soon |= found.is_soon;
        let starts = found.starts.into_iter();
        starts.for_each(|number| start(shared, purpose, number));
    }
    is_soon
}

/// The life of a blocking thread.
fn run_closures(shared: &Arc<Shared>, purpose: Purpose) {
    let pool = shared.blocking.of(purpose);
    // It may stay lowered.
    let _is_normal = shared.detached.begin();
    // Operations do not wait with Weald.
    let serves = match purpose {
        Purpose::Closures => shared.id(),
        Purpose::Files | Purpose::Names => context::NO_RUNTIME,
    };
    // The runtime's, for what the closures spawn; but no worker, no job, no pinned jobs.
    context::here().set_shared(Arc::as_ptr(shared));
    let mut next = pool.first(shared.config.retire_after);
    while let Some(closure) = next {
        let call = closure.call.clone();
        SERVES.set(serves);
        closure.run();
        SERVES.set(context::NO_RUNTIME);
        let was_lowered = pool.forget(&call);
        // Before the caller is woken, for which it has the core.
        let is_normal = !was_lowered || shared.detached.begin();
        call.end(CallEnd::Ran);
        if !is_normal && pool.leave() {
            shared.monitor.wake();
            break;
        }
        next = pool.next(shared.config.retire_after);
    }
    context::here().set_shared(std::ptr::null());
    memory::flush();
    stack::flush();
    shared.thread_ended();
}

thread_local! {
    /// The runtime for which the calling thread runs a user's closure that does not wait with Weald.
    static SERVES: Cell<u16> = const { Cell::new(context::NO_RUNTIME) };
}

/// While it lives, the calling blocking thread does not count against the limit.
pub(crate) struct ClosureWaits(Arc<Shared>);

/// The calling thread, which runs no job, is about to wait with Weald. None unless it is a blocking thread.
pub(crate) fn wait_here() -> Option<ClosureWaits> {
    let serves = SERVES.replace(context::NO_RUNTIME);
    if serves == context::NO_RUNTIME {
        return None;
    }
    let shared = shared::find(serves)?;
    let purpose = Purpose::Closures;
    if let Some(number) = shared.blocking.of(purpose).begin_wait() {
        start_for_all(&shared, purpose, number);
    }
    Some(ClosureWaits(shared))
}

impl Drop for ClosureWaits {
    fn drop(&mut self) {
        SERVES.set(self.0.id());
        self.0.blocking.of(Purpose::Closures).end_wait();
    }
}

/// Inside the crate, because only the kernel can lower a thread as it does.
#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    };

    use crate::{
        Runtime, offload,
        scheduler::threads::priority::{self, CpuShare},
        scheduler::workers::config::available_workers,
    };

    /// The nice value of a thread of this program.
    fn nice(number: i32) -> i32 {
        rustix::process::getpriority_process(rustix::process::Pid::from_raw(number)).unwrap()
    }

    /// While a worker is busy, closures that compute are more than the cores.
    #[test]
    fn closures_that_compute_leave_the_cores_to_the_workers_and_those_that_block_keep_their_priority()
     {
        let normal = priority::of_this_thread();
        if normal == priority::LOWEST {
            return;
        }
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = is_over.clone();
        let busy = runtime.spawn(async move {
            while !over.load(Ordering::SeqCst) {
                crate::yield_now().await;
            }
        });
        let (tells, told) = mpsc::channel();
        let own = || rustix::thread::gettid().as_raw_nonzero().get();
        let computes = |_| {
            let (tells, over) = (tells.clone(), is_over.clone());
            runtime.spawn(offload(move || {
                tells.send(own()).unwrap();
                while !over.load(Ordering::SeqCst) {
                    std::hint::spin_loop();
                }
            }))
        };
        let closures: Vec<_> = (0..available_workers()).map(computes).collect();
        let computing: Vec<i32> = told.iter().take(closures.len()).collect();
        let (release, released) = mpsc::channel();
        let blocks = runtime.spawn(offload(move || {
            tells.send(own()).unwrap();
            released.recv().unwrap();
        }));
        let blocking = told.recv().unwrap();
        while !computing.iter().all(|number| nice(*number) > normal) {
            std::thread::yield_now();
        }
        assert_eq!(nice(blocking), normal);
        is_over.store(true, Ordering::SeqCst);
        release.send(()).unwrap();
        runtime.block_on(async {
            for closure in closures {
                closure.await.unwrap().unwrap();
            }
            blocks.await.unwrap().unwrap();
            busy.await.unwrap();
            // What runs on these threads next has the priority of the others.
            for _ in &computing {
                assert_eq!(offload(priority::of_this_thread).await, Ok(normal));
            }
        });
    }

    #[test]
    fn a_lowered_thread_starts_no_lowered_threads_for_others() {
        let normal = priority::of_this_thread();
        if normal == priority::LOWEST {
            return;
        }
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let job = runtime.spawn(async move {
            priority::lower(0, normal, CpuShare::Small);
            let lowered = priority::of_this_thread();
            (lowered, offload(priority::of_this_thread).await)
        });
        let (lowered, of_new) = runtime.block_on(job).unwrap();
        assert!(lowered > normal, "the system lowers no thread");
        assert_eq!(of_new, Ok(normal));
    }
}
