//! The blocking pools of a runtime, one for each purpose, so that stuck work of one purpose stops none of another.
//!
//! Called by [`blocking_threads`](super::blocking_threads), the metrics and the shutdown.

use crate::{
    report::LateName,
    scheduler::{
        threads::{
            blocking_call::Purpose,
            blocking_pool::{BlockingPool, Bounds, QueuedClosure},
        },
        workers::config::Config,
    },
};

/// The share of the bounds that lookups have: each holds a socket or two while it waits for a name server.
const SHARE_OF_NAMES: usize = 8;

/// The blocking pools of a runtime.
pub(crate) struct BlockingPools {
    closures: BlockingPool,
    files: BlockingPool,
    names: BlockingPool,
}

impl BlockingPools {
    pub(crate) fn new(config: &Config) -> BlockingPools {
        let pool = |counted, held| BlockingPool::new(Bounds { counted, held });
        let (counted, held) = (config.blocking_threads, config.held_operations);
        let share = |bound: usize| (bound / SHARE_OF_NAMES).max(1);
        BlockingPools {
            closures: pool(counted, 0),
            files: pool(counted, held),
            names: pool(share(counted), share(held)),
        }
    }

    pub(crate) fn of(&self, purpose: Purpose) -> &BlockingPool {
        match purpose {
            Purpose::Closures => &self.closures,
            Purpose::Files => &self.files,
            Purpose::Names => &self.names,
        }
    }

    fn all(&self) -> [&BlockingPool; 3] {
        [&self.closures, &self.files, &self.names]
    }

    /// The runtime stops; see [`BlockingPool::stop`].
    pub(crate) fn stop(&self) -> Vec<QueuedClosure> {
        self.all()
            .into_iter()
            .flat_map(BlockingPool::stop)
            .collect()
    }

    /// How many threads there are.
    pub(crate) fn threads(&self) -> usize {
        self.all().iter().map(|pool| pool.threads()).sum()
    }

    /// How many closures run, and how many wait for a thread.
    pub(crate) fn calls(&self) -> (usize, usize) {
        let calls = self.all().map(BlockingPool::calls);
        let sum = |(ran, waited), (run, wait)| (ran + run, waited + wait);
        calls.into_iter().fold((0, 0), sum)
    }

    /// The futures whose closures run; they are no jobs.
    pub(crate) fn offloaded(&self) -> Vec<LateName> {
        self.all()
            .iter()
            .flat_map(|pool| pool.offloaded())
            .collect()
    }

    /// Whether the monitor must check a queue.
    pub(crate) fn must_check(&self) -> bool {
        self.all().iter().any(|pool| pool.must_check())
    }
}
