//! What commits and reads cost, measured side by side in one run. Only the ratios carry over to another machine.
//!
//! Figures of one thread are its CPU time, so that other programs do not count; those of several threads are
//! wall-clock times.

use std::collections::VecDeque;
use std::hint::black_box;
use std::time::{Duration, Instant};

use pollster::block_on;
use rustix::time::{ClockId, clock_gettime};
use weald_forest::{Attributes, Forest, NodeId, TreeHandle};

const NODES: usize = 10_000;
const SPAN: Duration = Duration::from_millis(400);
const ROUNDS: usize = 5;

pub(crate) fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let figures: [(&str, &dyn Fn() -> f64); 10] = [
        ("cpu: edit only, put at random", &edits_only),
        ("cpu: commit, put at random", &one_writer),
        ("clock: commit, 1 thread", &|| writers(1)),
        ("clock: commit, 2 threads", &|| writers(2)),
        ("clock: commit, 64 threads", &|| writers(64)),
        ("cpu: arc-swap alone, owned, 1 thread", &bare),
        ("cpu: view, 1 thread", &|| {
            reads(1, &|tree| _ = black_box(tree.view().version()))
        }),
        ("cpu: view, 2 threads", &|| {
            reads(2, &|tree| _ = black_box(tree.view().version()))
        }),
        ("cpu: snapshot, 1 thread", &|| {
            reads(1, &|tree| _ = black_box(tree.snapshot()))
        }),
        ("cpu: snapshot, 2 threads", &|| {
            reads(2, &|tree| _ = black_box(tree.snapshot()))
        }),
    ];
    for (name, figure) in figures.iter().filter(|(name, _)| name.contains(&wanted)) {
        let mut rounds: Vec<f64> = (0..ROUNDS).map(|_| figure()).collect();
        rounds.sort_by(f64::total_cmp);
        let [min, median, max] = [rounds[0], rounds[ROUNDS / 2], rounds[ROUNDS - 1]];
        println!("{name:<36} {min:>9.1} {median:>9.1} {max:>9.1} ns");
    }
}

/// A tree of [`NODES`] nodes.
fn grown() -> (TreeHandle, Vec<NodeId>) {
    let tree = block_on(Forest::new().create("tree")).expect("the name is free");
    let mut edit = tree.edit();
    let mut nodes = vec![edit.root()];
    while nodes.len() < NODES {
        let parent = nodes[(nodes.len() - 1) / 7];
        let attributes = Attributes::new().with("n", (nodes.len() as u64).to_le_bytes());
        nodes.push(edit.append(parent, attributes).expect("it is there"));
    }
    block_on(edit.commit()).expect("nobody else commits");
    (tree, nodes)
}

fn edits_only() -> f64 {
    let (tree, nodes) = grown();
    let (mut random, mut kept) = (1, VecDeque::new());
    let mut newest = tree.snapshot().tree().clone();
    drop(tree);
    cpu_of(&mut || {
        let mut edit = newest.edit();
        let node = pick(&nodes, &mut random);
        edit.put_attribute(node, "n", random.to_le_bytes())
            .expect("it is there");
        newest = edit.freeze();
        kept.push_back(newest.clone());
        if kept.len() > 1000 {
            kept.pop_front();
        }
    })
}

/// CPU time of a commit when nobody else commits.
fn one_writer() -> f64 {
    let (tree, nodes) = grown();
    let mut random = 1;
    cpu_of(&mut || commit_one(&tree, &nodes, &mut random))
}

fn commit_one(tree: &TreeHandle, nodes: &[NodeId], random: &mut u64) {
    let mut edit = tree.edit().blind();
    edit.put_attribute(pick(nodes, random), "n", random.to_le_bytes())
        .expect("it is there");
    block_on(edit.commit()).expect("a blind put never conflicts");
}

/// Nanoseconds for each commit, of all writers together.
fn writers(count: usize) -> f64 {
    let (tree, nodes) = grown();
    let start = Instant::now();
    let writer = |seed: usize| {
        let (mut done, mut random) = (0_u64, seed as u64 + 1);
        while start.elapsed() < SPAN {
            (0..10).for_each(|_| commit_one(&tree, &nodes, &mut random));
            done += 10;
        }
        done
    };
    let total: u64 = std::thread::scope(|scope| {
        let writer = &writer;
        let threads: Vec<_> = (0..count)
            .map(|seed| scope.spawn(move || writer(seed)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no writer panics"))
            .sum()
    });
    per(start.elapsed(), total)
}

/// CPU time of each read, in the slowest thread.
fn reads(threads: usize, read: &(dyn Fn(&TreeHandle) + Sync)) -> f64 {
    let (tree, _) = grown();
    let reader = || cpu_of(&mut || read(&tree));
    let each: Vec<f64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(reader)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no reader panics"))
            .collect()
    });
    each.into_iter().fold(0.0, f64::max)
}

/// What a snapshot would cost from the crate that programs use for such slots.
fn bare() -> f64 {
    let slot = arc_swap::ArcSwap::from_pointee(7_u64);
    cpu_of(&mut || _ = black_box(slot.load_full()))
}

/// CPU time of a step that is repeated on this thread.
fn cpu_of(step: &mut dyn FnMut()) -> f64 {
    (0..2000).for_each(|_| step());
    let (start, cpu, mut count) = (Instant::now(), cpu_time(), 0);
    while start.elapsed() < SPAN {
        (0..100).for_each(|_| step());
        count += 100;
    }
    per(cpu_time() - cpu, count)
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("the time that a thread has run is not negative")
}

#[expect(clippy::cast_precision_loss, reason = "a figure needs few digits")]
fn per(time: Duration, count: u64) -> f64 {
    time.as_nanos() as f64 / count as f64
}

fn pick(nodes: &[NodeId], random: &mut u64) -> NodeId {
    *random = random
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    nodes[((*random >> 33) % nodes.len() as u64) as usize]
}
