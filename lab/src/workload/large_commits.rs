//! `stall` with offender=commit: do large commits to one tree stop the small ones to another?
//!
//! An offender changes an indexed tree of many nodes, again and again, and rests 20 ms in between. A writer commits
//! to a tree of its own every millisecond. A commit that takes longer counts once for each millisecond in which the
//! writer would have begun another one, so that one long stop is not one sample.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weald::JoinHandle;
use weald::forest::disk::DiskForest;
use weald::forest::{
    Attributes, CommitError, Forest, Level, Node, NodeId, Tree, TreeHandle, Version, Where,
};
use weald_tree::Builder;

use super::durable::Place;
use super::trees::{not_committed, not_edited};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::programs::quantile::quantile;

const REST: Duration = Duration::from_millis(20);
const INTERVAL: Duration = Duration::from_millis(1);
/// Few versions are kept, so that they are let go during the run.
const KEPT: usize = 4;
/// How many children each inner node of a large subtree has.
const FAMILY: usize = 100;
const BIG: [&str; 2] = ["big", "large"];

/// What the offenders commit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Splice,
    Restore,
    Delete,
    Rename,
    /// Erases a value of as many hundred bytes as there are nodes.
    Erase,
    /// Creates and deletes a copy of a tree that has an erasable value in each node.
    Copy,
}

/// What a row asks for.
#[derive(Clone, Copy)]
pub(super) struct LargeCommits {
    change: Change,
    is_overtaken: bool,
    nodes: usize,
}

/// The offenders and the writer of one run.
pub(super) struct Running {
    stop: Arc<AtomicBool>,
    offenders: Vec<JoinHandle<Result<(), Error>>>,
    writer: JoinHandle<Result<Vec<Duration>, Error>>,
    /// A forest on disk, and its directory, until the end.
    _disk: Option<(DiskForest, Place)>,
}

impl LargeCommits {
    pub(super) fn parse(params: &Params) -> Result<Self, Error> {
        let change = match params.text("what")? {
            "splice" => Change::Splice,
            "restore" => Change::Restore,
            "delete" => Change::Delete,
            "rename" => Change::Rename,
            "erase" => Change::Erase,
            "copy" => Change::Copy,
            other => {
                let sentence = format!(
                    "what={other} is none of: splice, restore, delete, rename, erase, copy."
                );
                return Err(Error::Usage(sentence));
            }
        };
        Ok(Self {
            change,
            is_overtaken: params.get("overtaken") == Some("yes"),
            nodes: params.count("nodes")?,
        })
    }

    /// Builds the trees, and starts the writer and this many offenders.
    pub(super) async fn start(self, offenders: usize) -> Result<Running, Error> {
        let forest = Forest::builder().keep(KEPT).build();
        let stop = Arc::new(AtomicBool::new(false));
        let mut trees = Vec::new();
        for number in 0..offenders {
            trees.push(Offender::new(self, &forest, number).await?);
        }
        let small = forest.create("small").await;
        let small = small.map_err(|error| not_committed(&error))?;
        let offenders = trees.into_iter().map(|offender| {
            let stop = Arc::clone(&stop);
            weald::spawn(offender.offend(stop))
        });
        let offenders = offenders.collect();
        let writer = weald::spawn(write(small, None, Arc::clone(&stop)));
        Ok(Running {
            stop,
            offenders,
            writer,
            _disk: None,
        })
    }
}

impl Running {
    pub(super) fn on_disk(
        stop: Arc<AtomicBool>,
        offenders: Vec<JoinHandle<Result<(), Error>>>,
        writer: JoinHandle<Result<Vec<Duration>, Error>>,
        disk: (DiskForest, Place),
    ) -> Self {
        let _disk = Some(disk);
        Self {
            stop,
            offenders,
            writer,
            _disk,
        }
    }

    pub(super) async fn end(self) -> Result<[Metric; 3], Error> {
        self.stop.store(true, Ordering::Relaxed);
        let failed = |error| Error::workload(format!("A job of the workload failed: {error}."));
        for offender in self.offenders {
            offender.await.map_err(failed)??;
        }
        let mut took = self.writer.await.map_err(failed)??;
        took.sort_unstable();
        let (Some(p50), Some(p999), Some(worst)) =
            (quantile(&took, 0.5), quantile(&took, 0.999), took.last())
        else {
            return Err(Error::workload("The writer never committed."));
        };
        Ok([
            Metric::new("commit_p50_ms", p50.as_secs_f64() * 1e3),
            Metric::new("commit_p999_ms", p999.as_secs_f64() * 1e3),
            Metric::new("commit_worst_ms", worst.as_secs_f64() * 1e3),
        ])
    }
}

/// Commits to a small tree, at this level if there is a journal; returns how long that took.
pub(super) async fn write(
    tree: TreeHandle,
    level: Option<Level>,
    stop: Arc<AtomicBool>,
) -> Result<Vec<Duration>, Error> {
    let (mut took, mut number) = (Vec::new(), 0_u64);
    while !stop.load(Ordering::Relaxed) {
        number += 1;
        let clock = Instant::now();
        touch(&tree, level, number).await?;
        let mut each = clock.elapsed();
        took.push(each);
        while each > INTERVAL {
            each -= INTERVAL;
            took.push(each);
        }
        weald::sleep(INTERVAL).await;
    }
    Ok(took)
}

/// A small commit.
async fn touch(tree: &TreeHandle, level: Option<Level>, number: u64) -> Result<(), Error> {
    let mut edit = tree.edit().blind();
    let edited = edit.put_attribute(edit.root(), "touched", number.to_le_bytes());
    edited.map_err(|error| not_edited(&error))?;
    let commit = edit.commit();
    let committed = match level {
        Some(level) => commit.level(level).await,
        None => commit.await,
    };
    committed.map(drop).map_err(|error| not_committed(&error))
}

struct Offender {
    what: LargeCommits,
    forest: Forest,
    tree: TreeHandle,
    name: usize,
    number: usize,
    /// The version with the large subtree, its topmost node, and the version without it.
    full: Version,
    top: NodeId,
    empty: Version,
}

impl Offender {
    async fn new(what: LargeCommits, forest: &Forest, number: usize) -> Result<Self, Error> {
        let refused = |error: CommitError| not_committed(&error);
        let tree = Tree::with_root(Attributes::new());
        let tree = forest.create_from(&format!("{}{number}", BIG[0]), tree);
        let tree = tree.await.map_err(refused)?;
        let empty = tree.add_index("n").await.map_err(refused)?.version;
        tree.tag("empty", empty).await.map_err(refused)?;
        let mut offender = Self {
            what,
            forest: forest.clone(),
            tree,
            name: 0,
            number,
            full: empty,
            top: NodeId::new(1).expect("it is not zero"),
            empty,
        };
        let (edit, top) = offender.splice()?;
        offender.top = top;
        offender.full = match what.change {
            Change::Copy => offender.with_erasable_values(edit)?.commit().await,
            _ => edit.commit().await,
        }
        .map_err(refused)?
        .version;
        let tagged = offender.tree.tag("full", offender.full).await;
        tagged.map_err(refused)?;
        Ok(offender)
    }

    /// An edit that splices a large subtree in, and the subtree's topmost node.
    fn splice(&self) -> Result<(weald::forest::Edit, NodeId), Error> {
        let mut edit = self.tree.edit();
        let mut builder = edit.tree().builder(Attributes::new());
        fill(&mut builder, self.what.nodes);
        let subtree = builder.finish();
        let spliced = edit.splice(Where::Last(edit.root()), &subtree);
        spliced.map_err(|error| not_edited(&error))?;
        Ok((edit, subtree.root()))
    }

    fn with_erasable_values(
        &self,
        mut edit: weald::forest::Edit,
    ) -> Result<weald::forest::Edit, Error> {
        let nodes: Vec<_> = edit.tree().root().preorder().map(Node::id).collect();
        for node in nodes {
            let put = edit.put_erasable(node, "name", self.number.to_le_bytes());
            put.map_err(|error| not_edited(&error))?;
        }
        Ok(edit)
    }

    async fn offend(mut self, stop: Arc<AtomicBool>) -> Result<(), Error> {
        let refused = |error: CommitError| not_committed(&error);
        let mut round = 0;
        while !stop.load(Ordering::Relaxed) {
            weald::sleep(REST).await;
            round += 1;
            match self.what.change {
                Change::Splice => {
                    let (edit, _) = self.splice()?;
                    self.overtake(round).await?;
                    edit.commit().await.map_err(refused)?;
                    self.tree.restore(self.empty).await.map_err(refused)?;
                }
                Change::Delete => {
                    self.tree.restore(self.full).await.map_err(refused)?;
                    let mut edit = self.tree.edit();
                    let deleted = edit.delete(self.top);
                    deleted.map_err(|error| not_edited(&error))?;
                    self.overtake(round).await?;
                    edit.commit().await.map_err(refused)?;
                }
                Change::Restore => {
                    for version in [self.empty, self.full] {
                        self.overtake(round).await?;
                        self.tree.restore(version).await.map_err(refused)?;
                    }
                }
                Change::Rename => self.rename().await?,
                Change::Erase => self.erase().await?,
                Change::Copy => {
                    let name = format!("copy{}", self.number);
                    let content = self.tree.view().tree().clone();
                    let copied = self.forest.create_from(&name, content).await;
                    drop(copied.map_err(refused)?);
                    self.forest.delete(&name).await.map_err(refused)?;
                }
            }
        }
        Ok(())
    }

    /// Makes another commit come first, if that is asked for.
    async fn overtake(&self, round: u64) -> Result<(), Error> {
        match self.what.is_overtaken {
            true => touch(&self.tree, None, round).await,
            false => Ok(()),
        }
    }

    async fn erase(&self) -> Result<(), Error> {
        let mut edit = self.tree.edit();
        let root = edit.root();
        let put = edit.put_erasable(root, "long", vec![1; self.what.nodes * 100]);
        put.map_err(|error| not_edited(&error))?;
        let refused = |error: CommitError| not_committed(&error);
        edit.commit().await.map_err(refused)?;
        self.tree.erase(root, "long").await.map_err(refused)?;
        Ok(())
    }

    async fn rename(&mut self) -> Result<(), Error> {
        let number = self.number;
        let [from, to] = [self.name, 1 - self.name].map(|name| format!("{}{number}", BIG[name]));
        let renamed = self.forest.rename(&from, &to).await;
        renamed.map_err(|error| not_committed(&error))?;
        self.name = 1 - self.name;
        Ok(())
    }
}

/// Adds nodes with distinct values of the indexed attribute.
fn fill(builder: &mut Builder, nodes: usize) {
    for number in 0..nodes {
        let attributes = Attributes::new().with("n", number.to_be_bytes());
        if number.is_multiple_of(FAMILY) {
            if number > 0 {
                builder.close();
            }
            builder.open(attributes);
        } else {
            builder.leaf(attributes);
        }
    }
}
