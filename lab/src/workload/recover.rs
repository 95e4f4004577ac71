//! `recover`: how long it takes to open a forest on disk, and to show an old version.
//!
//! - what=records: after commits of a hundred bytes, without a checkpoint; then the same records are decoded and
//!   nothing else.
//! - what=checkpoint: after the same commits to a tree of many nodes, with a checkpoint behind them.
//! - what=size: commits that replace a hundred bytes; how much is on the disk then, and in memory.
//! - what=at: the forest is open; the version in the middle of these commits is shown, with checkpoints put by
//!   themselves.

use std::path::Path;
use std::time::{Duration, Instant};

use weald::forest::disk::{Directory, DiskForest, DiskJournal, Moment, ReadOnlyJournal, Settings};
use weald::forest::journal::{Journal, Stored};
use weald::forest::{Attributes, CommitError, Forest, Level, TreeHandle, Version};
use weald::process::Inbox;
use weald_tree::Ids;

use super::definition::Workload;
use super::durable::{Place, end_of};
use super::host::alone;
use super::memory::resident;
use super::trees;
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

pub(super) const WORKLOAD: Workload = Workload {
    name: "recover",
    question: "How long does it take to open a forest on disk, and to show an old version?",
    keys: &["commits", "nodes", "what"],
    optional: &["dir"],
    metrics: &["ms", "commits_per_s"],
    explaining: &[
        "decoding_percent",
        "commits_behind",
        "bytes_per_commit",
        "bytes_on_disk",
        "grown_bytes",
    ],
    remark: "what=records: opening replays all commits. what=checkpoint: the newest 1,000 versions of a tree with so many \
             nodes come from a checkpoint. what=at: the version in the middle is shown. what=size: \
             the commits themselves, each of which replaces 100 bytes; the goal is 1.5 times these and 40 bytes on the disk, \
             and memory that does not grow. commits_per_s is the number of \
             commits that were made, divided by the time. decoding_percent: how fast an opening is, of the speed of \
             decoding the same records alone. commits_behind: those between the version and the checkpoint before. The \
             files are in the memory of the system.",
    run,
};

/// How many records are read at a time, as an opening does.
const MANY: usize = 256;

#[derive(Clone, Copy, PartialEq)]
enum What {
    Records,
    Checkpoint,
    At,
    Size,
}

fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (_, shape) = trees::shape(params)?;
    let commits = params.count("commits")?;
    let what = match params.text("what")? {
        "records" => What::Records,
        "checkpoint" => What::Checkpoint,
        "at" => What::At,
        "size" => What::Size,
        other => {
            let sentence = format!("what={other} is neither records, checkpoint, at nor size.");
            return Err(Error::Usage(sentence));
        }
    };
    let place = Place::new(params)?;
    let path = place.path().to_owned();
    alone(params, 0, move |inbox: Inbox<()>| async move {
        drop(inbox);
        let failed = |error: &dyn std::fmt::Display| {
            Error::workload(format!("The forest cannot be opened: {error}."))
        };
        let open = async || {
            let medium = Directory::create(&path).map_err(|error| failed(&error))?;
            let after = matches!(what, What::At | What::Size).then_some(64 << 20);
            let settings = Settings::new().checkpoint_after(after);
            let journal = DiskJournal::open_on(medium, settings);
            let journal = journal.map_err(|error| failed(&error))?;
            let forest = DiskForest::recover(Forest::builder(), journal).await;
            forest.map_err(|error| failed(&error))
        };
        let forest = open().await?;
        let handle = forest.create_from("recovered", trees::build(shape)).await;
        let handle = handle.map_err(|error| trees::not_committed(&error))?;
        if what == What::Size {
            return size((&handle, &forest), commits, &path).await;
        }
        let middle = commit(&handle, commits).await;
        let middle = middle.map_err(|error| trees::not_committed(&error))?;
        if what == What::Checkpoint {
            let checkpoint = forest.checkpoint().await;
            checkpoint.map_err(|error| failed(&error))?;
        }
        let mut explaining = Vec::new();
        let elapsed = if what == What::At {
            let clock = Instant::now();
            let past = forest.at(Moment::Version(middle)).await;
            let past = past.map_err(|error| failed(&error))?;
            let elapsed = clock.elapsed();
            let (behind, _) = decode(past.journal()).await?;
            explaining.push(Metric::new("commits_behind", behind as f64));
            elapsed
        } else {
            drop((handle, forest));
            let clock = Instant::now();
            let opened = open().await?;
            let elapsed = clock.elapsed();
            drop(opened);
            elapsed
        };
        if what == What::Records {
            let journal = ReadOnlyJournal::open(&path).map_err(|error| failed(&error))?;
            let (_, decoding) = decode(&journal).await?;
            let percent = 100.0 * decoding.as_secs_f64() / elapsed.as_secs_f64();
            explaining.push(Metric::new("decoding_percent", percent));
        }
        let seconds = elapsed.as_secs_f64();
        let metrics = [
            Metric::new("ms", 1e3 * seconds),
            Metric::new("commits_per_s", commits as f64 / seconds),
        ];
        Ok(metrics.into_iter().chain(explaining).collect())
    })
}

/// Makes this many commits, each of which replaces a hundred bytes, and tells what is left of them.
async fn size(
    (handle, forest): (&TreeHandle, &DiskForest),
    commits: usize,
    path: &Path,
) -> Result<Vec<Metric>, Error> {
    let begun = end_of(forest.journal()).await;
    let clock = Instant::now();
    let mut half = 0;
    for step in 0..commits {
        let mut edit = handle.edit().blind();
        let mut bytes = [b'x'; 100];
        bytes[..8].copy_from_slice(&(step as u64).to_le_bytes());
        let put = edit.put_attribute(edit.root(), "text", bytes);
        put.map_err(|error| trees::not_edited(&error))?;
        let committed = edit.commit().level(Level::Buffered).await;
        committed.map_err(|error| trees::not_committed(&error))?;
        if step == commits / 2 {
            half = resident()?;
        }
    }
    let elapsed = clock.elapsed().as_secs_f64();
    let grown = resident()?.saturating_sub(half);
    let written = end_of(forest.journal()).await - begun;
    let count = commits as f64;
    let mut on_disk = 0;
    for entry in std::fs::read_dir(path).map_err(Error::file("read", path))? {
        let entry = entry.map_err(Error::file("read", path))?;
        on_disk += entry.metadata().map_err(Error::file("read", path))?.len();
    }
    Ok(vec![
        Metric::new("ms", 1e3 * elapsed),
        Metric::new("commits_per_s", count / elapsed),
        Metric::new("bytes_per_commit", written as f64 / count),
        Metric::new("bytes_on_disk", on_disk as f64 / count),
        Metric::new("grown_bytes", grown as f64),
    ])
}

/// Decodes all records behind the newest checkpoint, if there is one; returns how many there are, and how long the
/// decoding takes without reading them.
async fn decode(journal: &ReadOnlyJournal) -> Result<(usize, Duration), Error> {
    let failed = |error: &dyn std::fmt::Display| {
        Error::workload(format!("The records cannot be read: {error}."))
    };
    let mut after = journal.checkpoints().last().copied().unwrap_or_default();
    let (mut count, mut elapsed) = (0, Duration::ZERO);
    loop {
        let entries = journal.read(after, MANY).await;
        let entries = entries.map_err(|error| failed(&error))?;
        after = match entries.last() {
            Some(last) => last.position,
            None => return Ok((count, elapsed)),
        };
        count += entries.len();
        let clock = Instant::now();
        for entry in &entries {
            let stored = Stored::read(&entry.record).map_err(|error| failed(&error))?;
            let changes = stored.changes(&mut |_| Some(Ids::new()));
            std::hint::black_box(changes.map_err(|error| failed(&error))?);
        }
        elapsed += clock.elapsed();
    }
}

/// Makes this many commits; returns the version in their middle.
async fn commit(handle: &TreeHandle, commits: usize) -> Result<Version, CommitError> {
    let mut middle = handle.view().version();
    for step in 0..commits {
        let mut edit = handle.edit().blind();
        let mut bytes = [b'x'; 100];
        bytes[..8].copy_from_slice(&(step as u64).to_le_bytes());
        let root = edit.root();
        let attributes = Attributes::new().with("text", bytes);
        edit.append(root, attributes)
            .expect("the root is never deleted");
        let last = step + 1 == commits;
        let level = if last {
            Level::Durable
        } else {
            Level::Buffered
        };
        let committed = edit.commit().level(level).await?;
        if step == commits / 2 {
            middle = committed.version;
        }
    }
    Ok(middle)
}
