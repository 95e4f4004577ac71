//! Runs a test as a thread of a runtime of its own.

use weald_kernel::Runtime;

use crate::tools::watch;

/// Runs `body` as a thread on a runtime with this many workers.
pub(crate) fn on_workers(workers: usize, body: impl FnOnce() + Send + 'static) {
    let _watch = watch();
    let runtime = Runtime::builder().workers(workers).build().unwrap();
    runtime
        .block_on(async { weald_fiber::spawn(body).await })
        .unwrap();
}
