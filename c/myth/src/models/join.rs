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
    thread::state::{AfterEnd, ENDED, STORED, State},
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
