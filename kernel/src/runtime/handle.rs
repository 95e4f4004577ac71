//! The runtime's handle: start, spawn, block, measure, trim, shut down.

use std::{
    panic::Location,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use crate::{
    api::sync_hooks,
    memory,
    observe::{
        metrics::Metrics,
        overflow,
        waits::{self, Waits},
    },
    report,
    runtime::{
        builder::{BuildError, Builder},
        shutdown::{self, Drain, ShutdownReport},
    },
    scheduler::{
        threads::{monitor, pool::Handoff, serve},
        workers::{config::Config, shared::Shared},
    },
    stack,
    sys::Ordering,
    timer::clock,
};

/// A scheduler with its threads. Cheap to share behind a reference. Dropping it stops it: every job
/// that waits is cancelled, and those that run get until [`Builder::shutdown_deadline`] to reach a
/// wait. [`Runtime::shutdown`] lets jobs come to their own end first.
///
/// ```
/// let runtime = weald_kernel::Runtime::builder().workers(2).build()?;
/// let sum = runtime.block_on(async {
///     let half = weald_kernel::spawn(async { 20 });
///     half.await.expect("it does not panic") + 22
/// });
/// assert_eq!(sum, 42);
/// # Ok::<(), weald_kernel::BuildError>(())
/// ```
#[derive(Debug)]
pub struct Runtime {
    pub(crate) shared: Arc<Shared>,
}

impl Runtime {
    /// A runtime with all defaults: one worker for each core that the cgroup allows.
    ///
    /// # Errors
    /// As [`Builder::build`].
    pub fn new() -> Result<Runtime, BuildError> {
        Builder::new().build()
    }

    /// Settings for a runtime.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// The runtime that free functions use outside of any other; started at the first use, with all
    /// defaults, and never shut down.
    ///
    /// # Panics
    /// If it cannot be started; the message says why.
    pub fn default_runtime() -> &'static Runtime {
        static DEFAULT: OnceLock<Runtime> = OnceLock::new();
        DEFAULT.get_or_init(|| match Runtime::new() {
            Ok(runtime) => runtime,
            Err(error) => panic!("the default runtime could not start: {error}"),
        })
    }

    pub(crate) fn start(config: Config) -> Result<Runtime, BuildError> {
        let (shared, rights) = new_shared(config, clock::ClockKind::Real)?;
        let runtime = Runtime { shared };
        for right in rights {
            serve::hand_off(&runtime.shared, right).map_err(|refused| {
                let cause = refused
                    .error
                    .unwrap_or_else(|| std::io::Error::other("no thread"));
                BuildError::Thread(cause)
            })?;
        }
        let mut told = waits::Told::default();
        let report_circles = move |shared: &Shared| waits::report_circles(shared, &mut told);
        monitor::start(&runtime.shared, Box::new(report_circles)).map_err(BuildError::Thread)?;
        Ok(runtime)
    }

    /// Spawns a job on this runtime; [`spawn`](crate::api::spawn) does the same from within it.
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> crate::JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        crate::api::spawn::on(&self.shared, future, Location::caller())
    }

    /// Runs `future` on the calling thread until it is done; jobs that it spawns run on the workers.
    /// From within a job this is [`wait`](crate::Wait::wait): the job's stack stays, and another
    /// thread serves its worker meanwhile.
    ///
    /// # Panics
    /// If the future panics.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        crate::scheduler::stackful::wait::block_on_in(&self.shared, future)
    }

    /// What the runtime did so far, and has now. Costs some microseconds a worker.
    pub fn metrics(&self) -> Metrics {
        Metrics::of(&self.shared)
    }

    /// Gives memory that no job, message or timer uses back to the system. Returns how many bytes, at most: a free
    /// stack counts as a whole each time, though its pages may never have been touched, or be gone already.
    ///
    /// Memory is kept for reuse until this is called. Threads that are in a job keep what they have
    /// cached, at most some hundred kilobytes each. Time grows with the number of freed blocks.
    pub fn trim(&self) -> usize {
        let before = self.shared.trims_done.load(Ordering::Acquire);
        self.shared.trims.fetch_add(1, Ordering::SeqCst);
        let sleepers = self.shared.sleepers.notify_all();
        let expected = before + sleepers.len();
        for sleeper in sleepers {
            sleeper.wake(&self.shared);
        }
        // Those that slept answer at once; a bound, because one of them may find work first.
        let give_up = Instant::now() + Duration::from_millis(20);
        while self.shared.trims_done.load(Ordering::Acquire) < expected && Instant::now() < give_up
        {
            std::thread::yield_now();
        }
        memory::trim() + stack::trim()
    }

    /// Shuts down: closes (nothing is spawned any more), drains (what runs may end by itself, until
    /// the deadline), stops (the rest is cancelled, each at its wait, and its destructors run).
    /// Returns what had to be cancelled and what did not even stop.
    ///
    /// From within a job of this runtime that job is among those that did not stop.
    pub fn shutdown(self, deadline: Duration) -> ShutdownReport {
        shutdown::run(&self.shared, deadline, Drain::Yes)
    }
}

impl Runtime {
    /// What the jobs of this runtime wait for now, and which of them wait for each other. Takes time in
    /// proportion to the number of all jobs.
    ///
    /// ```
    /// let runtime = weald_kernel::Runtime::builder().workers(1).build()?;
    /// let job = runtime.spawn(std::future::pending::<()>());
    /// let waits = loop {
    ///     let waits = runtime.waits();
    ///     if !waits.jobs.is_empty() {
    ///         break waits;
    ///     }
    /// };
    /// assert_eq!(waits.jobs.len(), 1);
    /// assert!(waits.circles.is_empty());
    /// # job.cancel();
    /// # Ok::<(), weald_kernel::BuildError>(())
    /// ```
    pub fn waits(&self) -> Waits {
        Waits::of(&self.shared)
    }
}

/// What the threads of a runtime share, and the rights to its workers. The program's hooks are installed.
pub(crate) fn new_shared(
    config: Config,
    clock: clock::ClockKind,
) -> Result<(Arc<Shared>, Vec<Handoff>), BuildError> {
    sync_hooks::install();
    overflow::install();
    Shared::new(config, clock).map_err(|_| BuildError::TooManyRuntimes)
}

/// The default runtime, for the scheduler.
pub(crate) fn default_shared() -> &'static Arc<Shared> {
    &Runtime::default_runtime().shared
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if !self.shared.is_stopped() {
            let report = shutdown::run(
                &self.shared,
                self.shared.config.shutdown_deadline,
                Drain::No,
            );
            report::shutdown(&report.not_stopped);
        }
    }
}
