//! `recover`: how long it takes to open a forest on disk, and to show an old version.
//!
//! - what=records: after commits of a hundred bytes, without a checkpoint.
//! - what=checkpoint: after the same commits to a tree of many nodes, with a checkpoint behind them.
//! - what=at: the forest is open; the version in the middle of these commits is shown, with checkpoints put by themselves.

use std::time::Instant;

use weald::forest::disk::{Directory, DiskForest, DiskJournal, Moment, Settings};
use weald::forest::{Attributes, CommitError, Forest, Level, TreeHandle, Version};
use weald::process::Inbox;

use super::definition::Workload;
use super::durable::Place;
use super::host::alone;
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
    explaining: &[],
    remark: "what=records: opening replays all commits. what=checkpoint: the newest 1,000 versions of a tree with so many \
             nodes come from a checkpoint. what=at: the version in the middle is shown. commits_per_s is the number of \
             commits that were made, divided by the time. The files are in the memory of the system.",
    run,
};

#[derive(Clone, Copy, PartialEq)]
enum What {
    Records,
    Checkpoint,
    At,
}

fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (_, shape) = trees::shape(params)?;
    let commits = params.count("commits")?;
    let what = match params.text("what")? {
        "records" => What::Records,
        "checkpoint" => What::Checkpoint,
        "at" => What::At,
        other => {
            let sentence = format!("what={other} is neither records, checkpoint nor at.");
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
            let after = (what == What::At).then_some(64 << 20);
            let settings = Settings::new().checkpoint_after(after);
            let journal = DiskJournal::open_on(medium, settings);
            let journal = journal.map_err(|error| failed(&error))?;
            let forest = DiskForest::recover(Forest::builder(), journal).await;
            forest.map_err(|error| failed(&error))
        };
        let forest = open().await?;
        let handle = forest.create_from("recovered", trees::build(shape)).await;
        let handle = handle.map_err(|error| trees::not_committed(&error))?;
        let middle = commit(&handle, commits).await;
        let middle = middle.map_err(|error| trees::not_committed(&error))?;
        if what == What::Checkpoint {
            let checkpoint = forest.checkpoint().await;
            checkpoint.map_err(|error| failed(&error))?;
        }
        let elapsed = if what == What::At {
            let clock = Instant::now();
            let past = forest.at(Moment::Version(middle)).await;
            past.map_err(|error| failed(&error))?;
            clock.elapsed()
        } else {
            drop((handle, forest));
            let clock = Instant::now();
            open().await?;
            clock.elapsed()
        };
        let seconds = elapsed.as_secs_f64();
        Ok(vec![
            Metric::new("ms", 1e3 * seconds),
            Metric::new("commits_per_s", commits as f64 / seconds),
        ])
    })
}

/// Makes so many commits; returns the version in their middle.
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
