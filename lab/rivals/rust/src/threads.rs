//! `thread`: what a coroutine of may or an OS thread costs.

use common::programs::threads::{Threads, create_all, create_join, give_way, parked};
use common::{Call, bad_usage, print, rss_bytes};

use crate::system::System;
use crate::systems::May;

/// The usual limits on tasks and on memory maps refuse more OS threads at once.
const MOST: usize = 30_000;

/// Both have the functions of `std::thread`.
macro_rules! threads {
    ($name:ident, $($module:ident)::+, $thread:ident, |$body:ident| $spawn:expr, |$handle:ident| $of:expr) => {
        pub(crate) enum $name {}

        impl Threads for $name {
            type Handle = $($module)::+::JoinHandle<usize>;
            type Thread = $($module)::+::$thread;

            fn spawn($body: impl FnOnce() -> usize + Send + 'static) -> Result<Self::Handle, String> {
                $spawn
            }

            fn join(handle: Self::Handle) -> Option<usize> {
                handle.join().ok()
            }

            fn thread($handle: &Self::Handle) -> Self::Thread {
                $of.clone()
            }

            fn current() -> Self::Thread {
                $($module)::+::current()
            }

            fn park() {
                $($module)::+::park();
            }

            fn unpark(thread: &Self::Thread) {
                thread.unpark();
            }

            fn yield_now() {
                $($module)::+::yield_now();
            }
        }
    };
}

threads!(
    OfMay,
    may::coroutine,
    Coroutine,
    |body| Ok(may::go!(body)),
    |it| it.coroutine()
);
threads!(OfStd, std::thread, Thread, |body| start(body), |it| it
    .thread());

fn start(
    body: impl FnOnce() -> usize + Send + 'static,
) -> Result<std::thread::JoinHandle<usize>, String> {
    let started = std::thread::Builder::new().spawn(body);
    started.map_err(|error| format!("A thread cannot be started: {error}."))
}

pub(crate) fn of_may(call: &Call) -> ! {
    run::<OfMay>(call, May::allow)
}

pub(crate) fn of_std(call: &Call) -> ! {
    run::<OfStd>(call, |n| {
        if n > MOST {
            bad_usage(&format!(
                "{n} OS threads cannot exist at once: give at most {MOST}."
            ));
        }
    })
}

fn run<T: Threads>(call: &Call, allow: fn(usize)) -> ! {
    let n = call.count("n");
    match call.text("what") {
        "create-all" | "parked" => allow(n),
        _ => {}
    }
    print(match call.text("what") {
        "create-join" => create_join::<T>(n),
        "create-all" => create_all::<T>(n),
        "parked" => parked::<T>(n, || Ok(rss_bytes())),
        "yield" => give_way::<T>(n),
        _ => bad_usage("The key `what` takes one of the words in the README."),
    })
}
