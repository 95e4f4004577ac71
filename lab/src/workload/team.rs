//! Processes that are parked before the clock starts and then work at the same time.
//!
//! Their creation is never part of what is measured. The clock runs from the first start message until
//! the last process is done.

use std::time::{Duration, Instant};

use weald::process::{self, Inbox, Pid};

use super::host::not_spawned;
use super::tally::Tally;
use crate::error::Error;

/// The processes of one measurement.
pub(super) struct Team {
    inbox: Inbox<()>,
    ready: &'static Tally,
    done: &'static Tally,
    pids: Vec<Pid<()>>,
}

impl Team {
    /// A team that will have this many processes; the measuring process gives its inbox.
    pub(super) fn of(units: usize, inbox: Inbox<()>) -> Self {
        Self {
            ready: Tally::leaked(units, inbox.pid()),
            done: Tally::leaked(units, inbox.pid()),
            pids: Vec::with_capacity(units),
            inbox,
        }
    }

    /// Adds a process that will do this work.
    pub(super) fn add(
        &mut self,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), Error> {
        let (ready, done) = (self.ready, self.done);
        let process = process::spawn(move |mut inbox: Inbox<()>| async move {
            ready.count();
            inbox.receive().await;
            work.await;
            done.count();
        });
        let process = process.map_err(|error| not_spawned(&error))?;
        self.pids.push(process.into_pid());
        Ok(())
    }

    /// Starts all processes and returns how long it took until the last one was done.
    pub(super) async fn run(mut self) -> Duration {
        self.inbox.receive().await;
        let clock = Instant::now();
        for pid in &self.pids {
            pid.send(());
        }
        self.inbox.receive().await;
        clock.elapsed()
    }
}

/// Nanoseconds of a duration per item of `count`.
pub(super) fn ns_per(elapsed: Duration, count: usize) -> f64 {
    elapsed.as_nanos() as f64 / count as f64
}
