//! `durable`: many writers commit to one tree of a forest on disk.
//!
//! Each commit appends a node with an attribute of a hundred bytes. The limit program does the least that is as
//! durable: it writes as many bytes as the journal does to a file that was filled with zeros before, and syncs once for
//! as many commits as there are writers, which is what one sync can serve at best. It has no tree, no versions and no
//! checks.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weald::forest::disk::{Directory, DiskForest, DiskJournal, Settings};
use weald::forest::{Attributes, CommitError, Forest, Journal, Level, TreeHandle};
use weald::process::Inbox;

use super::definition::Workload;
use super::host::alone;
use super::team::Team;
use super::trees;
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::programs::quantile::quantile;

pub(super) const WORKLOAD: Workload = Workload {
    name: "durable",
    question: "How many commits per second are kept for good?",
    keys: &["writers", "commits", "level"],
    optional: &["dir"],
    metrics: &["commits_per_s", "p50_us", "p99_us", "bytes_per_commit"],
    explaining: &["limit_per_s", "limit_percent"],
    remark: "A commit appends a node with 100 bytes. level=durable survives the loss of power, level=buffered the end of \
             the program, level=none has no journal. limit: a bare file, filled with zeros before, written and synced \
             once for as many commits as there are writers. dir=… is the directory; by default a new one in that for \
             temporary files, which may lie in memory.",
    run,
};

/// The bytes of a commit.
const BYTES: usize = 100;

/// What a record has besides, for the limit program: its frame, its head, and the operation.
const AROUND: usize = 90;

/// The length of the pieces in which the limit program's file is filled.
const PIECE: usize = 1 << 20;

/// A directory that is removed in the end.
pub(super) struct Place(PathBuf);

impl Place {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn new(params: &Params) -> Result<Self, Error> {
        let above = params
            .get("dir")
            .map_or_else(std::env::temp_dir, PathBuf::from);
        let since = std::time::SystemTime::UNIX_EPOCH
            .elapsed()
            .unwrap_or_default();
        let name = format!("weald-durable-{}-{}", std::process::id(), since.as_nanos());
        let path = above.join(name);
        fs::create_dir_all(&path).map_err(Error::file("create", &path))?;
        Ok(Self(path))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (writers, commits) = (params.count("writers")?, params.count("commits")?);
    let level = match params.text("level")? {
        "none" => None,
        "buffered" => Some(Level::Buffered),
        "durable" => Some(Level::Durable),
        other => {
            let sentence = format!("level={other} is neither none, buffered nor durable.");
            return Err(Error::Usage(sentence));
        }
    };
    let place = Place::new(params)?;
    let path = place.0.clone();
    let each = commits.div_ceil(writers);
    let mut metrics = alone(params, writers, move |inbox| {
        measure(inbox, path, (writers, each), level)
    })?;
    if level == Some(Level::Durable) {
        let limit = limit(&place.0, (writers, each)).map_err(|error| {
            Error::workload(format!("The limit program's file failed: {error}."))
        })?;
        metrics.push(Metric::new("limit_per_s", limit));
        let percent = 100.0 * metrics[0].value / limit;
        metrics.push(Metric::new("limit_percent", percent));
    }
    Ok(metrics)
}

async fn measure(
    inbox: Inbox<()>,
    path: PathBuf,
    (writers, each): (usize, usize),
    level: Option<Level>,
) -> Result<Vec<Metric>, Error> {
    let failed = |error: &dyn std::fmt::Display| {
        Error::workload(format!("The forest cannot be opened: {error}."))
    };
    let not_created = |error: CommitError| trees::not_committed(&error);
    // Both forests stay open until all is measured.
    let (disk, memory) = match level {
        None => (None, Some(Forest::new())),
        Some(_) => {
            let medium = Directory::create(&path).map_err(|error| failed(&error))?;
            // Commits are measured, so no checkpoint comes in between.
            let settings = Settings::new().checkpoint_after(None);
            let journal = DiskJournal::open_on(medium, settings);
            let journal = journal.map_err(|error| failed(&error))?;
            let forest = DiskForest::recover(Forest::builder(), journal).await;
            (Some(forest.map_err(|error| failed(&error))?), None)
        }
    };
    let created = match (&disk, &memory) {
        (Some(forest), _) => forest.create("durable"),
        (_, Some(forest)) => forest.create("durable"),
        _ => unreachable!("there is a forest"),
    };
    let handle = created.await.map_err(not_created)?;
    let journal = disk.as_ref().map(|forest| forest.journal());
    let begin = match journal {
        Some(journal) => Some(end_of(journal).await),
        None => None,
    };
    let (sender, latencies) = std::sync::mpsc::channel();
    let mut team = Team::of(writers, inbox);
    for _ in 0..writers {
        let (handle, sender) = (handle.clone(), sender.clone());
        team.add(async move {
            let mut latencies = Vec::with_capacity(each);
            for step in 0..each {
                latencies.push(write(&handle, step, level).await);
            }
            let _measuring = sender.send(latencies);
        })?;
    }
    drop(sender);
    let elapsed = team.run().await;
    let mut all: Vec<Duration> = latencies.into_iter().flatten().collect();
    all.sort_unstable();
    let commits = (writers * each) as f64;
    let at = |share| quantile(&all, share).map_or(0.0, |it| it.as_secs_f64() * 1e6);
    let mut metrics = vec![
        Metric::new("commits_per_s", commits / elapsed.as_secs_f64()),
        Metric::new("p50_us", at(0.5)),
        Metric::new("p99_us", at(0.99)),
    ];
    if let (Some(journal), Some(begin)) = (journal, begin) {
        let bytes = end_of(journal).await.saturating_sub(begin);
        metrics.push(Metric::new("bytes_per_commit", bytes as f64 / commits));
    }
    Ok(metrics)
}

async fn write(handle: &TreeHandle, step: usize, level: Option<Level>) -> Duration {
    let clock = Instant::now();
    let mut edit = handle.edit().blind();
    let root = edit.root();
    let mut bytes = [b'x'; BYTES];
    bytes[..8].copy_from_slice(&(step as u64).to_le_bytes());
    let attributes = Attributes::new().with("text", bytes);
    edit.append(root, attributes)
        .expect("the root is never deleted");
    let commit = edit.commit();
    let commit = match level {
        Some(level) => commit.level(level),
        None => commit,
    };
    commit.await.expect("nothing is in its way");
    clock.elapsed()
}

/// How many bytes of segments are before the end of a journal.
pub(super) async fn end_of(journal: &DiskJournal) -> u64 {
    let last = journal
        .last()
        .await
        .ok()
        .flatten()
        .map_or(0, |(position, _)| position.0);
    let word = |at: u32| u64::try_from(last >> at & 0xFFFF_FFFF).unwrap_or(0);
    // An epoch, an index and an offset make a position, and segments have 16 MiB.
    word(32).saturating_sub(1) * (16 << 20) + word(0)
}

/// How many commits per second a bare file takes.
fn limit(directory: &Path, (writers, each): (usize, usize)) -> io::Result<f64> {
    let record = BYTES + AROUND;
    let file = File::create_new(directory.join("limit"))?;
    let len = record * writers * each;
    let zeros = vec![0; PIECE];
    for at in (0..len.next_multiple_of(PIECE)).step_by(PIECE) {
        file.write_all_at(&zeros, at as u64)?;
    }
    file.sync_all()?;
    let group = vec![b'x'; record * writers];
    let clock = Instant::now();
    for nth in 0..each {
        file.write_all_at(&group, (nth * group.len()) as u64)?;
        file.sync_data()?;
    }
    Ok((writers * each) as f64 / clock.elapsed().as_secs_f64())
}
