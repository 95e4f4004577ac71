//! Limits and settings: the builder refuses what cannot work, the process limit is exact, and the metrics add
//! up.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tools::{Latch, for_seeds, on_each, until, watch};
use weald_kernel::{
    Address, BuildError, Builder, JoinHandle, Mailbox, Runtime, Spawn, SpawnError, TestRuntime,
    Wait, available_workers, block_in_place, spawn, yield_now,
};

#[test]
fn settings_that_cannot_work_are_refused_with_a_reason() {
    let refused = |builder: Builder| builder.build().map(drop).unwrap_err();
    let builder = Runtime::builder;
    assert!(matches!(
        refused(builder().workers(0)),
        BuildError::Workers(0)
    ));
    assert!(matches!(
        refused(builder().workers(5_000)),
        BuildError::Workers(5_000)
    ));
    let zero = |error| matches!(error, BuildError::Zero(_));
    assert!(zero(refused(builder().process_limit(0))));
    assert!(zero(refused(builder().poll_budget(0))));
    assert!(zero(refused(builder().next_slot_runs(0))));
    let short = refused(builder().stuck_after(Duration::from_micros(999)));
    assert!(matches!(short, BuildError::StuckAfter(_)));
    assert_eq!(
        short.to_string(),
        "stuck_after must be at least 1 ms, not 999µs"
    );
    let name = refused(builder().name("in\0gest"));
    assert!(matches!(name, BuildError::Name));
    assert!(TestRuntime::with_builder(builder().poll_budget(0), 1).is_err());
    assert!(available_workers() >= 1);
}

#[test]
fn infinite_durations_are_accepted() {
    let _watch = watch();
    for drains in [true, false] {
        let endless = Runtime::builder()
            .workers(1)
            .stuck_after(Duration::MAX)
            .retire_after(Duration::MAX)
            .shutdown_deadline(Duration::MAX);
        let runtime = endless.build().unwrap();
        // Its thread hands the worker off, and is a spare thread afterwards.
        let job = runtime.spawn(async { block_in_place(|| 3) });
        assert_eq!(runtime.block_on(job).unwrap(), 3);
        match drains {
            true => assert_eq!(runtime.shutdown(Duration::MAX).not_stopped, []),
            false => drop(runtime),
        }
    }
}

#[test]
fn any_number_of_spare_threads_may_be_allowed() {
    let _watch = watch();
    let builder = Runtime::builder().workers(2).spare_threads(usize::MAX);
    let (runtime, latch) = (builder.build().unwrap(), Latch::default());
    let waiting: Vec<_> = (0..5)
        .map(|_| {
            let waits = latch.clone();
            runtime.spawn(async move { waits.wait() })
        })
        .collect();
    until(|| latch.waiters() == 5);
    let blocks = runtime.spawn(async { block_in_place(|| 3) });
    assert_eq!(runtime.block_on(blocks).unwrap(), 3);
    latch.open();
    for job in waiting {
        runtime.block_on(job).unwrap();
    }
}

#[test]
fn threads_bear_the_runtimes_name() {
    let _watch = watch();
    let runtime = Runtime::builder()
        .workers(1)
        .name("ingest")
        .build()
        .unwrap();
    let name = runtime.spawn(async { std::thread::current().name().map(str::to_owned) });
    assert_eq!(runtime.block_on(name).unwrap().unwrap(), "ingest-1");
}

type Spawned = (JoinHandle<()>, Address<()>);

/// A process that lives until its latch opens.
fn process(latch: &Latch) -> Result<Spawned, SpawnError> {
    let latch = latch.clone();
    Spawn::new().spawn_with_mailbox(|mailbox: Mailbox<()>| async move {
        let _mailbox = mailbox;
        latch.await;
    })
}

fn limited(workers: usize, limit: usize) -> Runtime {
    Runtime::builder()
        .workers(workers)
        .process_limit(limit)
        .build()
        .unwrap()
}

#[test]
fn the_limit_is_exact_and_an_end_makes_room() {
    let _watch = watch();
    for workers in [1, 2, 4] {
        for limit in [1, 2, 7] {
            let runtime = limited(workers, limit);
            runtime.block_on(async {
                let mut latches: Vec<_> = (0..limit).map(|_| Latch::default()).collect();
                let mut processes: Vec<_> = latches.iter().map(|l| process(l).unwrap()).collect();
                for _ in 0..50 {
                    let refused = process(&Latch::default()).map(drop);
                    assert_eq!(refused, Err(SpawnError::TooManyProcesses { limit }));
                    latches.remove(0).open();
                    // Once a process is joined, its place is free.
                    processes.remove(0).0.await.unwrap();
                    latches.push(Latch::default());
                    processes.push(process(latches.last().unwrap()).expect("one has ended"));
                }
            });
            assert_eq!(runtime.metrics().processes, limit);
        }
    }
}

#[test]
fn plain_jobs_do_not_count_and_the_runtime_stays_usable_at_the_limit() {
    on_each(|_| {
        let runtime = limited(2, 1);
        runtime.block_on(async {
            let latch = Latch::default();
            let only = process(&latch).unwrap();
            assert!(process(&latch).is_err());
            for _ in 0..100 {
                spawn(yield_now()).await.unwrap();
            }
            only.1.post(()).unwrap();
            latch.open();
            only.0.await.unwrap();
        });
    });
}

#[test]
fn workers_together_never_exceed_the_limit_and_leak_nothing_from_it() {
    for_seeds(3, |random| {
        let (workers, limit) = (1 + random.below(4), 1 + random.below(20));
        let runtime = limited(workers, limit);
        let live = Arc::new(AtomicUsize::new(0));
        let spawners: Vec<_> = (0..4)
            .map(|n| {
                let live = live.clone();
                runtime.spawn(async move {
                    let mut spawned = 0;
                    for round in 0..1_500 {
                        let counted = live.clone();
                        let body = move |mailbox: Mailbox<()>| async move {
                            let _mailbox = mailbox;
                            if (round + n) % 3 == 0 {
                                yield_now().await;
                            }
                            counted.fetch_sub(1, Ordering::SeqCst);
                        };
                        // Counted after the spawn, so the body may have uncounted itself before: then the count wraps,
                        // by one for each of the four spawners.
                        if let Ok((job, _)) = Spawn::new().spawn_with_mailbox(body) {
                            let now = live.fetch_add(1, Ordering::SeqCst);
                            assert!(now.wrapping_add(4) < 10_000, "{now}");
                            spawned += 1;
                            if round % 5 == 0 {
                                job.cancel();
                                if job.await.is_err() {
                                    live.fetch_sub(1, Ordering::SeqCst);
                                }
                            }
                        } else {
                            yield_now().await;
                        }
                    }
                    spawned
                })
            })
            .collect();
        let spawned: usize = spawners
            .into_iter()
            .map(|job| runtime.block_on(job).unwrap())
            .sum();
        assert!(spawned > limit);
        // Everything has ended: the whole limit is available again, and no more.
        until(|| runtime.metrics().processes == 0);
        runtime.block_on(async {
            let latch = Latch::default();
            let all: Vec<_> = (0..limit).map(|_| process(&latch).unwrap()).collect();
            assert!(process(&latch).is_err());
            latch.open();
            for (job, _) in all {
                job.await.unwrap();
            }
        });
    });
}

#[test]
fn a_body_that_panics_at_spawn_takes_no_place() {
    on_each(|_| {
        let runtime = limited(2, 2);
        runtime.block_on(async {
            for _ in 0..10 {
                let spawned = std::panic::catch_unwind(|| {
                    Spawn::new().spawn_with_mailbox(|_: Mailbox<()>| -> std::future::Ready<()> {
                        std::panic::resume_unwind(Box::new("no future"))
                    })
                });
                assert!(spawned.is_err());
            }
            let latch = Latch::default();
            let both = [process(&latch).unwrap(), process(&latch).unwrap()];
            assert!(process(&latch).is_err());
            drop(both);
            latch.open();
        });
    });
}

#[test]
fn a_large_limit_is_enforced_too() {
    let _watch = watch();
    let limit = 1 << 16;
    let runtime = limited(2, limit);
    let latch = Latch::default();
    let spawns = latch.clone();
    let spawned = runtime.spawn(async move {
        let mut all = Vec::new();
        while let Ok(spawned) = process(&spawns) {
            all.push(spawned);
        }
        all
    });
    let mut all = runtime.block_on(spawned).unwrap();
    // Refused at most 512 per worker too early, and never one too late.
    assert!(
        (limit - 2 * 512..=limit).contains(&all.len()),
        "{}",
        all.len()
    );
    for (job, _) in all.drain(..) {
        job.cancel();
    }
    until(|| runtime.metrics().processes <= 2 * 512);
}

#[test]
fn the_metrics_are_plausible() {
    let _watch = watch();
    // However loaded the machine is, no thread is detached.
    let stuck_after = Duration::from_secs(3600);
    let builder = Runtime::builder().workers(2).process_limit(100);
    let runtime = builder.stuck_after(stuck_after).build().unwrap();
    let latch = Latch::default();
    let kept = Mutex::new(Vec::new());
    runtime.block_on(async {
        for _ in 0..10 {
            kept.lock().unwrap().push(process(&latch).unwrap());
        }
        for _ in 0..50 {
            spawn(yield_now()).await.unwrap();
        }
    });
    until(|| latch.waiters() == 10);
    until(|| {
        let now = runtime.metrics();
        now.ended == 50 && now.sleeping == 2
    });
    let now = runtime.metrics();
    assert_eq!((now.workers, now.threads, now.processes), (2, 2, 10));
    assert!((100 + 10..=200).contains(&now.polls), "{now:?}");
    assert_eq!((now.runnable, now.timers), (0, 0));
    assert_eq!((now.detached, now.announced), (0, 0));
    latch.open();
    until(|| runtime.metrics().processes == 0 && runtime.metrics().ended == 60);
}

#[test]
fn a_job_that_ends_on_a_detached_thread_counts_as_ended() {
    let _watch = watch();
    let runtime = Arc::new(limited(1, 100));
    let seen = runtime.clone();
    let job = runtime.spawn(async move { until(|| seen.metrics().detached > 0) });
    runtime.block_on(job).unwrap();
    until(|| runtime.metrics().ended == 1);
}
