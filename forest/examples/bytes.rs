//! How many bytes a version takes, and a small tree with its name in a forest: what the allocator has given out, with
//! all slabs whose blocks are free given back.
//!
//! ```sh
//! cargo run --release -p weald-forest --example bytes
//! ```

#![allow(unsafe_code, reason = "an allocator counts what it gives out")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use pollster::block_on;
use weald_forest::{Attributes, Forest, NodeId, TreeBuilder, trim};

/// What is given out now.
static LIVE: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: all of it is the system's allocator's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    for (what, put) in [("appends", 0), ("puts", 1), ("both", 2)] {
        let bytes = version(put);
        println!("{bytes:7.0} bytes a version of 10,005 nodes, {what}");
    }
    for nodes in [1, 100] {
        let count = 100_000 / nodes;
        let forest = Forest::new();
        let create = |number: usize| {
            let mut builder = TreeBuilder::new(attributes(0));
            (1..nodes).for_each(|number| _ = builder.leaf(attributes(number)));
            let tree = builder.finish().into_tree();
            drop(block_on(
                forest.create_from(&format!("tree-{number}"), tree),
            ));
        };
        let empty = live();
        (0..count).for_each(create);
        let half = live();
        (count..2 * count).for_each(create);
        // The first as many pay for what all share, such as the list of what has happened.
        let [first, next] = [half - empty, live() - half].map(|all| all as f64 / count as f64);
        println!(
            "{next:7.0} bytes a tree of {nodes} nodes in a forest, with its name; of the first {count}: {first:.0}"
        );
        drop(forest);
    }
}

/// The bytes of one of the newest 1,000 versions, which the last one alone does not take.
fn version(put: usize) -> f64 {
    const KEPT: usize = 1_000;
    let measure = |kept: usize| {
        let before = live();
        let forest = Forest::builder().keep(kept).build();
        let mut builder = TreeBuilder::new(attributes(0));
        let mut ids: Vec<NodeId> = Vec::new();
        for number in 0..2_001 {
            ids.push(builder.open(attributes(number)));
            ids.extend((0..4).map(|_| builder.leaf(attributes(number))));
            builder.close();
        }
        let tree = builder.finish().into_tree();
        let tree = block_on(forest.create_from("t", tree)).expect("the name is free");
        let mut random = 1_u64;
        for number in 0..3 * KEPT {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let node = ids[(random >> 33) as usize % ids.len()];
            let mut edit = tree.edit();
            if put == 1 || put == 2 && number % 2 == 1 {
                let put = edit.put_attribute(node, "k", (number as u64).to_le_bytes());
                put.expect("the node is there");
            } else {
                let added = edit.append(node, attributes(number));
                added.expect("the node is there");
            }
            block_on(edit.commit()).expect("nothing conflicts");
        }
        drop(ids);
        live() - before
    };
    let (all, one) = (measure(KEPT), measure(1));
    (all - one) as f64 / (KEPT - 1) as f64
}

fn attributes(number: usize) -> Attributes {
    Attributes::new().with("k", (number as u64).to_le_bytes())
}

fn live() -> usize {
    trim();
    LIVE.load(Ordering::Relaxed)
}
