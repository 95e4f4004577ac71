//! Futures from elsewhere: channels and combinators of the futures crates, and a one-shot over `std` threads.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
    thread,
};

use futures_channel::{mpsc, oneshot};
use futures_util::{
    FutureExt, SinkExt, StreamExt,
    future::{join_all, select_all},
    stream::FuturesUnordered,
};
use tools::{for_seeds, on_each, runtime};
use weald_kernel::{sleep, spawn, timeout, yield_now};

#[test]
fn foreign_channels_deliver_everything_in_order() {
    on_each(|runtime| {
        runtime.block_on(async {
            let (mut sender, mut receiver) = mpsc::channel::<u32>(3);
            let sending = spawn(async move {
                for n in 0..2_000 {
                    sender.send(n).await.unwrap();
                }
            });
            let receiving = spawn(async move {
                let mut next = 0;
                while let Some(n) = receiver.next().await {
                    assert_eq!(n, next);
                    next += 1;
                }
                next
            });
            sending.await.unwrap();
            assert_eq!(receiving.await.unwrap(), 2_000);
        });
    });
}

#[test]
fn a_chain_of_oneshots_passes_a_value_on() {
    on_each(|runtime| {
        runtime.block_on(async {
            let (first, mut last) = oneshot::channel::<u32>();
            for _ in 0..1_000 {
                let (sender, receiver) = oneshot::channel();
                let before = std::mem::replace(&mut last, receiver);
                spawn(async move { sender.send(before.await.unwrap() + 1).unwrap() }).detach();
            }
            first.send(0).unwrap();
            assert_eq!(last.await.unwrap(), 1_000);
        });
    });
}

#[test]
fn join_all_and_futures_unordered_poll_jobs_sleeps_and_yields() {
    on_each(|runtime| {
        runtime.block_on(async {
            let all = join_all((0..200_u64).map(|n| spawn(async move { n }))).await;
            assert_eq!(all.into_iter().map(Result::unwrap).sum::<u64>(), 19_900);
            let inside = spawn(async {
                let mut unordered: FuturesUnordered<_> = (0..200_u64)
                    .map(|n| async move {
                        match n % 3 {
                            0 => yield_now().await,
                            1 => sleep(std::time::Duration::from_millis(n % 5)).await,
                            _ => spawn(async {}).await.unwrap(),
                        }
                        n
                    })
                    .collect();
                let mut sum = 0;
                while let Some(n) = unordered.next().await {
                    sum += n;
                }
                sum
            });
            assert_eq!(inside.await.unwrap(), 19_900);
        });
    });
}

#[test]
fn futures_that_lose_a_select_are_dropped_without_harm() {
    on_each(|runtime| {
        runtime.block_on(async {
            for round in 0..100_usize {
                let (senders, receivers): (Vec<_>, Vec<_>) =
                    (0..5).map(|_| oneshot::channel::<usize>()).unzip();
                let wins = round % 5;
                let sent = spawn(async move {
                    senders.into_iter().nth(wins).unwrap().send(round).unwrap();
                    // The other senders are dropped here, which wakes their receivers too.
                });
                let mut left: Vec<_> = receivers.into_iter().map(FutureExt::boxed).collect();
                let value = loop {
                    let (result, _, rest) = select_all(left).await;
                    if let Ok(value) = result {
                        break value;
                    }
                    left = rest;
                };
                assert_eq!(value, round);
                sent.await.unwrap();
            }
        });
    });
}

/// A one-shot that uses only `std`.
struct Shot<T>(Arc<Mutex<(Option<T>, Option<Waker>)>>);

impl<T> Future for Shot<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let mut inner = self.0.lock().unwrap();
        if let Some(value) = inner.0.take() {
            return Poll::Ready(value);
        }
        inner.1 = Some(cx.waker().clone());
        Poll::Pending
    }
}

fn from_thread<T: Send + 'static>(make: impl FnOnce() -> T + Send + 'static) -> Shot<T> {
    let inner = Arc::new(Mutex::new((None, None::<Waker>)));
    let shot = Shot(inner.clone());
    thread::spawn(move || {
        let value = make();
        let waker = {
            let mut inner = inner.lock().unwrap();
            inner.0 = Some(value);
            inner.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    });
    shot
}

#[test]
fn threads_complete_futures_that_jobs_await() {
    for_seeds(3, |random| {
        let runtime = runtime(1 + random.below(4));
        let jobs: Vec<_> = (0..60_u64)
            .map(|n| {
                let spins = random.below(500);
                let shot = from_thread(move || {
                    for _ in 0..spins {
                        std::hint::spin_loop();
                    }
                    n
                });
                runtime.spawn(async move {
                    match n % 2 {
                        0 => shot.await,
                        _ => timeout(std::time::Duration::from_secs(50), shot)
                            .await
                            .unwrap(),
                    }
                })
            })
            .collect();
        let sum: u64 = jobs
            .into_iter()
            .map(|job| runtime.block_on(job).unwrap())
            .sum();
        assert_eq!(sum, 1_770);
    });
}

#[test]
fn sleeps_and_handles_work_under_another_executor() {
    on_each(|runtime| {
        let job = runtime.spawn(async {
            yield_now().await;
            3
        });
        // A waker of our own, on a thread that belongs to no runtime.
        struct Unpark(thread::Thread);
        impl std::task::Wake for Unpark {
            fn wake(self: Arc<Self>) {
                self.0.unpark();
            }
        }
        let value = thread::spawn(move || {
            let waker = Waker::from(Arc::new(Unpark(thread::current())));
            let mut both = std::pin::pin!(async {
                sleep(std::time::Duration::from_millis(2)).await;
                job.await.unwrap()
            });
            loop {
                match both.as_mut().poll(&mut Context::from_waker(&waker)) {
                    Poll::Ready(value) => return value,
                    Poll::Pending => thread::park(),
                }
            }
        });
        assert_eq!(value.join().unwrap(), 3);
    });
}
