//! `tree-read`: tasks walk through the nodes of a tree, each in a version of its own.
//!
//! As many readers as workers take tasks from one counter. A task adds a node below a random one of the first version,
//! and walks through the version that this commit made. So versions share most of their nodes, and some readers commit
//! while others read, all the time. The clock runs from the first commit to the last node.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use weald::forest::{Forest, NodeId, Snapshot, TreeHandle};
use weald::process::{self, Inbox};

use super::definition::{self, Workload};
use super::host::{alone, not_spawned};
use super::memory::{growth_per, resident};
use super::tally::Tally;
use super::trees::{self, Fanout};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::programs::xorshift::Xorshift;

pub(super) const WORKLOAD: Workload = Workload {
    name: "tree-read",
    question: "What does it cost to read a tree while new versions of it are committed?",
    keys: &["nodes", "tasks"],
    optional: &["what"],
    metrics: &["ns_per_node", "bytes_per_node", "s"],
    explaining: &[],
    remark: "Every task adds a node, and walks through the version of this commit, while others commit. what=count: \
             it counts the nodes; attribute: it reads an attribute of each by its name. \
             bytes_per_node is for the first version, with one attribute in each node.",
    run,
};

/// What a task does at each node.
#[derive(Clone, Copy)]
enum Look {
    Count,
    Attribute,
}

fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (nodes, shape) = trees::shape(params)?;
    let tasks = params.count("tasks")?;
    let look = match params.get("what") {
        None | Some("count") => Look::Count,
        Some("attribute") => Look::Attribute,
        Some(other) => {
            let sentence = format!("what={other} is neither count nor attribute.");
            return Err(Error::Usage(sentence));
        }
    };
    let readers = definition::workers(params)?;
    alone(params, readers, move |inbox| {
        measure(inbox, (nodes, shape), (tasks, readers, look))
    })
}

/// What the readers share.
struct Reading {
    handle: TreeHandle,
    ids: Vec<NodeId>,
    look: Look,
    tasks: usize,
    next: AtomicUsize,
    visited: AtomicUsize,
    /// How many tasks were not done.
    failed: AtomicUsize,
}

async fn measure(
    mut inbox: Inbox<()>,
    (nodes, shape): (usize, Fanout),
    (tasks, readers, look): (usize, usize, Look),
) -> Result<Vec<Metric>, Error> {
    let before = resident()?;
    let tree = trees::build(shape);
    let bytes = growth_per(before, resident()?, nodes);
    let ids = trees::ids(&tree);
    let handle = Forest::new().create_from("read", tree).await;
    let handle = handle.map_err(|error| trees::not_committed(&error))?;

    let done = Tally::leaked(readers, inbox.pid());
    let reading: &'static Reading = Box::leak(Box::new(Reading {
        handle,
        ids,
        look,
        tasks,
        next: AtomicUsize::new(0),
        visited: AtomicUsize::new(0),
        failed: AtomicUsize::new(0),
    }));
    let clock = Instant::now();
    for _ in 0..readers {
        let reader = process::spawn(move |inbox: Inbox<()>| async move {
            drop(inbox);
            read(reading).await;
            done.count();
        });
        let _pid = reader.map_err(|error| not_spawned(&error))?.into_pid();
    }
    inbox.receive().await;
    let elapsed = clock.elapsed();

    // The tally's count, which follows, makes the sum of all tasks visible here.
    let visited = reading.visited.load(Ordering::Relaxed);
    let failed = reading.failed.load(Ordering::Relaxed);
    let expected: usize = (0..tasks).map(|task| nodes + task + 1).sum();
    if failed > 0 || visited != expected {
        return Err(Error::workload(format!(
            "The tasks visited {visited} nodes, and their versions have {expected}; {failed} tasks failed."
        )));
    }
    let [per_node, seconds] = trees::per_node(elapsed, visited);
    Ok(vec![
        per_node,
        Metric::new("bytes_per_node", bytes),
        seconds,
    ])
}

/// Does tasks until none is left.
async fn read(reading: &Reading) {
    loop {
        let number = reading.next.fetch_add(1, Ordering::Relaxed);
        if number >= reading.tasks {
            return;
        }
        let Some(version) = commit(reading, number).await else {
            reading.failed.fetch_add(1, Ordering::Relaxed);
            continue;
        };
        let visited = match reading.look {
            Look::Count => trees::count(version.tree()).await,
            Look::Attribute => trees::count_attributes(version.tree()).await,
        };
        reading.visited.fetch_add(visited, Ordering::Relaxed);
    }
}

/// Adds a node; returns the version that this made.
async fn commit(reading: &Reading, number: usize) -> Option<Snapshot> {
    let mut edit = reading.handle.edit();
    let parent = reading.ids[Xorshift::of(number).below(reading.ids.len())];
    let attributes = trees::attributes(number as u64);
    edit.append(parent, attributes).ok()?;
    let receipt = edit.commit().await.ok()?;
    reading.handle.at(receipt.version).await.ok()
}
