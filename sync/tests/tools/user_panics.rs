//! User code that panics inside a tool: wakers, and `Clone`. No other unit is affected.

use std::{
    cell::Cell,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use weald_sync::{
    Event, MVar, Mutex, Semaphore, Source, Wait, after, channel, choose, holders, of_source,
};

use crate::hand::waiting;

struct BadWaker;

impl Wake for BadWaker {
    fn wake(self: Arc<Self>) {
        panic!("a waker panics");
    }
}

struct BadClone;

impl Clone for BadClone {
    fn clone(&self) -> BadClone {
        panic!("a clone panics");
    }
}

fn poll_badly<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    let waker = Waker::from(Arc::new(BadWaker));
    future.poll(&mut Context::from_waker(&waker))
}

#[test]
fn a_clone_that_panics_in_a_choice_does_not_abort() {
    let (mvar, (_sender, receiver)) = (MVar::empty(), channel::unbounded::<u8>());
    let read = mvar.read().wrap(|_: BadClone| ());
    let mut choice = waiting(choose((read, receiver.receive().wrap(|_| ()))).into_future());
    assert!(mvar.try_put(BadClone).is_ok());
    assert!(catch_unwind(AssertUnwindSafe(|| choice.poll())).is_err());
    drop(choice);
    assert_eq!(receiver.waiting(), 0);
    assert!(mvar.try_take().is_some(), "the value is back");
}

/// Puts a value when it is polled, and is never ready.
struct Puts<'a>(&'a MVar<BadClone>);

impl Source for Puts<'_> {
    type Output = ();

    fn poll_ready(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<()> {
        let _full = self.0.try_put(BadClone);
        Poll::Pending
    }

    fn take(self: Pin<&mut Self>) {}
}

#[test]
fn a_clone_that_panics_while_a_choice_enrols_does_not_abort() {
    // Which event is attempted first is random.
    for _ in 0..64 {
        let mvar = MVar::empty();
        let choice = choose((mvar.read().wrap(|_| ()), of_source(Puts(&mvar))));
        let mut choice = Box::pin(choice.into_future());
        let mut cx = Context::from_waker(Waker::noop());
        let _panics = catch_unwind(AssertUnwindSafe(|| choice.as_mut().poll(&mut cx)));
        drop(choice);
        assert!(mvar.try_take().is_some(), "the value is back");
    }
}

#[test]
fn a_waker_that_panics_while_a_choice_is_dropped_does_not_abort() {
    let (semaphore, (_sender, receiver)) = (Semaphore::new(1), channel::unbounded::<u8>());
    let many = semaphore.acquire_many(5).wrap(|_| ());
    let choice = waiting(choose((many, receiver.receive().wrap(|_| ()))).into_future());
    let mut behind = Box::pin(semaphore.acquire());
    assert!(poll_badly(behind.as_mut()).is_pending());
    drop(choice);
    assert_eq!(receiver.waiting(), 0);
}

#[test]
fn other_waiters_are_woken_even_if_a_waker_panics() {
    let semaphore = Semaphore::new(0);
    let mut first = Box::pin(semaphore.acquire());
    assert!(poll_badly(first.as_mut()).is_pending());
    let others: Vec<_> = (0..40).map(|_| waiting(semaphore.acquire())).collect();
    semaphore.close();
    for other in others {
        assert!(other.woken().is_err());
    }
}

#[test]
fn deadlines_come_even_after_a_waker_panicked() {
    /// Reports that it was woken, and panics.
    struct Telling(std::sync::mpsc::Sender<()>);
    impl Wake for Telling {
        fn wake(self: Arc<Self>) {
            self.0.send(()).unwrap();
            panic!("this waker panics");
        }
    }
    let (woken, is_woken) = std::sync::mpsc::channel();
    let waker = Waker::from(Arc::new(Telling(woken)));
    let mut first = Box::pin(after(Duration::from_millis(1)).into_future());
    let polled = first.as_mut().poll(&mut Context::from_waker(&waker));
    // Already ready if this thread was held up for that long.
    if polled.is_pending() {
        is_woken.recv().unwrap();
    }
    after(Duration::from_millis(1)).wait();
}

#[test]
fn a_wait_that_is_leaked_leaves_no_pointer_to_its_mutex() {
    let mutex = Box::new(Mutex::new(0_u64));
    let object = std::ptr::from_ref(&*mutex).addr();
    std::mem::forget(mutex.try_lock());
    let mut wait = Box::pin(mutex.lock());
    let mut cx = Context::from_waker(Waker::noop());
    assert!(wait.as_mut().poll(&mut cx).is_pending());
    std::mem::forget(wait);
    drop(mutex);
    let other = Box::new([0x4141_4141_4140_u64; 3]);
    let found = (0..32)
        .step_by(8)
        .find_map(|offset| holders::holder(object + offset));
    assert_eq!(found, None);
    drop(other);
}

struct BadDrop<'a>(&'a Cell<u32>);

impl Drop for BadDrop<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
        panic!("a destructor panics");
    }
}

#[test]
fn values_whose_destructors_panic_in_a_channel_do_not_abort() {
    let dropped = Cell::new(0);
    let filled = || {
        let (sender, receiver) = channel::unbounded();
        (0..3).for_each(|_| assert!(sender.try_send(BadDrop(&dropped)).is_ok()));
        receiver
    };
    let receiver = filled();
    assert!(catch_unwind(AssertUnwindSafe(|| drop(receiver))).is_err());
    assert_eq!(dropped.get(), 3);
    // The same while the thread unwinds already.
    let unwinds = || {
        let _receiver = filled();
        panic!("on purpose");
    };
    let payload = catch_unwind(AssertUnwindSafe(unwinds)).unwrap_err();
    assert_eq!(payload.downcast_ref(), Some(&"on purpose"));
    assert_eq!(dropped.get(), 6);
}
