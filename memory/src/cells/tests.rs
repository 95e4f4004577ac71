//! Tests of `cells.rs`.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::filling::Filling;

type Few = Cells<[u64; 3], Arc<u64>>;
type Model = [Option<Item<[u64; 3], Arc<u64>>>; CELLS];

fn plain(number: u64) -> Item<[u64; 3], Arc<u64>> {
    Item::Plain([number; 3])
}

fn check(cells: &Few, model: &Model) -> Result<(), TestCaseError> {
    for (at, item) in model.iter().enumerate() {
        prop_assert_eq!(cells.get(at), item.as_ref());
        prop_assert_eq!(cells.present() >> at & 1 == 1, item.is_some());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]
    #[test]
    fn clones_are_values(
        room in 0..=CELLS,
        steps in prop::collection::vec((0..6_u8, 0..CELLS, 0..4_usize, 0..4_usize), 0..80)
    ) {
        let counted = Arc::new(0);
        let mut all: [(Few, Model); 4] = std::array::from_fn(|_| (Few::new(room), Model::default()));
        for (number, (step, at, one, other)) in (0..).zip(steps) {
            let (cells, model) = &mut all[one];
            match step {
                0 | 1 => {
                    cells.set(at, plain(number));
                    model[at] = Some(plain(number));
                }
                2 => {
                    cells.set(at, Item::Counted(Arc::clone(&counted)));
                    model[at] = Some(Item::Counted(Arc::clone(&counted)));
                }
                3 => prop_assert_eq!(cells.take(at), model[at].take()),
                4 if at % 2 == 0 => {
                    if let (Some(one), Some(Item::Plain(other))) = (cells.plain_mut(at), &mut model[at]) {
                        (one[1], other[1]) = (number, number);
                    }
                }
                4 => {
                    cells.fit();
                    cells.change(at, |item| (item, ()));
                }
                _ => all[one] = (all[other].0.clone(), all[other].1.clone()),
            }
            for (cells, model) in &all {
                check(cells, model)?;
            }
        }
        drop(all);
        prop_assert_eq!(Arc::strong_count(&counted), 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]
    #[test]
    fn a_filling_becomes_two_blocks(first in 0..CELLS, steps in prop::collection::vec((0..4_u8, 0..CELLS), 0..40), room in 0..CELLS) {
        let counted = Arc::new(0);
        let mut filling = Filling::<[u64; 3], Arc<u64>, [u64; 3], Arc<u64>>::new(first);
        let (mut one, mut two) = (Model::default(), Model::default());
        for (number, (step, at)) in (0..).zip(steps) {
            let next = first + filling.filled();
            match step {
                0 | 1 if next < CELLS => {
                    let item = match step {
                        0 => plain(number),
                        _ => Item::Counted(Arc::clone(&counted)),
                    };
                    filling.push([number; 3], item.clone());
                    (one[next], two[next]) = (Some(plain(number)), Some(item));
                }
                2 => {
                    let item = match number % 2 {
                        0 => plain(number),
                        _ => Item::Counted(Arc::clone(&counted)),
                    };
                    let old = filling.replace(at, item.clone());
                    prop_assert_eq!(&old, &one[at]);
                    one[at] = old.map(|_| item);
                }
                _ => match (filling.plain_mut(at), &mut one[at]) {
                    (Some(one), Some(Item::Plain(other))) => (one[0], other[0]) = (number, number),
                    (one, other) => prop_assert!(one.is_none() && !matches!(other, Some(Item::Plain(_)))),
                },
            }
        }
        let (cells, others): (Few, Few) = filling.finish();
        for (mut cells, model) in [(cells, &one), (others, &two)] {
            check(&cells, model)?;
            let old = cells.clone();
            cells.set(room, plain(99));
            check(&old, model)?;
            cells.plain_mut(room).expect("it was just filled")[0] += 1;
            check(&old, model)?;
        }
        drop((one, two));
        prop_assert_eq!(Arc::strong_count(&counted), 1);
    }
}

#[test]
fn a_filling_that_is_dropped_drops_its_items() {
    let counted = Arc::new(0);
    let item = || Item::Counted(Arc::clone(&counted));
    let mut filling = Filling::<[u64; 3], Arc<u64>, [u64; 3], Arc<u64>>::new(3);
    filling.push([1; 3], item());
    drop(filling.replace(3, item()));
    drop(filling);
    assert_eq!(Arc::strong_count(&counted), 1);
}

#[test]
#[should_panic(expected = "a block has sixteen cells")]
fn a_filling_has_sixteen_pairs_at_most() {
    let mut filling = Filling::<u64, (), u64, ()>::new(0);
    (0..=CELLS as u64).for_each(|number| filling.push(number, Item::Plain(number)));
}

#[test]
fn an_empty_cell_of_a_shared_block_is_filled_in_place_once() {
    let mut one = Few::new(3);
    one.set(0, plain(0));
    let (old, mut two) = (one.clone(), one.clone());
    one.set(1, plain(1));
    assert_eq!(one.address(), old.address());
    assert!(old.get(1).is_none() && two.get(1).is_none() && !one.is(&old));
    two.set(1, plain(2));
    assert_ne!(two.address(), old.address());
    assert_eq!((one.get(1), two.get(1)), (Some(&plain(1)), Some(&plain(2))));
}

#[test]
fn a_counted_item_lives_no_longer_than_the_clones_that_have_it() {
    let counted = Arc::new(0);
    let old = Few::new(2);
    let mut new = old.clone();
    new.set(1, Item::Counted(Arc::clone(&counted)));
    assert_eq!(Arc::strong_count(&counted), 2);
    drop(new);
    assert_eq!(Arc::strong_count(&counted), 1);
    drop(old);
}

#[test]
fn a_block_has_one_of_three_sizes() {
    let mut cells = Few::new(0);
    let mut sizes = Vec::new();
    for at in 0..CELLS {
        cells.set(at, plain(0));
        sizes.push((cells.bytes() - 16) / size_of::<Item<[u64; 3], Arc<u64>>>());
    }
    assert_eq!(sizes, [[1; 1].as_slice(), &[5; 4], &[16; 11]].concat());
    let full = cells.bytes();
    cells.take(15);
    cells.fit();
    assert_eq!(cells.bytes(), full);
    (1..15).for_each(|at| drop(cells.take(at)));
    cells.fit();
    assert!(cells.bytes() < full / 4);
}

#[test]
fn clones_in_several_threads_fill_one_block() {
    let mut first = Few::new(CELLS);
    first.set(0, plain(0));
    std::thread::scope(|scope| {
        for number in 1..5 {
            let mut mine = first.clone();
            scope.spawn(move || {
                mine.set(number, plain(number as u64));
                mine.set(7, plain(7 + number as u64));
                let filled = [0, number, 7].map(|at| mine.get(at).cloned());
                let expected = [0, number as u64, 7 + number as u64].map(|n| Some(plain(n)));
                assert_eq!(filled, expected);
            });
        }
    });
    assert_eq!(first.present(), 1);
}

#[test]
fn a_value_that_panics_when_it_is_dropped_is_dropped_once() {
    #[derive(Clone)]
    struct Panics(Arc<AtomicUsize>);

    impl Drop for Panics {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
            panic!("on purpose");
        }
    }

    let dropped = Arc::new(AtomicUsize::new(0));
    let mut cells = Cells::<u64, Panics>::new(1);
    cells.set(0, Item::Counted(Panics(Arc::clone(&dropped))));
    let over = std::panic::AssertUnwindSafe(|| cells.set(0, Item::Plain(1)));
    assert!(std::panic::catch_unwind(over).is_err());
    assert_eq!(cells.present(), 0);
    drop(cells);
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
}

#[test]
fn a_panic_in_a_change_empties_the_cell() {
    let counted = Arc::new(0);
    let mut cells = Few::new(1);
    cells.set(0, Item::Counted(Arc::clone(&counted)));
    let change = std::panic::AssertUnwindSafe(|| {
        cells.change(0, |_| -> (Item<[u64; 3], Arc<u64>>, ()) {
            panic!("on purpose")
        })
    });
    assert!(std::panic::catch_unwind(change).is_err());
    assert_eq!((cells.present(), Arc::strong_count(&counted)), (0, 1));
}
