//! `tree-write`: each task writes a tree, registers it in one forest under a name of its own, and reads it
//! back.
//!
//! mode=bulk builds a tree from its first node to its last; mode=edit appends node by node in one edit;
//! mode=commits makes each node a commit of its own. All trees stay until the clock has stopped. The work
//! is done twice, in forests of their own, and the second time counts, so that memory has been touched before.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use weald::forest::{Forest, TreeHandle};
use weald::process::{self, Inbox};
use weald_tree::Tree;

use super::definition::Workload;
use super::host::{alone, not_spawned};
use super::memory::{growth_per, resident};
use super::tally::Tally;
use super::trees::{self, Fanout};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

pub(super) const WORKLOAD: Workload = Workload {
    name: "tree-write",
    question: "What does it cost to write many trees into the database at the same time?",
    keys: &["trees", "nodes", "mode"],
    optional: &[],
    metrics: &["ns_per_node", "bytes_per_node", "s", "correct"],
    explaining: &[],
    remark: "bulk: a tree is built at once. edit: node by node in one edit. commits: each node is a \
             commit, and the newest 1,000 versions of a tree are kept, by the rivals in a ring of roots. A node's time \
             includes registering its tree, reading it back and counting it. The \
             second of two times counts, so memory is warm; bytes_per_node is what the first takes until the end, so \
             all that a tree and its name take.",
    run,
};

/// How a task writes its tree.
#[derive(Clone, Copy)]
enum Mode {
    Bulk,
    Edit,
    Commits,
}

fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (nodes, shape) = trees::shape(params)?;
    let count = params.count("trees")?;
    let mode = match params.text("mode")? {
        "bulk" => Mode::Bulk,
        "edit" => Mode::Edit,
        "commits" => Mode::Commits,
        other => {
            let sentence = format!("mode={other} is neither bulk, edit nor commits.");
            return Err(Error::Usage(sentence));
        }
    };
    alone(params, count, move |mut inbox| async move {
        let before = resident()?;
        let (_, _, forest) = write_all(&mut inbox, count, (shape, nodes, mode)).await?;
        let bytes = growth_per(before, resident()?, count * nodes);
        drop(forest);
        let (elapsed, correct, forest) = write_all(&mut inbox, count, (shape, nodes, mode)).await?;
        drop(forest);
        let [per_node, seconds] = trees::per_node(elapsed, count * nodes);
        let correct = Metric::new("correct", correct as f64);
        let bytes = Metric::new("bytes_per_node", bytes);
        Ok(vec![per_node, bytes, seconds, correct])
    })
}

/// Writes this many trees at the same time; returns how long it took, how many were read back correctly, and the trees.
async fn write_all(
    inbox: &mut Inbox<()>,
    count: usize,
    (shape, nodes, mode): (Fanout, usize, Mode),
) -> Result<(Duration, usize, Forest), Error> {
    let forest = Forest::new();
    let done = Tally::leaked(count, inbox.pid());
    let correct = Arc::new(AtomicUsize::new(0));
    let clock = Instant::now();
    for number in 0..count {
        let (forest, correct) = (forest.clone(), Arc::clone(&correct));
        let task = process::spawn(move |inbox: Inbox<()>| async move {
            drop(inbox);
            let name = format!("tree-{number}");
            let written = write(&forest, &name, (shape, mode)).await;
            if written.is_ok() && read_back(&forest, &name) == Some(nodes) {
                correct.fetch_add(1, Ordering::Relaxed);
            }
            drop(forest);
            done.count();
        });
        let _pid = task.map_err(|error| not_spawned(&error))?.into_pid();
    }
    inbox.receive().await;
    let elapsed = clock.elapsed();
    // The tally's count, which follows each, makes all of them visible here.
    Ok((elapsed, correct.load(Ordering::Relaxed), forest))
}

async fn write(forest: &Forest, name: &str, (shape, mode): (Fanout, Mode)) -> Result<(), Error> {
    let register = async |tree| -> Result<TreeHandle, Error> {
        let handle = forest.create_from(name, tree).await;
        handle.map_err(|error| trees::not_committed(&error))
    };
    match mode {
        Mode::Bulk => register(trees::build(shape)).await.map(drop),
        Mode::Edit => {
            let mut edit = Tree::with_root(trees::attributes(0)).edit().blind();
            let appended = trees::append_all(&mut edit, shape);
            appended.map_err(|error| trees::not_edited(&error))?;
            register(edit.freeze()).await.map(drop)
        }
        Mode::Commits => {
            let handle = register(Tree::with_root(trees::attributes(0))).await?;
            commit_all(&handle, shape).await
        }
    }
}

/// Appends all nodes but the root, each by a commit of its own.
async fn commit_all(handle: &TreeHandle, shape: Fanout) -> Result<(), Error> {
    let mut level = vec![handle.view().tree().root().id()];
    let mut number = 0;
    for children in shape {
        let mut next = Vec::with_capacity(level.len() * children);
        for parent in level {
            for _ in 0..*children {
                number += 1;
                let mut edit = handle.edit();
                let node = edit.append(parent, trees::attributes(number));
                next.push(node.map_err(|error| trees::not_edited(&error))?);
                let commit = edit.commit().await;
                commit.map_err(|error| trees::not_committed(&error))?;
            }
            weald::yield_now().await;
        }
        level = next;
    }
    Ok(())
}

fn read_back(forest: &Forest, name: &str) -> Option<usize> {
    let view = forest.get(name).ok()?;
    Some(view.view().tree().root().preorder().count())
}
