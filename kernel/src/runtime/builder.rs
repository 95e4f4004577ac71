//! The settings of a runtime and their defaults.
//!
//! [`Builder::build`] is the only place that checks them: a [`Config`] that leaves this file can work.

use std::{io, time::Duration};

use crate::{
    runtime::handle::Runtime,
    scheduler::workers::config::{Config, FOREVER},
};

/// The settings of a [`Runtime`]. Every setting has a default.
///
/// ```
/// use std::time::Duration;
///
/// let runtime = weald::Runtime::builder()
///     .workers(2)
///     .name("ingest")
///     .stuck_after(Duration::from_millis(50))
///     .build()?;
/// # drop(runtime);
/// # Ok::<(), weald::BuildError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until build() is called"]
pub struct Builder {
    config: Config,
}

impl Builder {
    pub(crate) fn new() -> Builder {
        Builder {
            config: Config::new(),
        }
    }

    /// The number of workers: how many jobs run at once, from 1 to 1024. Default:
    /// [`available_workers`](crate::available_workers).
    pub fn workers(mut self, workers: usize) -> Builder {
        self.config.workers = workers;
        self
    }

    /// The prefix of the names of the runtime's threads. It must not contain a zero byte. Default: `weald`.
    pub fn name(mut self, name: impl Into<String>) -> Builder {
        self.config.name = name.into();
        self
    }

    /// How many processes may live at once, at least 1. Default: 2^24. A limit below 65,536 is exact; a larger
    /// one may refuse up to 512 processes per worker too early.
    pub fn process_limit(mut self, limit: usize) -> Builder {
        self.config.process_limit = limit;
        self
    }

    /// How long a job may hold its worker in one poll, at least 1 ms. If it holds the worker longer, the runtime
    /// reports the job, detaches its thread, and hands the worker with its queue to another thread. Default: 10 ms.
    pub fn stuck_after(mut self, bound: Duration) -> Builder {
        self.config.stuck_after = bound;
        self
    }

    /// A mailbox is reported when its receiver finds at least this many messages at once, or has got so many, by an
    /// estimate, and not looked; once for each job. At least 1,024. See [`Runtime::long_mailboxes`] and
    /// [`Runtime::unread_mailboxes`]. A channel that holds this many values is reported once, too; see
    /// [`Runtime::long_channels`]. Default: 100,000.
    pub fn mailbox_mark(mut self, messages: usize) -> Builder {
        self.config.mailbox_mark = messages;
        self
    }

    /// How many threads may exist beyond one per worker: spare threads, and detached threads that block or compute
    /// for too long. Threads that a job holds in [`wait()`](crate::Wait::wait) do not count. Default: 512.
    pub fn spare_threads(mut self, bound: usize) -> Builder {
        self.config.spare_threads = bound;
        self
    }

    /// How many closures of [`blocking`](crate::blocking()) and [`offload`](crate::offload()) may run at once: one or
    /// more. Each has a thread of its own; further ones wait for a free one. Closures that wait with Weald do not
    /// count. Default: 512.
    pub fn blocking_threads(mut self, bound: usize) -> Builder {
        self.config.blocking_threads = bound;
        self
    }

    /// How many file operations may hold a thread for longer than 10 ms while others wait. For lookups of host names
    /// the limit is an eighth of this. Such an operation may never return: it waits for a lost server, or for somebody
    /// to open the other end of a FIFO. So it does not count against [`blocking_threads`](Builder::blocking_threads),
    /// which also bounds file operations (and lookups, to an eighth). Beyond both limits an operation that waits for a
    /// second while none returns is an error ([`NoFreeThread`](crate::NoFreeThread)).
    ///
    /// A thread that blocks takes some 30 kB of memory. Default: 1,024. With the defaults a runtime has fewer than
    /// 3,000 threads; systems commonly allow a service 4,900.
    pub fn held_operations(mut self, bound: usize) -> Builder {
        self.config.held_operations = bound;
        self
    }

    /// How long a spare or blocking thread stays idle before it ends. Default: 10 s.
    pub fn retire_after(mut self, time: Duration) -> Builder {
        self.config.retire_after = time;
        self
    }

    /// How many Weald operations (reductions) a job may complete in one poll, at least 1, before it goes to the
    /// end of the queue. Default: 128. While each operation takes 300 ns or more, it is 32 at most, so that other
    /// workers find work.
    pub fn poll_budget(mut self, reductions: u32) -> Builder {
        self.config.poll_budget = reductions;
        self
    }

    /// How many jobs in a row may come from a worker's next slot while others wait in its queue, at least 1.
    /// Default: 32.
    pub fn next_slot_runs(mut self, runs: u32) -> Builder {
        self.config.next_slot_runs = runs;
        self
    }

    /// The stack size of the runtime's threads, in bytes. Only touched pages cost memory. Default: 2 MiB.
    pub fn thread_stack(mut self, bytes: usize) -> Builder {
        self.config.thread_stack = bytes;
        self
    }

    /// How many bytes of additional stacks a recursion through [`fork::join`](crate::fork::join) may use when it
    /// nears the end of its thread's stack. Only touched pages cost memory. Default: 1 GiB.
    pub fn fork_stack(mut self, bytes: usize) -> Builder {
        self.config.fork_stack = bytes;
        self
    }

    /// How long dropping the runtime waits for running jobs to reach a wait. Default: 5 s.
    pub fn shutdown_deadline(mut self, deadline: Duration) -> Builder {
        self.config.shutdown_deadline = deadline;
        self
    }

    /// Starts the runtime. Durations longer than a hundred years count as a hundred years.
    ///
    /// # Errors
    /// If a setting is out of range, if panics abort the program, if the system refuses a thread, or if the
    /// program has 32,767 runtimes already.
    pub fn build(self) -> Result<Runtime, BuildError> {
        Runtime::start(self.check()?)
    }

    pub(crate) fn check(self) -> Result<Config, BuildError> {
        if cfg!(panic = "abort") {
            return Err(BuildError::PanicAbort);
        }
        let mut config = self.config;
        for time in [
            &mut config.stuck_after,
            &mut config.retire_after,
            &mut config.shutdown_deadline,
        ] {
            *time = (*time).min(FOREVER);
        }
        if !(1..=MAX_WORKERS).contains(&config.workers) {
            return Err(BuildError::Workers(config.workers));
        }
        for (name, value) in [
            ("process_limit", config.process_limit),
            ("blocking_threads", config.blocking_threads),
            ("held_operations", config.held_operations),
            ("poll_budget", config.poll_budget as usize),
            ("next_slot_runs", config.next_slot_runs as usize),
        ] {
            if value == 0 {
                return Err(BuildError::Zero(name));
            }
        }
        if config.name.contains('\0') {
            return Err(BuildError::Name);
        }
        if config.stuck_after < Duration::from_millis(1) {
            return Err(BuildError::StuckAfter(config.stuck_after));
        }
        Ok(config)
    }
}

/// The most workers a runtime may have.
const MAX_WORKERS: usize = 1024;

/// Why a runtime could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The program is built with `panic = "abort"`.
    #[error(
        "this program is built with panic = \"abort\", so a crash of one process would end all of \
         them; remove that line from the profile in Cargo.toml"
    )]
    PanicAbort,
    /// The number of workers is out of range.
    #[error("a runtime needs 1 to {MAX_WORKERS} workers, not {0}")]
    Workers(usize),
    /// A setting that must be at least 1 is zero.
    #[error("the setting {0} must be at least 1")]
    Zero(&'static str),
    /// The name contains a zero byte.
    #[error("the name of a runtime must not contain a zero byte: no thread name can")]
    Name,
    /// The bound is shorter than the monitor can measure.
    #[error("stuck_after must be at least 1 ms, not {0:?}")]
    StuckAfter(Duration),
    /// The system refused a thread.
    #[error("the system refused a thread for the runtime: {0}")]
    Thread(#[source] io::Error),
    /// There are too many runtimes in this program.
    #[error("this program has 32,767 runtimes already; drop some, or share one")]
    TooManyRuntimes,
}
