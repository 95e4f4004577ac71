//! Models of the end of a thread and its joiner: the joiner is woken or sees the end, and the block is freed once.

#![allow(unsafe_code)]

use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    task::Poll,
};

use loom::thread;

use super::made_up::{Shared, wait};
use crate::{
    queue::Node,
    thread::state::{AfterEnd, DETACHED, ENDED, STORED, State},
};

/// Ends the thread. Returns whether the caller frees it, now or later.
fn end(state: &State, is_last: bool) -> bool {
    match state.end(is_last) {
        AfterEnd::Nothing => false,
        AfterEnd::Free | AfterEnd::Keep => true,
        AfterEnd::Wake(node) => {
            // SAFETY: the joiner waits until it is marked.
            unsafe { &*node }.take_and_wake();
            false
        }
    }
}

#[test]
fn an_end_wakes_a_joiner_or_is_seen_by_it() {
    loom::model(|| {
        let state = Arc::new(Shared(State::new(STORED)));
        let ended = Arc::clone(&state);
        let ender = thread::spawn(move || assert!(!end(&ended.0, false)));
        let node = Node::new(0);
        let mut waits = None;
        wait(poll_fn(|cx| match waits {
            Some(()) if node.is_woken() => Poll::Ready(()),
            Some(()) => Poll::Pending,
            None => {
                // SAFETY: *lent*: the waker lasts as long as the wait.
                unsafe { node.lend_waker(cx.waker()) };
                match state.0.begin_join(&node) {
                    true => {
                        waits = Some(());
                        Poll::Pending
                    }
                    false => Poll::Ready(()),
                }
            }
        }));
        assert!(state.0.has(ENDED));
        ender.join().unwrap();
    });
}

#[test]
fn a_thread_whose_joiner_gives_up_is_freed_once() {
    loom::model(|| {
        let state = Arc::new(Shared(State::new(STORED)));
        let freed = Arc::new(AtomicU32::new(0));
        let (ended, also) = (Arc::clone(&state), Arc::clone(&freed));
        let ender = thread::spawn(move || also.fetch_add(end(&ended.0, true).into(), Relaxed));
        let node = Node::new(0);
        let frees = match state.0.begin_join(&node) {
            true => state.0.give_join_up(&node),
            // It has ended, and is joined.
            false => true,
        };
        freed.fetch_add(frees.into(), Relaxed);
        ender.join().unwrap();
        assert_eq!(freed.load(Relaxed), 1);
    });
}

#[test]
fn a_thread_that_is_kept_is_not_joined() {
    loom::model(|| {
        let state = Arc::new(Shared(State::new(STORED)));
        let ended = Arc::clone(&state);
        let ender = thread::spawn(move || end(&ended.0, true));
        let is_joined = state.0.note_joiner();
        let is_kept = ender.join().unwrap();
        assert_ne!(is_joined, is_kept);
        assert_eq!(state.0.has(ENDED), is_joined);
    });
}

#[test]
fn a_detached_thread_is_freed_once_by_the_last() {
    loom::model(|| {
        let state = Arc::new(Shared(State::new(0)));
        let (ended, stored) = (Arc::clone(&state), Arc::clone(&state));
        let ender = thread::spawn(move || end(&ended.0, false));
        let maker = thread::spawn(move || stored.0.set(STORED));
        let frees = [
            state.0.set(DETACHED),
            ender.join().unwrap(),
            maker.join().unwrap(),
        ];
        assert_eq!(frees.map(u32::from).iter().sum::<u32>(), 1);
    });
}

/// One that was refused a stack: its joiner waits before its handle is stored, which may be later than its end.
#[test]
fn a_joiner_that_waits_early_frees_what_is_stored() {
    loom::model(|| {
        let state = Arc::new(Shared(State::new(0)));
        let (ended, stored) = (Arc::clone(&state), Arc::clone(&state));
        let ender = thread::spawn(move || assert!(!end(&ended.0, false)));
        let maker = thread::spawn(move || assert!(!stored.0.set(STORED)));
        let node = Node::new(0);
        if state.0.begin_join(&node) {
            node.until_woken();
        }
        while !state.0.has(STORED) {
            thread::yield_now();
        }
        assert!(state.0.has(ENDED));
        ender.join().unwrap();
        maker.join().unwrap();
    });
}
