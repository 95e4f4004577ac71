//! Jobs that tick: the others, beside a unit that holds its thread.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use weald_kernel::{JoinHandle, Runtime, sleep};

/// Jobs that sleep for a millisecond, tick, and sleep again.
pub(crate) struct Tickers {
    jobs: Vec<JoinHandle<()>>,
    ticks: Arc<Vec<AtomicUsize>>,
    is_over: Arc<AtomicBool>,
}

impl Tickers {
    /// Starts `count` of them. Each has ticked when this returns.
    pub(crate) fn start(runtime: &Runtime, count: usize) -> Tickers {
        let ticks: Arc<Vec<_>> = Arc::new((0..count).map(|_| AtomicUsize::new(0)).collect());
        let is_over = Arc::new(AtomicBool::new(false));
        let jobs = (0..count).map(|n| {
            let (ticks, is_over) = (ticks.clone(), is_over.clone());
            runtime.spawn(async move {
                while !is_over.load(Ordering::SeqCst) {
                    sleep(Duration::from_millis(1)).await;
                    ticks[n].fetch_add(1, Ordering::SeqCst);
                }
            })
        });
        let tickers = Tickers {
            jobs: jobs.collect(),
            ticks,
            is_over,
        };
        tickers.tick(1);
        tickers
    }

    /// Returns once each of them has ticked `times` times more.
    pub(crate) fn tick(&self, times: usize) {
        let ticks = || self.ticks.iter().map(|ticks| ticks.load(Ordering::SeqCst));
        let enough: Vec<_> = ticks().map(|ticks| ticks + times).collect();
        while ticks().zip(&enough).any(|(ticks, enough)| ticks < *enough) {
            std::thread::yield_now();
        }
    }

    /// Ends them.
    pub(crate) fn end(self, runtime: &Runtime) {
        self.is_over.store(true, Ordering::SeqCst);
        for job in self.jobs {
            runtime.block_on(job).unwrap();
        }
    }
}
