//! Chains of adapters: they give what the iterators of the standard library give, whatever the source, the grain and
//! the number of workers; a panic is that of the first item that panics; every item is dropped once.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use proptest::prelude::*;
use tools::{Latch, on_each, runtime, watch};
use weald_kernel::{
    Runtime, Wait,
    fork::{self, Grain, Parts},
    spawn,
};

fn spawn_in<R: Send + 'static>(runtime: &Runtime, f: impl FnOnce() -> R + Send + 'static) -> R {
    runtime.block_on(async { spawn(async move { f() }).await.unwrap() })
}

#[test]
fn a_fold_of_many_items_makes_few_values_and_one_of_few_items_a_value_of_each() {
    for (len, most) in [(1_000, 1_000), (1_024, 1_024), (100_000, 256)] {
        let values = AtomicUsize::new(0);
        let start = || {
            values.fetch_add(1, Ordering::Relaxed);
            0
        };
        let sum = fork::items(0..len).fold(start, |sum, n| sum + n, |left, right| left + right);
        assert_eq!(sum, (0..len).sum::<usize>());
        let values = values.into_inner();
        assert!(
            values <= most && values >= most / 4,
            "{values} values of {len} items"
        );
    }
}

proptest! {
    #[test]
    fn chains_give_what_iterators_give(
        numbers in prop::collection::vec(any::<u16>(), 0..300),
        others in prop::collection::vec(any::<u16>(), 0..300),
        size in 1..40_usize,
        grain in 0..60_usize,
    ) {
        let grain = Grain::of(grain);
        let items = || fork::items(&numbers).grain(grain);

        let sums: Vec<u32> = items().chunks(size).map(|chunk| chunk.iter().map(|n| u32::from(*n)).sum()).collect();
        let want: Vec<u32> = numbers.chunks(size).map(|chunk| chunk.iter().map(|n| u32::from(*n)).sum()).collect();
        prop_assert_eq!(sums, want);

        let pairs: Vec<(usize, (u16, u16))> =
            items().zip(&others).enumerate().map(|(at, (a, b))| (at, (*a, *b))).collect();
        let want: Vec<_> = numbers.iter().copied().zip(others.iter().copied()).enumerate().collect();
        prop_assert_eq!(pairs, want);

        let chosen: Vec<u16> =
            items().filter(|n| **n % 3 == 0).flat_map(|n| [*n, n / 2]).filter(|n| n % 2 == 0).collect();
        let want: Vec<u16> = numbers.iter().filter(|n| **n % 3 == 0).flat_map(|n| [*n, n / 2]).filter(|n| n % 2 == 0)
            .collect();
        prop_assert_eq!(chosen, want);

        let text = items().fold(String::new, |text, n| format!("{text}{n},"), |left, right| left + &right);
        let want = numbers.iter().fold(String::new(), |text, n| format!("{text}{n},"));
        prop_assert_eq!(text, want);

        prop_assert_eq!(items().map(|n| *n).reduce(u16::max), numbers.iter().copied().max());
        prop_assert_eq!(items().map(|n| u64::from(*n)).sum::<u64>(), numbers.iter().map(|n| u64::from(*n)).sum());
        prop_assert_eq!(items().filter(|n| **n > 9).count(), numbers.iter().filter(|n| **n > 9).count());

        let found = items().find_any(|n| **n % 5 == 1);
        prop_assert_eq!(found.is_some(), numbers.iter().any(|n| n % 5 == 1));
        prop_assert!(found.is_none_or(|n| n % 5 == 1));
    }

    #[test]
    fn chunks_that_are_changed_are_those_of_the_slice(
        mut numbers in prop::collection::vec(any::<u16>(), 0..300),
        size in 1..40_usize,
        grain in 0..20_usize,
    ) {
        let mut want = numbers.clone();
        for (at, chunk) in want.chunks_mut(size).enumerate() {
            chunk.iter_mut().for_each(|n| *n = n.wrapping_add(u16::try_from(at).unwrap()));
        }
        let chunks = fork::items(&mut numbers).grain(Grain::of(grain)).chunks_mut(size).enumerate();
        chunks.for_each(|(at, chunk)| {
            chunk.iter_mut().for_each(|n| *n = n.wrapping_add(u16::try_from(at).unwrap()));
        });
        prop_assert_eq!(numbers, want);
    }

    #[test]
    fn vectors_ranges_maps_and_sets_are_sources(
        entries in prop::collection::btree_map(any::<u16>(), any::<u16>(), 0..100),
        grain in 0..20_usize,
    ) {
        let grain = Grain::of(grain);
        let vector: Vec<(u16, u16)> = entries.clone().into_iter().collect();
        let owned: Vec<(u16, u16)> = fork::items(vector.clone()).grain(grain).collect();
        prop_assert_eq!(&owned, &vector);
        let of_tree: BTreeMap<u16, u16> =
            fork::items(&entries).grain(grain).map(|(key, value)| (*key, *value)).collect();
        prop_assert_eq!(&of_tree, &entries);
        let mut hashed: HashMap<u16, u16> = entries.clone().into_iter().collect();
        fork::items(&mut hashed).grain(grain).for_each(|(_, value)| *value = value.wrapping_add(1));
        let changed: BTreeMap<u16, u16> = fork::items(hashed).grain(grain).collect();
        let want: BTreeMap<u16, u16> = entries.iter().map(|(key, value)| (*key, value.wrapping_add(1))).collect();
        prop_assert_eq!(changed, want);
        let keys: BTreeSet<u16> = entries.keys().copied().collect();
        let hashed: HashSet<u16> = fork::items(&keys).grain(grain).map(|key| *key).collect();
        prop_assert_eq!(fork::items(hashed).grain(grain).collect::<BTreeSet<u16>>(), keys);
        let len = u16::try_from(entries.len()).unwrap();
        prop_assert_eq!(fork::items(0..=len).grain(grain).count(), entries.len() + 1);
    }

    #[test]
    fn a_division_keeps_every_item_in_its_place(len in 0..200_usize, size in 1..30_usize, at in 0..200_usize) {
        let numbers: Vec<usize> = (0..len).collect();
        let whole: Vec<(usize, &[usize])> = numbers.chunks(size).enumerate().collect();
        let at = at.min(whole.len());
        // What `items` divides is only seen through its pieces: one at a time, divided by hand.
        let chunks = fork::IntoChunks::into_chunks(&numbers[..], size);
        let (left, right) = chunks.divide(at);
        prop_assert_eq!((left.len(), right.len()), (at, whole.len() - at));
        let both: Vec<&[usize]> = left.items().chain(right.items()).collect();
        prop_assert_eq!(both, numbers.chunks(size).collect::<Vec<_>>());
    }
}

#[test]
fn a_chain_is_zipped_with_a_chain() {
    on_each(|runtime| {
        spawn_in(runtime, || {
            let (mut sums, numbers) = (vec![0; 100], (0..1_000).collect::<Vec<usize>>());
            let tens = fork::items(&numbers).chunks(10).grain(Grain::of(1000));
            let pairs = fork::items(&mut sums)
                .grain(Grain::of(3))
                .zip(tens.enumerate());
            pairs.for_each(|(sum, (at, ten))| *sum = ten.iter().sum::<usize>() - 100 * at);
            assert_eq!(sums, [45; 100]);
        });
    });
}

#[test]
fn workers_share_a_chain_and_its_order_is_kept() {
    on_each(|runtime| {
        spawn_in(runtime, || {
            let squares: Vec<u64> = fork::items(0..10_000_u64)
                .grain(Grain::of(7))
                .filter(|n| n % 2 == 1)
                .map(|n| n * n)
                .collect();
            assert!(
                squares
                    .iter()
                    .copied()
                    .eq((0..10_000).filter(|n| n % 2 == 1).map(|n| n * n))
            );
        });
    });
}

#[test]
fn the_panic_is_that_of_the_first_item_and_every_item_is_dropped_once() {
    let _watch = watch();
    struct Counted(usize, Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let counted: Vec<Counted> = (0..1_000)
        .map(|n| Counted(n, Arc::clone(&dropped)))
        .collect();
    let chain = fork::items(counted).grain(Grain::of(3));
    let ended = catch_unwind(AssertUnwindSafe(|| {
        chain.for_each(|item| {
            if item.0 % 400 == 399 {
                std::panic::panic_any(item.0);
            }
        });
    }));
    assert_eq!(*ended.unwrap_err().downcast::<usize>().unwrap(), 399);
    assert_eq!(dropped.load(Ordering::Relaxed), 1_000);
}

/// Floating-point sums depend on the pieces; a chosen grain forks each of them.
#[test]
fn a_sum_of_cheap_items_is_that_of_forked_pieces_to_the_last_bit() {
    on_each(|runtime| {
        spawn_in(runtime, || {
            let numbers: Vec<f64> = (0..10_000).map(|n| 1.0 / f64::from(n + 1)).collect();
            let forked = fork::items(&numbers).grain(Grain::of(10));
            let forked: f64 = forked.map(|n| *n).sum();
            for _ in 0..100 {
                let sum: f64 = fork::items(&numbers).map(|n| *n).sum();
                assert_eq!(sum.to_bits(), forked.to_bits());
            }
        });
    });
}

#[test]
fn many_cheap_items_are_collected_in_their_order() {
    on_each(|runtime| {
        spawn_in(runtime, || {
            for len in [1_025, 10_000, 100_000] {
                let all: Vec<u64> = fork::items(0..len).map(|n| 3 * n).collect();
                assert!(all.iter().copied().eq((0..len).map(|n| 3 * n)));
                assert!(all.iter().copied().eq(fork::map(0..len, |n| 3 * n)));
                let odd: Vec<u64> = fork::items(0..len).filter(|n| n % 2 == 1).collect();
                assert!(odd.into_iter().eq((0..len).filter(|n| n % 2 == 1)));
                assert_eq!(fork::items(0..len).flat_map(|n| 0..n % 3).count(), {
                    (0..len).flat_map(|n| 0..n % 3).count()
                });
            }
        });
    });
}

/// What was gathered before and behind a panic is dropped, too.
#[test]
fn the_panic_in_many_cheap_items_is_that_of_the_first_and_each_is_dropped_once() {
    struct Counted<'a>(&'a AtomicUsize);
    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    on_each(|runtime| {
        spawn_in(runtime, || {
            let (made, dropped) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let chain = fork::items(0..10_000_usize).map(|n| {
                if n % 4_000 == 3_999 {
                    std::panic::panic_any(n);
                }
                made.fetch_add(1, Ordering::Relaxed);
                Counted(&dropped)
            });
            let ended = catch_unwind(AssertUnwindSafe(|| chain.collect::<Vec<_>>().len()));
            assert_eq!(*ended.unwrap_err().downcast::<usize>().unwrap(), 3_999);
            assert_eq!(made.into_inner(), dropped.into_inner());
        });
    });
}

/// Up to 1024 items, and those of a chosen grain, may wait for each other however cheap those before them were.
#[test]
fn an_item_behind_cheap_ones_waits_for_the_next() {
    for (len, grain) in [(1_024, Grain::auto()), (20_000, Grain::of(1))] {
        let _watch = watch();
        let runtime = runtime(2);
        spawn_in(&runtime, move || {
            let later = Latch::default();
            fork::items(0..len).grain(grain).for_each(|n| match n {
                1_000 => later.clone().wait(),
                1_001 => later.open(),
                _ => (),
            });
        });
    }
}

#[test]
fn a_search_stops_when_another_worker_has_found_something() {
    const HALF: usize = 1_000_000;
    let runtime = runtime(2);
    spawn_in(&runtime, || {
        let (is_found, looked) = (AtomicBool::new(false), AtomicUsize::new(0));
        let found = fork::items(0..2 * HALF)
            .grain(Grain::of(HALF))
            .find_any(|n| {
                if *n >= HALF {
                    is_found.store(true, Ordering::Relaxed);
                    return true;
                }
                // The first half begins when the second, which a thief has, has found its item.
                while !is_found.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                looked.fetch_add(1, Ordering::Relaxed);
                std::thread::yield_now();
                false
            });
        assert_eq!(found, Some(HALF));
        assert!(looked.load(Ordering::Relaxed) < HALF);
    });
}

#[test]
fn a_cancelled_job_leaves_its_chain() {
    let runtime = runtime(2);
    runtime.block_on(async {
        let items = Arc::new(AtomicUsize::new(0));
        let (begun, wait) = futures_channel::oneshot::channel();
        let begun = std::sync::Mutex::new(Some(begun));
        let seen = Arc::clone(&items);
        let job = spawn(async move {
            fork::items(0..usize::MAX)
                .grain(Grain::of(1))
                .for_each(|_| {
                    if seen.fetch_add(1, Ordering::Relaxed) == 0 {
                        begun.lock().unwrap().take().unwrap().send(()).unwrap();
                    }
                });
        });
        wait.await.unwrap();
        job.cancel();
        assert!(job.await.is_err());
    });
}

#[test]
fn a_search_behind_a_filter_that_leaves_nothing_stops_too() {
    const HALF: usize = 1_000_000;
    let runtime = runtime(2);
    spawn_in(&runtime, || {
        let (is_found, filtered) = (AtomicBool::new(false), AtomicUsize::new(0));
        let found = fork::items(0..2 * HALF)
            .grain(Grain::of(HALF))
            .filter(|n| {
                if *n >= HALF {
                    return true;
                }
                while !is_found.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                filtered.fetch_add(1, Ordering::Relaxed);
                std::thread::yield_now();
                false
            })
            .find_any(|_| {
                is_found.store(true, Ordering::Relaxed);
                true
            });
        assert_eq!(found, Some(HALF));
        assert!(filtered.load(Ordering::Relaxed) < HALF);
    });
}

#[test]
fn a_zip_drops_what_is_left_out_before_it_begins() {
    let runtime = runtime(2);
    spawn_in(&runtime, || {
        let item = Arc::new(());
        let items = vec![item.clone(); 1000];
        fork::items(items).zip(&[1, 2, 3]).for_each(|_| {
            assert!(Arc::strong_count(&item) <= 4);
        });
        let items = vec![item.clone(); 1000];
        fork::items(&[1, 2, 3]).zip(items).for_each(|_| {
            assert!(Arc::strong_count(&item) <= 4);
        });
    });
}

#[test]
#[should_panic(expected = "a chunk has at least one item")]
fn a_chunk_of_nothing_is_refused() {
    let _chunks = fork::items(&[1]).chunks(0);
}
