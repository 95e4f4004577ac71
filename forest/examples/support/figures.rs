//! What commits and reads cost, in one run beside each other. Only the ratios carry over to another machine.

use std::hint::black_box;
use std::time::{Duration, Instant};

use weald_forest::{Attributes, Forest, NodeId, Trunk, Wait};

const NODES: u64 = 10_000;
const SPAN: Duration = Duration::from_millis(700);

pub(crate) fn main() {
    let rounds: Vec<_> = (0..5).map(|_| round()).collect();
    for (at, (name, _)) in rounds[0].iter().enumerate() {
        let mut figures: Vec<f64> = rounds.iter().map(|round| round[at].1).collect();
        figures.sort_by(f64::total_cmp);
        println!(
            "{name:<44} {:>8.1} {:>8.1} {:>8.1} ns",
            figures[0], figures[2], figures[4]
        );
    }
}

fn round() -> Vec<(&'static str, f64)> {
    let mut figures = Vec::new();
    let (tree, nodes) = grown(&Forest::new());
    figures.push((
        "edit only: put at random, freeze",
        edits_only(&tree, &nodes),
    ));
    figures.push((
        "commit: put at random, one writer",
        writers(&tree, &nodes, 1),
    ));
    for (name, count) in [("2 threads", 2), ("64 threads", 64)] {
        let (tree, nodes) = grown(&Forest::new());
        figures.push((name, writers(&tree, &nodes, count)));
    }
    figures.push((
        "view, one thread",
        reads(1, &|| _ = black_box(tree.view().version())),
    ));
    figures.push((
        "view, two threads",
        reads(2, &|| _ = black_box(tree.view().version())),
    ));
    figures.push((
        "snapshot, one thread",
        reads(1, &|| _ = black_box(tree.snapshot())),
    ));
    figures.push((
        "snapshot, two threads",
        reads(2, &|| _ = black_box(tree.snapshot())),
    ));
    figures
}

/// A tree of so many nodes.
fn grown(forest: &Forest) -> (Trunk, Vec<NodeId>) {
    let tree = forest.create("tree").wait().expect("the name is free");
    let mut edit = tree.edit();
    let mut nodes = vec![edit.root()];
    while (nodes.len() as u64) < NODES {
        let parent = nodes[(nodes.len() - 1) / 7];
        let attributes = Attributes::new().with("n", (nodes.len() as u64).to_le_bytes());
        nodes.push(edit.append(parent, attributes).expect("it is there"));
    }
    edit.commit().wait().expect("nobody else commits");
    (tree, nodes)
}

fn edits_only(tree: &Trunk, nodes: &[NodeId]) -> f64 {
    let (start, mut count, mut random) = (Instant::now(), 0_u64, 1);
    let mut kept = std::collections::VecDeque::new();
    let mut newest = tree.snapshot().tree().clone();
    while start.elapsed() < SPAN {
        for _ in 0..100 {
            let mut edit = newest.edit();
            edit.put_attribute(pick(nodes, &mut random), "n", random.to_le_bytes())
                .expect("it is there");
            newest = edit.freeze();
            kept.push_back(newest.clone());
            if kept.len() > 1000 {
                kept.pop_front();
            }
        }
        count += 100;
    }
    per(start, count)
}

/// Nanoseconds for each commit, of all writers together.
fn writers(tree: &Trunk, nodes: &[NodeId], count: usize) -> f64 {
    let start = Instant::now();
    let total: u64 = std::thread::scope(|scope| {
        let writer = |seed: usize| {
            let (mut done, mut random) = (0, seed as u64 + 1);
            while start.elapsed() < SPAN {
                for _ in 0..10 {
                    let mut edit = tree.edit().blind();
                    edit.put_attribute(pick(nodes, &mut random), "n", random.to_le_bytes())
                        .expect("it is there");
                    edit.commit()
                        .wait()
                        .expect("a blind put goes with all others");
                }
                done += 10;
            }
            done
        };
        let threads: Vec<_> = (0..count)
            .map(|seed| scope.spawn(move || writer(seed)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no writer panics"))
            .sum()
    });
    per(start, total)
}

/// Nanoseconds for each read of one thread.
fn reads(threads: usize, read: &(dyn Fn() + Sync)) -> f64 {
    let (start, mut total) = (Instant::now(), 0);
    std::thread::scope(|scope| {
        let reader = || {
            let mut done = 0_u64;
            while start.elapsed() < SPAN / 3 {
                (0..1000).for_each(|_| read());
                done += 1000;
            }
            done
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(reader)).collect();
        total = threads
            .into_iter()
            .map(|thread| thread.join().expect("no reader panics"))
            .sum();
    });
    per(start, total / threads as u64)
}

#[expect(clippy::cast_precision_loss, reason = "a figure needs few digits")]
fn per(start: Instant, count: u64) -> f64 {
    start.elapsed().as_nanos() as f64 / count as f64
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "it is less than the number of nodes"
)]
fn pick(nodes: &[NodeId], random: &mut u64) -> NodeId {
    *random = random
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    nodes[((*random >> 33) % nodes.len() as u64) as usize]
}
