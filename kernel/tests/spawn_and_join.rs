//! Spawning, joining, detaching: a value reaches its joiner, and each output is dropped exactly once.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::async_yields_async, reason = "a block_on returns handles")]

#[path = "support/tools.rs"]
mod tools;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
    mpsc,
};

use tools::{Drops, Latch, for_seeds, on_each, runtime, until, until_yielding, watch};
use weald_kernel::{JoinError, Spawn, spawn, yield_now};

#[test]
fn every_value_reaches_its_joiner() {
    on_each(|runtime| {
        let sum = runtime.block_on(async {
            let job = |n| {
                spawn(async move {
                    if n % 3 == 0 {
                        yield_now().await
                    }
                    n
                })
            };
            let jobs: Vec<_> = (0..2_000_u64).map(job).collect();
            let mut sum = 0;
            for job in jobs {
                sum += job.await.unwrap();
            }
            sum
        });
        assert_eq!(sum, 1_999_000);
    });
}

#[test]
fn any_thread_may_spawn_and_another_may_join() {
    on_each(|runtime| {
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            for n in 0..4_u32 {
                let sender = sender.clone();
                scope.spawn(move || {
                    for m in 0..50 {
                        sender
                            .send(runtime.spawn(async move { n * 1000 + m }))
                            .unwrap();
                    }
                });
            }
            drop(sender);
            let mut values: Vec<_> = receiver
                .into_iter()
                .map(|job| runtime.block_on(job).unwrap())
                .collect();
            values.sort_unstable();
            let expected: Vec<_> = (0..4)
                .flat_map(|n| (0..50).map(move |m| n * 1000 + m))
                .collect();
            assert_eq!(values, expected);
        });
    });
}

#[test]
fn a_future_is_dropped_before_its_joiner_resumes() {
    on_each(|runtime| {
        for _ in 0..200 {
            let drops = Drops::default();
            let token = drops.token();
            let job = runtime.spawn(async move {
                let _token = token;
                yield_now().await;
            });
            runtime.block_on(job).unwrap();
            assert_eq!(drops.count(), 1);
        }
    });
}

#[test]
fn a_job_runs_on_without_its_handle_and_its_output_is_dropped_once() {
    on_each(|runtime| {
        let (drops, latch) = (Drops::default(), Latch::default());
        for detach in [true, false] {
            let (token, latch) = (drops.token(), latch.clone());
            let job = runtime.spawn(async move {
                latch.await;
                token
            });
            if detach {
                job.detach();
            } else {
                drop(job);
            }
        }
        assert_eq!(drops.count(), 0);
        latch.open();
        until(|| drops.count() == 2);
    });
}

#[test]
fn a_handle_dropped_after_the_end_drops_the_output_once() {
    on_each(|runtime| {
        let drops = Drops::default();
        let token = drops.token();
        let job = runtime.spawn(async move { token });
        until(|| job.is_finished());
        assert_eq!(drops.count(), 0);
        drop(job);
        assert_eq!(drops.count(), 1);
    });
}

#[test]
fn an_output_is_dropped_once_however_the_handle_and_the_end_race() {
    for_seeds(4, |random| {
        let runtime = runtime(1 + random.below(4));
        let drops = Drops::default();
        for _ in 0..2_000 {
            let token = drops.token();
            let job = runtime.spawn(async move { token });
            for _ in 0..random.below(60) {
                std::hint::spin_loop();
            }
            match random.below(3) {
                0 => drop(job),
                1 => drop(runtime.block_on(job)),
                _ => {
                    job.cancel();
                    drop(job);
                }
            }
        }
        until(|| drops.count() == 2_000);
    });
}

#[test]
fn a_handle_that_was_ready_returns_cancelled_from_then_on() {
    on_each(|runtime| {
        runtime.block_on(async {
            let mut job = spawn(async { 5 });
            assert_eq!((&mut job).await.unwrap(), 5);
            assert!(matches!((&mut job).await, Err(JoinError::Cancelled)));
            assert!(job.is_finished());
        });
    });
}

#[test]
fn the_waker_that_polled_a_handle_last_is_woken() {
    on_each(|runtime| {
        let latch = Latch::default();
        let opened = latch.clone();
        let mut job = runtime.spawn(opened);
        // One joiner polls and passes the handle on; the end must wake the next joiner.
        for _ in 0..3 {
            job = runtime.block_on(spawn_poll_once(runtime, job));
        }
        let joiner = runtime.spawn(job);
        latch.open();
        runtime.block_on(joiner).unwrap().unwrap();
    });
}

fn spawn_poll_once(
    runtime: &weald_kernel::Runtime,
    mut job: weald_kernel::JoinHandle<()>,
) -> impl Future<Output = weald_kernel::JoinHandle<()>> + use<> {
    let polled = runtime.spawn(async move {
        assert!(futures_util::poll!(&mut job).is_pending());
        job
    });
    async { polled.await.unwrap() }
}

#[test]
fn a_job_is_named_by_its_name_its_type_and_its_site() {
    let _watch = watch();
    let runtime = runtime(1);
    runtime.block_on(async {
        let settings = Spawn::new().name("reader");
        let line = line!() + 1;
        let job = settings.spawn(std::future::pending::<()>());
        let name = job.name().unwrap();
        assert_eq!(name.name.as_deref(), Some("reader"));
        assert_eq!((name.site.file(), name.site.line()), (file!(), line));
        assert!(name.type_name.contains("Pending"), "{}", name.type_name);
        assert!(name.to_string().contains("`reader` spawned at"));
        let line = line!() + 1;
        let unnamed = spawn(async {});
        assert_eq!(unnamed.name().unwrap().site.line(), line);
    });
}

#[test]
fn jobs_spawn_jobs_in_a_deep_chain() {
    fn chain(depth: u32) -> std::pin::Pin<Box<dyn Future<Output = u32> + Send>> {
        Box::pin(async move {
            match depth {
                0 => 0,
                _ => 1 + spawn(chain(depth - 1)).await.unwrap(),
            }
        })
    }
    on_each(|runtime| assert_eq!(runtime.block_on(chain(2_000)), 2_000));
}

#[test]
fn a_large_future_and_a_strictly_aligned_one_keep_their_values() {
    #[repr(align(256))]
    struct Aligned(u8);
    on_each(|runtime| {
        runtime.block_on(async {
            let large = [7_u8; 100_000];
            let large = spawn(async move {
                yield_now().await;
                large.iter().map(|byte| u32::from(*byte)).sum::<u32>()
            });
            let aligned = Aligned(9);
            let aligned = spawn(async move {
                let aligned = aligned;
                let place = (&raw const aligned).addr();
                yield_now().await;
                assert_eq!(place % 256, 0);
                assert_eq!(place, (&raw const aligned).addr());
                aligned
            });
            assert_eq!(large.await.unwrap(), 700_000);
            let aligned = aligned.await.unwrap();
            assert_eq!(((&raw const aligned).addr() % 256, aligned.0), (0, 9));
        });
    });
}

#[test]
fn a_hundred_thousand_jobs_run_once_each() {
    on_each(|runtime| {
        let runs = Arc::new(AtomicUsize::new(0));
        runtime.block_on(async {
            for _ in 0..100_000 {
                let runs = runs.clone();
                spawn(async move {
                    runs.fetch_add(1, Ordering::Relaxed);
                })
                .detach();
            }
            until_yielding(|| runs.load(Ordering::Relaxed) == 100_000).await;
        });
    });
}

#[test]
fn a_job_has_ended_only_after_its_exit_hooks() {
    let runtime = runtime(1);
    let latch = Latch::default();
    let job = runtime.spawn(latch.clone());
    let (entered, has_entered) = mpsc::channel();
    let (go, goes) = mpsc::channel();
    job.when_ended(move || {
        entered.send(()).unwrap();
        goes.recv().unwrap();
    });
    latch.open();
    has_entered.recv().unwrap();
    assert!(!job.is_finished(), "an exit hook still runs");
    go.send(()).unwrap();
    runtime.block_on(job).unwrap();
}
