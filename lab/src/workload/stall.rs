//! `stall`: does one unit stop the others? A ticker runs beside pinging pairs and offenders.
//!
//! The ticker sleeps 5 ms again and again and records how late each tick is. The pingers exchange messages in pairs
//! without end. An offender sleeps 20 ms in the runtime and then holds its OS thread for 300 ms, without announcing it;
//! what it does meanwhile is its kind (`offender`). Those that read a FIFO do so to the end, and each tick then also
//! reads a small file and looks up a name. Those that make large commits are in `large_commits`, and those that keep a
//! journal busy in `journal_offenders`. The offenders of a burst start at once, after a while without any, and each
//! offends once, for two seconds.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weald::process::{self, Inbox, Pid, Process};

use super::host::{alone, crashed, not_spawned};
use super::journal_offenders::JournalOffenders;
use super::large_commits::{LargeCommits, Running};
use super::offender::{OffenderKind, Offenders};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::programs::ticks::{CALM, TICK, TickLog};

/// The number of pingers if it is not given.
const PINGERS: usize = 1_000;

/// One run's size.
#[derive(Clone, Copy)]
struct StallSize {
    pairs: usize,
    offender: Option<OffenderKind>,
    offenders: usize,
    commits: Option<Commits>,
    is_burst: bool,
    length: Duration,
}

/// Offenders that commit.
#[derive(Clone, Copy)]
enum Commits {
    Large(LargeCommits),
    Journal(JournalOffenders),
}

impl Commits {
    async fn start(self, params: &Params, offenders: usize) -> Result<Running, Error> {
        match self {
            Self::Large(commits) => commits.start(offenders).await,
            Self::Journal(journal) => journal.start(params, offenders).await,
        }
    }
}

/// A message between the two processes of a pair.
enum PairMessage {
    /// The partner to answer; the process that gets this sends first.
    Partner(Pid<PairMessage>),
    /// A value to send back.
    Value(u32),
    /// The partner has ended.
    Stop,
}

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let size = size(params)?;
    let own = params.clone();
    alone(params, 2 * size.pairs, move |inbox: Inbox<()>| async move {
        drop(inbox);
        measure(size, &own).await
    })
}

fn size(params: &Params) -> Result<StallSize, Error> {
    let (offender, commits) = match params.text("offender")? {
        "commit" => (None, Some(Commits::Large(LargeCommits::parse(params)?))),
        "sync" => (None, Some(Commits::Journal(JournalOffenders::slow_syncs()))),
        "append" => {
            let journal = JournalOffenders::appends(params)?;
            (None, Some(Commits::Journal(journal)))
        }
        other => (OffenderKind::parse(other)?, None),
    };
    let is_burst = match params.get("burst") {
        None | Some("no") => false,
        Some("yes") => true,
        Some(other) => {
            let sentence = format!("burst={other} is neither yes nor no.");
            return Err(Error::Usage(sentence));
        }
    };
    if is_burst
        && !matches!(
            offender,
            Some(OffenderKind::Blocks | OffenderKind::Computes | OffenderKind::Callback)
        )
    {
        let sentence = "A burst blocks or computes: give offender=blocks, computes or callback.";
        return Err(Error::Usage(sentence.into()));
    }
    let pingers = match params.get("pingers") {
        Some(_) => params.number("pingers")?,
        None => PINGERS,
    };
    Ok(StallSize {
        pairs: pingers / 2,
        offender,
        offenders: params.number("offenders")?,
        commits,
        is_burst,
        length: Duration::from_secs(params.count("seconds")? as u64),
    })
}

async fn measure(size: StallSize, params: &Params) -> Result<Vec<Metric>, Error> {
    let (begin, stop) = (Instant::now(), Arc::new(AtomicBool::new(false)));
    let pingers = spawn_pairs(size.pairs, &stop)?;
    let start = |kind| {
        let burst_of = size.is_burst.then_some(size.length);
        Offenders::start(kind, size.offenders, burst_of)
    };
    let small = match size.offender {
        Some(OffenderKind::File) => Some(SmallFile::new()?),
        _ => None,
    };
    let path = small.as_ref().map(|small| small.0.clone());
    let commits = match size.commits {
        Some(commits) => Some(commits.start(params, size.offenders).await?),
        None => None,
    };
    let (ticker, offence, offenders) = if size.is_burst {
        let ticker = weald::spawn(tick(CALM + size.length, path));
        weald::sleep(CALM).await;
        let burst = Instant::now();
        (ticker, burst, size.offender.map(start).transpose()?)
    } else {
        let offenders = size.offender.map(start).transpose()?;
        let now = Instant::now();
        (weald::spawn(tick(size.length, path)), now, offenders)
    };

    let ticks = ticker.await.map_err(|error| job_failed(&error))?;
    let ticks = ticks.map_err(|error| Error::workload(format!("A tick failed: {error}.")))?;
    stop.store(true, Ordering::Relaxed);
    let elapsed = begin.elapsed();
    let mut messages = 0;
    for pinger in pingers {
        messages += pinger.await.map_err(|reason| crashed(&reason))?;
    }
    let figures = ticks.figures(offence, size.is_burst);
    let figures = figures.ok_or_else(|| Error::workload("The ticker never ticked."))?;
    let figures = figures.into_iter();
    let mut metrics: Vec<Metric> = figures
        .map(|(name, value)| Metric::new(name, value))
        .collect();
    if messages > 0 {
        let hop = elapsed.as_nanos() as f64 / messages as f64;
        metrics.push(Metric::new("ns_per_hop", hop));
    }
    if let Some(commits) = commits {
        metrics.extend(commits.end().await?);
    }
    if let Some(offenders) = offenders {
        let named = offenders.end().await.map_err(|error| job_failed(&error))?;
        metrics.push(Metric::new("named_percent", named));
    }
    Ok(metrics)
}

fn job_failed(error: &weald::JoinError) -> Error {
    Error::workload(format!("A job of the workload failed: {error}."))
}

/// A file that the ticks read; it is removed on drop.
struct SmallFile(PathBuf);

impl SmallFile {
    fn new() -> Result<SmallFile, Error> {
        let path = std::env::temp_dir().join(format!("weald-tick-{}", std::process::id()));
        match std::fs::write(&path, "small") {
            Ok(()) => Ok(SmallFile(path)),
            Err(error) => Err(Error::workload(format!(
                "{} cannot be written: {error}.",
                path.display()
            ))),
        }
    }
}

impl Drop for SmallFile {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.0);
    }
}

/// Ticks for `length`. Each tick reads the file, if there is one, and looks up a name.
async fn tick(length: Duration, file: Option<PathBuf>) -> io::Result<TickLog> {
    let mut ticks = TickLog::default();
    let end = Instant::now() + length;
    loop {
        let due = Instant::now() + TICK;
        weald::sleep(TICK).await;
        if let Some(file) = &file {
            weald::fs::read(file).await?;
            weald::net::lookup_host("localhost", 80).await?;
        }
        if ticks.add(due) >= end {
            return Ok(ticks);
        }
    }
}

/// Starts the pairs; each process returns how many messages it has received.
fn spawn_pairs(
    pairs: usize,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<Process<PairMessage, u64>>, Error> {
    let mut pingers = Vec::with_capacity(2 * pairs);
    for _ in 0..pairs {
        let (stop_here, stop_there) = (Arc::clone(stop), Arc::clone(stop));
        let here = process::spawn(move |inbox| ping(inbox, stop_here));
        let here = here.map_err(|error| not_spawned(&error))?;
        let there = process::spawn(move |inbox| ping(inbox, stop_there));
        let there = there.map_err(|error| not_spawned(&error))?;
        there.pid().send(PairMessage::Partner(here.pid().clone()));
        here.pid().send(PairMessage::Partner(there.pid().clone()));
        here.pid().send(PairMessage::Value(0));
        pingers.extend([here, there]);
    }
    Ok(pingers)
}

/// Sends every value back until the end; returns the number of values received.
async fn ping(mut inbox: Inbox<PairMessage>, stop: Arc<AtomicBool>) -> u64 {
    let PairMessage::Partner(partner) = inbox.receive().await else {
        unreachable!("the partner is named first")
    };
    let mut received = 0;
    while let PairMessage::Value(value) = inbox.receive().await {
        received += 1;
        if stop.load(Ordering::Relaxed) {
            partner.send(PairMessage::Stop);
            break;
        }
        partner.send(PairMessage::Value(value.wrapping_add(1)));
    }
    received
}
