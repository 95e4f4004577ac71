//! `append`: appends children to a node that has many already, each by a commit of its own.
//!
//! Each child has a child itself, as in a real document, so that a database cannot treat the children as
//! a range of numbers.

use std::time::Instant;

use weald::forest::Forest;
use weald::process::Inbox;
use weald_tree::{Builder, Tree};

use super::definition::Workload;
use super::host::alone;
use super::team::ns_per;
use super::trees;
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

pub(super) const WORKLOAD: Workload = Workload {
    name: "append",
    question: "Does it cost more to append the millionth child than the thousandth?",
    keys: &["children", "commits"],
    optional: &[],
    metrics: &["ns"],
    explaining: &[],
    remark: "ns is per commit that appends a node to a parent with this many children. The newest 1,000 versions are kept, \
             by the rivals in a ring of roots.",
    run,
};

fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (children, commits) = (params.count("children")?, params.count("commits")?);
    alone(params, 0, move |inbox: Inbox<()>| async move {
        drop(inbox);
        let handle = Forest::new().create_from("wide", wide(children)).await;
        let handle = handle.map_err(|error| trees::not_committed(&error))?;
        let root = handle.view().tree().root().id();
        let clock = Instant::now();
        for number in 0..commits {
            let mut edit = handle.edit();
            let node = edit.append(root, trees::attributes(number as u64));
            node.map_err(|error| trees::not_edited(&error))?;
            let commit = edit.commit().await;
            commit.map_err(|error| trees::not_committed(&error))?;
        }
        let elapsed = clock.elapsed();
        let has = handle.view().tree().root().child_count();
        if has != children + commits {
            return Err(Error::workload(format!("The node has {has} children.")));
        }
        Ok(vec![Metric::new("ns", ns_per(elapsed, commits))])
    })
}

fn wide(children: usize) -> Tree {
    let mut builder = Builder::new(trees::attributes(0));
    for number in 0..children {
        builder.open(trees::attributes(number as u64));
        builder.leaf(trees::attributes(number as u64));
        builder.close();
    }
    builder.finish().into_tree()
}
