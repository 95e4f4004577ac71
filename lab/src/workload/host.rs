//! Where a workload runs: in a process of a runtime of its own.
//!
//! A future given to `block_on` runs on the calling thread, outside the runtime. So every measured loop is
//! a process, and the calling thread only waits for its result.

use std::time::Duration;

use weald::process::{self, ExitReason, Inbox};
use weald::{Runtime, SpawnError};

use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

/// How long a runtime may take to stop. A workload has ended all its processes by then.
const STOP: Duration = Duration::from_secs(10);

/// A runtime with as many workers as `params` says, and room for `processes` processes.
pub(super) fn build(params: &Params, processes: usize) -> Result<Runtime, Error> {
    // Room for the measuring process, and for the share of a large limit that workers hold in reserve.
    let room = processes.saturating_add(1 << 16);
    Runtime::builder()
        .workers(super::definition::workers(params)?)
        .process_limit(room.max(1 << 24))
        .build()
        .map_err(|error| Error::workload(format!("Cannot start the runtime: {error}.")))
}

/// Runs `main` as a process of `runtime` and waits for its result on this thread.
pub(super) fn inside<M, T, F, Fut>(runtime: &Runtime, main: F) -> Result<T, Error>
where
    M: Send + 'static,
    T: Send + 'static,
    F: FnOnce(Inbox<M>) -> Fut + Send + 'static,
    Fut: Future<Output = Result<T, Error>> + Send + 'static,
{
    runtime.block_on(async move {
        let main = process::spawn(main).map_err(|error| not_spawned(&error))?;
        main.await.map_err(|reason| crashed(&reason))?
    })
}

/// Builds a runtime, runs `main` in it as [`inside`] does, and stops it.
pub(super) fn alone<M, T, F, Fut>(params: &Params, processes: usize, main: F) -> Result<T, Error>
where
    M: Send + 'static,
    T: Send + 'static,
    F: FnOnce(Inbox<M>) -> Fut + Send + 'static,
    Fut: Future<Output = Result<T, Error>> + Send + 'static,
{
    let runtime = build(params, processes)?;
    let result = inside(&runtime, main);
    runtime.shutdown(STOP);
    result
}

/// Like [`alone`], and adds how many of the `messages` a process received each time it was polled: a low
/// cost per message may come from receiving many at once, and readers should see that.
pub(super) fn alone_with_polls<M, F, Fut>(
    params: &Params,
    size: Size,
    main: F,
) -> Result<Vec<Metric>, Error>
where
    M: Send + 'static,
    F: FnOnce(Inbox<M>) -> Fut + Send + 'static,
    Fut: Future<Output = Result<Vec<Metric>, Error>> + Send + 'static,
{
    let runtime = build(params, size.processes)?;
    let mut metrics = inside(&runtime, main)?;
    let polls = runtime.metrics().polls;
    metrics.push(Metric::new(
        "messages_per_poll",
        size.messages as f64 / polls.max(1) as f64,
    ));
    runtime.shutdown(STOP);
    Ok(metrics)
}

/// How many processes a workload spawns, and how many messages they exchange.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) processes: usize,
    pub(super) messages: usize,
}

/// The sentence for a process that the runtime refused.
pub(super) fn not_spawned(error: &SpawnError) -> Error {
    Error::workload(format!("Cannot spawn a process: {error}."))
}

/// The sentence for a process of the workload that did not end on its own.
pub(super) fn crashed(reason: &ExitReason) -> Error {
    Error::workload(format!("A process of the workload ended early: {reason}."))
}
