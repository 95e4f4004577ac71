//! The programs that fork, which are those of `lab/src/programs`: on rayon, chili, may and OS threads.
//!
//! Invariant: each runs on as many OS threads as there are workers.

mod items;

use std::num::NonZero;

use chili::{Config, Scope, ThreadPool};
use common::programs::fork::Fork;
use common::programs::items::{Chain, measured};
use common::programs::measure::ForkSystem;
use common::{Call, bad_usage, fail, fork, print, use_processors};
use may::{coroutine, go};

use items::Items;

/// A stack of may for programs that call themselves, in words of eight bytes; only the part that is used is touched.
const STACK: usize = 1 << 16;

/// A system with its number of workers: how it joins two halves, and where forks are possible.
macro_rules! forks {
    (
        $name:ident($pool:ty), $scope:ty,
        join: |$given:ident, $a:ident, $b:ident| $join:expr,
        enter: |$own:ident, $work:ident| $enter:expr
    ) => {
        pub(crate) struct $name {
            pool: $pool,
            workers: usize,
        }

        impl Fork for $name {
            type Scope<'a> = $scope;

            fn join<A, B, RA, RB>($given: &mut Self::Scope<'_>, $a: A, $b: B) -> (RA, RB)
            where
                A: FnOnce(&mut Self::Scope<'_>) -> RA + Send,
                B: FnOnce(&mut Self::Scope<'_>) -> RB + Send,
                RA: Send,
                RB: Send,
            {
                $join
            }
        }

        impl ForkSystem for $name {
            type Forks = Self;

            fn workers(&self) -> usize {
                self.workers
            }

            fn enter<T, W>(&self, $work: W) -> Result<T, String>
            where
                T: Send + 'static,
                W: FnOnce(&mut <Self as Fork>::Scope<'_>) -> T + Send + 'static,
            {
                let $own = &self.pool;
                $enter
            }
        }
    };
}

forks! {
    Rayon(rayon::ThreadPool), (),
    join: |_scope, a, b| rayon::join(|| a(&mut ()), || b(&mut ())),
    enter: |pool, work| Ok(pool.install(|| work(&mut ())))
}

// Chili starts with the second half and shares the first one. Here they change places, so that the caller starts with
// the first half, as it does everywhere. The calling thread works too.
forks! {
    Chili(ThreadPool), Scope<'a>,
    join: |scope, a, b| {
        let (b, a) = scope.join(b, a);
        (a, b)
    },
    enter: |pool, work| Ok(work(&mut pool.scope()))
}

// A coroutine for the second half.
forks! {
    OfMay(()), (),
    join: |_scope, a, b| {
        let mut second = None;
        let first = coroutine::scope(|scope| {
            let second = &mut second;
            go!(scope, move || *second = Some(b(&mut ())));
            a(&mut ())
        });
        (first, second.expect("the scope has waited for the second half"))
    },
    enter: |_pool, work| {
        let measured = go!(move || work(&mut ()));
        measured
            .join()
            .map_err(|_| "The measured coroutine panicked: see the message above.".to_owned())
    }
}

// An OS thread for the second half.
forks! {
    OfStd(()), (),
    join: |_scope, a, b| std::thread::scope(|scope| {
        let b = scope.spawn(|| b(&mut ()));
        let a = a(&mut ());
        (a, b.join().expect("no half panics"))
    }),
    enter: |_pool, work| Ok(work(&mut ()))
}

pub(crate) fn on_rayon(call: &Call) -> ! {
    let workers = call.workers;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(workers).build();
    let pool = pool.unwrap_or_else(|error| fail(&format!("The pool cannot be started: {error}.")));
    let rayon = Rayon { pool, workers };
    if call.workload != "items" {
        fork(&rayon, call);
    }
    let chain = Chain::named(call.text("chain"));
    let chain = chain.unwrap_or_else(|| bad_usage("There is no such chain of adapters."));
    print(measured::<_, Items>(&rayon, chain, call.count("n")))
}

pub(crate) fn on_chili(call: &Call) -> ! {
    let workers = call.workers;
    let config = Config {
        // The count includes the calling thread.
        thread_count: NonZero::new(workers),
        ..Config::default()
    };
    let pool = ThreadPool::with_config(config);
    fork(&Chili { pool, workers }, call)
}

/// Serial runs happen on the calling thread, which does not belong to may's scheduler.
pub(crate) fn on_may(call: &Call) -> ! {
    let workers = call.workers;
    may::config().set_workers(workers).set_stack_size(STACK);
    fork(&OfMay { pool: (), workers }, call)
}

pub(crate) fn on_threads(call: &Call) -> ! {
    if call.workload != "quicksort" {
        bad_usage("Each fork would be an OS thread: of these programs give quicksort only.");
    }
    let workers = call.workers;
    use_processors(workers);
    fork(&OfStd { pool: (), workers }, call)
}
