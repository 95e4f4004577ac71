//! The end of a run on a [detached](super::detached) thread, on that thread.

use crate::scheduler::{
    threads::detached_run::ListedRun,
    workers::{run, shared::Shared},
};

/// The run that the calling thread was in has ended. False if the priority of a thread of the pool was lowered and the
/// system does not let it rise again.
///
/// The list of detached threads refers to the job. If the job has ended, and nothing else refers to it, this first
/// drops the user values that the job has left. Meanwhile the thread stays in the list, so that a destructor that
/// blocks is seen and is named after this job.
pub(super) fn end(shared: &Shared, listed: ListedRun) -> bool {
    if let Some(job) = shared.detached.begin_destructors(listed) {
        // It may sleep, because until now there was nothing to watch.
        shared.monitor.begin_to_watch();
        run::drop_extensions(&job);
    }
    shared.detached.end(listed)
}
