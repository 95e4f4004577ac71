//! `snapshot`: what it costs to get at the newest version of a tree and to read its root.
//!
//! what=borrowed: a view, which is looked at and let go; what=owned: a snapshot, which may be kept and
//! sent. One process for each worker does so again and again, while nobody commits.

use std::hint::black_box;

use weald::forest::{Forest, TreeHandle};
use weald::process::Inbox;
use weald_tree::Tree;

use super::Workload;
use super::host::alone;
use super::team::{Team, ns_per};
use super::trees::{self, Shape};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

pub(super) const WORKLOAD: Workload = Workload {
    name: "snapshot",
    question: "What does it cost to get at the newest version of a tree?",
    keys: &["reads", "nodes", "what"],
    optional: &[],
    metrics: &["ns"],
    explaining: &[],
    remark: "ns is for each time that a worker gets the version and reads the root's number of \
             children; all workers do so at once. owned: it may be kept and sent.",
    run,
};

/// How many reads are done between two yields.
const GIVE_WAY_EVERY: usize = 1 << 15;

fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (_, shape) = trees::shape(params)?;
    let (reads, workers) = (params.count("reads")?, super::workers(params)?);
    let read: fn(&TreeHandle) -> usize = match params.text("what")? {
        "borrowed" => |handle| children(handle.view().tree()),
        "owned" => |handle| children(handle.snapshot().tree()),
        other => {
            let sentence = format!("what={other} is neither borrowed nor owned.");
            return Err(Error::Usage(sentence));
        }
    };
    alone(params, workers, move |inbox| {
        measure(inbox, shape, (reads, workers), read)
    })
}

fn children(tree: &Tree) -> usize {
    tree.root().child_count()
}

async fn measure(
    inbox: Inbox<()>,
    shape: Shape,
    (reads, workers): (usize, usize),
    read: fn(&TreeHandle) -> usize,
) -> Result<Vec<Metric>, Error> {
    let handle = Forest::new().create_from("read", trees::build(shape)).await;
    let handle = handle.map_err(|error| trees::not_committed(&error))?;
    let mut team = Team::of(workers, inbox);
    for _ in 0..workers {
        let handle = handle.clone();
        team.add(async move {
            for number in 0..reads {
                black_box(read(&handle));
                if number % GIVE_WAY_EVERY == 0 {
                    weald::yield_now().await;
                }
            }
        })?;
    }
    let elapsed = team.run().await;
    Ok(vec![Metric::new("ns", ns_per(elapsed, reads))])
}
