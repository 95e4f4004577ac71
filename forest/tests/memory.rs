//! Memory is given back: what retention lets go is freed, whatever readers do; a deleted tree is freed whole.
//!
//! Live bytes are counted in the allocator, so this file has a single test, alone in its program.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};

use tools::{Wait, with_children};
use weald_forest::{Forest, NodeId, TreeHandle};

struct Counting;

static LIVE: AtomicIsize = AtomicIsize::new(0);

// SAFETY: everything is passed on to the system's allocator; counting does not affect it.
#[allow(unsafe_code, reason = "counting what is allocated needs an allocator")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size().cast_signed(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`, which is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size().cast_signed(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`, which is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The live bytes, without slabs that have no block in use.
fn live() -> isize {
    weald_forest::trim();
    LIVE.load(Ordering::Relaxed)
}

/// Commits to each node in turn, so that all versions are alike in size.
fn churn(tree: &TreeHandle, nodes: &[NodeId], rounds: usize) {
    for (number, node) in nodes.iter().cycle().take(rounds * nodes.len()).enumerate() {
        let mut edit = tree.edit();
        edit.put_attribute(*node, "n", number.to_le_bytes())
            .unwrap();
        edit.commit().wait().unwrap();
    }
}

/// Erasable bytes are freed with the versions that refer to them, and with a tree that is deleted.
fn erasable_bytes_come_and_go(forest: &Forest) {
    let plain = live();
    let large = forest.create("large").wait().unwrap();
    for number in 0..1000 {
        let mut edit = large.edit();
        edit.put_erasable(edit.root(), "n", [7; 10_000]).unwrap();
        edit.commit().wait().unwrap();
        assert_eq!(forest.stats().blobs, 100.min(number + 1));
    }
    let stored = live() - plain;
    assert!((1_000_000..1_300_000).contains(&stored), "{stored} bytes");
    churn(&large, &[large.view().tree().root().id()], 100);
    let left = live() - plain;
    assert!(left < 300_000, "{left} bytes of values are left");
    forest.delete("large").wait().unwrap();
    drop(large);
    let left = live() - plain;
    assert!(
        left < 20_000,
        "{left} bytes are left of a tree that is gone"
    );
}

/// An index has no copy of a long value, and none comes into being while another attribute changes.
fn an_index_shares_long_values(forest: &Forest) {
    let wide = forest.create("wide").wait().unwrap();
    let mut edit = wide.edit();
    let root = edit.root();
    edit.put_attribute(root, "long", vec![7; 10_000_000])
        .unwrap();
    edit.commit().wait().unwrap();
    let plain = live();
    wide.add_index("long").wait().unwrap();
    churn(&wide, &[root], 20);
    let more = live() - plain;
    assert!(
        more < 1_000_000,
        "{more} bytes more for an index of 10,000,000"
    );
    forest.delete("wide").wait().unwrap();
}

/// What a forest says that it weighs is what is live: nodes of many versions, long values, an index and erasable
/// values.
fn a_weight_is_what_is_live() {
    let before = live();
    let forest = Forest::builder().keep(500).build();
    let (tree, nodes) = with_children(&forest, 20_000);
    tree.add_index("n").wait().unwrap();
    churn(&tree, &nodes[..2_000], 1);
    let mut edit = tree.edit();
    for node in nodes.iter().step_by(100) {
        edit.put_attribute(*node, "long", vec![7; 5_000]).unwrap();
        edit.put_erasable(*node, "secret", vec![7; 5_000]).unwrap();
    }
    edit.commit().wait().unwrap();
    let (live, weighed) = (live() - before, forest.weigh().bytes());
    let off = live as f64 / weighed as f64;
    assert!(
        (0.8..1.25).contains(&off),
        "{live} bytes are live, and {weighed} were weighed"
    );
}

#[test]
fn what_is_let_go_is_freed() {
    a_weight_is_what_is_live();
    let before = live();
    {
        let forest = Forest::builder().keep(100).build();
        let (tree, nodes) = with_children(&forest, 1000);
        tree.add_index("n").wait().unwrap();
        churn(&tree, &nodes, 5);
        let full = live();
        churn(&tree, &nodes, 5);
        let grown = live() - full;
        assert!(grown.abs() < full / 10, "{grown} bytes more than {full}");

        // Sleeping readers keep one version each, the one they hold.
        let (view, snapshot) = (tree.view(), tree.snapshot());
        churn(&tree, &nodes, 5);
        let held = live() - full;
        assert!(
            held < full / 4,
            "{held} bytes more than {full} for two readers"
        );
        drop((view, snapshot));

        // A tag keeps one version; removing the tag frees it.
        tree.tag("t", tree.view().version()).wait().unwrap();
        churn(&tree, &nodes, 1);
        tree.untag("t").wait().unwrap();

        let watch = tree.watch(&weald_forest::Path::default(), weald_forest::Since::Now);
        let full = live();
        churn(&tree, &nodes, 2);
        assert!(live() - full < full / 4, "a slow watch keeps one version");
        drop(watch);

        erasable_bytes_come_and_go(&forest);
        an_index_shares_long_values(&forest);
        // The newest thousand happenings are kept, so the first round fills their list.
        let churn_names = || {
            for number in 0..1000 {
                let name = number.to_string();
                forest.create(&name).wait().unwrap();
                forest.delete(&name).wait().unwrap();
            }
        };
        churn_names();
        let tiny = live();
        churn_names();
        let left = live() - tiny;
        assert!(
            left < 20_000,
            "{left} bytes of a thousand deleted trees are left"
        );
    }
    let left = live() - before;
    assert!(
        left < 20_000,
        "{left} bytes are left of a forest that is gone"
    );
}
