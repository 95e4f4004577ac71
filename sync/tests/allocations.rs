//! A choice allocates nothing for its branches, and nothing when it waits.

#![allow(unsafe_code)]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

use weald_sync::{Event, Mutex, always, channel, choose, guard, never, one_of, select};

struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations(act: impl FnOnce()) -> u64 {
    let before = COUNT.get();
    act();
    COUNT.get() - before
}

#[test]
fn a_static_choice_allocates_nothing() {
    let ((a, from_a), (full, _from_full)) = (channel::rendezvous(), channel::bounded(1));
    let (buffer, from_buffer) = channel::bounded(1);
    full.try_send(0).unwrap();
    let mutex = Mutex::new(0);
    let held = mutex.try_lock();
    let mut cx = Context::from_waker(Waker::noop());
    let mut rounds = |count| {
        for n in 0..count {
            let nested = choose((
                guard(|| from_a.receive()),
                choose([from_a.receive(), from_a.receive()]),
            ));
            let mut wait = pin!(one_of((full.send(1), nested, mutex.lock())).sync());
            assert!(wait.as_mut().poll(&mut cx).is_pending());
            a.try_send(n).unwrap();
            assert!(wait.poll(&mut cx).is_ready());

            buffer.try_send(n).unwrap();
            let select = pin!(async {
                select! {
                    received = from_buffer.receive() => received.is_ok(),
                    () = never() => false,
                }
            });
            assert!(select.poll(&mut cx) == Poll::Ready(true));
        }
    };
    // The first round allocates the channel's buffer, and the table of locks that units wait for.
    rounds(1);
    assert_eq!(allocations(|| rounds(100)), 0);
    drop(held);
}

#[test]
fn a_list_is_one_allocation_and_a_box_is_two() {
    let list = vec![always(1), always(2), always(3)];
    // The events took one allocation before; the branches take one now.
    assert_eq!(
        allocations(|| assert!(choose(list).try_sync().is_some())),
        1
    );
    let boxed = allocations(|| assert!(always([1; 8]).boxed().try_sync().is_some()));
    assert_eq!(boxed, 2);
}
