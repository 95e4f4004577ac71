//! The end of a run on a [detached](super::detached) thread, on that thread.

use crate::scheduler::{
    threads::detached_run::ListedRun,
    workers::{run, shared::Shared},
};

/// The run has ended, which the calling thread was in. False if the priority of a thread of the pool was lowered and the
/// system does not let it rise again.
///
/// If the job has ended, and only the list of detached threads still refers to it, this first drops what the job has
/// left of the user's. The list kept it from being dropped at the job's end; and only as long as the thread is in the list,
/// a destructor that blocks is seen, as this job's.
pub(super) fn end(shared: &Shared, listed: ListedRun) -> bool {
    if let Some(job) = shared.detached.begin_destructors(listed) {
        // It may sleep, because until now there was nothing to watch.
        shared.monitor.detached_goes_on();
        run::drop_extensions(&job);
    }
    shared.detached.end(listed)
}
