//! `tree-write`: each task writes a tree, registers it in one forest under a name of its own, and reads it
//! back.
//!
//! mode=bulk builds a tree from its first node to its last; mode=edit appends node by node in one edit;
//! mode=versions makes each node a version of its own, without the forest: a root that any thread can load;
//! mode=commits makes each node a commit of its own. All trees and kept versions stay until the clock has stopped. The
//! work is done twice, in forests of their own, and the second time counts, so that memory has been touched before.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use weald::forest::{EditError, Forest, KEPT, TreeHandle};
use weald::process::{self, Inbox};
use weald_memory::{Shared, Slot};
use weald_tree::{NodeId, Tree};

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
    remark: "bulk: a tree is built at once. edit: node by node in one edit. versions: each node is a path copy, a root \
             that any thread can load, and the newest 1,000 are kept in a ring. commits: each node is a commit, with a \
             number, a time, an id and a place in the history, and the newest 1,000 versions are kept; the rivals do \
             the same for versions and for commits. A node's time \
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
    Versions,
    Commits,
}

/// Where trees are written to, and what stays as long as they do.
#[derive(Clone)]
struct Target {
    forest: Forest,
    kept: Arc<Mutex<Vec<Published>>>,
}

impl Target {
    fn keep(&self, tree: Published) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push(tree);
    }
}

/// A tree whose versions are published one after the other, without a forest.
struct Published {
    newest: Slot<Tree>,
    /// The newest versions.
    kept: VecDeque<Shared<Tree>>,
}

fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (nodes, shape) = trees::shape(params)?;
    let count = params.count("trees")?;
    let mode = match params.text("mode")? {
        "bulk" => Mode::Bulk,
        "edit" => Mode::Edit,
        "versions" => Mode::Versions,
        "commits" => Mode::Commits,
        other => {
            let sentence = format!("mode={other} is neither bulk, edit, versions nor commits.");
            return Err(Error::Usage(sentence));
        }
    };
    alone(params, count, move |mut inbox| async move {
        let before = resident()?;
        let (_, _, target) = write_all(&mut inbox, count, (shape, nodes, mode)).await?;
        let bytes = growth_per(before, resident()?, count * nodes);
        drop(target);
        let (elapsed, correct, target) = write_all(&mut inbox, count, (shape, nodes, mode)).await?;
        drop(target);
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
) -> Result<(Duration, usize, Target), Error> {
    let target = Target {
        forest: Forest::new(),
        kept: Arc::default(),
    };
    let done = Tally::leaked(count, inbox.pid());
    let correct = Arc::new(AtomicUsize::new(0));
    let clock = Instant::now();
    for number in 0..count {
        let (target, correct) = (target.clone(), Arc::clone(&correct));
        let task = process::spawn(move |inbox: Inbox<()>| async move {
            drop(inbox);
            let name = format!("tree-{number}");
            let written = write(&target, &name, (shape, mode)).await;
            if written.is_ok() && read_back(&target.forest, &name) == Some(nodes) {
                correct.fetch_add(1, Ordering::Relaxed);
            }
            drop(target);
            done.count();
        });
        let _pid = task.map_err(|error| not_spawned(&error))?.into_pid();
    }
    inbox.receive().await;
    let elapsed = clock.elapsed();
    // The tally's count, which follows each, makes all of them visible here.
    Ok((elapsed, correct.load(Ordering::Relaxed), target))
}

async fn write(target: &Target, name: &str, (shape, mode): (Fanout, Mode)) -> Result<(), Error> {
    let register = async |tree| -> Result<TreeHandle, Error> {
        let handle = target.forest.create_from(name, tree).await;
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
        Mode::Versions => {
            let published = write_versions(shape).map_err(|error| trees::not_edited(&error))?;
            let newest = Tree::clone(&published.newest.load());
            target.keep(published);
            register(newest).await.map(drop)
        }
        Mode::Commits => {
            let handle = register(Tree::with_root(trees::attributes(0))).await?;
            commit_all(&handle, shape).await
        }
    }
}

/// For each node but the root, which of the nodes before it is its parent: level by level.
fn parents(shape: Fanout) -> impl Iterator<Item = usize> {
    let mut level = 0..1;
    shape.iter().flat_map(move |children| {
        let above = level.clone();
        level = above.end..above.end + above.len() * children;
        above.flat_map(|parent| std::iter::repeat_n(parent, *children))
    })
}

/// Appends all nodes but the root, each by a commit of its own.
async fn commit_all(handle: &TreeHandle, shape: Fanout) -> Result<(), Error> {
    let mut nodes = vec![handle.view().tree().root().id()];
    let mut last = 0;
    for (number, parent) in (1..).zip(parents(shape)) {
        if parent != last {
            last = parent;
            weald::yield_now().await;
        }
        let mut edit = handle.edit();
        let node = edit.append(nodes[parent], trees::attributes(number));
        nodes.push(node.map_err(|error| trees::not_edited(&error))?);
        let commit = edit.commit().await;
        commit.map_err(|error| trees::not_committed(&error))?;
    }
    Ok(())
}

/// Appends all nodes but the root, each in a version of its own.
fn write_versions(shape: Fanout) -> Result<Published, EditError> {
    let mut published = Published::new(Tree::with_root(trees::attributes(0)));
    let mut nodes = vec![published.newest.load().root().id()];
    for (number, parent) in (1..).zip(parents(shape)) {
        nodes.push(published.append(nodes[parent], number)?);
    }
    Ok(published)
}

impl Published {
    fn new(first: Tree) -> Self {
        let first = Shared::new(first);
        Self {
            newest: Slot::new(first.clone()),
            kept: VecDeque::from([first]),
        }
    }

    /// Publishes the next version, which has one more node.
    fn append(&mut self, parent: NodeId, number: u64) -> Result<NodeId, EditError> {
        let mut edit = self.newest.load().edit().blind();
        let node = edit.append(parent, trees::attributes(number))?;
        let next = Shared::new(edit.freeze());
        self.newest.store(next.clone());
        self.kept.push_back(next);
        if self.kept.len() > KEPT {
            self.kept.pop_front();
        }
        Ok(node)
    }
}

fn read_back(forest: &Forest, name: &str) -> Option<usize> {
    let view = forest.get(name).ok()?;
    Some(view.view().tree().root().preorder().count())
}
