//! A program that commits a million times keeps no more in memory than one that commits some thousand times, even if
//! there are always checkpoints being made beside its commits.
//!
//! Live bytes are counted in the allocator, so this file has a single test, alone in its program.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};
use std::time::{Duration, Instant};

use pollster::block_on;
use weald_forest::{Attributes, Forest, Level};
use weald_journal::{Directory, DiskForest, DiskJournal, Settings};

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

const KEPT: usize = 100;

/// The live bytes, without slabs that have no block in use.
fn live() -> isize {
    weald_forest::trim();
    LIVE.load(Ordering::Relaxed)
}

#[test]
fn soak_checkpoints_that_overlap_keep_no_history_in_memory() {
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings::new().segment(1 << 20).checkpoint_after(None);
    let medium = Directory::open(directory.path()).unwrap();
    let journal = DiskJournal::open_on(medium, settings).unwrap();
    let forest = DiskForest::recover(Forest::builder().keep(KEPT), journal);
    let forest = block_on(forest).unwrap();
    let tree = block_on(forest.create("notes")).unwrap();
    let mut edit = tree.edit();
    let root = edit.root();
    let nodes: Vec<_> = (0..100)
        .map(|_| edit.append(root, Attributes::new()).unwrap())
        .collect();
    block_on(edit.commit()).unwrap();

    // Each checkpoint begins before the one before it has ended, and needs all versions that are kept then. Some are
    // put.
    let mut older = block_on(Forest::checkpoint(&forest)).unwrap();
    let mut round = |number: usize| {
        for node in &nodes {
            let mut edit = tree.edit();
            edit.put_attribute(*node, "n", number.to_le_bytes())
                .unwrap();
            block_on(edit.commit().level(Level::Buffered)).unwrap();
        }
        if number.is_multiple_of(10) {
            block_on(forest.checkpoint()).unwrap();
        }
        let newer = block_on(Forest::checkpoint(&forest)).unwrap();
        drop(std::mem::replace(&mut older, newer));
    };
    // A commit that is durable lets the versions before it go.
    let settle = || block_on(tree.tag("settled", tree.view().version())).unwrap();
    let seconds = std::env::var("WEALD_SOAK").ok();
    let seconds = seconds.and_then(|text| text.parse().ok());
    let end = Instant::now() + seconds.map_or(Duration::ZERO, Duration::from_secs);
    (1..=10).for_each(&mut round);
    settle();
    let full = live();
    let mut last = 10;
    while last < 40 || Instant::now() < end {
        last += 1;
        round(last);
    }
    settle();
    let (grown, commits) = (live() - full, last * nodes.len());
    println!("{commits} commits: {full} bytes, and {grown} more");
    assert!(grown < full / 4, "{grown} bytes more than {full}");
}
