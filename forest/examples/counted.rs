//! Work to be counted in instructions, which a busy machine does not disturb:
//!
//! ```sh
//! cargo build --release -p weald-forest --example counted
//! valgrind --tool=callgrind --toggle-collect='counted::counted' target/release/examples/counted hot 4000
//! ```
//!
//! The instructions between the entry and the end of `counted`, divided by the number given, are those of one
//! commit, one version or one node. Without the number the program lists what it can do.

use std::collections::VecDeque;
use std::hint::black_box;

use pollster::block_on;
use weald_forest::{Attributes, Forest, NodeId, Tree, TreeHandle};
use weald_tree::Builder;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// 10,005 nodes.
const SMALL: [usize; 6] = [4, 4, 4, 5, 5, 5];
/// The versions that are kept, as a forest keeps them.
const KEPT: usize = 1000;

fn main() {
    let mut words = std::env::args().skip(1);
    let (what, count) = (words.next(), words.next());
    let count = count.and_then(|count| count.parse::<usize>().ok());
    let (Some(what), Some(count)) = (what, count) else {
        println!(
            "hot, put, append, empty, grow (commits); versions, twice, grouped, grown, grown-alone; adds, bulk, walk, read \
             (nodes); get (look-ups of a name): WHAT COUNT"
        );
        return;
    };
    match &*what {
        "versions" => versions(count, (1, false)),
        "twice" => versions(count, (2, true)),
        "grouped" => versions(count, (64, false)),
        "grow" => grow(count),
        "get" => get(count),
        "grown" => grown(count, KEPT),
        "grown-alone" => grown(count, 0),
        "adds" => counted(&mut || drop(black_box(adds(count)))),
        "bulk" => counted(&mut || {
            (0..count / 10_005).for_each(|_| drop(black_box(build(&SMALL))));
        }),
        "walk" => walk(count, |tree| tree.root().preorder().count()),
        "read" => walk(count, |tree| {
            let values = tree.root().preorder().filter_map(|node| node.get("k"));
            values.map(|value| usize::from(value[0])).sum()
        }),
        _ => commits(&what, count),
    }
}

#[inline(never)]
fn counted(work: &mut dyn FnMut()) {
    work();
}

/// Commits of one writer to one tree, which keeps its newest versions.
fn commits(what: &str, count: usize) {
    let tree = build(&SMALL);
    let ids: Vec<NodeId> = tree.root().preorder().map(|node| node.id()).collect();
    let handle = block_on(Forest::new().create_from("hot", tree)).expect("the name is free");
    let mut random = 1;
    let mut commit = |step: usize| commit(&handle, what, step, *pick(&ids, &mut random));
    (0..2 * KEPT).for_each(&mut commit);
    counted(&mut || (0..count).for_each(&mut commit));
}

fn commit(handle: &TreeHandle, what: &str, step: usize, node: NodeId) {
    let mut edit = handle.edit().blind();
    let done = match (what, step % 2) {
        ("append", _) | ("hot", 0) => edit.append(node, attributes(step)).map(drop),
        ("put", _) | ("hot", _) => edit.put_attribute(node, "k", step.to_le_bytes()),
        _ => Ok(()),
    };
    done.expect("no node is deleted");
    block_on(edit.commit()).expect("a blind edit of this kind never conflicts");
}

/// What commits do to the tree alone, so many of them together, at one node or each at its own.
fn versions(count: usize, (together, is_at_one): (usize, bool)) {
    let mut head = build(&SMALL);
    let ids: Vec<NodeId> = head.root().preorder().map(|node| node.id()).collect();
    let (mut random, mut kept) = (1, VecDeque::new());
    let mut version = |first: usize| {
        let mut edit = head.edit().blind();
        let mut node = *pick(&ids, &mut random);
        for step in first..first + together {
            if step > first && !is_at_one {
                node = *pick(&ids, &mut random);
            }
            let done = match step % 2 {
                0 => edit.append(node, attributes(step)).map(drop),
                _ => edit.put_attribute(node, "k", step.to_le_bytes()),
            };
            done.expect("no node is deleted");
        }
        head = edit.finish().0;
        kept.push_back(head.clone());
        if kept.len() > KEPT {
            kept.pop_front();
        }
    };
    (0..2 * KEPT).for_each(&mut version);
    counted(&mut || (0..count).step_by(together).for_each(&mut version));
}

/// Appends nodes one by one, five under each node, each in a version of its own, as a document is written.
fn grown(count: usize, most: usize) {
    let mut kept = VecDeque::from([Tree::with_root(attributes(0))]);
    let mut nodes = vec![kept[0].root().id()];
    let mut version = |number: usize| {
        let newest = kept.pop_back().expect("the newest is kept");
        let edit = match most {
            0 => newest.into_edit(),
            _ => {
                let edit = newest.edit();
                kept.push_back(newest);
                edit
            }
        };
        let mut edit = edit.blind();
        let added = edit.append(nodes[number / 5], attributes(number));
        nodes.push(added.expect("the parent was added"));
        kept.push_back(edit.finish().0);
        if most > 0 && kept.len() > most {
            kept.pop_front();
        }
    };
    (0..10 * KEPT).for_each(&mut version);
    counted(&mut || (10 * KEPT..10 * KEPT + count).for_each(&mut version));
}

/// The same, each in a commit of its own.
fn grow(count: usize) {
    let handle = block_on(Forest::new().create_from("hot", Tree::with_root(attributes(0))));
    let handle = handle.expect("the name is free");
    let mut nodes = vec![handle.view().tree().root().id()];
    let mut commit = |number: usize| {
        let mut edit = handle.edit().blind();
        let added = edit.append(nodes[number / 5], attributes(number));
        nodes.push(added.expect("the parent was added"));
        block_on(edit.commit()).expect("a blind edit of this kind never conflicts");
    };
    (0..10 * KEPT).for_each(&mut commit);
    counted(&mut || (10 * KEPT..10 * KEPT + count).for_each(&mut commit));
}

/// Looks trees up by their names, among 10,000.
fn get(count: usize) {
    let forest = Forest::new();
    let names: Vec<_> = (0..10_000).map(|number| format!("tree-{number}")).collect();
    for name in &names {
        block_on(forest.create(name)).expect("the name is free");
    }
    let mut random = 1;
    let mut look = |_| {
        let name: &String = pick(&names, &mut random);
        drop(black_box(forest.get(name)));
    };
    counted(&mut || (0..count).for_each(&mut look));
}

/// Adds nodes one by one in one edit, five under each node.
fn adds(count: usize) -> Tree {
    let mut edit = Tree::with_root(attributes(0)).edit();
    let mut nodes = vec![edit.tree().root().id()];
    for number in 0..count {
        let added = edit.append(nodes[number / 5], attributes(number));
        nodes.push(added.expect("the parent was added"));
    }
    edit.freeze()
}

fn walk(count: usize, visit: impl Fn(&Tree) -> usize) {
    let tree = build(&SMALL);
    let times = count / 10_005;
    counted(&mut || {
        (0..times).for_each(|_| _ = black_box(visit(black_box(&tree))));
    });
}

fn build(shape: &[usize]) -> Tree {
    fn below(builder: &mut Builder, shape: &[usize], number: &mut usize) {
        let Some((fan_out, shape)) = shape.split_first() else {
            return;
        };
        for _ in 0..*fan_out {
            *number += 1;
            if shape.is_empty() {
                builder.leaf(attributes(*number));
            } else {
                builder.open(attributes(*number));
                below(builder, shape, number);
                builder.close();
            }
        }
    }
    let mut builder = Builder::new(attributes(0));
    below(&mut builder, shape, &mut 0);
    builder.finish().into_tree()
}

fn attributes(number: usize) -> Attributes {
    Attributes::new().with("k", number.to_le_bytes())
}

fn pick<'a, T>(from: &'a [T], random: &mut u64) -> &'a T {
    *random = random
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    &from[((*random >> 33) % from.len() as u64) as usize]
}
