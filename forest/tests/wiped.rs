//! Erased bytes are overwritten before their memory is freed: the next owner of the memory reads zeros.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(unsafe_code, reason = "an allocator looks at what is freed")]

#[path = "support/hooks.rs"]
mod hooks;
#[path = "support/tools.rs"]
mod tools;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use hooks::Hooks;
use tools::{ByHand, Wait};
use weald_forest::{Forest, Level, MemoryJournal, Value};

const SECRET: &[u8] = b"a secret that nothing else is like";

/// How many blocks were freed with the secret in them.
static FREED: AtomicUsize = AtomicUsize::new(0);

/// The length of bytes that nothing else has, and how many blocks of it were freed.
const LONG: usize = 345_679;
const OTHER: usize = 456_791;
static LONG_FREED: AtomicUsize = AtomicUsize::new(0);
static OTHER_FREED: AtomicUsize = AtomicUsize::new(0);

struct Watching;

// SAFETY: all of it is the system's allocator's; a block is read before it is freed, within its length. Some of it may
// never have been written, and what is read there is only compared.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise. Zeroed, so that what is read later was written.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if layout.size() == LONG {
            LONG_FREED.fetch_add(1, Ordering::Relaxed);
        }
        if layout.size() == OTHER {
            OTHER_FREED.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the block has this length and was zeroed at first.
        let bytes = unsafe { std::slice::from_raw_parts(block, layout.size()) };
        if bytes.windows(SECRET.len()).any(|window| window == SECRET) {
            FREED.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

#[test]
fn erased_bytes_are_overwritten_before_their_memory_is_freed() {
    let forest = Forest::new();
    let tree = forest.create("t").wait().unwrap();
    let root = tree.view().tree().root().id();
    let put = || {
        let mut edit = tree.edit();
        edit.put_erasable(root, "secret", SECRET).unwrap();
        edit.commit().wait().unwrap();
    };
    put();
    assert_eq!(FREED.load(Ordering::Relaxed), 0, "something copies them");
    tree.erase(root, "secret").wait().unwrap();
    assert_eq!(FREED.load(Ordering::Relaxed), 0);
    // What somebody was given stays until that is dropped.
    put();
    let view = tree.snapshot();
    let Value::Erasable(given) = forest.value(view.tree().root(), "secret").unwrap() else {
        panic!("it is erasable");
    };
    tree.erase(root, "secret").wait().unwrap();
    assert_eq!(&*given, SECRET);
    drop((given, view));
    assert_eq!(FREED.load(Ordering::Relaxed), 0, "of those given");
    must_be_overwritten_when_no_forest_has_them();
    assert_eq!(FREED.load(Ordering::Relaxed), 0);
    // Those of a commit that was never made.
    let mut edit = tree.edit();
    edit.put_erasable(root, "secret", SECRET).unwrap();
    drop(edit);
    assert_eq!(FREED.load(Ordering::Relaxed), 0, "of an edit");
}

/// A history on disk may have them, and they may be erased there.
fn must_be_overwritten_when_no_forest_has_them() {
    let forest = Forest::builder().keep(1).build();
    let tree = forest.create("t").wait().unwrap();
    let root = tree.view().tree().root().id();
    for value in [SECRET, b"another", SECRET] {
        let mut edit = tree.edit();
        edit.put_erasable(root, "secret", value).unwrap();
        edit.commit().wait().unwrap();
        tools::commit(&tree, "other", "1");
    }
    assert_eq!(forest.stats().blobs, 1);
}

/// To overwrite many bytes takes long, so the unit that asks for it does it, and not the one with the right to commit.
#[test]
fn erased_bytes_are_freed_by_the_author_of_the_erasure() {
    let hooks = Hooks::default();
    let forest = Forest::builder().journal(hooks.clone()).build();
    let tree = forest.create("t").wait().unwrap();
    let other = forest.create("other").wait().unwrap();
    let root = tree.view().tree().root().id();
    let mut edit = tree.edit();
    edit.put_erasable(root, "long", vec![1; LONG]).unwrap();
    edit.commit().wait().unwrap();
    let before = LONG_FREED.load(Ordering::Relaxed);

    let queued = Arc::new(Mutex::new(None));
    let (left, erasure) = (Arc::clone(&queued), ByHand::new(tree.erase(root, "long")));
    hooks.during_next(move || {
        let mut erasure = erasure;
        assert!(erasure.is_pending());
        *left.lock().unwrap() = Some(erasure);
    });
    tools::commit(&other, "other", "1");
    let freed = || LONG_FREED.load(Ordering::Relaxed) - before;
    assert_eq!(freed(), 0, "the author of the other commit did it");
    let erasure = queued.lock().unwrap().take();
    erasure.unwrap().ready().unwrap();
    assert_eq!(freed(), 1);
    assert!(matches!(
        forest.value(tree.view().tree().root(), "long"),
        Some(Value::Erased { .. })
    ));
}

/// A medium may take seconds, and the author may never ask again.
#[test]
fn erased_bytes_are_freed_before_the_erasure_is_durable() {
    let journal = MemoryJournal::synced_by_hand();
    let builder = Forest::builder().journal(journal.clone());
    let forest = builder.level(Level::Accepted).build();
    let tree = forest.create("t").wait().unwrap();
    let root = tree.view().tree().root().id();
    let mut edit = tree.edit();
    edit.put_erasable(root, "long", vec![1; OTHER]).unwrap();
    edit.commit().wait().unwrap();
    let freed = || OTHER_FREED.load(Ordering::Relaxed);
    let before = freed();
    let mut erasure = ByHand::new(tree.erase(root, "long"));
    assert!(erasure.is_pending());
    assert_eq!(freed() - before, 1);
    journal.sync(Level::Durable);
    erasure.ready().unwrap();
}
