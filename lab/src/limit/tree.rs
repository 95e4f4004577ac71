//! The workloads of trees. A tree that is only built and read is an array of nodes in the order of a walk; one with
//! versions is copied from the root to the place of each change, by one thread, with counters that no other thread may
//! touch.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::programs::xorshift::Xorshift;
use crate::workload::trees::{self, Fanout};

/// How many versions are kept.
const KEPT: usize = 1_000;
/// The attributes; `hot-tree` puts one of the last eight.
const NAMES: &[u8] = b"kabcdefgh";

/// A node of a tree that does not change. Its children follow it.
struct Fixed {
    children: u32,
    name: u8,
    value: [u8; 8],
}

fn build(shape: Fanout, all: &mut Vec<Fixed>) {
    let (children, below) = shape
        .split_first()
        .map_or((0, shape), |(n, below)| (*n, below));
    all.push(Fixed {
        children: super::queue::index(children),
        name: NAMES[0],
        value: (all.len() as u64).to_le_bytes(),
    });
    for _ in 0..children {
        build(below, all);
    }
}

/// What is said of a node and those below it, and where the next one is.
#[inline]
fn walk(all: &[Fixed], at: usize, of: fn(&Fixed) -> usize) -> (usize, usize) {
    let (mut sum, mut next) = (of(&all[at]), at + 1);
    for _ in 0..all[at].children {
        let (more, behind) = walk(all, next, of);
        (sum, next) = (sum + more, behind);
    }
    (sum, next)
}

/// Whether a node has the attribute.
fn has(node: &Fixed) -> usize {
    usize::from(node.name == NAMES[0] && node.value[7] == 0)
}

/// Runs tasks 0 to `count` on as many threads as there are workers.
fn on_threads(
    params: &Params,
    count: usize,
    task: impl Fn(usize) + Sync,
) -> Result<Duration, Error> {
    let (workers, next) = (params.count("workers")?, AtomicUsize::new(0));
    let clock = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    match next.fetch_add(1, Ordering::Relaxed) {
                        number if number < count => task(number),
                        _ => break,
                    }
                }
            });
        }
    });
    Ok(clock.elapsed())
}

pub(super) fn read(params: &Params) -> Result<Vec<Metric>, Error> {
    let (nodes, shape) = trees::shape(params)?;
    let tasks = params.count("tasks")?;
    let mut all = Vec::new();
    build(shape, &mut all);
    let visited = AtomicUsize::new(0);
    let is_count = params.get("what") != Some("attribute");
    let elapsed = on_threads(params, tasks, |_| {
        let (sum, _) = match is_count {
            true => walk(&all, 0, |_| 1),
            false => walk(&all, 0, has),
        };
        visited.fetch_add(sum, Ordering::Relaxed);
    })?;
    must_be(visited.into_inner(), tasks * nodes)?;
    Ok(trees::per_node(elapsed, tasks * nodes).into())
}

pub(super) fn write(params: &Params) -> Result<Vec<Metric>, Error> {
    let (nodes, shape) = trees::shape(params)?;
    let count = params.count("trees")?;
    let has_versions = ["versions", "commits"].contains(&params.text("mode")?);
    let visited = AtomicUsize::new(0);
    let elapsed = on_threads(params, count, |_| {
        let written = match has_versions {
            true => write_versions(shape),
            false => {
                let mut all = Vec::new();
                build(shape, &mut all);
                walk(&all, 0, |_| 1).0
            }
        };
        visited.fetch_add(written, Ordering::Relaxed);
    })?;
    must_be(visited.into_inner(), count * nodes)?;
    Ok(trees::per_node(elapsed, count * nodes).into())
}

/// A node of a tree with versions.
#[derive(Clone)]
struct Copied {
    attributes: Vec<(u8, [u8; 8])>,
    children: Vec<Rc<Self>>,
}

impl Copied {
    fn new(number: usize, children: Vec<Rc<Self>>) -> Rc<Self> {
        let attributes = vec![(NAMES[0], (number as u64).to_le_bytes())];
        Rc::new(Self {
            attributes,
            children,
        })
    }

    fn build(shape: Fanout) -> Rc<Self> {
        let (children, below) = shape
            .split_first()
            .map_or((0, shape), |(n, below)| (*n, below));
        Self::new(0, (0..children).map(|_| Self::build(below)).collect())
    }

    fn count(&self) -> usize {
        let below = self.children.iter().map(|child| child.count());
        1 + below.sum::<usize>()
    }

    /// A copy in which the node at this path is changed.
    fn changed(&self, path: &[usize], change: &mut dyn FnMut(&mut Self)) -> Rc<Self> {
        let mut copy = self.clone();
        match path.split_first() {
            None => change(&mut copy),
            Some((at, path)) => copy.children[*at] = copy.children[*at].changed(path, change),
        }
        Rc::new(copy)
    }

    fn appended(&self, path: &[usize], number: usize) -> Rc<Self> {
        self.changed(path, &mut |node| {
            node.children.push(Self::new(number, Vec::new()))
        })
    }

    fn put(&self, path: &[usize], name: u8, value: [u8; 8]) -> Rc<Self> {
        self.changed(path, &mut |node| match node
            .attributes
            .iter_mut()
            .find(|(known, _)| *known == name)
        {
            Some((_, old)) => *old = value,
            None => node.attributes.push((name, value)),
        })
    }
}

/// The paths of all nodes of a shape, parents before children.
fn paths(shape: Fanout) -> Vec<Vec<usize>> {
    let (mut all, mut from) = (vec![Vec::new()], 0);
    for children in shape {
        let level = from..all.len();
        from = all.len();
        for parent in level {
            for at in 0..*children {
                let path = [&all[parent][..], &[at]].concat();
                all.push(path);
            }
        }
    }
    all
}

/// The newest versions.
struct Kept(VecDeque<Rc<Copied>>, usize);

impl Kept {
    fn add(&mut self, version: Rc<Copied>) {
        self.0.push_back(version);
        if self.0.len() > self.1 {
            self.0.pop_front();
        }
    }

    fn newest(&self) -> &Copied {
        self.0.back().expect("there is always a version")
    }
}

/// Each node is a version; returns how many there are in the last one.
fn write_versions(shape: Fanout) -> usize {
    let mut kept = Kept(VecDeque::from([Copied::new(0, Vec::new())]), KEPT);
    for (number, path) in paths(shape).iter().enumerate().skip(1) {
        let version = kept.newest().appended(&path[..path.len() - 1], number);
        kept.add(version);
    }
    kept.newest().count()
}

/// One thread makes the commits of all writers.
pub(super) fn hot(params: &Params) -> Result<Vec<Metric>, Error> {
    let (nodes, shape) = trees::shape(params)?;
    let commits = params.count("commits")?;
    let most = if params.get("retention") == Some("none") {
        1
    } else {
        KEPT
    };
    let mut kept = Kept(VecDeque::from([Copied::build(shape)]), most);
    let (paths, mut random) = (paths(shape), Xorshift::of(0));
    let mut took = Vec::with_capacity(commits);
    let clock = Instant::now();
    for step in 0..commits {
        let begun = Instant::now();
        let path = &paths[random.below(paths.len())];
        let version = match step % 2 {
            0 => kept.newest().appended(path, step),
            _ => {
                let name = NAMES[1 + random.below(8)];
                kept.newest().put(path, name, (step as u64).to_le_bytes())
            }
        };
        kept.add(version);
        took.push(begun.elapsed());
    }
    let elapsed = clock.elapsed();
    must_be(kept.newest().count(), nodes + commits.div_ceil(2))?;
    took.sort_unstable();
    let p99 = took[(took.len() - 1) * 99 / 100];
    Ok(vec![
        Metric::new("commits_per_s", commits as f64 / elapsed.as_secs_f64()),
        Metric::new("p99_us", p99.as_secs_f64() * 1e6),
    ])
}

fn must_be(found: usize, expected: usize) -> Result<(), Error> {
    match found == expected {
        true => Ok(()),
        false => Err(Error::workload(format!(
            "There are {found} nodes, and there should be {expected}."
        ))),
    }
}
