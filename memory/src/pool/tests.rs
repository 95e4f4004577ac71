//! Tests of `pool.rs`.

use std::collections::HashSet;

use super::*;

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, STEP).unwrap()
}

/// Writes over a whole block and frees it.
fn end(block: Block, layout: Layout) {
    // SAFETY: it came from `take`, and only the caller had it.
    unsafe { block.as_ptr().write_bytes(0xAA, layout.size()) };
    // SAFETY: as above, and this is its end.
    unsafe { free(block, layout) };
}

#[test]
fn blocks_in_use_do_not_overlap() {
    for size in [1, 8, 9, 72, 400, LARGEST, LARGEST + 1, 5000] {
        let layout = layout(size);
        let mut blocks: Vec<_> = (0..300).map(|_| take(layout)).collect();
        blocks.sort_unstable();
        let apart = |pair: &[Block]| pair[1].addr().get() - pair[0].addr().get() >= size;
        assert!(blocks.windows(2).all(apart), "{size}");
        assert!(blocks.iter().all(|block| block.addr().get() % STEP == 0));
        blocks.into_iter().for_each(|block| end(block, layout));
    }
}

#[test]
fn a_freed_block_is_used_again() {
    let layout = layout(616);
    let first: HashSet<_> = (0..100).map(|_| take(layout)).collect();
    first.iter().for_each(|block| end(*block, layout));
    let again: HashSet<_> = (0..100).map(|_| take(layout)).collect();
    assert!(first.intersection(&again).count() >= 99);
    again.into_iter().for_each(|block| end(block, layout));
}

#[test]
fn the_blocks_of_an_ended_thread_serve_others() {
    let layout = layout(624);
    let theirs = std::thread::spawn(move || {
        let blocks: Vec<_> = (0..100).map(|_| take(layout)).collect();
        let addresses: HashSet<_> = blocks.iter().map(|block| block.addr()).collect();
        blocks.into_iter().for_each(|block| end(block, layout));
        addresses
    });
    let theirs = theirs.join().unwrap();
    let ours: Vec<_> = (0..100).map(|_| take(layout)).collect();
    assert!(ours.iter().all(|block| theirs.contains(&block.addr())));
    ours.into_iter().for_each(|block| end(block, layout));
}

#[test]
fn unused_slabs_are_given_back() {
    let (layout, class) = (layout(632), class_of(layout(632)).unwrap());
    let each = SLAB / size_of_class(class);
    let mut blocks: Vec<_> = (0..5 * each).map(|_| take(layout)).collect();
    assert_eq!(lock(class).slabs.len(), 5);
    let kept = blocks.swap_remove(2 * each);
    blocks.into_iter().for_each(|block| end(block, layout));
    // As `trim` does, which would disturb the other tests.
    leave(class);
    trim_class(class);
    assert_eq!(lock(class).slabs.len(), 1);
    end(kept, layout);
    leave(class);
    trim_class(class);
    assert_eq!(lock(class).slabs.len(), 0);
}

#[test]
fn many_free_blocks_are_given_back_without_being_asked() {
    let (layout, class) = (layout(608), class_of(layout(608)).unwrap());
    let blocks: Vec<_> = (0..4 * WORTH_TRIMMING / 608)
        .map(|_| take(layout))
        .collect();
    let most = lock(class).slabs.len();
    blocks.into_iter().for_each(|block| end(block, layout));
    assert!(lock(class).slabs.len() <= most / 2);
}

#[test]
fn slabs_that_are_wanted_again_and_again_are_kept() {
    let (layout, class) = (layout(616), class_of(layout(616)).unwrap());
    let mut kept = Vec::new();
    for _ in 0..10 {
        let blocks: Vec<_> = (0..4 * WORTH_TRIMMING / 616)
            .map(|_| take(layout))
            .collect();
        let most = lock(class).slabs.len();
        blocks.into_iter().for_each(|block| end(block, layout));
        kept.push(lock(class).slabs.len() == most);
    }
    assert!(!kept[0] && kept.ends_with(&[true; 5]), "{kept:?}");
}

#[test]
fn a_class_waits_longer_after_a_look_in_vain() {
    let mut depot = Depot::NEW;
    let mut factor = |unused, taken| {
        depot.learn(unused);
        depot.taken = taken;
        depot.factor
    };
    assert_eq!(factor(0, 0), 2);
    // The slabs of several looks, most of which were wanted again.
    assert_eq!((factor(9, 0), factor(9, 15)), (2, 2));
    assert_eq!(factor(8, 0), 4);
    assert_eq!(factor(8, 3), 4);
    // Few were wanted again.
    assert_eq!(factor(8, 0), 2);
    assert_eq!((0..10).map(|_| factor(0, 0)).max(), Some(LARGEST_FACTOR));
}

#[test]
fn a_value_may_be_freed_while_its_thread_ends() {
    thread_local! {
        static LATE: Cell<Option<crate::Shared<[u64; 75]>>> = const { Cell::new(None) };
    }
    let thread = std::thread::spawn(|| {
        LATE.with(|_| ()); // Its destructor runs after that of the blocks, which are first used now.
        LATE.set(Some(crate::Shared::new([7; 75])));
    });
    thread.join().unwrap();
}
