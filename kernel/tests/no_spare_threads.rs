//! No spare thread is left: a stuck worker keeps its thread, and the others serve what is at that worker.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/blocker.rs"]
mod blocker;
#[path = "support/reports.rs"]
mod reports;
#[path = "support/tools.rs"]
mod tools;

use std::{
    panic::{set_hook, take_hook},
    pin::pin,
    sync::{Arc, LazyLock, Mutex, mpsc},
    task::{Context, Wake, Waker},
    time::Duration,
};

use blocker::Blocker;
use reports::{collect_reports, reports};
use tools::{until, watch};
use weald_kernel::{Runtime, Spawn, sleep};

/// A waker that sends.
struct Sends(Mutex<mpsc::Sender<()>>);

impl Wake for Sends {
    fn wake(self: Arc<Sends>) {
        self.0.lock().unwrap().send(()).unwrap();
    }
}

/// From now on the panic hook of a job that panics on purpose blocks. To be called before a test makes its runtime: the
/// first one of the program wraps the hook.
fn block_in_panic_hook() -> &'static Blocker {
    static BLOCKER: LazyLock<Blocker> = LazyLock::new(|| {
        let (blocker, others) = (Blocker::default(), take_hook());
        let blocks = blocker.clone();
        set_hook(Box::new(move |info| {
            match info.payload().downcast_ref::<&str>() {
                Some(&"on purpose") => blocks.block(),
                _ => others(info),
            }
        }));
        blocker
    });
    &BLOCKER
}

#[test]
fn a_timer_of_a_worker_that_has_been_stuck_for_long_still_fires() {
    let _watch = watch();
    collect_reports();
    block_in_panic_hook();
    let runtime = Runtime::builder()
        .workers(2)
        .spare_threads(0)
        .stuck_after(Duration::from_millis(10))
        .build()
        .unwrap();
    let blocks = async {
        let (sender, fired) = mpsc::channel();
        let waker = Waker::from(Arc::new(Sends(Mutex::new(sender))));
        // Long after the bound, and at the worker that this job blocks.
        let mut late = pin!(sleep(Duration::from_millis(200)));
        assert!(
            late.as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        fired.recv().unwrap();
    };
    let stuck = runtime.block_on(async { Spawn::new().name("the blocker").spawn(blocks) });
    runtime.block_on(stuck).unwrap();
    until(|| {
        let stuck = reports("weald::monitor", "no spare thread is left");
        stuck
            .iter()
            .any(|report| report.text.contains("`the blocker`"))
    });
}

#[test]
fn a_panic_hook_that_blocks_is_told_of_by_a_warning() {
    let _watch = watch();
    collect_reports();
    let blocker = block_in_panic_hook();
    let runtime = Runtime::builder()
        .workers(2)
        .spare_threads(0)
        .build()
        .unwrap();
    let stuck = runtime.block_on(async {
        let panics = Spawn::new().name("the one that panics");
        panics.spawn(async { panic!("on purpose") })
    });
    let hook_blocks = "`the one that panics` spawned at kernel/tests/no_spare_threads.rs";
    until(|| reports("weald::monitor", hook_blocks).len() >= 2);
    blocker.open();
    let failed: Result<(), _> = runtime.block_on(stuck);
    assert!(failed.unwrap_err().is_panic());
    let of_hook = reports("weald::monitor", hook_blocks);
    let levels: Vec<_> = of_hook.iter().map(|report| report.level).collect();
    let (information, warning) = (tracing::Level::INFO, tracing::Level::WARN);
    assert_eq!(levels, [information, warning], "{of_hook:?}");
    assert!(
        of_hook[1]
            .text
            .contains("its panic hook has held a thread for")
    );
}
