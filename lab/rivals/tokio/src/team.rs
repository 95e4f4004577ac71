//! Units that are parked before the clock starts and then work at the same time.

use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::gate::Gate;
use crate::traffic::start_all;

/// The units of one measurement.
#[derive(Debug)]
pub(crate) struct Team {
    started: &'static Gate,
    done: &'static Gate,
    starts: Vec<oneshot::Sender<()>>,
}

impl Team {
    /// A team that will have this many units.
    pub(crate) fn of(units: usize) -> Self {
        Self {
            started: Gate::leak(units),
            done: Gate::leak(units),
            starts: Vec::with_capacity(units),
        }
    }

    /// Adds a unit that will do this work.
    pub(crate) fn add(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        let (start, go) = oneshot::channel();
        self.starts.push(start);
        let (started, done) = (self.started, self.done);
        tokio::spawn(async move {
            started.count();
            go.await.expect("the main process sends the start");
            work.await;
            done.count();
        });
    }

    /// Starts all units and returns how long it took until the last one was done.
    pub(crate) async fn run(self) -> Duration {
        self.started.wait().await;
        let clock: Instant = start_all(self.starts).await;
        self.done.wait().await;
        clock.elapsed()
    }
}
