//! `hot-tree`: many writers commit to one tree.
//!
//! Half of the commits append a node, half put one of eight attributes, at random nodes of the first version. The
//! forest keeps the newest 1,000 versions, or with retention=none the newest one. kind=processes: the writers are
//! processes of the runtime; kind=threads: OS threads on as many processors as there are workers. A writer that meets a
//! conflict tries again.

use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use weald::Wait;
use weald::forest::{CommitError, Forest, KEPT, NodeId, Stats, TreeHandle};
use weald::process::Inbox;

use super::definition::Workload;
use super::host::alone;
use super::team::Team;
use super::trees::{self, Fanout};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::programs::xorshift::Xorshift;

pub(super) const WORKLOAD: Workload = Workload {
    name: "hot-tree",
    question: "How many commits per second does one tree take from many writers?",
    keys: &["writers", "commits", "nodes", "kind"],
    optional: &["retention"],
    metrics: &["commits_per_s", "p99_us", "retries_per_commit"],
    explaining: &[],
    remark: "commits is the number of all writers together. kind=threads: OS threads on as many processors as \
             there are workers. A retry is a commit that had to be rebased onto a newer version, by \
             the writer or by the database. retention=kept: the newest 1,000 versions are kept, by the rivals in a \
             ring of roots; none: only the newest one.",
    run,
};

/// The attributes; a commit puts one of them.
const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (_, shape) = trees::shape(params)?;
    let (writers, commits) = (params.count("writers")?, params.count("commits")?);
    let each = commits.div_ceil(writers);
    let kept = match params.get("retention") {
        None | Some("kept") => KEPT,
        Some("none") => 1,
        Some(other) => {
            let sentence = format!("retention={other} is neither kept nor none.");
            return Err(Error::Usage(sentence));
        }
    };
    let forest = Forest::builder().keep(kept);
    match params.text("kind")? {
        "processes" => alone(params, writers, move |inbox| {
            with_processes(inbox, (forest.build(), shape), (writers, each))
        }),
        "threads" => {
            let processors = processors(super::definition::workers(params)?)?;
            with_threads((forest.build(), shape), (writers, each), &processors)
        }
        other => {
            let sentence = format!("kind={other} is neither threads nor processes.");
            Err(Error::Usage(sentence))
        }
    }
}

async fn with_processes(
    inbox: Inbox<()>,
    (forest, shape): (Forest, Fanout),
    (writers, each): (usize, usize),
) -> Result<Vec<Metric>, Error> {
    let tree = trees::build(shape);
    let ids: &'static [NodeId] = trees::ids(&tree).leak();
    let handle = forest.create_from("hot", tree).await;
    let handle = handle.map_err(|error| trees::not_committed(&error))?;
    let (sender, latencies) = std::sync::mpsc::channel();
    let mut team = Team::of(writers, inbox);
    for number in 0..writers {
        let (mut writer, sender) = (Writer::new(number, ids, handle.clone()), sender.clone());
        team.add(async move {
            for step in 0..each {
                writer.write(step).await;
            }
            let _measuring = sender.send(writer.latencies);
        })?;
    }
    drop(sender);
    let elapsed = team.run().await;
    metrics(elapsed, latencies.into_iter().collect(), forest.stats())
}

fn with_threads(
    (forest, shape): (Forest, Fanout),
    (writers, each): (usize, usize),
    processors: &CpuSet,
) -> Result<Vec<Metric>, Error> {
    let tree = trees::build(shape);
    let ids = &trees::ids(&tree)[..];
    let handle = forest.create_from("hot", tree).wait();
    let handle = handle.map_err(|error| trees::not_committed(&error))?;
    let start = std::sync::Barrier::new(writers + 1);
    let (end, written) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..writers)
            .map(|number| {
                let (mut writer, start) = (Writer::new(number, ids, handle.clone()), &start);
                scope.spawn(move || {
                    let bound = sched_setaffinity(None, processors);
                    start.wait();
                    let began = Instant::now();
                    for step in 0..each {
                        writer.write(step).wait();
                    }
                    bound.map(|()| (began, writer.latencies))
                })
            })
            .collect();
        start.wait();
        let written = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        let written = written.collect::<Result<Vec<_>, _>>();
        (Instant::now(), written)
    });
    let written = written.map_err(|_| Error::workload("A writer panicked."))?;
    let written = written.into_iter().collect::<Result<Vec<_>, _>>();
    let written =
        written.map_err(|_| Error::workload("A writer cannot be bound to its processors."))?;
    let (begins, latencies): (Vec<_>, Vec<_>) = written.into_iter().unzip();
    // On one core the writers may have done everything before this thread runs again, so it cannot tell when they
    // began.
    let began = begins.into_iter().min().unwrap_or(end);
    let elapsed = end.duration_since(began);
    metrics(elapsed, latencies, forest.stats())
}

/// One writer.
struct Writer<'a> {
    handle: TreeHandle,
    ids: &'a [NodeId],
    random: Xorshift,
    latencies: Vec<Duration>,
}

impl<'a> Writer<'a> {
    fn new(number: usize, ids: &'a [NodeId], handle: TreeHandle) -> Self {
        Self {
            handle,
            ids,
            random: Xorshift::of(number),
            latencies: Vec::new(),
        }
    }

    async fn write(&mut self, step: usize) {
        let clock = Instant::now();
        let node = self.ids[self.random.below(self.ids.len())];
        loop {
            let mut edit = self.handle.edit().blind();
            let edited = if step.is_multiple_of(2) {
                edit.append(node, trees::attributes(step as u64)).map(drop)
            } else {
                let name = NAMES[self.random.below(NAMES.len())];
                edit.put_attribute(node, name, step.to_le_bytes())
            };
            edited.expect("no node is ever deleted here");
            match edit.commit().await {
                Ok(_) => break,
                Err(CommitError::Conflict(_)) => {}
                Err(error) => panic!("a commit was refused: {error}"),
            }
        }
        self.latencies.push(clock.elapsed());
    }
}

fn metrics(
    elapsed: Duration,
    latencies: Vec<Vec<Duration>>,
    stats: Stats,
) -> Result<Vec<Metric>, Error> {
    let mut all: Vec<Duration> = latencies.into_iter().flatten().collect();
    all.sort_unstable();
    let commits = all.len();
    let p99 = all.get(commits.saturating_sub(1) * 99 / 100);
    let p99 =
        p99.ok_or_else(|| Error::workload("No writer reported how long its commits took."))?;
    let retries = stats.rebases + stats.conflicts;
    Ok(vec![
        Metric::new("commits_per_s", commits as f64 / elapsed.as_secs_f64()),
        Metric::new("p99_us", p99.as_secs_f64() * 1e6),
        Metric::new("retries_per_commit", retries as f64 / commits as f64),
    ])
}

/// This many of the processors that this program may use.
fn processors(workers: usize) -> Result<CpuSet, Error> {
    let wrong = || Error::workload("There are fewer processors than workers: give fewer workers.");
    let allowed = sched_getaffinity(None).map_err(|_| wrong())?;
    let mut chosen = CpuSet::new();
    let usable = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    usable.take(workers).for_each(|cpu| chosen.set(cpu));
    match chosen.count() as usize == workers {
        true => Ok(chosen),
        false => Err(wrong()),
    }
}
