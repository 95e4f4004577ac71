//! The programs that fork: a coroutine for each second half, in may's scope.

use common::Forking;
use common::programs::fork::Fork;
use common::programs::measure::ForkSystem;
use may::{coroutine, go};

/// A stack for programs that call themselves, in words of eight bytes; only the part that is used is
/// touched.
const STACK: usize = 1 << 16;

/// May's only scheduler.
struct Scheduler {
    workers: usize,
}

/// A coroutine for the second half.
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
        let mut second = None;
        let first = coroutine::scope(|scope| {
            let second = &mut second;
            go!(scope, move || *second = Some(b(&mut ())));
            a(&mut ())
        });
        (
            first,
            second.expect("the scope has waited for the second half"),
        )
    }
}

impl ForkSystem for Scheduler {
    type Forks = Joins;

    fn workers(&self) -> usize {
        self.workers
    }

    fn enter<T, W>(&self, work: W) -> Result<T, String>
    where
        T: Send + 'static,
        W: FnOnce(&mut ()) -> T + Send + 'static,
    {
        let measured = go!(move || work(&mut ()));
        measured
            .join()
            .map_err(|_| "The measured coroutine panicked: see the message above.".to_owned())
    }
}

/// Serial runs happen on the calling thread, which does not belong to the scheduler.
pub(crate) fn run(forking: Forking, workers: usize) -> ! {
    may::config().set_stack_size(STACK);
    forking.run(&Scheduler { workers })
}
