//! What a choice leaves behind: nothing, whatever its end.

use std::{
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

use weald_sync::{Either, Event, Mutex, Wait, after, channel, choose, of_future, one_of};

use crate::hand::hand;

/// Miri is some thousand times slower.
const SELECTS: u32 = if cfg!(miri) { 100 } else { 1_000_000 };

#[test]
fn a_million_selects_leave_no_waiters() {
    let ((a, from_a), (b, from_b)) = (channel::rendezvous(), channel::rendezvous());
    let (full, _from_full) = channel::bounded(1);
    full.try_send(0).unwrap();
    for n in 0..SELECTS {
        let mut wait =
            std::pin::pin!(one_of((from_a.receive(), full.send(1), from_b.receive())).sync());
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(wait.as_mut().poll(&mut cx).is_pending());
        match n % 3 {
            0 => a.try_send(n).unwrap(),
            1 => b.try_send(n).unwrap(),
            // Dropped.
            _ => continue,
        }
        assert!(wait.poll(&mut cx).is_ready());
    }
    assert_eq!(
        (from_a.waiting(), from_b.waiting(), full.waiting()),
        (0, 0, 0)
    );
}

#[test]
fn a_pending_choice_that_is_dropped_leaves_no_offers() {
    let ((sender, receiver), mutex) = (channel::rendezvous(), Mutex::new(0));
    let guard = mutex.lock().wait();
    let mut wait = hand(one_of((
        sender.send(1),
        receiver.receive(),
        mutex.lock(),
        choose(vec![receiver.receive().boxed(), receiver.receive().boxed()]),
        after(std::time::Duration::from_secs(3600)),
        of_future(std::future::pending::<()>()),
    )));
    assert!(wait.is_pending());
    assert_eq!((sender.waiting(), receiver.waiting()), (1, 3));
    drop(wait);
    assert_eq!((sender.waiting(), receiver.waiting()), (0, 0));
    drop(guard);
    assert!(mutex.try_lock().is_some());
}

#[test]
fn a_value_that_was_handed_to_a_dropped_choice_goes_to_the_next() {
    let ((sender, receiver), (_other, from_other)) = (channel::bounded(1), channel::bounded(1));
    let mut first = hand(choose((receiver.receive(), from_other.receive())));
    let mut second = hand(choose((from_other.receive(), receiver.receive())));
    assert!(first.is_pending() && second.is_pending());
    sender.try_send(1).unwrap();
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    drop(first);
    assert_eq!(second.wakes(), 1);
    assert_eq!(second.ready(), Ok(1));
}

#[test]
fn a_lock_that_was_handed_to_a_dropped_choice_is_free_again() {
    let (mutex, (_sender, receiver)) = (Mutex::new(0), channel::rendezvous::<()>());
    let guard = mutex.lock().wait();
    let mut wait = hand(one_of((mutex.lock(), receiver.receive())));
    assert!(wait.is_pending());
    drop(guard);
    assert_eq!(wait.wakes(), 1);
    drop(wait);
    assert!(mutex.try_lock().is_some());
}

#[test]
fn a_choice_that_nobody_polled_has_taken_nothing() {
    let (sender, receiver) = channel::unbounded();
    sender.try_send(1).unwrap();
    drop(choose((receiver.receive(), receiver.receive())).sync());
    assert_eq!(receiver.try_receive(), Ok(1));
}

#[test]
fn what_a_choice_that_was_ready_has_not_sent_is_dropped() {
    let ((full, _from_full), (sender, receiver)) = (channel::bounded(1), channel::unbounded());
    let value = Arc::new(());
    assert_eq!(full.try_send(Arc::clone(&value)), Ok(()));
    sender.try_send(1).unwrap();
    let send = full.send(Arc::clone(&value));
    let chosen = one_of((receiver.receive(), send)).wait();
    assert!(matches!(chosen, Either::First(Ok(1))));
    assert_eq!(Arc::strong_count(&value), 2, "one in the channel");
}

#[test]
fn a_wait_gives_up_its_waker_however_it_ends() {
    struct Noop;
    impl Wake for Noop {
        fn wake(self: Arc<Self>) {}
    }
    let count = Arc::new(Noop);
    let waker = Waker::from(Arc::clone(&count));
    let mut cx = Context::from_waker(&waker);
    let held = Arc::strong_count(&count);
    let mutex = Mutex::new(0);
    // Ready at once; dropped without a poll; dropped while it waits; ready after a wait, for a lock and for a value.
    assert!(Box::pin(mutex.lock()).as_mut().poll(&mut cx).is_ready());
    drop(Box::pin(mutex.lock()));
    let guard = mutex.lock().wait();
    let [mut dropped, mut ready] = [(); 2].map(|()| Box::pin(mutex.lock()));
    assert!(dropped.as_mut().poll(&mut cx).is_pending());
    assert!(ready.as_mut().poll(&mut cx).is_pending());
    drop(dropped);
    drop(guard);
    assert!(ready.as_mut().poll(&mut cx).is_ready());
    drop(ready);
    let (sender, receiver) = channel::rendezvous();
    let mut receive = Box::pin(receiver.receive());
    assert!(receive.as_mut().poll(&mut cx).is_pending());
    assert_eq!(sender.try_send(7), Ok(()));
    assert!(receive.as_mut().poll(&mut cx) == Poll::Ready(Ok(7)));
    drop(receive);
    assert_eq!(Arc::strong_count(&count), held);
}
