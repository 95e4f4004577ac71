//! `JoinSet`: results in the order in which the jobs end; cancel, detach, drop.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{sync::mpsc, time::Duration};

use tools::{Drops, Latch, for_seeds, on_each, runtime, until};
use weald_kernel::{JoinSet, Runtime, Wait, sleep, spawn, timeout, yield_now};
use weald_sync::{always, of_future, select};

#[test]
fn results_come_in_the_order_in_which_jobs_end() {
    on_each(|runtime| {
        runtime.block_on(async {
            let latches: Vec<_> = (0..20).map(|_| Latch::default()).collect();
            let mut set = JoinSet::new();
            for (n, latch) in latches.iter().cloned().enumerate() {
                set.spawn(async move {
                    latch.await;
                    n
                });
            }
            assert_eq!(set.len(), 20);
            for n in (0..20).rev() {
                latches[n].open();
                assert_eq!(set.join_next().await.unwrap().unwrap(), n);
            }
            assert!(set.is_empty());
            assert!(set.join_next().await.is_none());
        });
    });
}

#[test]
fn every_result_comes_once_under_load() {
    for_seeds(4, |random| {
        let runtime = runtime(1 + random.below(4));
        let sleeps = random.below(5) as u64;
        let job = runtime.spawn(async move {
            let mut set = JoinSet::new();
            let mut seen = vec![0; 3_000];
            for n in 0..3_000_usize {
                set.spawn(async move {
                    match n as u64 % 5 {
                        0 if sleeps > 0 => sleep(Duration::from_millis(sleeps)).await,
                        1 => yield_now().await,
                        2 => panic_quietly(),
                        _ => {}
                    }
                    n
                });
                if n % 7 == 0 {
                    count(set.join_next().await.unwrap(), &mut seen);
                }
            }
            while let Some(result) = set.join_next().await {
                count(result, &mut seen);
            }
            seen
        });
        let seen = runtime.block_on(job).unwrap();
        for (n, times) in seen.into_iter().enumerate() {
            assert_eq!(times, usize::from(n % 5 != 2), "job {n}");
        }
    });
}

fn panic_quietly() {
    std::panic::resume_unwind(Box::new("on purpose"));
}

fn count(result: Result<usize, weald_kernel::JoinError>, seen: &mut [usize]) {
    match result {
        Ok(n) => seen[n] += 1,
        Err(error) => assert!(error.is_panic()),
    }
}

#[test]
fn dropping_the_set_cancels_what_is_left() {
    on_each(|runtime| {
        let drops = Drops::default();
        runtime.block_on(async {
            let mut set = JoinSet::new();
            for n in 0..50 {
                let token = drops.token();
                set.spawn(async move {
                    let _token = token;
                    if n % 2 == 0 {
                        std::future::pending::<()>().await;
                    }
                });
            }
            yield_now().await;
        });
        until(|| drops.count() == 50);
    });
}

#[test]
fn cancelled_jobs_are_still_joined() {
    on_each(|runtime| {
        runtime.block_on(async {
            let mut set = JoinSet::new();
            for _ in 0..10 {
                set.spawn(std::future::pending::<()>());
            }
            set.cancel_all();
            for _ in 0..10 {
                assert!(set.join_next().await.unwrap().unwrap_err().is_cancelled());
            }
        });
    });
}

#[test]
fn a_detached_job_does_not_disturb_the_set_when_it_ends_later() {
    on_each(|runtime| {
        runtime.block_on(async {
            let (latch, (sender, receiver)) = (Latch::default(), mpsc::channel());
            let opened = latch.clone();
            let mut set = JoinSet::new();
            set.spawn(async move {
                opened.await;
                sender.send(()).unwrap();
                1
            });
            set.detach_all();
            assert!(set.is_empty());
            latch.open();
            // Waits until the detached job has ended and its end has been reported.
            spawn(async move { receiver.recv().unwrap() })
                .await
                .unwrap();
            for _ in 0..100 {
                yield_now().await;
            }
            set.spawn(async { 2 });
            assert_eq!(set.join_next().await.unwrap().unwrap(), 2);
            assert!(set.join_next().await.is_none());
        });
    });
}

#[test]
fn a_dropped_join_next_loses_nothing() {
    on_each(|runtime| {
        runtime.block_on(async {
            let latch = Latch::default();
            let opened = latch.clone();
            let mut set = JoinSet::new();
            set.spawn(async move {
                opened.await;
                6
            });
            assert!(
                timeout(Duration::from_millis(1), set.join_next())
                    .await
                    .is_err()
            );
            latch.open();
            assert_eq!(set.join_next().await.unwrap().unwrap(), 6);
        });
    });
}

#[test]
fn a_set_that_is_not_chosen_loses_nothing() {
    for_seeds(20, |random| {
        let runtime = runtime(1 + random.below(4));
        let pauses = random.below(4);
        runtime.block_on(async {
            let (mut set, mut ended) = (JoinSet::new(), [0; 200]);
            for n in 0..ended.len() {
                set.spawn(async move {
                    for _ in 0..n % (1 + pauses) {
                        yield_now().await;
                    }
                    n
                });
            }
            loop {
                select! {
                    next = set.join_next() => match next {
                        Some(n) => ended[n.unwrap()] += 1,
                        None => break,
                    },
                    // Always ready, and so often chosen although a job has ended.
                    () = always(()) => yield_now().await,
                    () = of_future(yield_now()) => {},
                }
            }
            assert_eq!(ended, [1; 200]);
        });
    });
}

#[test]
fn a_handle_and_a_sleep_are_events() {
    let runtime = Runtime::test(3);
    runtime.block_on(async {
        let mut job = spawn(async {
            sleep(Duration::from_secs(3)).await;
            42
        });
        let mut seconds = 0;
        let answer = loop {
            select! {
                answer = &mut job => break answer.unwrap(),
                () = sleep(Duration::from_secs(1)) => seconds += 1,
            }
        };
        assert_eq!(answer, 42);
        assert!((2..=3).contains(&seconds), "{seconds}");
        // Its output is gone: the event is ready, as the future is.
        assert!(select! { again = job => again.is_err(), else => false });
    });
}

#[test]
fn finished_and_unfinished_jobs_can_be_inserted() {
    on_each(|runtime| {
        let ended = runtime.spawn(async { 1 });
        until(|| ended.is_finished());
        let mut set = JoinSet::new();
        set.insert(ended);
        set.insert(runtime.spawn(async {
            yield_now().await;
            2
        }));
        let mut sum = 0;
        runtime.block_on(async {
            while let Some(result) = set.join_next().await {
                sum += result.unwrap();
            }
        });
        assert_eq!(sum, 3);
    });
}

#[test]
fn a_set_is_joined_with_the_stack() {
    on_each(|runtime| {
        let job = runtime.spawn(async {
            let mut set = JoinSet::new();
            for n in 0..100_u32 {
                set.spawn(async move { n });
            }
            let mut sum = 0;
            while let Some(result) = set.join_next().wait() {
                sum += result.unwrap();
            }
            sum
        });
        assert_eq!(runtime.block_on(job).unwrap(), 4_950);
    });
}
