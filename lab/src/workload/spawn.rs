//! `spawn`: how light is a process? Spawns n processes that wait for a message, then ends all of them.
//!
//! Each process counts itself as started and parks; the clock stops when the last one has counted. Memory is
//! the growth of the resident set over that time. The array of pids was touched before, so it does not count.
//! Teardown ends when the last process has dropped everything it owned.

use std::time::Instant;

use weald::process::{self, Inbox, Pid};

use super::host::{alone, not_spawned};
use super::memory::{growth_per, resident};
use super::tally::{CountsAtDrop, Tally};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

/// How many processes are spawned, or told to end, between two yields.
pub(crate) const GIVE_WAY_EVERY: usize = 4096;

/// The message that ends a process.
#[derive(Debug)]
pub(super) struct Die;

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let n = params.count("n")?;
    check_huge_pages(params)?;
    alone(params, n, move |inbox| measure(inbox, n))
}

/// Huge pages are switched by the environment before the program starts, so a key that says otherwise
/// would print figures under a wrong name.
fn check_huge_pages(params: &Params) -> Result<(), Error> {
    let switched_off = std::env::var("WEALD_HUGE_PAGES").is_ok_and(|value| value == "off");
    match params.get("huge") {
        None => Ok(()),
        Some("off") if switched_off => Ok(()),
        Some("on") if !switched_off => Ok(()),
        Some("off") => Err(Error::Usage(
            "Set WEALD_HUGE_PAGES=off to run with huge=off.".into(),
        )),
        Some("on") => Err(Error::Usage(
            "Unset WEALD_HUGE_PAGES to run with huge=on.".into(),
        )),
        Some(other) => Err(Error::Usage(format!("huge={other} is neither on nor off."))),
    }
}

async fn measure(mut inbox: Inbox<()>, n: usize) -> Result<Vec<Metric>, Error> {
    let mut pids = touched(n);
    let started = Tally::leaked(n, inbox.pid());
    let ended = Tally::leaked(n, inbox.pid());
    let before = resident()?;

    let clock = Instant::now();
    for (index, slot) in pids.iter_mut().enumerate() {
        *slot = Some(spawn_one(started, ended)?);
        // A loop that runs longer than the monitor's limit must yield now and then.
        if index % GIVE_WAY_EVERY == GIVE_WAY_EVERY - 1 {
            weald::yield_now().await;
        }
    }
    inbox.receive().await;
    let spawning = clock.elapsed();

    let bytes = growth_per(before, resident()?, n);

    let clock = Instant::now();
    for (index, pid) in pids.iter().flatten().enumerate() {
        pid.send(Die);
        if index % GIVE_WAY_EVERY == GIVE_WAY_EVERY - 1 {
            weald::yield_now().await;
        }
    }
    inbox.receive().await;
    let teardown = clock.elapsed();

    Ok(vec![
        Metric::new("ns_per_spawn", spawning.as_nanos() as f64 / n as f64),
        Metric::new("ns_per_teardown", teardown.as_nanos() as f64 / n as f64),
        Metric::new("bytes_per_process", bytes),
    ])
}

/// A process that counts itself as started, waits for its end, and counts itself as ended.
pub(super) fn spawn_one(started: &'static Tally, ended: &'static Tally) -> Result<Pid<Die>, Error> {
    let process = process::spawn(move |mut inbox: Inbox<Die>| async move {
        let _ended = CountsAtDrop(ended);
        started.count();
        let Die = inbox.receive().await;
    });
    Ok(process.map_err(|error| not_spawned(&error))?.into_pid())
}

/// Room for n pids, with all its pages resident.
pub(super) fn touched(n: usize) -> Vec<Option<Pid<Die>>> {
    let mut pids = Vec::with_capacity(n);
    // Without the barrier the compiler may ask for zeroed pages, which are not touched.
    std::hint::black_box(&mut pids);
    pids.resize_with(n, || None);
    std::hint::black_box(&mut pids);
    pids
}
