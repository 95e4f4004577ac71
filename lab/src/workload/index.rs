//! `index`: the gain from an index of an attribute for finding nodes, and its cost for commits.
//!
//! Every node has another value of the attribute `k`. what=find: nodes are found by value with an index;
//! what=walk: without one; what=commit: nodes are appended, one per commit, with an index.

use std::time::Instant;

use weald::forest::{Forest, Query, TreeHandle};
use weald::process::Inbox;

use super::definition::Workload;
use super::host::alone;
use super::team::ns_per;
use super::trees::{self, Fanout};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::programs::xorshift::Xorshift;

pub(super) const WORKLOAD: Workload = Workload {
    name: "index",
    question: "What does it cost to find a node by an attribute, and to keep an index of it?",
    keys: &["nodes", "rounds", "what"],
    optional: &[],
    metrics: &["ns"],
    explaining: &[],
    remark: "ns is per node that is found by its value, with an index (find) or without (walk), or \
             per commit of one node with an index (commit).",
    run,
};

#[derive(Clone, Copy)]
enum Task {
    Find,
    Walk,
    Commit,
}

fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (nodes, shape) = trees::shape(params)?;
    let rounds = params.count("rounds")?;
    let what = match params.text("what")? {
        "find" => Task::Find,
        "walk" => Task::Walk,
        "commit" => Task::Commit,
        other => {
            let sentence = format!("what={other} is neither find, walk nor commit.");
            return Err(Error::Usage(sentence));
        }
    };
    alone(params, 0, move |inbox: Inbox<()>| async move {
        drop(inbox);
        measure((nodes, shape), rounds, what).await
    })
}

async fn measure(
    (nodes, shape): (usize, Fanout),
    rounds: usize,
    what: Task,
) -> Result<Vec<Metric>, Error> {
    let handle = Forest::new().create_from("indexed", trees::build(shape));
    let handle = handle.await.map_err(|error| trees::not_committed(&error))?;
    if !matches!(what, Task::Walk) {
        let added = handle.add_index("k").await;
        added.map_err(|error| trees::not_committed(&error))?;
    }
    let mut random = Xorshift::of(0);
    let clock = Instant::now();
    for _ in 0..rounds {
        let number = random.below(nodes) as u64;
        match what {
            Task::Find | Task::Walk => find(&handle, number)?,
            Task::Commit => append(&handle, number).await?,
        }
    }
    Ok(vec![Metric::new("ns", ns_per(clock.elapsed(), rounds))])
}

fn find(handle: &TreeHandle, number: u64) -> Result<(), Error> {
    let query = Query::equal("k", number.to_le_bytes());
    match handle.view().find(&query).count() {
        1 => Ok(()),
        found => Err(Error::workload(format!(
            "One node has the value {number}, and {found} were found."
        ))),
    }
}

async fn append(handle: &TreeHandle, number: u64) -> Result<(), Error> {
    let mut edit = handle.edit();
    let root = edit.root();
    let node = edit.append(root, trees::attributes(number));
    node.map_err(|error| trees::not_edited(&error))?;
    let commit = edit.commit().await;
    commit.map_err(|error| trees::not_committed(&error))?;
    Ok(())
}
