//! `quicksort`: an OS thread for each fork.
//!
//! The other programs fork at every level, which would take thousands of threads at once.

use std::thread::scope;

use common::programs::fork::Fork;
use common::programs::measure::ForkSystem;
use common::{Forking, bad_usage};

/// The processors that the program is bound to.
struct Processors(usize);

/// A thread for the second half.
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
        scope(|scope| {
            let b = scope.spawn(|| b(&mut ()));
            let a = a(&mut ());
            (a, b.join().expect("no half panics"))
        })
    }
}

impl ForkSystem for Processors {
    type Forks = Joins;

    fn workers(&self) -> usize {
        self.0
    }

    fn enter<T, W>(&self, work: W) -> Result<T, String>
    where
        T: Send + 'static,
        W: FnOnce(&mut ()) -> T + Send + 'static,
    {
        Ok(work(&mut ()))
    }
}

pub(crate) fn run(forking: Forking, workers: usize) -> ! {
    if !forking.is_quicksort() {
        bad_usage("Each fork would be an OS thread: of these programs give quicksort only.");
    }
    forking.run(&Processors(workers))
}
