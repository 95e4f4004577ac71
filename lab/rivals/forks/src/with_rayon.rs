//! Rayon: `join` on a pool of its own.

use crate::items::Items;
use common::programs::fork::Fork;
use common::programs::items::{Chain, measured};
use common::programs::measure::ForkSystem;
use common::{Forking, fail, print_metrics};
use rayon::{ThreadPool, ThreadPoolBuilder};

/// A pool.
struct Rayon(ThreadPool);

/// Its forks.
enum Joins {}

impl Fork for Joins {
    type Scope<'a> = ();

    fn join<A, B, RA, RB>(_: &mut (), a: A, b: B) -> (RA, RB)
    where
        A: FnOnce(&mut ()) -> RA + Send,
        B: FnOnce(&mut ()) -> RB + Send,
        RA: Send,
        RB: Send,
    {
        rayon::join(|| a(&mut ()), || b(&mut ()))
    }
}

impl ForkSystem for Rayon {
    type Forks = Joins;

    fn workers(&self) -> usize {
        self.0.current_num_threads()
    }

    fn enter<T, W>(&self, work: W) -> Result<T, String>
    where
        T: Send + 'static,
        W: FnOnce(&mut ()) -> T + Send + 'static,
    {
        Ok(self.0.install(|| work(&mut ())))
    }
}

pub(crate) fn run(forking: Forking, workers: usize) -> ! {
    forking.run(&start(workers))
}

pub(crate) fn run_items(chain: Chain, n: usize, workers: usize) -> ! {
    match measured::<_, Items>(&start(workers), chain, n) {
        Ok(figures) => print_metrics(&figures),
        Err(sentence) => fail(&sentence),
    }
}

fn start(workers: usize) -> Rayon {
    match ThreadPoolBuilder::new().num_threads(workers).build() {
        Ok(pool) => Rayon(pool),
        Err(error) => fail(&format!("The pool cannot be started: {error}.")),
    }
}
