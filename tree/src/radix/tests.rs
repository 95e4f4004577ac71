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
    let attributes = map.leaf(id)?.attributes(slot_of(id))?;
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
    assert!(map.top.is_empty() && map.tail.leaf.is_empty());
}
