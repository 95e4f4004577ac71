//! `thread`: what an OS thread of std costs.

use std::thread::{Builder, JoinHandle, Thread, current, park, yield_now};

use common::programs::threads::{Threads, create_all, create_join, give_way, parked};
use common::{Threading, bad_usage, fail, print_metrics, rss_bytes};

/// The usual limits on tasks and on memory maps refuse more threads at once.
const MOST: usize = 30_000;

/// The threads of std.
enum OfStd {}

impl Threads for OfStd {
    type Handle = JoinHandle<usize>;
    type Thread = Thread;

    fn spawn(body: impl FnOnce() -> usize + Send + 'static) -> Result<Self::Handle, String> {
        Builder::new()
            .spawn(body)
            .map_err(|error| format!("A thread cannot be started: {error}."))
    }

    fn join(handle: Self::Handle) -> Option<usize> {
        handle.join().ok()
    }

    fn thread(handle: &Self::Handle) -> Thread {
        handle.thread().clone()
    }

    fn current() -> Thread {
        current()
    }

    fn park() {
        park();
    }

    fn unpark(thread: &Thread) {
        thread.unpark();
    }

    fn yield_now() {
        yield_now();
    }
}

pub(crate) fn run(threading: Threading) -> ! {
    let figures = match threading {
        Threading::CreateJoin { n } => create_join::<OfStd>(n),
        Threading::CreateAll { n } => create_all::<OfStd>(possible(n)),
        Threading::Parked { n } => parked::<OfStd>(possible(n), || Ok(rss_bytes())),
        Threading::Yield { n } => give_way::<OfStd>(n),
        Threading::Waiting(_) => unreachable!("main runs what threads wait with"),
    };
    match figures {
        Ok(figures) => print_metrics(&figures),
        Err(sentence) => fail(&sentence),
    }
}

fn possible(n: usize) -> usize {
    if n > MOST {
        bad_usage(&format!(
            "{n} OS threads cannot exist at once: give at most {MOST}."
        ));
    }
    n
}
