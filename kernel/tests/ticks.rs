//! Others tick beside units whose foreign code holds OS threads: a panic hook that blocks, a wait in a destructor while
//! its unit unwinds, a callback that blocks. The ticks are counted, while each of the offenders still holds its thread.
//!
//! A program of its own, because the panic hook is the program's.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/blocker.rs"]
mod blocker;
#[path = "support/tickers.rs"]
mod tickers;
#[path = "support/tools.rs"]
mod tools;

use std::{
    panic,
    sync::{LazyLock, Once},
};

use blocker::Blocker;
use tickers::Tickers;
use tools::{Latch, runtime, until, watch};
use weald_kernel::{
    JoinHandle, Runtime, Wait,
    callback::{self, Owner, When},
};

/// How many units hold a thread at a time: more than there are workers.
const OFFENDERS: usize = 4;
/// How many jobs tick beside them, and how often.
const TICKERS: usize = 50;
const TICKS: usize = 100;

/// Runs `offend` beside jobs that tick, with fewer workers than offenders. It returns once all of these hold a thread;
/// then the others tick on, until `release`.
fn others_tick_beside<O>(
    offend: impl Fn(&Runtime) -> O,
    release: impl Fn(),
    end: impl Fn(&Runtime, O),
) {
    for workers in [1, 2] {
        let _watch = watch();
        let runtime = runtime(workers);
        let tickers = Tickers::start(&runtime, TICKERS);
        let offenders = offend(&runtime);
        tickers.tick(TICKS);
        release();
        end(&runtime, offenders);
        tickers.tick(1);
        tickers.end(&runtime);
    }
}

/// Each of these has panicked.
fn have_panicked(runtime: &Runtime, jobs: Vec<JoinHandle<()>>) {
    for job in jobs {
        assert!(runtime.block_on(job).unwrap_err().is_panic());
    }
}

const IN_ITS_HOOK: &str = "blocks in its panic hook";
static HOOK: LazyLock<Blocker> = LazyLock::new(Blocker::default);

/// Sets a hook that blocks for panics with this message. Before the first runtime, which wraps it.
fn set_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            match info.payload().downcast_ref::<&str>() {
                Some(&IN_ITS_HOOK) => HOOK.block(),
                _ => before(info),
            }
        }));
    });
}

#[test]
fn others_tick_beside_panic_hooks_that_block() {
    set_hook();
    let begun = || HOOK.begun();
    let before = std::cell::Cell::new(0);
    others_tick_beside(
        |runtime| {
            HOOK.close();
            before.set(begun());
            let fails = |_| runtime.spawn(async { panic::panic_any(IN_ITS_HOOK) });
            let jobs: Vec<JoinHandle<()>> = (0..OFFENDERS).map(fails).collect();
            until(|| begun() - before.get() == OFFENDERS);
            jobs
        },
        || HOOK.open(),
        have_panicked,
    );
}

/// Waits in its destructor until its latch opens.
struct WaitsAtDrop(Latch);

impl Drop for WaitsAtDrop {
    fn drop(&mut self) {
        self.0.clone().wait();
    }
}

/// Each of them holds an OS thread, because a stack that unwinds is not suspended.
#[test]
fn others_tick_beside_destructors_that_wait_while_their_jobs_unwind() {
    set_hook();
    let latch = std::cell::RefCell::new(Latch::default());
    others_tick_beside(
        |runtime| {
            let _opened = latch.replace(Latch::default());
            let unwinds = |_| {
                let waits = WaitsAtDrop(latch.borrow().clone());
                runtime.spawn(async move {
                    let _waits = waits;
                    panic::resume_unwind(Box::new("on purpose"))
                })
            };
            let jobs: Vec<JoinHandle<()>> = (0..OFFENDERS).map(unwinds).collect();
            until(|| latch.borrow().waiters() == OFFENDERS);
            jobs
        },
        || latch.borrow().open(),
        have_panicked,
    );
}

#[test]
fn others_tick_beside_callbacks_that_block() {
    set_hook();
    let blocker = std::cell::RefCell::new(Blocker::default());
    others_tick_beside(
        |runtime| {
            let _opened = blocker.replace(Blocker::default());
            let begun = blocker.borrow().clone();
            runtime.block_on(async {
                for _ in 0..OFFENDERS {
                    let blocker = begun.clone();
                    let blocks = move || blocker.block();
                    callback::once(Owner::runtime(), When::Ready, blocks).detach();
                }
            });
            until(|| begun.begun() == OFFENDERS);
        },
        || blocker.borrow().open(),
        |_, ()| {},
    );
}
