//! Receiving: `after`, `receive_if`, and a receive beside other futures.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::async_yields_async,
    reason = "handles are handed out of a block_on"
)]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
use tools::{each_seed, for_seeds, on_each, runtime};
use weald_kernel::{now, sleep, spawn, timeout, yield_now};
use weald_process::{self as process, ExitReason, Inbox, TimedOut};

#[test]
fn after_zero_only_looks_and_a_message_that_is_already_there_wins() {
    on_each(|runtime| {
        let process = runtime.block_on(async {
            let process = process::spawn(async |mut inbox: Inbox<u32>| {
                assert_eq!(inbox.receive().after(Duration::ZERO).await, Err(TimedOut));
                let own = inbox.pid();
                for n in 0..500 {
                    own.send(n);
                    assert_eq!(inbox.receive().after(Duration::ZERO).await, Ok(n));
                    own.send(n);
                    let even = inbox.receive_if(|n| n % 2 == 0).after(Duration::ZERO).await;
                    match n % 2 {
                        0 => assert_eq!(even, Ok(n)),
                        _ => {
                            assert_eq!(even, Err(TimedOut));
                            assert_eq!(inbox.try_receive(), Some(n));
                        }
                    }
                }
                assert_eq!(inbox.receive().after(Duration::ZERO).await, Err(TimedOut));
            });
            process.unwrap().await
        });
        assert_eq!(process, Ok(()));
    });
}

#[test]
fn after_waits_its_time_and_not_less() {
    on_each(|runtime| {
        let process = runtime.block_on(async {
            let process = process::spawn(async |mut inbox: Inbox<u32>| {
                let (before, time) = (Instant::now(), Duration::from_millis(4));
                assert_eq!(inbox.receive().after(time).await, Err(TimedOut));
                assert!(before.elapsed() >= time);
                inbox.pid().send(5);
                assert_eq!(inbox.receive().after(time).await, Ok(5));
            });
            process.unwrap().await
        });
        assert_eq!(process, Ok(()));
    });
}

#[test]
fn after_takes_a_message_that_comes_in_time_in_virtual_time() {
    each_seed(50, async || {
        let start = now();
        let process = process::spawn(async |mut inbox: Inbox<u32>| {
            let first = inbox.receive().after(Duration::from_secs(10)).await;
            let second = inbox.receive().after(Duration::from_secs(10)).await;
            (first, second)
        })
        .unwrap();
        sleep(Duration::from_secs(9)).await;
        process.pid().send(1);
        assert_eq!(process.await, Ok((Ok(1), Err(TimedOut))));
        assert_eq!(now() - start, Duration::from_secs(19));
    });
}

#[test]
fn receive_if_keeps_the_order_of_the_rest_and_looks_at_each_once() {
    for_seeds(6, |random| {
        let runtime = runtime(1 + random.below(3));
        let wanted: Vec<u32> = (0..40)
            .map(|_| u32::try_from(random.below(50)).unwrap())
            .collect();
        let process = runtime.block_on(async {
            process::spawn(async move |mut inbox: Inbox<u32>| {
                // The messages come in pieces, so that the scan resumes again and again.
                let own = inbox.pid();
                let sender = spawn(async move {
                    for n in 0..300 {
                        own.send(n);
                        if n % 7 == 0 {
                            yield_now().await;
                        }
                    }
                });
                let mut left: Vec<u32> = (0..300).collect();
                for digit in wanted {
                    let mut looked = Vec::new();
                    let taken = inbox
                        .receive_if(|n| {
                            looked.push(*n);
                            n % 50 == digit
                        })
                        .after(Duration::from_millis(1))
                        .await;
                    // Each at most once, in order, from the oldest on without a gap.
                    assert_eq!(
                        looked,
                        left[..looked.len()],
                        "looked twice, or left one out"
                    );
                    if let Ok(taken) = taken {
                        assert_eq!(Some(&taken), looked.last());
                        left.retain(|n| *n != taken);
                    }
                }
                sender.await.unwrap();
                for n in left {
                    assert_eq!(inbox.receive().await, n);
                }
            })
            .unwrap()
        });
        assert_eq!(runtime.block_on(process), Ok(()));
    });
}

#[test]
fn a_scan_behind_a_long_queue_is_not_repeated_at_each_message() {
    on_each(|runtime| {
        let looks = Arc::new(AtomicUsize::new(0));
        let counted = looks.clone();
        // Sent from a job that yields, so that even one worker scans again and again.
        let all = runtime.spawn(async move {
            let process = process::spawn(async move |mut inbox: Inbox<u32>| {
                let wanted = |n: &u32| {
                    counted.fetch_add(1, Ordering::SeqCst);
                    *n == 9_999
                };
                inbox.receive_if(wanted).await
            })
            .unwrap();
            for n in 0..10_000 {
                process.pid().send(n);
                if n % 100 == 0 {
                    yield_now().await;
                }
            }
            process.await
        });
        let process = runtime.block_on(all).unwrap();
        assert_eq!(process, Ok(9_999));
        assert_eq!(looks.load(Ordering::SeqCst), 10_000);
    });
}

#[test]
fn a_dropped_receive_loses_no_message() {
    on_each(|runtime| {
        let process = runtime.block_on(async {
            let process = process::spawn(async |mut inbox: Inbox<u32>| {
                let mut got = Vec::new();
                while got.len() < 500 {
                    futures_util::select_biased! {
                        n = inbox.receive().fuse() => got.push(n),
                        () = yield_now().fuse() => {}
                    }
                    // Polled, and dropped at once.
                    assert!(
                        inbox
                            .receive_if(|n| *n == 1_000_000)
                            .now_or_never()
                            .is_none()
                    );
                    if let Some(n) = inbox.receive().now_or_never() {
                        got.push(n);
                    }
                }
                got
            })
            .unwrap();
            for n in 0..500 {
                process.pid().send(n);
                if n % 5 == 0 {
                    yield_now().await;
                }
            }
            process.await
        });
        assert_eq!(process, Ok((0..500).collect::<Vec<_>>()));
    });
}

#[test]
fn an_inbox_works_in_a_select_beside_sleeps_and_handles() {
    on_each(|runtime| {
        let process = runtime.block_on(async {
            let process = process::spawn(async |mut inbox: Inbox<u32>| {
                let mut work = spawn(sleep(Duration::from_millis(2))).fuse();
                let (mut messages, mut ended) = (0, false);
                while messages < 100 || !ended {
                    futures_util::select! {
                        _n = inbox.receive().fuse() => messages += 1,
                        result = work => { result.unwrap(); ended = true; }
                    }
                }
                messages
            })
            .unwrap();
            for n in 0..100 {
                process.pid().send(n);
                yield_now().await;
            }
            process.await
        });
        assert_eq!(process, Ok(100));
    });
}

#[test]
fn a_process_that_was_killed_ends_where_it_receives_under_a_waker_of_another_task() {
    on_each(|runtime| {
        let reason = runtime.block_on(async {
            let process = process::spawn(async |mut inbox: Inbox<u32>| {
                inbox.pid().kill();
                let mut all = FuturesUnordered::new();
                all.push(inbox.receive().into_future().boxed());
                all.next().await
            });
            process.unwrap().await
        });
        assert_eq!(reason.map(drop), Err(ExitReason::Killed));
    });
}

#[test]
fn an_inbox_works_under_a_waker_of_another_task() {
    on_each(|runtime| {
        let process = runtime.block_on(async {
            let process = process::spawn(async |mut inbox: Inbox<u32>| {
                let mut all = FuturesUnordered::new();
                all.push(
                    async {
                        let mut sum = 0;
                        for _ in 0..200 {
                            sum += inbox.receive().await;
                        }
                        sum
                    }
                    .boxed(),
                );
                all.push(sleep(Duration::from_millis(1)).map(|()| 0).boxed());
                let mut sum = 0;
                while let Some(part) = all.next().await {
                    sum += part;
                }
                sum
            })
            .unwrap();
            for n in 0..200 {
                process.pid().send(n);
                if n % 3 == 0 {
                    yield_now().await;
                }
            }
            process.await
        });
        assert_eq!(process, Ok(19_900));
    });
}

#[test]
fn receives_with_deadlines_lose_neither_messages_nor_deadlines() {
    on_each(|runtime| {
        runtime.block_on(async {
            let processes: Vec<_> = (0..200_u64)
                .map(|n| {
                    process::spawn(async move |mut inbox: Inbox<u64>| {
                        let time = match n % 2 {
                            0 => Duration::from_secs(3600),
                            _ => Duration::from_millis(n % 7),
                        };
                        inbox.receive().after(time).await
                    })
                    .unwrap()
                })
                .collect();
            for (n, process) in processes.iter().enumerate() {
                if n % 2 == 0 {
                    process.pid().send(n as u64);
                }
            }
            for (n, process) in processes.into_iter().enumerate() {
                let expected = match n % 2 {
                    0 => Ok(n as u64),
                    _ => Err(TimedOut),
                };
                let ended = timeout(Duration::from_secs(50), process).await.unwrap();
                assert_eq!(ended, Ok(expected));
            }
        });
    });
}

#[test]
fn a_message_that_comes_after_the_look_and_before_the_park_is_received() {
    on_each(|runtime| {
        let (looked, has_looked) = std::sync::mpsc::channel();
        let (sent, is_sent) = std::sync::mpsc::channel();
        // In a mutex, because a borrow of it lives across an await.
        let is_sent = std::sync::Mutex::new(is_sent);
        let process = runtime.block_on(async {
            process::spawn(|mut inbox: Inbox<u32>| async move {
                for n in 0..20 {
                    let mut first = true;
                    let message = std::future::poll_fn(|cx| {
                        let polled = inbox.receive().poll_unpin(cx);
                        // In the same poll, but after the receive has found nothing.
                        if polled.is_pending() && std::mem::take(&mut first) {
                            looked.send(()).unwrap();
                            is_sent.lock().unwrap().recv().unwrap();
                        }
                        polled
                    });
                    assert_eq!(message.await, n);
                }
            })
            .unwrap()
        });
        for n in 0..20 {
            has_looked.recv().unwrap();
            process.pid().send(n);
            sent.send(()).unwrap();
        }
        assert_eq!(runtime.block_on(process), Ok(()));
    });
}
