//! The runtime's handle: it starts the runtime, spawns, blocks, measures, trims, and shuts down.

use std::{
    panic::Location,
    sync::{Arc, OnceLock},
    time::Duration,
};

use weald_sync::backlog::{self, LongChannel};

use crate::{
    api::mailbox::{LongMailbox, UnreadMailbox},
    api::sync_hooks,
    memory,
    observe::{
        metrics::Metrics,
        panics,
        signals::{abort, overflow},
        waits::{Waits, circles::Circles},
    },
    report,
    runtime::{
        builder::{BuildError, Builder},
        shutdown::{self, Drain, ShutdownReport},
    },
    scheduler::{
        stackful::wait::block::block_in_place,
        threads::{monitor, pool::Handoff, serve},
        workers::{config::Config, shared::Shared, trim},
    },
    stack,
    timer::clock,
};

/// A scheduler and its threads. Cheap to share behind a reference.
///
/// Dropping the runtime stops it: every waiting job is cancelled, and running jobs get until
/// [`Builder::shutdown_deadline`] to reach a wait. [`Runtime::shutdown`] first lets jobs end on their own. Nobody waits
/// for a job, thread or callback that drops its own runtime: it is cancelled, and runs until its next wait.
///
/// A process that was forked (`fork(2)`) has none of the runtime's threads. There [`block_on`](Runtime::block_on) and
/// every [`wait()`](crate::Wait::wait) that is not over at once panic, even in a job that has forked and in the future
/// of a `block_on` around the fork. Dropping the runtime or shutting it down does nothing: what its jobs hold is the
/// other process's. A job that forks must end the new process itself, by `exec` or `_exit`, before it awaits or
/// returns: the copy of its thread would go on and run other jobs. If it panics there, or is cancelled, the new process
/// is aborted.
///
/// # Reports
/// What a runtime reports (stuck jobs, panics that nothing joins, jobs that wait for each other, jobs that did not
/// stop) leaves through a thread of its own. A subscriber that panics loses the report that it was given, and one that
/// blocks delays reports; neither stops a job. At most ten reports of one kind and spawn site are made in a second, and
/// the others are counted: "… and 990 more reports of this kind from the same place were left out".
///
/// Reports go to the `tracing` subscriber that was current where the runtime was started, whether global or of a scope.
/// If there was none, they go to that of the thread that makes the report, or else to the global one, which may be set
/// later. Without any, they go to stderr, one line each, in colour if stderr is a terminal and `NO_COLOR` is not set.
/// The runtime keeps its subscriber until it is dropped. To silence reports, set a subscriber that discards them.
///
/// The end of a runtime, and a normal exit of the program, wait for the reports made so far, for 200 ms at most. If a
/// subscriber blocks, only the first of them waits for it.
///
/// ```
/// let runtime = weald::Runtime::builder().workers(2).build()?;
/// let sum = runtime.block_on(async {
///     let half = weald::spawn(async { 20 });
///     half.await.expect("it does not panic") + 22
/// });
/// assert_eq!(sum, 42);
/// # Ok::<(), weald::BuildError>(())
/// ```
#[derive(Debug)]
pub struct Runtime {
    pub(crate) shared: Arc<Shared>,
}

impl Runtime {
    /// Starts a runtime with the default settings: one worker per core that the program may use.
    ///
    /// # Errors
    /// As [`Builder::build`].
    pub fn new() -> Result<Runtime, BuildError> {
        Builder::new().build()
    }

    /// A builder with the default settings.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// The runtime that free functions use outside of any other runtime. It starts at the first use, with the
    /// default settings, and is never shut down.
    ///
    /// # Panics
    /// If the runtime cannot start; the message says why.
    pub fn default_runtime() -> &'static Runtime {
        static DEFAULT: OnceLock<Runtime> = OnceLock::new();
        DEFAULT.get_or_init(|| match Runtime::new() {
            Ok(runtime) => runtime,
            Err(error) => panic!("the default runtime could not start: {error}"),
        })
    }

    pub(crate) fn start(config: Config) -> Result<Runtime, BuildError> {
        let (shared, handoffs) = new_shared(config, clock::ClockKind::Real)?;
        let runtime = Runtime { shared };
        for handoff in handoffs {
            serve::hand_off(&runtime.shared, handoff).map_err(|refused| {
                let cause = refused
                    .error
                    .unwrap_or_else(|| std::io::Error::other("no thread"));
                BuildError::Thread(cause)
            })?;
        }
        let circles = Box::new(Circles::default());
        monitor::start(&runtime.shared, circles).map_err(BuildError::Thread)?;
        Ok(runtime)
    }

    /// Spawns a job on this runtime; [`spawn`](crate::spawn) does the same from within it. Once the runtime
    /// shuts down, the job is refused, and joining it returns [`Cancelled`](crate::JoinError::Cancelled).
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> crate::JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        crate::api::spawn::on(&self.shared, future, Location::caller())
    }

    /// Runs `future` on the calling thread until it is done; jobs that it spawns run on the workers.
    /// Inside a job this is [`wait`](crate::Wait::wait): the job's stack is suspended, and the worker runs other
    /// jobs meanwhile.
    ///
    /// While `future` is polled, this runtime is the current one, even inside a job of another runtime: what the
    /// future spawns, its timers and its sockets belong to this runtime. The job itself, its waits and its forks stay
    /// where they are. Only [`spawn_local`](crate::spawn_local) is refused there, because the thread is the other
    /// runtime's.
    ///
    /// ```
    /// # use weald::{Runtime, spawn};
    /// let (own, other) = (Runtime::new()?, Runtime::builder().name("other").build()?);
    /// let other = std::sync::Arc::new(other);
    /// let name = own.block_on(own.spawn({
    ///     let other = other.clone();
    ///     async move {
    ///         other.block_on(async {
    ///             let thread = || std::thread::current().name().map(str::to_owned);
    ///             spawn(async move { thread() }).await
    ///         })
    ///     }
    /// }));
    /// let name = name.expect("it does not panic").expect("nor this one");
    /// assert!(name.is_some_and(|name| name.starts_with("other")));
    /// # Ok::<(), weald::BuildError>(())
    /// ```
    ///
    /// # Panics
    /// If the future panics; and in a process that was forked from the one that started the runtime.
    #[track_caller]
    pub fn block_on<F: IntoFuture>(&self, future: F) -> F::Output {
        crate::scheduler::stackful::wait::block_on_in(&self.shared, future.into_future())
    }

    /// What the runtime has done so far, and what it holds now. Takes a few microseconds per worker; if the mailboxes
    /// have not been sampled for a tenth of a second, also some ten nanoseconds per live job. Frequent calls reuse the
    /// last sample, so that samples take at most a tenth of the time.
    pub fn metrics(&self) -> Metrics {
        Metrics::of(&self.shared)
    }

    /// The mailboxes whose receivers, when they last looked, found at least
    /// [`mailbox_mark`](crate::Builder::mailbox_mark) messages, the longest first; without those whose receivers wait
    /// for the next message. Looks at every live job.
    pub fn long_mailboxes(&self) -> Vec<LongMailbox> {
        LongMailbox::among(&self.shared)
    }

    /// The mailboxes with messages that nobody has taken out of them, the one with the oldest message first. Their
    /// receivers wait for something else, block, compute, or never receive. Looks at every live job.
    ///
    /// A send notes no time: the age of a message begins when the runtime finds the message. The runtime looks for new
    /// messages at each call of this method or of [`metrics`](Runtime::metrics); once a second while workers run, or
    /// less often with more than some 100,000 processes; and when all workers begin to sleep, with fewer than some
    /// thousand processes. So an age is too low by at most the time between two of these, and never too high. A
    /// receiver takes all messages at once: those that it has taken and not yet returned are listed by
    /// [`long_mailboxes`](Runtime::long_mailboxes), if they are many.
    ///
    /// ```
    /// # use weald::{Mailbox, Runtime, Spawn};
    /// # let runtime = Runtime::builder().workers(1).build()?;
    /// let (job, address) = runtime.block_on(async {
    ///     let never_looks = |mailbox: Mailbox<u32>| async move {
    ///         std::future::pending::<()>().await;
    ///         drop(mailbox);
    ///     };
    ///     Spawn::new().name("never looks").spawn_with_mailbox(never_looks)
    /// })?;
    /// address.post(1).expect("it lives");
    /// let unread = runtime.unread_mailboxes();
    /// assert_eq!(unread[0].job.name.as_deref(), Some("never looks"));
    /// let waited = runtime.unread_mailboxes()[0].waited;
    /// assert!(waited > unread[0].waited);
    /// # job.cancel();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unread_mailboxes(&self) -> Vec<UnreadMailbox> {
        UnreadMailbox::among(&self.shared)
    }

    /// The channels of the whole program that hold at least [`mailbox_mark`](crate::Builder::mailbox_mark) values, the
    /// longest first, each with how long its oldest value has waited, at least. The age is as exact as those of
    /// [`unread_mailboxes`](Runtime::unread_mailboxes); the runtime looks at channels once a second, however many
    /// processes there are.
    pub fn long_channels(&self) -> Vec<LongChannel> {
        let mut channels = backlog::long_channels();
        channels.retain(|channel| channel.values >= self.shared.config.mailbox_mark);
        channels
    }

    /// Returns memory that no job, message or timer uses to the system. Without this call the runtime keeps freed
    /// memory for reuse. Timers that were cancelled, and that a worker would free later, are freed first. What glibc's
    /// allocator keeps free is returned, too, but is not in the result; threads that allocate may wait for that. glibc
    /// itself may keep the free end of each heap but the main one, up to 64 MB in each, unless the variable
    /// `MALLOC_TRIM_THRESHOLD_` is set.
    ///
    /// The result is an upper bound of the bytes returned: a free stack counts in full every time, although its pages
    /// may never have been touched, or may be gone already. Workers that sleep when this is called give back their
    /// caches first: this waits for each of them, for at most 20 ms in total. Every other thread of the runtime keeps
    /// its caches for now, at most a few hundred kilobytes each: a worker that runs jobs gives them back between two
    /// jobs, within a millisecond or when its job ends. The time grows with the number of freed blocks.
    pub fn trim(&self) -> usize {
        trim::sweep_timers(&self.shared);
        trim::flush_caches(&self.shared);
        memory::trim() + stack::trim()
    }

    /// Shuts down in four steps: close (new jobs are refused), drain (jobs may end on their own, until the deadline),
    /// cancel (the remaining jobs end, each at its wait; workers run their destructors, beside each other), stop.
    /// Returns what had to be cancelled and what did not even stop. It blocks the calling thread. Beyond the deadline
    /// it takes at most 250 ms, and 10 µs for each job that is left, until it gives threads up, and at most another 200
    /// ms until reports are written.
    ///
    /// The closures of callbacks that have not run, and the wakers of other executors that still wait for a timer or a
    /// socket, are dropped and called on threads for that. One that blocks is named and left behind, as a job is.
    ///
    /// A job of this runtime may call this, too. Then nobody waits for this job or its thread, and it is not in the
    /// report: it is cancelled, continues to its next wait, and ends there; then its thread ends the jobs that are
    /// pinned to it.
    pub fn shutdown(self, deadline: Duration) -> ShutdownReport {
        if !self.shared.process.is_here() {
            return ShutdownReport::default();
        }
        let _reports = self.shared.subscriber.enter();
        shutdown::run(&self.shared, deadline, Drain::Yes)
    }
}

impl Runtime {
    /// What the jobs of this runtime wait for now, and which of them wait for each other. Takes time
    /// proportional to the number of live jobs.
    ///
    /// ```
    /// let runtime = weald::Runtime::builder().workers(1).build()?;
    /// let job = runtime.spawn(std::future::pending::<()>());
    /// let waits = loop {
    ///     let waits = runtime.waits();
    ///     if !waits.jobs.is_empty() {
    ///         break waits;
    ///     }
    /// };
    /// assert_eq!(waits.jobs.len(), 1);
    /// assert!(waits.cycles.is_empty());
    /// # job.cancel();
    /// # Ok::<(), weald::BuildError>(())
    /// ```
    pub fn waits(&self) -> Waits {
        Waits::of(&self.shared)
    }
}

/// Creates what the threads of a runtime share, and the handoff of each worker. Installs the program's hooks.
pub(crate) fn new_shared(
    config: Config,
    clock: clock::ClockKind,
) -> Result<(Arc<Shared>, Vec<Handoff>), BuildError> {
    sync_hooks::install();
    overflow::install();
    abort::install();
    panics::install();
    report::start();
    Shared::new(config, clock).map_err(|_| BuildError::TooManyRuntimes)
}

/// The default runtime, for the scheduler.
pub(crate) fn default_shared() -> &'static Arc<Shared> {
    &Runtime::default_runtime().shared
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // The jobs and the threads are the other process's.
        if !self.shared.process.is_here() {
            return;
        }
        let _reports = self.shared.subscriber.enter();
        // The flush waits for a subscriber, too.
        block_in_place(|| {
            if !self.shared.is_stopped() {
                let deadline = self.shared.config.shutdown_deadline;
                let report = shutdown::run(&self.shared, deadline, Drain::No);
                report::shutdown(&report.not_stopped);
            }
            // A program that ends now still shows them.
            let _end = report::flush();
        });
    }
}
