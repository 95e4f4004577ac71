//! The blocking threads of a runtime: they run the closures of its blocking pool, and serve no worker.
//!
//! A thread is started when a closure needs one, none is idle and the bound allows it; an idle one retires as a spare
//! thread does. [`blocking_pool`](crate::scheduler::threads::blocking_pool) says what waits and what runs.
//!
//! Called by `api::blocking`, `api::offload` and `api::operation` ([`submit`]), by a foreign thread's wait
//! ([`wait_here`]), and by the monitor ([`look`]).

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
        Queued::NeedsThread(number) => start(shared, purpose, number),
        // The monitor watches the queue.
        Queued::MustWait => shared.monitor.wake(),
        Queued::HasThread | Queued::Refused => {}
    }
    call
}

/// Fires the waker of a call that is over: elsewhere if it is foreign, because one that blocks must not hold this
/// thread, which may be the monitor's.
fn fire(runtime: u16, waker: Waker) {
    waker::call_at_end(runtime, FiredBy::Blocking, waker);
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
        .spawn(move || serve(&served, purpose));
    if let Err(error) = started {
        report::no_blocking_thread(&error);
        shared.blocking.of(purpose).not_started();
        // It watches the queue.
        shared.monitor.wake();
    }
}

/// Starts threads for operations that wait because others hold their turns for long, and reports what waits too long.
/// Returns whether the monitor must look again soon. Called by the monitor each round.
pub(crate) fn look(shared: &Arc<Shared>) -> bool {
    let mut is_soon = false;
    for purpose in [Purpose::Closures, Purpose::Files, Purpose::Names] {
        let found = shared.blocking.of(purpose).look();
        is_soon |= found.is_soon;
        let starts = found.starts.into_iter();
        starts.for_each(|number| start(shared, purpose, number));
    }
    is_soon
}

/// The life of a blocking thread.
fn serve(shared: &Arc<Shared>, purpose: Purpose) {
    let pool = shared.blocking.of(purpose);
    // Operations do not wait with Weald.
    let serves = match purpose {
        Purpose::Closures => shared.id(),
        Purpose::Files | Purpose::Names => context::NO_RUNTIME,
    };
    // The runtime's, for what the closures spawn; but no worker, no job, no pinned jobs.
    context::here().set_shared(Arc::as_ptr(shared));
    let mut next = pool.first(shared.config.retire_after);
    while let Some(turn) = next {
        let call = turn.call.clone();
        SERVES.set(serves);
        turn.run();
        SERVES.set(context::NO_RUNTIME);
        pool.forget(&call);
        call.end(CallEnd::Ran);
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

/// While it lives, the calling blocking thread does not count against the bound.
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
        start(&shared, purpose, number);
    }
    Some(ClosureWaits(shared))
}

impl Drop for ClosureWaits {
    fn drop(&mut self) {
        SERVES.set(self.0.id());
        self.0.blocking.of(Purpose::Closures).end_wait();
    }
}
