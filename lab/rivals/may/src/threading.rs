//! `thread`: what a coroutine of may costs.

use common::programs::threads::{Threads, create_all, create_join, give_way, parked};
use common::{Threading, fail, print_metrics, rss_bytes};
use may::coroutine::{Coroutine, JoinHandle, current, park, yield_now};
use may::go;

use crate::{check_map_limit, waiting};

/// The coroutines of may.
enum OfMay {}

impl Threads for OfMay {
    type Handle = JoinHandle<usize>;
    type Thread = Coroutine;

    fn spawn(body: impl FnOnce() -> usize + Send + 'static) -> Result<Self::Handle, String> {
        Ok(go!(body))
    }

    fn join(handle: Self::Handle) -> Option<usize> {
        handle.join().ok()
    }

    fn thread(handle: &Self::Handle) -> Coroutine {
        handle.coroutine().clone()
    }

    fn current() -> Coroutine {
        current()
    }

    fn park() {
        park();
    }

    fn unpark(thread: &Coroutine) {
        thread.unpark();
    }

    fn yield_now() {
        yield_now();
    }
}

pub(crate) fn run(threading: Threading) {
    let figures = match threading {
        Threading::CreateJoin { n } => create_join::<OfMay>(n),
        Threading::CreateAll { n } => {
            check_map_limit(n);
            create_all::<OfMay>(n)
        }
        Threading::Parked { n } => {
            check_map_limit(n);
            parked::<OfMay>(n, || Ok(rss_bytes()))
        }
        Threading::Yield { n } => give_way::<OfMay>(n),
        Threading::Waiting(waiting) => return waiting::run(waiting),
    };
    match figures {
        Ok(figures) => print_metrics(&figures),
        Err(sentence) => fail(&sentence),
    }
}
