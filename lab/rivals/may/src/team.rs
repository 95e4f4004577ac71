//! Units that are parked before the clock starts and then work at the same time.

use std::time::Duration;

use may::go;
use may::sync::mpsc::{Sender, channel};

use crate::gate::Gate;
use crate::traffic::start_all;

/// The units of one measurement.
#[derive(Debug)]
pub(crate) struct Team {
    started: &'static Gate,
    done: &'static Gate,
    starts: Vec<Sender<()>>,
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
    pub(crate) fn add(&mut self, work: impl FnOnce() + Send + 'static) {
        let (start, begin) = channel();
        self.starts.push(start);
        let (started, done) = (self.started, self.done);
        go!(move || {
            started.count();
            begin.recv().expect("the main process sends the start");
            work();
            done.count();
        });
    }

    /// Starts all units and returns how long it took until the last one was done.
    pub(crate) fn run(self) -> Duration {
        self.started.wait();
        let clock = start_all(self.starts);
        self.done.wait();
        clock.elapsed()
    }
}
