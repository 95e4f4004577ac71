//! An unpark ends a park, whichever waker polled it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tools::{on_each, until};
use weald_kernel::{Wait, park, timeout};

#[test]
fn a_park_in_a_set_of_futures_ends() {
    on_each(|runtime| {
        let polls = Arc::new(AtomicUsize::new(0));
        let counts = polls.clone();
        let job = runtime.spawn(async move {
            for _ in 0..3 {
                let mut set = FuturesUnordered::from_iter([park()]);
                let mut next = pin!(set.next());
                poll_fn(|cx| {
                    let polled = next.as_mut().poll(cx);
                    if polled.is_pending() {
                        counts.fetch_add(1, Ordering::SeqCst);
                    }
                    polled
                })
                .await
                .unwrap();
            }
            // Here the job's own waker counts again.
            park().await;
        });
        let unparker = job.unparker().unwrap();
        for round in 1..=3 {
            until(|| polls.load(Ordering::SeqCst) >= round);
            unparker.unpark();
        }
        until(|| {
            unparker.unpark();
            job.is_finished()
        });
        runtime.block_on(job).unwrap();
    });
}

/// A park that was polled with another waker than the job's, and then dropped.
async fn abandoned_park() {
    let mut set = FuturesUnordered::from_iter([park()]);
    let mut next = pin!(set.next());
    let polled = poll_fn(|cx| Poll::Ready(next.as_mut().poll(cx))).await;
    assert!(polled.is_pending());
}

/// A job does `before`, and then parks; one unpark ends that park.
fn one_unpark_ends_a_park_after<F: Future<Output = ()> + Send + 'static>(before: impl Fn() -> F) {
    on_each(|runtime| {
        let parks = Arc::new(AtomicBool::new(false));
        let (polled, before) = (parks.clone(), before());
        let job = runtime.spawn(async move {
            before.await;
            let mut park = pin!(park());
            poll_fn(|cx| {
                let ended = park.as_mut().poll(cx);
                polled.store(true, Ordering::SeqCst);
                ended
            })
            .await;
        });
        until(|| parks.load(Ordering::SeqCst));
        job.unparker().unwrap().unpark();
        runtime.block_on(job).unwrap();
    });
}

#[test]
fn one_unpark_ends_the_park_after_one_that_was_dropped_in_a_set() {
    one_unpark_ends_a_park_after(abandoned_park);
}

/// Parks for a moment when it is dropped.
struct ParksInDrop;

impl Drop for ParksInDrop {
    fn drop(&mut self) {
        assert!(timeout(Duration::from_millis(1), park()).wait().is_err());
    }
}

#[test]
fn one_unpark_ends_the_park_after_one_that_timed_out_while_unwinding() {
    one_unpark_ends_a_park_after(|| async {
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let _parks = ParksInDrop;
            panic!("the destructor waits while this unwinds");
        }));
        assert!(caught.is_err());
    });
}

/// A waker whose call panics, after it has woken a job.
struct PanicsWhenWoken(Waker);

impl Wake for PanicsWhenWoken {
    fn wake(self: Arc<Self>) {
        self.0.wake_by_ref();
        panic!("this waker panics");
    }
}

#[test]
fn a_waker_that_panics_does_not_unwind_the_unit_that_unparks() {
    on_each(|runtime| {
        let polled = Arc::new(AtomicBool::new(false));
        let polls = polled.clone();
        let job = runtime.spawn(async move {
            let mut park = pin!(park());
            poll_fn(|cx| {
                let waker = Waker::from(Arc::new(PanicsWhenWoken(cx.waker().clone())));
                let ended = park.as_mut().poll(&mut Context::from_waker(&waker));
                polls.store(true, Ordering::SeqCst);
                ended
            })
            .await;
        });
        until(|| polled.load(Ordering::SeqCst));
        let unparker = job.unparker().unwrap();
        let unparks = runtime.spawn(async move { unparker.unpark() });
        runtime.block_on(unparks).unwrap();
        runtime.block_on(job).unwrap();
    });
}

/// Records that it was woken, and wakes a job.
struct Record {
    woken: AtomicBool,
    job: Mutex<Waker>,
}

impl Wake for Record {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        self.job.lock().unwrap().wake_by_ref();
    }
}

#[test]
fn a_park_wakes_only_the_waker_that_polled_it_last() {
    on_each(|runtime| {
        let polled = Arc::new(AtomicBool::new(false));
        let sets = polled.clone();
        let job = runtime.spawn(async move {
            let mut park = pin!(park());
            let records = poll_fn(|cx| {
                let records = || {
                    Arc::new(Record {
                        woken: AtomicBool::new(false),
                        job: Mutex::new(cx.waker().clone()),
                    })
                };
                Poll::Ready([records(), records()])
            })
            .await;
            for records in &records {
                let waker = Waker::from(records.clone());
                assert!(
                    park.as_mut()
                        .poll(&mut Context::from_waker(&waker))
                        .is_pending()
                );
            }
            poll_fn(|_| {
                sets.store(true, Ordering::SeqCst);
                match records[1].woken.load(Ordering::SeqCst) {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                }
            })
            .await;
            assert!(!records[0].woken.load(Ordering::SeqCst));
            park.await;
        });
        until(|| polled.load(Ordering::SeqCst));
        job.unparker().unwrap().unpark();
        runtime.block_on(job).unwrap();
    });
}
