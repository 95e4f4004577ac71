//! Sorting with forks: the standard library's result, and each item exactly once, even after a panic.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicUsize, Ordering},
};

use tools::{Drops, Random, Token, for_seeds, on_each};
use weald_kernel::{Runtime, fork, spawn};

fn spawn_in<R: Send + 'static>(runtime: &Runtime, f: impl FnOnce() -> R + Send + 'static) -> R {
    runtime.block_on(async { spawn(async move { f() }).await.unwrap() })
}

/// Items with many equal keys or few, in random, rising or falling order. Each carries its index.
fn items(random: &mut Random) -> Vec<(u64, usize)> {
    let len = random.below(60_000);
    let keys = [1, 10, 1 << 40][random.below(3)];
    let shape = random.below(3);
    (0..len)
        .map(|at| match shape {
            0 => (random.below(keys) as u64, at),
            1 => ((at % keys) as u64, at),
            _ => (((len - at) % keys) as u64, at),
        })
        .collect()
}

#[test]
fn stable_sorting_keeps_equal_items_in_order() {
    for_seeds(30, |random| {
        let mut items = items(random);
        let mut expected = items.clone();
        expected.sort_by_key(|item| item.0);
        fork::sort_by_key(&mut items, |item| item.0);
        assert!(items == expected);
    });
}

#[test]
fn unstable_sorting_sorts() {
    for_seeds(30, |random| {
        let mut items = items(random);
        let mut expected = items.clone();
        expected.sort_unstable();
        fork::sort_unstable(&mut items);
        assert!(items == expected);
    });
}

#[test]
fn both_sort_in_jobs() {
    on_each(|runtime| {
        spawn_in(runtime, || {
            let mut stable: Vec<u64> = (0..100_000).map(|n| n * 7919 % 100_003).collect();
            let mut unstable = stable.clone();
            fork::sort(&mut stable);
            fork::sort_unstable_by(&mut unstable, |a, b| b.cmp(a));
            assert!(stable.is_sorted());
            unstable.reverse();
            assert!(stable == unstable);
        });
    });
}

#[test]
fn zero_sized_items_and_short_slices_are_sorted() {
    let mut none: [(); 10_000] = [(); 10_000];
    fork::sort(&mut none);
    fork::sort_unstable(&mut none);
    for len in 0..4 {
        let mut items: Vec<u8> = (0..len).rev().collect();
        fork::sort(&mut items);
        assert!(items.is_sorted());
        items.reverse();
        fork::sort_unstable(&mut items);
        assert!(items.is_sorted());
    }
}

/// An item that counts its drop.
struct Item(u64, #[allow(dead_code, reason = "dropped")] Token);

#[test]
fn after_a_panic_in_the_comparison_every_item_exists_once() {
    let sorts: [fn(&mut [Item], &AtomicUsize); 2] = [
        |items, left| fork::sort_by(items, |a, b| compare(a, b, left)),
        |items, left| fork::sort_unstable_by(items, |a, b| compare(a, b, left)),
    ];
    for_seeds(20, |random| {
        let drops = Drops::default();
        let len = 20_000 + random.below(20_000);
        let after = AtomicUsize::new(random.below(600_000));
        let mut items: Vec<Item> = (0..len)
            .map(|n| Item((n * 7919 % len) as u64, drops.token()))
            .collect();
        let mut before: Vec<u64> = items.iter().map(|item| item.0).collect();
        let sort = sorts[random.below(2)];
        let _ended = catch_unwind(AssertUnwindSafe(|| sort(&mut items, &after)));
        let mut keys: Vec<u64> = items.iter().map(|item| item.0).collect();
        keys.sort_unstable();
        before.sort_unstable();
        assert!(keys == before);
        assert_eq!(drops.count(), 0);
        drop(items);
        assert_eq!(drops.count(), len);
    });
}

fn compare(a: &Item, b: &Item, left: &AtomicUsize) -> std::cmp::Ordering {
    if left.fetch_sub(1, Ordering::Relaxed) == 0 {
        std::panic::resume_unwind(Box::new("enough"));
    }
    a.0.cmp(&b.0)
}

#[test]
fn large_items_and_small_ones_are_sorted_alike() {
    for_seeds(10, |random| {
        let small = items(random);
        let mut large: Vec<_> = small.iter().map(|item| (*item, [0_u64; 16])).collect();
        let mut small = small;
        fork::sort_unstable(&mut small);
        fork::sort_unstable(&mut large);
        assert!(large.iter().map(|item| item.0).eq(small));
    });
}

/// The pieces are far longer than those that the standard library sorts without dividing, so a division that left all
/// equal items in one part would go through them at each level.
#[test]
fn many_equal_items_take_few_comparisons() {
    const LEN: usize = 200_000;
    for keys in [1, 2, 3] {
        let mut items: Vec<u64> = (0..LEN as u64).map(|n| n * 7919 % keys).collect();
        let compared = AtomicUsize::new(0);
        fork::sort_unstable_by(&mut items, |a, b| {
            compared.fetch_add(1, Ordering::Relaxed);
            a.cmp(b)
        });
        assert!(items.is_sorted());
        let compared = compared.into_inner();
        assert!(compared < 8 * LEN, "{compared} comparisons for {keys} keys");
    }
}
