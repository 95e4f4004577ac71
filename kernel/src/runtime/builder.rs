//! Settings of a runtime, each with its default.

use std::{io, time::Duration};

use crate::{
    runtime::handle::Runtime,
    scheduler::workers::config::{Config, FOREVER},
};

/// Settings for a [`Runtime`].
///
/// ```
/// use std::time::Duration;
///
/// let runtime = weald_kernel::Runtime::builder()
///     .workers(2)
///     .name("ingest")
///     .stuck_after(Duration::from_millis(50))
///     .build()?;
/// # drop(runtime);
/// # Ok::<(), weald_kernel::BuildError>(())
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

    /// How many jobs run at once. Default: [`available_workers`].
    pub fn workers(mut self, workers: usize) -> Builder {
        self.config.workers = workers;
        self
    }

    /// The beginning of the names of the runtime's threads. Default: `weald`.
    pub fn name(mut self, name: impl Into<String>) -> Builder {
        self.config.name = name.into();
        self
    }

    /// How many processes may live at once. Default: 2^24. Below 65,536 the limit is exact; above, it
    /// may refuse up to 512 processes a worker too early.
    pub fn process_limit(mut self, limit: usize) -> Builder {
        self.config.process_limit = limit;
        self
    }

    /// How long a worker may stay in one poll before another thread takes over its queue and the job
    /// is reported. Default: 10 ms.
    pub fn stuck_after(mut self, bound: Duration) -> Builder {
        self.config.stuck_after = bound;
        self
    }

    /// How many threads may exist beyond the workers, in place of those that block. Default: 512.
    pub fn spare_threads(mut self, bound: usize) -> Builder {
        self.config.spare_threads = bound;
        self
    }

    /// How long a thread stands by before it ends. Default: 10 s.
    pub fn retire_after(mut self, time: Duration) -> Builder {
        self.config.retire_after = time;
        self
    }

    /// How many Weald operations a job may complete in one poll before it goes to the end of the
    /// queue. Default: 128.
    pub fn poll_budget(mut self, reductions: u32) -> Builder {
        self.config.poll_budget = reductions;
        self
    }

    /// How many jobs in a row may come from the next slot while others wait in the queue. Default: 32.
    pub fn next_slot_runs(mut self, runs: u32) -> Builder {
        self.config.next_slot_runs = runs;
        self
    }

    /// Stack size of the runtime's threads in bytes, of which only touched pages cost memory. Default:
    /// 2 MiB.
    pub fn thread_stack(mut self, bytes: usize) -> Builder {
        self.config.thread_stack = bytes;
        self
    }

    /// How many bytes of further stacks one recursion through [`fork::join`](crate::fork::join) may use when
    /// it nears the end of its thread's; of them too only touched pages cost memory. Default: 1 GiB.
    pub fn fork_stack(mut self, bytes: usize) -> Builder {
        self.config.fork_stack = bytes;
        self
    }

    /// How long dropping the runtime may take. Default: 5 s.
    pub fn shutdown_deadline(mut self, deadline: Duration) -> Builder {
        self.config.shutdown_deadline = deadline;
        self
    }

    /// Starts the runtime.
    ///
    /// # Errors
    /// If a setting cannot work, if panics abort the program, or if the system refuses a thread.
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
    /// The program is built so that a panic ends it.
    #[error(
        "this program is built with panic = \"abort\", so a crash of one process would end all of \
         them; remove that line from the profile in Cargo.toml"
    )]
    PanicAbort,
    /// The number of workers is out of range.
    #[error("a runtime needs 1 to {MAX_WORKERS} workers, not {0}")]
    Workers(usize),
    /// A setting is zero with which nothing could run.
    #[error("the setting {0} must be at least 1")]
    Zero(&'static str),
    /// The name of the threads contains a zero byte.
    #[error("the name of a runtime must not contain a zero byte, which no thread's name can")]
    Name,
    /// The monitor's bound is shorter than it can measure.
    #[error("stuck_after must be at least 1 ms, not {0:?}")]
    StuckAfter(Duration),
    /// The system refused a thread.
    #[error("the system refused a thread for the runtime: {0}")]
    Thread(#[source] io::Error),
    /// There are too many runtimes in this program.
    #[error("this program has 32,767 runtimes already; drop some, or share one")]
    TooManyRuntimes,
}
