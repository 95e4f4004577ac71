//! `watch`: how soon watchers see a commit, and how fast a watcher catches up.
//!
//! - what=memory: a writer makes one commit after the other to a tree of a forest in memory. Every watcher waits for
//!   it, and tells the writer, which goes on when all have seen it.
//! - what=durable: the same on disk, with durable commits, and watchers that see what is durable.
//! - what=missed: a forest on disk that keeps few versions; a watcher that begins with the first one gets all commits
//!   from the history.

use std::time::{Duration, Instant};

use weald::forest::disk::{Directory, DiskForest, DiskJournal, Settings};
use weald::forest::{Attributes, CommitError, Forest, Level, Path, Since, TreeHandle};
use weald::process::{self, Inbox};

use super::definition::Workload;
use super::durable::Place;
use super::host::{alone, not_spawned};
use super::trees::{not_committed, not_edited};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::programs::quantile::quantile;

pub(super) const WORKLOAD: Workload = Workload {
    name: "watch",
    question: "How soon do watchers see a commit, and how fast does one catch up?",
    keys: &["what", "watchers", "commits"],
    optional: &["dir"],
    metrics: &["commits_per_s", "p50_us", "p99_us"],
    explaining: &[],
    remark: "what=memory, what=durable: from the beginning of a commit until all watchers have seen it; the writer waits \
             for that. what=missed: one watcher gets all commits from the history on disk.",
    run,
};

/// How many versions memory keeps when the commits are to come from the history.
const KEPT: usize = 10;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Watched {
    Memory,
    Durable,
    Missed,
}

fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (watchers, commits) = (params.count("watchers")?, params.count("commits")?);
    let what = match params.text("what")? {
        "memory" => Watched::Memory,
        "durable" => Watched::Durable,
        "missed" => Watched::Missed,
        other => {
            let sentence = format!("what={other} is neither memory, durable nor missed.");
            return Err(Error::Usage(sentence));
        }
    };
    let place = Place::new(params)?;
    let path = place.path().to_owned();
    alone(params, watchers, move |inbox: Inbox<()>| async move {
        if what == Watched::Memory {
            let forest = Forest::new();
            let tree = created(forest.create("watched").await)?;
            return live(inbox, (tree, None), (watchers, commits)).await;
        }
        let failed = |error: &dyn std::fmt::Display| {
            Error::workload(format!("The forest cannot be opened: {error}."))
        };
        let medium = Directory::create(&path).map_err(|error| failed(&error))?;
        let settings = Settings::new().checkpoint_after(None);
        let journal = DiskJournal::open_on(medium, settings).map_err(|error| failed(&error))?;
        let builder = match what {
            Watched::Missed => Forest::builder().keep(KEPT),
            _ => Forest::builder(),
        };
        let forest = DiskForest::recover(builder, journal).await;
        let forest = forest.map_err(|error| failed(&error))?;
        let tree = created(forest.create("watched").await)?;
        match what {
            Watched::Missed => missed(&forest, &tree, commits).await,
            _ => live(inbox, (tree, Some(Level::Durable)), (watchers, commits)).await,
        }
    })
}

fn created(tree: Result<TreeHandle, CommitError>) -> Result<TreeHandle, Error> {
    tree.map_err(|error| not_committed(&error))
}

async fn commit(tree: &TreeHandle, step: usize, level: Option<Level>) -> Result<(), Error> {
    let mut edit = tree.edit().blind();
    let attributes = Attributes::new().with("text", step.to_le_bytes());
    let appended = edit.append(edit.root(), attributes);
    appended.map_err(|error| not_edited(&error))?;
    let commit = edit.commit();
    let committed = match level {
        Some(level) => commit.level(level).await,
        None => commit.await,
    };
    committed.map(drop).map_err(|error| not_committed(&error))
}

async fn live(
    mut inbox: Inbox<()>,
    (tree, level): (TreeHandle, Option<Level>),
    (watchers, commits): (usize, usize),
) -> Result<Vec<Metric>, Error> {
    for _ in 0..watchers {
        let watch = tree.watch(&Path::default(), Since::Now);
        let watch = watch.map_err(|error| Error::workload(format!("No watch: {error}.")))?;
        let mut watch = match level {
            Some(level) => watch.level(level),
            None => watch,
        };
        let writer = inbox.pid().clone();
        let watcher = process::spawn(move |_: Inbox<()>| async move {
            for _ in 0..commits {
                watch
                    .next()
                    .await
                    .expect("the writer waits for the watchers");
                writer.send(());
            }
        });
        let watcher = watcher.map_err(|error| not_spawned(&error))?;
        let _pid = watcher.into_pid();
    }
    let mut took = Vec::with_capacity(commits);
    let all = Instant::now();
    for step in 0..commits {
        let clock = Instant::now();
        commit(&tree, step, level).await?;
        for _ in 0..watchers {
            inbox.receive().await;
        }
        took.push(clock.elapsed());
    }
    let elapsed = all.elapsed();
    took.sort_unstable();
    let at = |share| quantile(&took, share).map_or(0.0, |it: Duration| it.as_secs_f64() * 1e6);
    Ok(vec![
        Metric::new("commits_per_s", commits as f64 / elapsed.as_secs_f64()),
        Metric::new("p50_us", at(0.5)),
        Metric::new("p99_us", at(0.99)),
    ])
}

async fn missed(
    forest: &DiskForest,
    tree: &TreeHandle,
    commits: usize,
) -> Result<Vec<Metric>, Error> {
    let mut last = tree.view().version();
    for step in 0..commits {
        let level = match step + 1 == commits {
            true => Level::Durable,
            false => Level::Buffered,
        };
        commit(tree, step, Some(level)).await?;
    }
    let clock = Instant::now();
    let mut seen = 0;
    while seen < commits {
        let missed = forest.commits_after(tree, last).await;
        let missed = missed
            .map_err(|error| Error::workload(format!("The history cannot be read: {error}.")))?;
        let Some(newest) = missed.last() else {
            return Err(Error::workload("Commits are missing in the history."));
        };
        last = newest.after.version();
        seen += missed.len();
    }
    let seconds = clock.elapsed().as_secs_f64();
    Ok(vec![Metric::new("commits_per_s", commits as f64 / seconds)])
}
