//! Wakers: any thread can wake a job, through any number of clones, however long they are kept.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::async_yields_async, reason = "a block_on returns handles")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    future::poll_fn,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    task::{Context, Poll, Wake, Waker},
    thread,
};

use tools::{Drops, for_seeds, on_each, runtime, until, watch};
use weald_kernel::{Mailbox, Spawn, spawn, yield_now};

#[test]
fn a_job_woken_during_its_poll_is_polled_again() {
    on_each(|runtime| {
        let mut polls = 0;
        let count = runtime.block_on(runtime.spawn(poll_fn(move |cx| {
            polls += 1;
            if polls == 100 {
                return Poll::Ready(polls);
            }
            // Two wakes, one through a clone: still one more poll.
            cx.waker().wake_by_ref();
            let clone = cx.waker().clone();
            clone.wake();
            Poll::Pending
        })));
        assert_eq!(count.unwrap(), 100);
    });
}

#[test]
fn two_wakes_of_a_waiting_job_cause_one_poll() {
    let _watch = watch();
    let runtime = runtime(1);
    let (sender, receiver) = mpsc::channel::<Waker>();
    let polls = Arc::new(AtomicUsize::new(0));
    let counted = polls.clone();
    let job = runtime.spawn(poll_fn(move |cx| {
        sender.send(cx.waker().clone()).unwrap();
        match counted.fetch_add(1, Ordering::SeqCst) {
            2 => Poll::Ready(()),
            _ => Poll::<()>::Pending,
        }
    }));
    let waker = receiver.recv().unwrap();
    // Wakes twice within one run of another job on the only worker, so that no poll comes between.
    let (first, second) = (waker.clone(), waker);
    runtime
        .block_on(runtime.spawn(async move {
            yield_now().await;
            first.wake();
            second.wake();
            yield_now().await;
            yield_now().await;
        }))
        .unwrap();
    let last = receiver.recv().unwrap();
    assert_eq!(polls.load(Ordering::SeqCst), 2);
    last.wake();
    runtime.block_on(job).unwrap();
}

#[test]
fn wakes_from_many_foreign_threads_are_never_lost() {
    for_seeds(3, |random| {
        let runtime = runtime(1 + random.below(4));
        let jobs = 8;
        let rounds = 300;
        let (sender, receiver) = mpsc::channel::<Waker>();
        let receiver = Arc::new(Mutex::new(receiver));
        let wakers: Vec<_> = (0..3)
            .map(|_| {
                let receiver = receiver.clone();
                thread::spawn(move || {
                    loop {
                        let waker = receiver.lock().unwrap().recv();
                        match waker {
                            Ok(waker) => waker.wake(),
                            Err(_) => return,
                        }
                    }
                })
            })
            .collect();
        let handles: Vec<_> = (0..jobs)
            .map(|_| {
                let sender = sender.clone();
                let mut left = rounds;
                runtime.spawn(poll_fn(move |cx| {
                    if left == 0 {
                        return Poll::Ready(());
                    }
                    left -= 1;
                    sender.send(cx.waker().clone()).unwrap();
                    Poll::Pending
                }))
            })
            .collect();
        drop(sender);
        for handle in handles {
            runtime.block_on(handle).unwrap();
        }
        for thread in wakers {
            thread.join().unwrap();
        }
    });
}

/// The waker of a job that waits forever and holds a token of `drops`.
fn parked(runtime: &weald_kernel::Runtime, drops: &Drops) -> (Waker, weald_kernel::JoinHandle<()>) {
    let (sender, receiver) = mpsc::channel();
    let token = drops.token();
    let job = runtime.spawn(async move {
        let _token = token;
        poll_fn(|cx| {
            let _ = sender.send(cx.waker().clone());
            Poll::<()>::Pending
        })
        .await;
    });
    (receiver.recv().unwrap(), job)
}

#[test]
fn a_waker_kept_after_its_job_does_nothing() {
    on_each(|runtime| {
        let drops = Drops::default();
        let (waker, job) = parked(runtime, &drops);
        job.cancel();
        assert!(runtime.block_on(job).unwrap_err().is_cancelled());
        assert_eq!(drops.count(), 1);
        // The job's block must not be reused while the waker lives.
        let runs = Arc::new(AtomicUsize::new(0));
        for _ in 0..1_000 {
            let runs = runs.clone();
            let other = runtime.spawn(async move {
                runs.fetch_add(1, Ordering::SeqCst);
                std::future::pending::<()>().await;
            });
            waker.wake_by_ref();
            other.detach();
        }
        until(|| runs.load(Ordering::SeqCst) == 1_000);
        waker.wake();
    });
}

#[test]
fn a_waker_kept_after_its_runtime_does_nothing() {
    let _watch = watch();
    for workers in [1, 2, 4] {
        let drops = Drops::default();
        let runtime = runtime(workers);
        let (waker, job) = parked(&runtime, &drops);
        drop(runtime);
        assert_eq!(drops.count(), 1);
        waker.wake_by_ref();
        thread::spawn(move || waker.wake()).join().unwrap();
        // The handle still reports how the job ended.
        assert!(tools::runtime(1).block_on(job).unwrap_err().is_cancelled());
    }
}

#[test]
fn a_waker_is_dropped_on_any_thread_and_keeps_no_future_alive() {
    on_each(|runtime| {
        let drops = Drops::default();
        let kept: Vec<_> = (0..100).map(|_| parked(runtime, &drops)).collect();
        let (wakers, jobs): (Vec<_>, Vec<_>) = kept.into_iter().unzip();
        for job in &jobs {
            job.cancel();
        }
        for job in jobs {
            assert!(runtime.block_on(job).is_err());
        }
        assert_eq!(drops.count(), 100);
        thread::spawn(move || drop(wakers)).join().unwrap();
    });
}

#[test]
fn dropping_a_mailbox_drops_the_waker_of_its_receiver() {
    struct Foreign;
    impl Wake for Foreign {
        fn wake(self: Arc<Self>) {}
    }
    on_each(|runtime| {
        let (moves_out, moved) = mpsc::channel();
        let make = |mailbox: Mailbox<u32>| async move {
            moves_out.send(mailbox).unwrap();
            std::future::pending::<()>().await;
        };
        let spawned = runtime.block_on(async { Spawn::new().spawn_with_mailbox(make) });
        let (job, address) = spawned.unwrap();
        let mut mailbox = moved.recv().unwrap();
        let foreign = Arc::new(Foreign);
        let waker = Waker::from(foreign.clone());
        let polled = mailbox.poll_receive(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        drop(waker);
        assert_eq!(Arc::strong_count(&foreign), 2);
        drop(mailbox);
        assert_eq!(Arc::strong_count(&foreign), 1);
        assert_eq!(address.post(1), Err(1));
        job.cancel();
    });
}

#[test]
fn a_job_woken_from_another_runtime_runs_in_its_own() {
    let _watch = watch();
    let (first, second) = (runtime(2), runtime(2));
    let latch = tools::Latch::default();
    let waits = latch.clone();
    let job = first.spawn(async move {
        waits.await;
        // A job of the first runtime spawns into the first.
        spawn(async { thread::current().name().map(str::to_owned) })
            .await
            .unwrap()
    });
    until(|| latch.waiters() == 1);
    second
        .block_on(second.spawn(async move { latch.open() }))
        .unwrap();
    first.block_on(job).unwrap();
    until(|| first.metrics().ended >= 2);
}
