//! The blocking threads of a runtime: they run the closures of its blocking pool, and serve no worker.
//!
//! A thread is started when a closure needs one, none is idle and the bound allows it; an idle one retires as a spare
//! thread does. [`blocking_pool`](crate::scheduler::threads::blocking_pool) says what waits and what runs.
//!
//! Called by `api::blocking` and `api::offload` ([`submit`]), and by a foreign thread's wait ([`wait_here`]).

use std::{cell::Cell, sync::Arc, thread};

use crate::{
    memory, report,
    scheduler::{
        threads::blocking_pool::{BlockingCall, CallEnd, Caller, Queued},
        workers::{
            context,
            shared::{self, Shared},
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
    let call = BlockingCall::new(caller);
    let most = shared.config.blocking_threads;
    match shared.blocking.push(work, call.clone(), most) {
        Queued::NeedsThread(number) => start(shared, number),
        // The monitor watches the queue.
        Queued::MustWait => shared.monitor.wake(),
        Queued::HasThread | Queued::Refused => {}
    }
    call
}

fn start(shared: &Arc<Shared>, number: usize) {
    let served = shared.clone();
    let started = thread::Builder::new()
        .name(format!("{}-blocking-{number}", shared.config.name))
        .spawn(move || serve(&served));
    if let Err(error) = started {
        report::no_blocking_thread(&error);
        shared.blocking.not_started();
    }
}

/// The life of a blocking thread.
fn serve(shared: &Arc<Shared>) {
    let (most, retire_after) = (shared.config.blocking_threads, shared.config.retire_after);
    // The runtime's, for what the closures spawn; but no worker, no job, no pinned jobs.
    context::here().set_shared(Arc::as_ptr(shared));
    while let Some(turn) = shared.blocking.next(most, retire_after) {
        let call = turn.call.clone();
        SERVES.set(shared.id());
        turn.run();
        SERVES.set(context::NO_RUNTIME);
        shared.blocking.forget(&call);
        call.end(CallEnd::Ran);
    }
    context::here().set_shared(std::ptr::null());
    memory::flush();
    stack::flush();
    shared.thread_ended();
}

thread_local! {
    /// The runtime for which the calling thread runs a closure that does not wait with Weald.
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
    if let Some(number) = shared.blocking.begin_wait(shared.config.blocking_threads) {
        start(&shared, number);
    }
    Some(ClosureWaits(shared))
}

impl Drop for ClosureWaits {
    fn drop(&mut self) {
        SERVES.set(self.0.id());
        self.0.blocking.end_wait();
    }
}
