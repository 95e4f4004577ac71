//! `tree-read`: tasks count the nodes of a tree, each in a version of its own.
//!
//! Before each task gets its version, a node is added below a random one of the first version. So
//! versions share most of their nodes, and edits continue while others read. The clock runs from the
//! first of these commits to the last count.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use weald::forest::Forest;
use weald::process::{self, Inbox};

use super::definition::Workload;
use super::host::{alone, not_spawned};
use super::memory::{growth_per, resident};
use super::tally::Tally;
use super::trees::{self, Fanout};
use super::xorshift::Xorshift;
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

pub(super) const WORKLOAD: Workload = Workload {
    name: "tree-read",
    question: "What does it cost to read a tree while new versions of it are committed?",
    keys: &["nodes", "tasks"],
    optional: &[],
    metrics: &["ns_per_node", "bytes_per_node", "s"],
    explaining: &[],
    remark: "Every task counts the nodes of a version of its own, to which one node was added. \
             bytes_per_node is for the first version, with one attribute in each node.",
    run,
};

fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (nodes, shape) = trees::shape(params)?;
    let tasks = params.count("tasks")?;
    alone(params, tasks, move |inbox| {
        measure(inbox, (nodes, shape), tasks)
    })
}

async fn measure(
    mut inbox: Inbox<()>,
    (nodes, shape): (usize, Fanout),
    tasks: usize,
) -> Result<Vec<Metric>, Error> {
    let before = resident()?;
    let tree = trees::build(shape);
    let bytes = growth_per(before, resident()?, nodes);
    let ids = trees::ids(&tree);
    let handle = Forest::new().create_from("read", tree).await;
    let handle = handle.map_err(|error| trees::not_committed(&error))?;

    let done = Tally::leaked(tasks, inbox.pid());
    let visited: &'static AtomicUsize = Box::leak(Box::default());
    let mut random = Xorshift::of(0);
    let clock = Instant::now();
    for number in 0..tasks {
        let mut edit = handle.edit();
        let parent = ids[random.below(ids.len())];
        let added = edit.append(parent, trees::attributes(number as u64));
        added.map_err(|error| trees::not_edited(&error))?;
        let commit = edit.commit().await;
        commit.map_err(|error| trees::not_committed(&error))?;
        let version = handle.snapshot();
        let task = process::spawn(move |inbox: Inbox<()>| async move {
            drop(inbox);
            visited.fetch_add(trees::count(version.tree()).await, Ordering::Relaxed);
            drop(version);
            done.count();
        });
        let _pid = task.map_err(|error| not_spawned(&error))?.into_pid();
    }
    inbox.receive().await;
    let elapsed = clock.elapsed();

    // The tally's count, which follows, makes the sum of all tasks visible here.
    let visited = visited.load(Ordering::Relaxed);
    let expected: usize = (0..tasks).map(|task| nodes + task + 1).sum();
    if visited != expected {
        return Err(Error::workload(format!(
            "The tasks counted {visited} nodes, and their versions have {expected}."
        )));
    }
    let [per_node, seconds] = trees::per_node(elapsed, visited);
    Ok(vec![
        per_node,
        Metric::new("bytes_per_node", bytes),
        seconds,
    ])
}
