//! Tests of `radix.rs`.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn id(number: u64) -> NodeId {
    NodeId::new(number).expect("not zero")
}

fn record(value: u8) -> Record {
    let place = Place::of_root(id(1 + u64::from(value)));
    Record {
        links: Links::new(place, Children::None),
        attributes: Attributes::new().with("v", [value]),
    }
}

fn value(map: &Radix, id: NodeId) -> Option<u8> {
    let attributes = map.leaf(id)?.attributes(id.slot())?;
    let links = map.links(id)?;
    let value = attributes.get("v").expect("every record has it")[0];
    assert_eq!(links.parent().get(), 1 + u64::from(value));
    Some(value)
}

/// The greatest number of steps, and the numbers that they use; fewer for Miri.
const STEPS: usize = if cfg!(miri) { 40 } else { 300 };
const NUMBERS: u64 = if cfg!(miri) { 400 } else { 5000 };

proptest! {
    #[test]
    fn it_is_a_sorted_map(steps in prop::collection::vec((1..NUMBERS, any::<Option<u8>>()), 1..STEPS)) {
        let (mut map, mut model) = (Radix::new(), BTreeMap::new());
        for (number, new) in steps {
            let before = map.clone();
            map.begin_version();
            let old = model.get(&number).copied();
            match new {
                Some(value) => {
                    map.insert(id(number), record(value));
                    model.insert(number, value);
                }
                None => {
                    let removed = map.remove(id(number)).map(|links| links.parent().get() - 1);
                    prop_assert_eq!(removed, model.remove(&number).map(u64::from));
                }
            }
            prop_assert_eq!(value(&map, id(number)), model.get(&number).copied());
            prop_assert_eq!(value(&before, id(number)), old);
        }
        for number in 1..NUMBERS {
            prop_assert_eq!(value(&map, id(number)), model.get(&number).copied());
        }
    }
}

#[test]
fn an_emptied_map_holds_nothing() {
    let mut map = Radix::new();
    for number in [1, 17, 70_000, u64::MAX / 2] {
        map.insert(id(number), record(1));
    }
    for number in [1, 17, 70_000, u64::MAX / 2] {
        assert!(map.remove(id(number)).is_some());
        assert!(map.remove(id(number)).is_none());
    }
    assert!(map.top.is_empty() && map.tail.is_empty() && map.focus.is_empty());
}

/// The records of a map, found by a walk over its leaves, which must be in order.
fn listed(map: &Radix) -> BTreeMap<u64, u8> {
    let numbers: Vec<u64> = map.leaves().map(|(number, _)| number).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    let records = map.leaves().flat_map(|(number, leaf)| {
        let ids = leaf
            .slots()
            .map(move |slot| NodeId::in_leaf(number, slot).get());
        ids.map(|number| (number, value(map, id(number)).expect("it is listed")))
    });
    records.collect()
}

proptest! {
    #[test]
    fn a_leaf_that_is_changed_again_and_again_stays_in_its_place(
        steps in prop::collection::vec((1..NUMBERS / 10, 1..5_u64, any::<Option<u8>>()), 1..STEPS / 4)
    ) {
        let (mut map, mut model) = (Radix::new(), BTreeMap::new());
        let mut versions = Vec::new();
        for (number, times, new) in steps {
            for number in (0..times).map(|time| (number ^ time).max(1)) {
                match new {
                    Some(value) => {
                        map.insert(id(number), record(value));
                        model.insert(number, value);
                    }
                    None => {
                        let removed = map.remove(id(number)).is_some();
                        prop_assert_eq!(removed, model.remove(&number).is_some());
                    }
                }
                versions.push((map.clone(), model.clone()));
                // Some versions change several leaves, or one leaf several times.
                if number % 3 > 0 {
                    map.begin_version();
                }
            }
        }
        for (map, model) in versions {
            prop_assert_eq!(listed(&map), model);
        }
    }
}

#[test]
fn a_leaf_in_focus_copies_no_branch() {
    let mut map = Radix::new();
    (1..2000).for_each(|number| map.insert(id(number), record(1)));
    let mut versions = Vec::new();
    for value in 0..9 {
        versions.push(map.clone());
        map.begin_version();
        map.insert(id(20), record(value));
    }
    let copied = versions
        .windows(2)
        .filter(|pair| !pair[0].top.is(&pair[1].top));
    assert_eq!(copied.count(), 2);
}

/// The addresses of all branches above leaves.
fn branches(branch: &Branch) -> Vec<usize> {
    let Content::Inner(inner) = branch.content() else {
        return Vec::new();
    };
    let below = inner.0.iter().flat_map(branches);
    below.chain([std::ptr::from_ref(inner).addr()]).collect()
}

#[test]
fn a_version_that_changes_a_leaf_twice_copies_one_path() {
    let mut map = Radix::new();
    (1..2000).for_each(|number| map.insert(id(number), record(1)));
    let mut versions = vec![map.clone()];
    for value in 0..9 {
        map.begin_version();
        let changed = [20, 1900][usize::from(value % 2)];
        map.insert(id(changed), record(value));
        map.insert(id(changed + 1), record(value));
        versions.push(map.clone());
    }
    for pair in versions.windows(2) {
        let [before, after] = [0, 1].map(|side| branches(&pair[side].top));
        let copied = after.iter().filter(|branch| !before.contains(branch));
        assert_eq!(copied.count(), 3);
    }
}
