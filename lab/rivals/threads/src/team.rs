//! Threads that are parked before the clock starts and then work at the same time.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};

use common::fail;

use crate::gate::{Gate, Opened};

/// Long enough for a thread that has counted itself started to reach its wait.
const SETTLE: Duration = Duration::from_millis(50);

/// The threads of one measurement.
#[derive(Debug)]
pub(crate) struct Team {
    started: (&'static Gate, Opened),
    done: (&'static Gate, Opened),
    starts: Vec<SyncSender<()>>,
}

impl Team {
    /// A team that will have this many threads.
    pub(crate) fn of(units: usize) -> Self {
        Self {
            started: Gate::leak(units),
            done: Gate::leak(units),
            starts: Vec::with_capacity(units),
        }
    }

    /// Adds a thread that will do this work.
    pub(crate) fn add(&mut self, work: impl FnOnce() + Send + 'static) {
        let (start, begin) = sync_channel(1);
        self.starts.push(start);
        let (started, done) = (self.started.0, self.done.0);
        let body = move || {
            started.count();
            begin.recv().expect("the main thread sends the start");
            work();
            done.count();
        };
        if Builder::new().spawn(body).is_err() {
            fail("A thread cannot be started: give a smaller number of them.");
        }
    }

    /// Starts all threads and returns how long it took until the last one was done.
    pub(crate) fn run(self) -> Duration {
        self.started.1.wait();
        sleep(SETTLE);
        let clock = Instant::now();
        for start in self.starts {
            start.send(()).expect("the thread waits for its start");
        }
        self.done.1.wait();
        clock.elapsed()
    }
}
