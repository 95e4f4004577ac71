//! The wait group: members that end, and waits that are dropped.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use weald_sync::{Wait, WaitGroup};

use crate::hand::{hand, waiting};

#[test]
fn it_waits_for_the_last_member() {
    let group = WaitGroup::new();
    hand(group.wait()).now();
    let one = group.member();
    let other = one.clone();
    assert_eq!(group.members(), 2);
    let waits: Vec<_> = (0..100).map(|_| waiting(group.wait())).collect();
    drop(one);
    assert_eq!(waits[0].wakes(), 0);
    drop(other);
    waits.into_iter().for_each(|wait| wait.woken());
}

#[test]
fn a_group_may_fill_again() {
    let group = WaitGroup::new();
    let handle = group.clone();
    for _round in 0..2 {
        let member = handle.member();
        let wait = waiting(group.wait());
        drop(member);
        let _next = group.member();
        wait.woken();
    }
}

#[test]
fn a_wait_that_is_dropped_leaves_nothing_behind() {
    let group = WaitGroup::new();
    let member = group.member();
    let (one, other) = (waiting(group.wait()), waiting(group.wait()));
    drop(one);
    let third = waiting(group.wait());
    drop(member);
    drop(third);
    other.woken();
}

#[test]
fn a_deadline_leaves_no_waiter_behind() {
    let group = WaitGroup::new();
    let member = group.member();
    assert!(group.wait().within(Duration::ZERO).wait().is_err());
    assert!(
        group
            .wait()
            .within(Duration::from_millis(1))
            .wait()
            .is_err()
    );
    drop(member);
    assert_eq!(group.wait().within(Duration::ZERO).wait(), Ok(()));
}

#[test]
fn it_waits_for_threads() {
    for _ in 0..100 {
        let (group, ended) = (WaitGroup::new(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let member = group.member();
                let ended = &ended;
                scope.spawn(move || {
                    ended.fetch_add(1, Ordering::Relaxed);
                    drop(member);
                });
            }
            group.wait().wait();
            assert_eq!(ended.load(Ordering::Relaxed), 4);
        });
    }
}
