//! No spare thread is left: a stuck worker keeps its thread, and the others serve what is at that worker.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/reports.rs"]
mod reports;
#[path = "support/tools.rs"]
mod tools;

use std::{
    pin::pin,
    sync::{Arc, Mutex, mpsc},
    task::{Context, Wake, Waker},
    time::Duration,
};

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

#[test]
fn a_timer_of_a_worker_that_has_been_stuck_for_long_still_fires() {
    let _watch = watch();
    collect_reports();
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
