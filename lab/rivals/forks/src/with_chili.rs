//! Chili: `Scope::join`, which shares a half when its heartbeat says so.

use std::num::NonZero;

use chili::{Config, Scope, ThreadPool};
use common::Forking;
use common::programs::fork::Fork;
use common::programs::measure::ForkSystem;

/// A pool in which the calling thread works too.
struct Chili {
    pool: ThreadPool,
    workers: usize,
}

/// Its forks.
enum Joins {}

impl Fork for Joins {
    type Scope<'a> = Scope<'a>;

    /// Chili starts with the second half and shares the first one. Here they change places, so that
    /// the caller starts with the first half, as it does everywhere.
    fn join<A, B, RA, RB>(scope: &mut Scope<'_>, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce(&mut Scope<'_>) -> RA + Send,
        B: FnOnce(&mut Scope<'_>) -> RB + Send,
        RA: Send,
        RB: Send,
    {
        let (b, a) = scope.join(b, a);
        (a, b)
    }
}

impl ForkSystem for Chili {
    type Forks = Joins;

    fn workers(&self) -> usize {
        self.workers
    }

    fn enter<T, W>(&self, work: W) -> Result<T, String>
    where
        T: Send + 'static,
        W: FnOnce(&mut Scope<'_>) -> T + Send + 'static,
    {
        Ok(work(&mut self.pool.scope()))
    }
}

pub(crate) fn run(forking: Forking, workers: usize) -> ! {
    let config = Config {
        // The count includes the calling thread.
        thread_count: NonZero::new(workers),
        ..Config::default()
    };
    let pool = ThreadPool::with_config(config);
    forking.run(&Chili { pool, workers })
}
