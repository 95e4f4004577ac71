//! What the tree costs on this machine: bytes and nanoseconds of CPU time per node, and per edit.
//!
//! The shapes are those of the workloads `tree-read` and `tree-write`; every node has one attribute
//! with an 8-byte value. Each figure is the median of some repetitions, with the least and the most.
//! CPU time excludes other programs on the machine, but not their effect on its caches.

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};
use weald_tree::{Attributes, Builder, NodeId, Tree};

/// 810,156 nodes.
const LARGE: [usize; 8] = [5, 5, 5, 5, 5, 6, 6, 6];
/// 10,005 nodes.
const SMALL: [usize; 6] = [4, 4, 4, 5, 5, 5];
const TREES: usize = 200;
const EDITS: usize = 20_000;

pub(crate) fn main() {
    let before = resident();
    let tree = build(&LARGE);
    let count = tree.root().preorder().count();
    report(
        "resident bytes per node",
        vec![(resident() - before) / count as f64],
    );
    report(
        "walk, ns per node",
        repeat(15, count, || _ = black_box(tree.root().preorder().count())),
    );
    report(
        "walk and read the attribute, ns per node",
        repeat(15, count, || {
            let bytes = tree.root().preorder().filter_map(|node| node.get("k"));
            black_box(bytes.map(|value| u64::from(value[0])).sum::<u64>());
        }),
    );
    drop(tree);

    let small = build(&SMALL);
    let nodes = usize::try_from(small.len()).expect("ten thousand");
    report(
        "build and count, ns per node",
        repeat_keeping(9, TREES * nodes, || {
            let trees = (0..TREES).map(|_| build(&SMALL));
            let counted = trees.inspect(|tree| assert_eq!(tree.root().preorder().count(), nodes));
            counted.collect::<Vec<_>>()
        }),
    );
    report(
        "node by node in one edit, ns per node",
        repeat(15, nodes - 1, one_by_one),
    );
    let ids: Vec<NodeId> = small.root().preorder().map(|node| node.id()).collect();
    report(
        "append or put at random in one edit, ns",
        repeat(9, EDITS, || {
            let mut edit = small.edit();
            for_random(&ids, |number, node| change(&mut edit, number, node));
            black_box(edit.freeze());
        }),
    );
    report(
        "append or put at random, each its own version, ns",
        repeat(9, EDITS, || {
            let mut head = small.clone();
            for_random(&ids, |number, node| {
                let mut edit = head.edit();
                change(&mut edit, number, node);
                head = edit.freeze();
            });
            black_box(head);
        }),
    );
    append("the thousandth child, each its own version, ns", 1_000);
    append("the millionth child, each its own version, ns", 1_000_000);
}

fn build(shape: &[usize]) -> Tree {
    fn below(builder: &mut Builder, shape: &[usize], number: &mut u64) {
        let Some((fan_out, shape)) = shape.split_first() else {
            return;
        };
        for _ in 0..*fan_out {
            *number += 1;
            let attributes = Attributes::new().with("k", number.to_le_bytes());
            if shape.is_empty() {
                builder.leaf(attributes);
            } else {
                builder.open(attributes);
                below(builder, shape, number);
                builder.close();
            }
        }
    }
    let mut builder = Builder::new(Attributes::new().with("k", [0; 8]));
    below(&mut builder, shape, &mut 0);
    builder.finish().into_tree()
}

fn one_by_one() {
    let mut edit = Tree::with_root(Attributes::new().with("k", [0; 8])).edit();
    let mut level = vec![edit.tree().root().id()];
    for fan_out in SMALL {
        let mut next = Vec::with_capacity(level.len() * fan_out);
        for parent in level {
            for number in 0..fan_out {
                let attributes = Attributes::new().with("k", number.to_le_bytes());
                next.push(
                    edit.append(parent, attributes)
                        .expect("the parent is there"),
                );
            }
        }
        level = next;
    }
    black_box(edit.freeze());
}

fn for_random(ids: &[NodeId], mut action: impl FnMut(usize, NodeId)) {
    let mut state = 77_u64;
    for number in 0..EDITS {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let at = usize::try_from(state >> 11).expect("64 bits") % ids.len();
        action(number, ids[at]);
    }
}

fn change(edit: &mut weald_tree::Edit, number: usize, node: NodeId) {
    let value = number.to_le_bytes();
    if number.is_multiple_of(2) {
        let attributes = Attributes::new().with("k", value);
        edit.append(node, attributes).expect("the node is there");
    } else {
        edit.put_attribute(node, "k", value)
            .expect("the node is there");
    }
}

/// Appends to a node whose children have a child each, so that they do not form a run.
fn append(what: &str, children: usize) {
    let mut builder = Builder::new(Attributes::new());
    for _ in 0..children {
        builder.open(Attributes::new());
        builder.leaf(Attributes::new());
        builder.close();
    }
    let base = builder.finish().into_tree();
    let root = base.root().id();
    report(
        what,
        repeat(9, 200, || {
            let mut head = base.clone();
            for _ in 0..200 {
                let mut edit = head.edit();
                edit.append(root, Attributes::new())
                    .expect("the root is there");
                head = edit.freeze();
            }
            black_box(head);
        }),
    );
}

fn repeat(times: usize, items: usize, work: impl FnMut()) -> Vec<f64> {
    repeat_keeping(times, items, work)
}

/// Drops what the work returns after the clock has stopped.
fn repeat_keeping<T>(times: usize, items: usize, mut work: impl FnMut() -> T) -> Vec<f64> {
    let mut figures = Vec::new();
    for _ in 0..times {
        let start = cpu_time();
        let result = work();
        figures.push((cpu_time() - start) / items as f64);
        drop(result);
    }
    figures
}

fn report(what: &str, mut figures: Vec<f64>) {
    figures.sort_by(f64::total_cmp);
    let [least, median, most] = [0, figures.len() / 2, figures.len() - 1].map(|at| figures[at]);
    println!("{what:52} {median:8.1}  ({least:.1} to {most:.1})");
}

fn cpu_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn resident() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages = statm
        .split(' ')
        .nth(1)
        .expect("the second number is the resident pages");
    pages.parse::<f64>().expect("a number") * 4096.0
}
