//! Reports name callbacks and a receptor's threads by the line of user code that started them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/reports.rs"]
mod reports;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{sync::mpsc, time::Duration};

use reports::{Report, collect_reports, reports};
use tools::{runtime, until, watch};
use weald_process::{callback, receptor::Receptor};

/// Waits for the monitor's report that names `site`, a line of this file; it names none of Weald's. Returns its text.
fn reported(site: u32) -> String {
    let site = format!("spawned at process/tests/report_names.rs:{site}:");
    until(|| !reports("weald::monitor", &site).is_empty());
    let Report { level, text, .. } = reports("weald::monitor", &site).remove(0);
    assert_eq!(level, tracing::Level::WARN);
    assert!(!text.contains("/src/"), "{text}");
    text
}

/// A closure that blocks until the sender is dropped.
fn blocks() -> (mpsc::Sender<()>, impl FnMut() + Send + 'static) {
    let (release, blocked) = mpsc::channel();
    (release, move || {
        let _released = blocked.recv();
    })
}

fn named_by_its_code(text: String) {
    assert!(text.contains("`callback report_names::"), "{text}");
}

#[test]
fn a_thread_of_a_receptor_is_named_by_the_line_that_spawned_it() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(2);
    let (release, mut block) = blocks();
    let site = runtime.block_on(async {
        let receptor = Receptor::<()>::start().unwrap();
        receptor.spawn(move |_| block());
        line!() - 1
    });
    named_by_its_code(reported(site));
    drop(release);
    let (release, mut block) = blocks();
    let site = runtime.block_on(async {
        let receptor = Receptor::start().unwrap();
        let handles = move |thread: &weald_process::receptor::Itself<()>| {
            thread.set_handler(move |()| block());
        };
        let id = receptor.spawn_with_id(handles).await.unwrap();
        receptor.try_send(id, ()).await.unwrap();
        line!() - 2
    });
    named_by_its_code(reported(site));
    drop(release);
}

#[test]
fn a_callback_is_named_by_the_line_that_started_it() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(2);
    let begin = Duration::from_millis(1);
    type Starts = fn(Duration, Box<dyn FnMut() + Send>) -> u32;
    let starts: [Starts; 4] = [
        |_, run| {
            callback::spawn(run).detach();
            line!() - 1
        },
        |begin, run| {
            callback::after(begin, run).detach();
            line!() - 1
        },
        |begin, run| {
            callback::every(begin, run).detach();
            line!() - 1
        },
        |_, run| {
            callback::repeat(run).start().detach();
            line!() - 1
        },
    ];
    for start in starts {
        let (release, block) = blocks();
        let site = runtime.block_on(async { start(begin, Box::new(block)) });
        let _text = reported(site);
        drop(release);
    }
    runtime.shutdown(Duration::ZERO);
}
