//! `idle`: how much processor time does a program take that has nothing to do?
//!
//! The runtime forks for a moment, so that all workers have been awake, and then rests. The threads of the program that
//! have ended meanwhile are not counted; none should.

use std::fs;
use std::hint::black_box;
use std::thread;
use std::time::Duration;

use weald::fork;
use weald::process::Inbox;

use super::definition::Workload;
use super::host::{build, inside};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

pub(super) const WORKLOAD: Workload = Workload {
    name: "idle",
    question: "How much processor time does a program take that has nothing to do?",
    keys: &["seconds"],
    optional: &[],
    metrics: &["processor_ms"],
    explaining: &[],
    remark: "The time of all threads of the program, from the end of a moment of forks on, over the given seconds.",
    run,
};

fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let seconds = params.count("seconds")?;
    let runtime = build(params, 0)?;
    inside(&runtime, |inbox: Inbox<()>| async move {
        drop(inbox);
        black_box(fib(22));
        Ok(())
    })?;
    let before = processor_time()?;
    #[expect(clippy::disallowed_methods, reason = "the rest is what is measured")]
    thread::sleep(Duration::from_secs(seconds as u64));
    let taken = processor_time()?.saturating_sub(before);
    Ok(vec![Metric::new("processor_ms", taken as f64 / 1e6)])
}

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (one, other) = fork::join(|| fib(n - 1), || fib(n - 2));
    one + other
}

/// What all threads of the program have taken, in nanoseconds.
fn processor_time() -> Result<u64, Error> {
    let unreadable =
        || Error::workload("This kernel does not report the processor time of threads.");
    let threads = fs::read_dir("/proc/self/task").map_err(|_error| unreadable())?;
    let of_thread = |thread: Result<fs::DirEntry, _>| {
        let text = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    };
    threads
        .map(|thread| of_thread(thread).ok_or_else(unreadable))
        .sum()
}
