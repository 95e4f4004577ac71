//! A chain behaves like a deque, keeps marks between messages, and drops its messages although some panic.

#![allow(clippy::borrowed_box, reason = "the messages are boxes")]

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use crate::job::JobPtr;

fn stack(values: std::ops::Range<u32>) -> *mut Link {
    values.fold(std::ptr::null_mut(), |older, value| {
        let link =
            MessageNode::new(Box::new(value), JobPtr::from_raw(NonNull::dangling())).into_link();
        // SAFETY: a new node.
        unsafe { set_next(link.as_ptr(), older) };
        link.as_ptr()
    })
}

#[test]
fn a_chain_drops_its_messages_although_some_panic() {
    struct Message<'a>(u32, &'a std::cell::RefCell<Vec<u32>>);
    impl Drop for Message<'_> {
        fn drop(&mut self) {
            self.1.borrow_mut().push(self.0);
            if self.0.is_multiple_of(2) {
                resume_unwind(Box::new(self.0));
            }
        }
    }
    let dropped = std::cell::RefCell::new(Vec::new());
    let mut chain = MessageChain::<Message<'_>>::new();
    let job = JobPtr::from_raw(NonNull::dangling());
    for number in 1..=5 {
        let link = MessageNode::new(Message(number, &dropped), job).into_link();
        // SAFETY: a new node.
        unsafe { set_next(link.as_ptr(), std::ptr::null_mut()) };
        // SAFETY: a stack of one new node.
        unsafe { chain.links.append_stack(link.as_ptr()) };
    }
    let panic = catch_unwind(AssertUnwindSafe(|| drop(chain))).unwrap_err();
    assert_eq!(panic.downcast_ref::<u32>(), Some(&2));
    assert_eq!(*dropped.borrow(), [1, 2, 3, 4, 5]);
}

proptest! {
    /// Against a deque: the same values in the same order, whatever is removed from the middle.
    #[test]
    fn behaves_like_a_deque(steps in prop::collection::vec((0..4_u8, 0..9_u32), 0..200)) {
        let mut chain = MessageChain::<Box<u32>>::new();
        let mut naive = VecDeque::new();
        let mut next = 0;
        for (what, number) in steps {
            match what {
                0 => {
                    // SAFETY: the stack was just built from such nodes.
                    let count =
                        unsafe { chain.links.append_stack(stack(next..next + number)) };
                    prop_assert_eq!(count, number as usize);
                    naive.extend(next..next + number);
                    next += number;
                }
                1 => prop_assert_eq!(chain.pop().map(|value| *value), naive.pop_front()),
                _ => {
                    let wanted = |value: u32| value % 10 == number;
                    let mut scan = Scan::START;
                    // SAFETY: it begins here.
                    let taken = unsafe { chain.take_if(&mut scan, |value| wanted(**value)) };
                    let place = naive.iter().position(|value| wanted(*value));
                    let expected = place.and_then(|place| naive.remove(place));
                    prop_assert_eq!(taken.map(|value| *value), expected);
                    if place.is_none() {
                        // A scan that found nothing resumes after the last message it saw.
                        // SAFETY: as above.
                        unsafe { chain.links.append_stack(stack(next..next + 3)) };
                        naive.extend(next..next + 3);
                        let mut seen = Vec::new();
                        let note = |value: &Box<u32>| {
                            seen.push(**value);
                            false
                        };
                        // SAFETY: nothing was removed since it began.
                        let _none = unsafe { chain.take_if(&mut scan, note) };
                        prop_assert_eq!(seen, (next..next + 3).collect::<Vec<_>>());
                        next += 3;
                    }
                }
            }
            prop_assert_eq!(chain.links.is_empty(), naive.is_empty());
            prop_assert_eq!(chain.links.len(), naive.len());
        }
    }
}

/// What a mark is, told without nodes: values are given in rising order, and all below the bound are before it.
#[derive(Default)]
struct NaiveMark {
    mark: Mark,
    bound: u32,
}

/// What the naive scan from `bound` on looks at, and what it takes.
fn naive_scan(
    values: &mut VecDeque<u32>,
    bound: &mut u32,
    wanted: impl Fn(u32) -> bool,
) -> (Vec<u32>, Option<u32>) {
    let mut seen = Vec::new();
    for place in 0..values.len() {
        let value = values[place];
        if value < *bound {
            continue;
        }
        seen.push(value);
        if wanted(value) {
            values.remove(place);
            return (seen, Some(value));
        }
        *bound = value + 1;
    }
    (seen, None)
}

proptest! {
    /// Several marks against their bounds: each scan looks at the messages behind its mark, at no other, in their
    /// order, whatever other scans and receives remove, and whatever marks are made and dropped between.
    #[test]
    fn marks_stay_between_the_messages_where_they_stood(
        steps in prop::collection::vec((0..7_u8, 0..9_u32, 0..5_usize), 0..300)
    ) {
        let mut chain = MessageChain::<Box<u32>>::new();
        let mut naive = VecDeque::new();
        let mut marks: Vec<NaiveMark> = (0..5).map(|_| NaiveMark::default()).collect();
        let mut next = 0;
        for (what, number, which) in steps {
            match what {
                0 => {
                    // SAFETY: the stack was just built from such nodes.
                    let count = unsafe { chain.links.append_stack(stack(next..next + number)) };
                    prop_assert_eq!(count, number as usize);
                    naive.extend(next..next + number);
                    next += number;
                }
                1 => for _ in 0..number {
                    prop_assert_eq!(chain.pop().map(|value| *value), naive.pop_front());
                },
                2 => {
                    let wanted = |value: &Box<u32>| **value % 10 == number;
                    // SAFETY: it begins here.
                    let taken = unsafe { chain.take_if(&mut Scan::START.clone(), wanted) };
                    let (_, expected) = naive_scan(&mut naive, &mut 0, |v| v % 10 == number);
                    prop_assert_eq!(taken.map(|value| *value), expected);
                }
                3 => {
                    let mut mark = Mark::oldest();
                    chain.links.mark_newest(&mut mark);
                    marks[which] = NaiveMark { mark, bound: next };
                }
                4 => marks[which] = NaiveMark::default(),
                _ => {
                    let NaiveMark { mark, bound } = &mut marks[which];
                    let mut scan = chain.links.scan_since(mark);
                    let mut seen = Vec::new();
                    let wanted = |value: &Box<u32>| {
                        seen.push(**value);
                        **value % 10 == number
                    };
                    // SAFETY: it begins here.
                    let taken = unsafe { chain.take_if(&mut scan, wanted) };
                    // SAFETY: only this scan has removed anything since.
                    unsafe { chain.links.set_mark(mark, scan) };
                    let expected = naive_scan(&mut naive, bound, |v| v % 10 == number);
                    prop_assert_eq!((seen, taken.map(|value| *value)), expected);
                }
            }
            prop_assert_eq!(chain.links.is_empty(), naive.is_empty());
            prop_assert_eq!(chain.links.len(), naive.len());
        }
    }
}

#[test]
fn a_chain_forgets_marks_that_were_dropped() {
    let mut chain = MessageChain::<Box<u32>>::new();
    // SAFETY: the stack was just built from such nodes.
    unsafe { chain.links.append_stack(stack(0..3)) };
    for _ in 0..1_000 {
        chain.links.mark_newest(&mut Mark::oldest());
    }
    // The place and the name of a mark that was dropped serve the next one.
    assert_eq!(chain.links.table().unwrap().places(), 1);
    let mut kept: Vec<_> = (0..9).map(|_| Mark::oldest()).collect();
    kept.iter_mut()
        .for_each(|mark| chain.links.mark_newest(mark));
    assert_eq!(chain.links.table().unwrap().places(), 9);
    while chain.pop().is_some() {}
    assert!(chain.links.table().is_none());
}

#[test]
fn a_mark_of_another_chain_stands_before_the_oldest_message() {
    let [mut one, mut two] = [MessageChain::<Box<u32>>::new(), MessageChain::new()];
    let mut mark = Mark::oldest();
    for chain in [&mut one, &mut two] {
        // SAFETY: the stack was just built from such nodes.
        unsafe { chain.links.append_stack(stack(0..3)) };
        let scan = chain.links.scan_since(&mark);
        assert!(scan.0.is_null());
        chain.links.mark_newest(&mut mark);
        assert_eq!(chain.links.scan_since(&mark).0, chain.links.last());
    }
    assert!(one.links.scan_since(&mark).0.is_null());
    drop(one);
    assert_eq!(two.links.scan_since(&mark).0, two.links.last());
}
