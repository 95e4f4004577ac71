//! An unpark ends a park, whichever waker polled it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tools::{on_each, until};
use weald_kernel::park;

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
