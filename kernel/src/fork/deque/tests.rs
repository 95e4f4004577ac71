//! When a thief interrupts the owner by a heavy fence, and when not. The test's thread is owner and thief in turn.

#![allow(unsafe_code)]

use std::ptr;

use super::*;

/// A deque of numbers whose owner has responded, so that it is not alerted.
fn calm() -> Deque<u32, u32> {
    barrier::register();
    let deque = Deque::new();
    // SAFETY: this thread is the owner.
    unsafe { deque.reset_limit() };
    deque
}

/// Pushes an entry, and responds if the push says so. Returns whether it did.
fn push(deque: &Deque<u32, u32>, entry: &u32) -> bool {
    // SAFETY: this thread is the owner.
    let (_, must_respond) = unsafe { deque.push(ptr::from_ref(entry).cast_mut()) };
    if must_respond {
        // SAFETY: as above.
        unsafe { deque.reset_limit() };
    }
    must_respond
}

/// Whether the owner gets its latest entry back, which is at `place`.
fn pop(deque: &Deque<u32, u32>, place: usize) -> bool {
    // SAFETY: this thread is the owner.
    let is_back = unsafe { deque.pop(place) };
    // SAFETY: as above.
    is_back || unsafe { deque.judge(place) } == Verdict::Kept
}

/// Steals the oldest entry. Returns it, and the number of heavy fences.
fn steal(deque: &Deque<u32, u32>) -> (Option<u32>, usize) {
    let before = barrier::heavy_fences();
    let stolen = deque.steal(
        || true,
        |entry| {
            // SAFETY: the entries of these tests live until their end.
            let number = unsafe { *entry };
            (number, number)
        },
    );
    (stolen, barrier::heavy_fences() - before)
}

#[test]
fn what_the_owner_shares_is_stolen_without_a_heavy_fence() {
    let deque = calm();
    deque.alert();
    assert!(push(&deque, &1));
    assert!(!push(&deque, &2));
    assert_eq!(steal(&deque), (Some(1), 0));
    // The thief has asked for the next entry. The owner shares it, and the one before, at its next push.
    assert!(push(&deque, &3));
    assert_eq!(steal(&deque), (Some(2), 0));
    assert_eq!(steal(&deque), (Some(3), 0));
    assert!(!pop(&deque, 2));
}

#[test]
fn an_owner_that_is_asked_shares_at_its_next_push() {
    let deque = calm();
    assert!(!push(&deque, &1));
    deque.ask_for(0);
    assert!(push(&deque, &2));
    assert_eq!(steal(&deque), (Some(1), 0));
}

#[test]
fn an_owner_that_does_not_push_is_interrupted() {
    let deque = calm();
    assert!(!push(&deque, &1));
    assert_eq!(steal(&deque), (Some(1), 1));
}

#[test]
fn what_is_pushed_to_a_place_that_was_shared_is_the_owners_own() {
    let deque = calm();
    deque.alert();
    assert!(push(&deque, &1));
    assert!(pop(&deque, 0));
    assert!(!push(&deque, &2));
    // SAFETY: this thread is the owner.
    assert!(unsafe { deque.pop(0) });
    assert_eq!(steal(&deque), (None, 0));
}

#[test]
fn what_the_owner_has_withdrawn_is_not_stolen() {
    let deque = calm();
    push(&deque, &1);
    push(&deque, &2);
    push(&deque, &3);
    assert_eq!(steal(&deque).0, Some(1));
    // SAFETY: this thread is the owner.
    unsafe { deque.withdraw() };
    assert_eq!(steal(&deque).0, None);
    push(&deque, &4);
    assert_eq!(steal(&deque).0, Some(4));
    assert!(!pop(&deque, 3));
    // SAFETY: as above.
    unsafe { deque.give_up(3) };
    assert!(pop(&deque, 2));
    assert!(pop(&deque, 1));
    // The next one in this place can be stolen.
    push(&deque, &5);
    assert_eq!(steal(&deque).0, Some(5));
}
