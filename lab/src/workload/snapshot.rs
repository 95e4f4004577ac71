//! `snapshot`: what does it cost to get the newest version of a tree and read its root?
//!
//! what=borrowed: a view that is looked at and dropped; what=owned: a snapshot, which may be kept and sent.
//! One process per worker repeats this while nothing commits.

use std::hint::black_box;

use weald::forest::{Forest, TreeHandle};
use weald::process::Inbox;
use weald_tree::Tree;

use super::definition::Workload;
use super::host::alone;
use super::team::{Team, ns_per};
use super::trees::{self, Fanout};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

pub(super) const WORKLOAD: Workload = Workload {
    name: "snapshot",
    question: "What does it cost to get the newest version of a tree?",
    keys: &["reads", "nodes", "what"],
    optional: &[],
    metrics: &["ns"],
    explaining: &[],
    remark: "ns is per read: a worker gets the version and reads the root's number of \
             children; all workers do so at once. owned: the snapshot may be kept and sent.",
    run,
};

/// How many reads are done between two yields.
const GIVE_WAY_EVERY: usize = 1 << 15;

fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (_, shape) = trees::shape(params)?;
    let (reads, workers) = (params.count("reads")?, super::definition::workers(params)?);
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
    shape: Fanout,
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
