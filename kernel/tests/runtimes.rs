//! Several runtimes: what `block_on` of one does inside a job of another, and a runtime that ends inside its own job.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use tools::{Drops, Latch, until, watch};
use weald_kernel::{
    Runtime, Spawn, SpawnError, Wait, block_on, blocking, callback, cancel_point, fork, is_in_job,
    offload, scope, sleep, spawn, spawn_child, spawn_local,
};

const HOUR: Duration = Duration::from_secs(3600);

fn named(name: &'static str, workers: usize) -> Arc<Runtime> {
    let builder = Runtime::builder().name(name).workers(workers);
    Arc::new(builder.build().unwrap())
}

/// The name of the runtime whose thread runs the caller.
fn here() -> String {
    let name = thread::current().name().unwrap().to_owned();
    name.split('-').next().unwrap().to_owned()
}

/// Where a spawned job runs.
async fn spawned() -> String {
    spawn(async { here() }).await.unwrap()
}

/// A fiber that runs `code`.
async fn fiber<T: Send + 'static>(code: impl FnOnce() -> T + Send + 'static) -> T {
    let fiber = Spawn::new().spawn_fiber(weald_kernel::DEFAULT_STACK, code);
    fiber.unwrap().await.unwrap()
}

#[test]
fn what_block_on_spawns_inside_a_job_goes_to_its_runtime() {
    let _watch = watch();
    let (own, other) = (named("own", 2), named("other", 2));
    let there = other.clone();
    let in_job = move || {
        assert_eq!(block_on(spawned()), "own");
        there.block_on(async {
            assert_eq!(here(), "own", "the future itself stays");
            assert_eq!(spawned().await, "other");
            assert_eq!(fiber(here).await, "other");
            assert_eq!(spawn_child(async { here() }).await.unwrap(), "other");
            // A wait in the middle of a poll, and the free function.
            assert_eq!(spawn(async { here() }).wait().unwrap(), "other");
            assert_eq!(block_on(spawned()), "other");
            let (sender, receiver) = futures_channel::oneshot::channel();
            callback::once(
                callback::Owner::runtime(),
                callback::When::Ready,
                move || {
                    sender.send(here()).unwrap();
                },
            )
            .detach();
            assert_eq!(receiver.await.unwrap(), "other");
            scope(async |scope| {
                assert_eq!(scope.spawn(async { here() }).await.unwrap(), "other");
            })
            .await;
        });
        assert_eq!(block_on(spawned()), "own");
    };
    let again = in_job.clone();
    own.block_on(own.spawn(async move { again() })).unwrap();
    own.block_on(own.spawn(fiber(in_job))).unwrap();
}

#[test]
fn timers_inside_block_on_belong_to_its_runtime() {
    let _watch = watch();
    let (own, other) = (named("own", 1), named("other", 1));
    let there = other.clone();
    let job = own.spawn(async move {
        there.block_on(sleep(HOUR));
    });
    until(|| other.metrics().timers == 1);
    assert_eq!(own.metrics().timers, 0);
    job.cancel();
    assert!(own.block_on(job).is_err());
}

#[test]
fn visits_nest_and_end_in_order_even_by_a_panic() {
    let _watch = watch();
    let (own, other, third) = (named("own", 1), named("other", 1), named("third", 1));
    let runtimes = (own.clone(), other, third);
    let job = own.spawn(async move {
        let (own, other, third) = runtimes;
        other.block_on(async {
            third.block_on(async {
                assert_eq!(spawned().await, "third");
                assert_eq!(own.block_on(spawned()), "own");
                assert_eq!(spawned().await, "third");
            });
            assert_eq!(spawned().await, "other");
            let panics = || third.block_on(async { panic!("as the test wants") });
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics));
            assert!(caught.is_err());
            assert_eq!(spawned().await, "other");
        });
        assert_eq!(spawned().await, "own");
    });
    own.block_on(job).unwrap();
}

/// The only worker of `own` runs other jobs while one visits another runtime, and in these jobs `own` is current.
#[test]
fn other_jobs_of_the_thread_do_not_visit_with_it() {
    let _watch = watch();
    let (own, other) = (named("own", 1), named("other", 1));
    let (inside, awaits) = (Latch::default(), Latch::default());
    let (there, first, second) = (other.clone(), inside.clone(), awaits.clone());
    let visitor = move || {
        there.block_on(async {
            // Waits with the stack in the middle of the poll, then by await.
            first.clone().wait();
            assert_eq!(block_on(spawned()), "other");
            second.clone().await;
            assert_eq!(spawned().await, "other");
        });
    };
    let as_fiber = visitor.clone();
    let jobs = [
        own.spawn(async move { visitor() }),
        own.spawn(async move { fiber(as_fiber).await }),
    ];
    for latch in [&inside, &awaits] {
        until(|| latch.waiters() == 2);
        for _ in 0..10 {
            assert_eq!(own.block_on(own.spawn(spawned())).unwrap(), "own");
            assert_eq!(
                own.block_on(own.spawn(fiber(|| block_on(spawned()))))
                    .unwrap(),
                "own"
            );
        }
        latch.open();
    }
    for job in jobs {
        own.block_on(job).unwrap();
    }
}

#[test]
fn a_job_is_not_pinned_to_a_thread_of_another_runtime() {
    let _watch = watch();
    let (own, other) = (named("own", 1), named("other", 1));
    let job = own.spawn(async move {
        other.block_on(async {
            let refused = spawn_local(async { 1 }).unwrap_err();
            assert!(matches!(refused, SpawnError::NoLocalThread), "{refused}");
        });
        spawn_local(async { 2 }).unwrap().await.unwrap()
    });
    assert_eq!(own.block_on(job).unwrap(), 2);
}

#[test]
fn a_cancel_ends_a_visit() {
    let _watch = watch();
    let (own, other) = (named("own", 1), named("other", 1));
    let (drops, waits) = (Drops::default(), Latch::default());
    let (token, latch) = (drops.token(), waits.clone());
    let job = own.spawn(async move {
        let _token = token;
        other.block_on(latch);
    });
    until(|| waits.waiters() == 1);
    job.cancel();
    assert!(own.block_on(job).unwrap_err().is_cancelled());
    assert_eq!(drops.count(), 1);
    assert_eq!(own.block_on(own.spawn(spawned())).unwrap(), "own");
}

/// Forks stay on the job's own workers, in the visited runtime as elsewhere, and so does what their halves spawn.
#[test]
fn forks_inside_a_visit_stay_in_the_jobs_runtime() {
    let _watch = watch();
    let (own, other) = (named("own", 2), named("other", 2));
    let job = own.spawn(async move {
        for _ in 0..50 {
            other.block_on(async {
                // Only a second thread ends the first half.
                let stolen = AtomicBool::new(false);
                let (left, right) = fork::join(
                    || {
                        while !stolen.load(Ordering::Acquire) {
                            cancel_point();
                            fork::join(|| (), || ());
                        }
                        block_on(spawned())
                    },
                    || {
                        stolen.store(true, Ordering::Release);
                        (here(), block_on(spawned()))
                    },
                );
                assert_eq!(left, "own");
                assert_eq!(right, ("own".to_owned(), "own".to_owned()));
                assert!(is_in_job());
                assert_eq!(spawned().await, "other");
            });
            assert_eq!(fork::join(here, here).0, "own");
        }
    });
    own.block_on(job).unwrap();
}

/// A runtime that would wait for an hour, and hands itself to its own code by the returned sender.
fn patient() -> (Runtime, mpsc::Sender<Runtime>, mpsc::Receiver<Runtime>) {
    let builder = Runtime::builder().workers(1).shutdown_deadline(HOUR);
    let (sender, receiver) = mpsc::channel();
    (builder.build().unwrap(), sender, receiver)
}

#[test]
fn a_runtime_that_is_dropped_in_its_own_job_thread_or_callback_does_not_wait_for_it() {
    let _watch = watch();
    for place in ["job", "thread", "callback"] {
        let (runtime, sender, own) = patient();
        let (drops, (tell, told)) = (Drops::default(), mpsc::channel());
        let (local, token) = (drops.token(), drops.token());
        let end = move || {
            drop(own.recv().unwrap());
            tell.send(()).unwrap();
        };
        // A neighbour that waits on the same thread with its stack.
        let waits = Latch::default();
        let latch = waits.clone();
        runtime
            .spawn(async move {
                let _local = local;
                latch.wait();
            })
            .detach();
        until(|| waits.waiters() == 1);
        let job = async move {
            let _token = token;
            match place {
                "job" => end(),
                "thread" => return fiber(end).await,
                _ => {
                    callback::once(callback::Owner::runtime(), callback::When::Ready, end).detach()
                }
            }
            std::future::pending().await
        };
        runtime.spawn(job).detach();
        sender.send(runtime).unwrap();
        told.recv().unwrap();
        // Both end: at the next wait, and when the thread leaves.
        until(|| drops.count() == 2);
    }
}

/// The caller of the closure, and of the fork, waits for the code that drops the runtime.
#[test]
fn a_runtime_that_is_dropped_in_a_closure_or_a_part_of_a_fork_does_not_wait_for_its_caller() {
    let _watch = watch();
    for place in ["blocking", "offload", "fork", "nested forks"] {
        let builder = Runtime::builder().workers(4).shutdown_deadline(HOUR);
        let (runtime, (sender, own)) = (builder.build().unwrap(), mpsc::channel());
        let (tell, told) = mpsc::channel();
        let end = move || {
            drop::<Runtime>(own.recv().unwrap());
            tell.send(()).unwrap();
        };
        let job = async move {
            match place {
                "blocking" => blocking(end),
                "offload" => offload(end).await.unwrap(),
                "fork" => in_a_stolen_part(end),
                _ => in_a_stolen_part(|| in_a_stolen_part(|| in_a_stolen_part(end))),
            }
        };
        runtime.spawn(job).detach();
        sender.send(runtime).unwrap();
        told.recv().unwrap();
    }
}

/// Calls `act` in a part of a fork that another thread has stolen.
fn in_a_stolen_part(act: impl FnOnce() + Send) {
    let (begun, begins) = mpsc::channel();
    let own = move || begins.recv().unwrap();
    let stolen = move || {
        begun.send(()).unwrap();
        act();
    };
    fork::join(own, stolen);
}

#[test]
fn a_job_that_shuts_its_own_runtime_down_lets_the_others_end_and_is_not_in_the_report() {
    let _watch = watch();
    let (runtime, sender, own) = patient();
    let (tell, told) = mpsc::channel();
    let (ended, never) = (Arc::new(AtomicBool::new(false)), Latch::default());
    let (seen, latch) = (ended.clone(), never.clone());
    runtime.spawn(latch).detach();
    until(|| never.waiters() == 1);
    runtime
        .spawn(async move {
            let runtime: Runtime = own.recv().unwrap();
            spawn(async move {
                sleep(Duration::from_millis(30)).await;
                seen.store(true, Ordering::Release);
            })
            .detach();
            tell.send(runtime.shutdown(HOUR)).unwrap();
        })
        .detach();
    sender.send(runtime).unwrap();
    let report = told.recv().unwrap();
    assert!(ended.load(Ordering::Acquire), "the drain lets it end");
    assert_eq!((report.cancelled, report.not_stopped), (1, Vec::new()));
}
