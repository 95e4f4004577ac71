//! Scopes and children: no child outlives its scope or its parent, however the scope or the parent ends.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::async_yields_async, reason = "a block_on returns handles")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt;
use tools::{Drops, Latch, for_seeds, on_each, runtime, until, until_yielding};
use weald_kernel::{Runtime, Scope, Wait, scope, sleep, spawn, spawn_child, timeout, yield_now};

#[test]
fn children_end_before_the_scope_returns() {
    on_each(|runtime| {
        for _ in 0..50 {
            let drops = Drops::default();
            let value = runtime.block_on(scope(async |scope| {
                for n in 0..20 {
                    let token = drops.token();
                    scope
                        .spawn(async move {
                            let _token = token;
                            for _ in 0..n {
                                yield_now().await;
                            }
                        })
                        .detach();
                }
                7
            }));
            assert_eq!((value, drops.count()), (7, 20));
        }
    });
}

#[test]
fn the_output_of_a_detached_child_is_dropped_before_the_scope_returns() {
    struct Slow(Arc<AtomicBool>);
    impl Drop for Slow {
        fn drop(&mut self) {
            for _ in 0..200 {
                std::thread::yield_now();
            }
            self.0.store(true, Ordering::SeqCst);
        }
    }
    on_each(|runtime| {
        for _ in 0..5 {
            let dropped = Arc::new(AtomicBool::new(false));
            let output = Slow(dropped.clone());
            runtime.block_on(scope(async |scope| scope.spawn(async { output }).detach()));
            assert!(dropped.load(Ordering::SeqCst));
        }
    });
}

#[test]
fn the_handle_of_a_child_returns_its_panic() {
    on_each(|runtime| {
        runtime.block_on(scope(async |scope| {
            let panics = scope.spawn(async { panic!("child") });
            let unharmed = scope.spawn(async { 1 });
            let result: Result<(), _> = panics.await;
            assert!(result.unwrap_err().is_panic());
            assert_eq!(unharmed.await.unwrap(), 1);
        }));
    });
}

#[test]
fn a_panic_of_the_body_ends_the_children_first() {
    on_each(|runtime| {
        let drops = Drops::default();
        let body = runtime.spawn({
            let token = drops.token();
            async move {
                let scoped = AssertUnwindSafe(scope(async move |scope| {
                    scope
                        .spawn(async move {
                            let _token = token;
                            std::future::pending::<()>().await;
                        })
                        .detach();
                    yield_now().await;
                    panic!("body");
                }));
                scoped.catch_unwind().await.is_err()
            }
        });
        assert!(runtime.block_on(body).unwrap());
        assert_eq!(drops.count(), 1);
    });
}

#[test]
fn dropping_the_scopes_future_ends_the_children_first() {
    on_each(|runtime| {
        let drops = Drops::default();
        let token = drops.token();
        let job = runtime.spawn(async move {
            let endless = scope(async move |scope| {
                scope
                    .spawn(async move {
                        let _token = token;
                        std::future::pending::<()>().await;
                    })
                    .detach();
                std::future::pending::<()>().await;
            });
            assert!(timeout(Duration::from_millis(2), endless).await.is_err());
        });
        runtime.block_on(job).unwrap();
        assert_eq!(drops.count(), 1);
    });
}

#[test]
fn cancelling_the_scopes_job_ends_the_children_first() {
    on_each(|runtime| {
        let (drops, latch) = (Drops::default(), Latch::default());
        let (token, waits) = (drops.token(), latch.clone());
        let job = runtime.spawn(scope(async move |scope| {
            scope
                .spawn(async move {
                    let _token = token;
                    waits.await;
                })
                .detach();
            std::future::pending::<()>().await;
        }));
        until(|| latch.waiters() == 1);
        job.cancel();
        let error = runtime.block_on(job).unwrap_err();
        assert!(error.is_cancelled(), "{error}");
        assert_eq!(drops.count(), 1);
    });
}

#[test]
fn a_scope_in_the_main_future_of_a_test_runtime_can_be_dropped() {
    let _watch = tools::watch();
    Runtime::test(1).block_on(async {
        let drops = Drops::default();
        let token = drops.token();
        let endless = scope(async move |scope| {
            scope
                .spawn(async move {
                    let _token = token;
                    std::future::pending::<()>().await;
                })
                .detach();
            std::future::pending::<()>().await;
        });
        assert!(timeout(Duration::from_secs(5), endless).await.is_err());
        assert_eq!(drops.count(), 1);
    });
}

#[test]
fn scopes_nest_and_end_in_order() {
    for_seeds(4, |random| {
        let runtime = runtime(1 + random.below(4));
        let (inner, outer) = (Drops::default(), Drops::default());
        let millis = random.below(3) as u64;
        let (inner_counts, outer_counts) = (inner.clone(), outer.clone());
        let job = runtime.spawn(scope(async move |outer_scope| {
            for _ in 0..10 {
                let (inner, token) = (inner_counts.clone(), outer_counts.token());
                outer_scope
                    .spawn(scope(async move |inner_scope| {
                        let _token = token;
                        for _ in 0..10 {
                            let token = inner.token();
                            inner_scope
                                .spawn(async move {
                                    let _token = token;
                                    sleep(Duration::from_millis(millis)).await;
                                })
                                .detach();
                        }
                    }))
                    .detach();
            }
        }));
        runtime.block_on(job).unwrap();
        assert_eq!((inner.count(), outer.count()), (100, 10));
    });
}

#[test]
fn a_child_may_spawn_siblings_in_its_scope() {
    on_each(|runtime| {
        let drops = Drops::default();
        let counts = drops.clone();
        runtime.block_on(scope(async move |scope| {
            let own = scope.clone();
            let (token, second) = (counts.token(), counts.token());
            scope
                .spawn(async move {
                    let _token = token;
                    own.spawn(async move {
                        let _token = second;
                        yield_now().await;
                    })
                    .detach();
                })
                .detach();
        }));
        assert_eq!(drops.count(), 2);
    });
}

#[test]
fn what_is_spawned_in_a_scope_that_has_ended_is_cancelled() {
    on_each(|runtime| {
        // The scope ends by a value, a panic or a cancel.
        for how in 0..3 {
            let kept = Arc::new(Mutex::new(None::<Scope>));
            let keeps = kept.clone();
            let scoped = runtime.spawn(scope(async move |scope| {
                *keeps.lock().unwrap() = Some(scope.clone());
                match how {
                    0 => {}
                    1 => std::panic::resume_unwind(Box::new("body")),
                    _ => std::future::pending::<()>().await,
                }
            }));
            until(|| kept.lock().unwrap().is_some());
            if how == 2 {
                scoped.cancel();
            }
            assert_eq!(runtime.block_on(scoped).is_ok(), how == 0);
            let scope = kept.lock().unwrap().take().unwrap();
            let late = runtime.block_on(async { scope.spawn(std::future::pending::<()>()) });
            assert!(runtime.block_on(late).unwrap_err().is_cancelled());
        }
    });
}

#[test]
fn a_child_spawned_while_the_scope_ends_is_ended_too() {
    /// Spawns a child that never ends on its own.
    struct SpawnsAtDrop(Scope, Drops);
    impl Drop for SpawnsAtDrop {
        fn drop(&mut self) {
            let token = self.1.token();
            let endless = async move {
                let _token = token;
                std::future::pending::<()>().await;
            };
            self.0.spawn(endless).detach();
        }
    }
    on_each(|runtime| {
        let (drops, latch) = (Drops::default(), Latch::default());
        let (counts, waits) = (drops.clone(), latch.clone());
        let job = runtime.spawn(scope(async move |scope| {
            let spawns = SpawnsAtDrop(scope.clone(), counts);
            scope
                .spawn(async move {
                    let _spawns = spawns;
                    waits.await;
                })
                .detach();
            std::future::pending::<()>().await;
        }));
        until(|| latch.waiters() == 1);
        job.cancel();
        assert!(runtime.block_on(job).unwrap_err().is_cancelled());
        assert_eq!((drops.made(), drops.count()), (1, 1));
    });
}

#[test]
fn a_parent_has_very_many_children() {
    // If each end searched all of them, this would take many minutes, and the guard would abort.
    const CHILDREN: usize = 400_000;
    let _watch = tools::watch();
    // Without spare threads, so that no child ends before all are spawned.
    let builder = Runtime::builder().workers(1).spare_threads(0);
    let runtime = builder.build().unwrap();
    let parent = runtime.spawn(async {
        let children: Vec<_> = (0..CHILDREN).map(|_| spawn_child(async {})).collect();
        for child in children {
            child.await.unwrap();
        }
    });
    runtime.block_on(parent).unwrap();
    let scoped = runtime.spawn(scope(async |scope| {
        for _ in 0..CHILDREN {
            scope.spawn(async {}).detach();
        }
    }));
    runtime.block_on(scoped).unwrap();
}

#[test]
fn children_end_with_their_parent_by_value_panic_and_cancel() {
    on_each(|runtime| {
        runtime.block_on(async {
            let drops = Drops::default();
            for how in 0..3 {
                let token = drops.token();
                let parent = spawn(async move {
                    let child = spawn_child(async move {
                        let _token = token;
                        std::future::pending::<()>().await;
                    });
                    yield_now().await;
                    match how {
                        0 => {}
                        1 => std::panic::resume_unwind(Box::new("parent")),
                        _ => std::future::pending::<()>().await,
                    }
                    drop(child);
                });
                if how == 2 {
                    yield_now().await;
                    parent.cancel();
                }
                let _ = parent.await;
                until_yielding(|| drops.count() == how + 1).await;
            }
        });
    });
}

#[test]
fn a_child_that_ended_first_leaves_nothing_behind() {
    on_each(|runtime| {
        runtime.block_on(async {
            let parent = spawn(async {
                for n in 0..1_000_u32 {
                    assert_eq!(spawn_child(async move { n }).await.unwrap(), n);
                }
            });
            parent.await.unwrap();
        });
    });
}

/// Its destructor waits, and then drops its token.
struct WaitsAtDrop(Latch, Option<tools::Token>);

impl Drop for WaitsAtDrop {
    fn drop(&mut self) {
        self.0.clone().wait();
        drop(self.1.take());
    }
}

#[test]
fn a_scope_that_is_dropped_waits_for_its_children_even_if_its_job_is_cancelled_meanwhile() {
    Runtime::test(7).block_on(async {
        let (drops, latch) = (Drops::default(), Latch::default());
        let guard = WaitsAtDrop(latch.clone(), Some(drops.token()));
        let job = spawn(async move {
            let endless = scope(async move |scope| {
                let held = async move {
                    let _guard = guard;
                    std::future::pending::<()>().await;
                };
                scope.spawn(held).detach();
                std::future::pending::<()>().await;
            });
            let _elapsed = timeout(Duration::from_millis(2), endless).await;
        });
        // Time moves on only when nothing can run any longer: the child's destructor and the scope wait then.
        sleep(Duration::from_secs(1)).await;
        assert_eq!(latch.waiters(), 1);
        job.cancel();
        sleep(Duration::from_secs(1)).await;
        let ended_early = job.is_finished();
        latch.open();
        let _ended = job.await;
        assert!(!ended_early, "the scope ended before its child");
        assert_eq!(drops.count(), 1);
    });
}

/// Its destructor sleeps.
struct SleepsAtDrop;

impl Drop for SleepsAtDrop {
    fn drop(&mut self) {
        sleep(Duration::from_millis(1)).wait();
    }
}

#[test]
fn on_a_test_runtime_time_moves_for_a_job_that_sleeps_while_its_cancel_unwinds_it() {
    Runtime::test(7).block_on(async {
        let job = spawn(async {
            let _sleeps = SleepsAtDrop;
            sleep(Duration::from_secs(60)).wait();
        });
        sleep(Duration::from_millis(1)).await;
        job.cancel();
        assert!(job.await.is_err_and(|error| error.is_cancelled()));
    });
}
