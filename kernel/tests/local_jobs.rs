//! `spawn_local`: futures that are not `Send` are polled and dropped on one thread, whichever thread
//! wakes them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/reports.rs"]
mod reports;
#[path = "support/tools.rs"]
mod tools;

use std::{
    cell::{Cell, RefCell},
    pin::Pin,
    rc::Rc,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    task::{Context, Poll, Waker},
    thread::{self, ThreadId},
    time::Duration,
};

use reports::{collect_reports, reports};
use tools::{Latch, on_each, runtime, until, until_yielding, watch};
use weald_kernel::{SpawnError, Wait, block_in_place, sleep, spawn, spawn_local, yield_now};

/// Asserts that its inner future is polled and dropped on the thread that created it.
struct SameThread<F> {
    thread: ThreadId,
    inner: Option<Pin<Box<F>>>,
    dropped: Option<Arc<AtomicBool>>,
}

fn same_thread<F: Future>(inner: F) -> SameThread<F> {
    SameThread {
        thread: thread::current().id(),
        inner: Some(Box::pin(inner)),
        dropped: None,
    }
}

impl<F> SameThread<F> {
    /// Sets `dropped` when this future is dropped.
    fn with_drop_flag(mut self, dropped: Arc<AtomicBool>) -> SameThread<F> {
        self.dropped = Some(dropped);
        self
    }
}

impl<F: Future> Future for SameThread<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        assert_eq!(self.thread, thread::current().id());
        self.inner.as_mut().unwrap().as_mut().poll(cx)
    }
}

impl<F> Drop for SameThread<F> {
    fn drop(&mut self) {
        if self.thread != thread::current().id() {
            eprintln!("a local future was dropped on another thread");
            std::process::abort();
        }
        self.inner = None;
        if let Some(dropped) = &self.dropped {
            dropped.store(true, Ordering::SeqCst);
        }
    }
}

#[test]
fn an_rc_lives_across_awaits_inside_block_on() {
    on_each(|runtime| {
        let sum = runtime.block_on(async {
            let shared = Rc::new(Cell::new(0));
            let jobs: Vec<_> = (0..50)
                .map(|n| {
                    let shared = shared.clone();
                    spawn_local(same_thread(async move {
                        yield_now().await;
                        sleep(Duration::from_millis(n % 3)).await;
                        spawn(async {}).await.unwrap();
                        shared.set(shared.get() + n);
                    }))
                    .unwrap()
                })
                .collect();
            for job in jobs {
                job.await.unwrap();
            }
            shared.get()
        });
        assert_eq!(sum, 1_225);
    });
}

#[test]
fn an_rc_lives_across_awaits_on_a_worker() {
    on_each(|runtime| {
        let outer = runtime.spawn(async {
            let local = spawn_local(same_thread(async {
                let shared = Rc::new(RefCell::new(Vec::new()));
                for n in 0..20 {
                    yield_now().await;
                    sleep(Duration::from_millis(n % 2)).await;
                    shared.borrow_mut().push(n);
                }
                let own = shared.clone();
                spawn_local(same_thread(async move { own.borrow_mut().push(20) }))
                    .unwrap()
                    .await
                    .unwrap();
                Rc::try_unwrap(shared).unwrap().into_inner().len()
            }));
            local.unwrap().await.unwrap()
        });
        assert_eq!(runtime.block_on(outer).unwrap(), 21);
    });
}

#[test]
fn a_thread_without_a_runtime_has_no_local_jobs() {
    assert_eq!(
        spawn_local(async {}).map(drop),
        Err(SpawnError::NoLocalThread)
    );
}

#[test]
fn wakes_from_other_threads_reach_the_jobs_thread() {
    on_each(|runtime| {
        runtime.block_on(async {
            let latches: Vec<_> = (0..100).map(|_| Latch::default()).collect();
            let jobs: Vec<_> = latches
                .iter()
                .map(|latch| spawn_local(same_thread(latch.clone())).unwrap())
                .collect();
            let opens = thread::spawn(move || latches.iter().for_each(Latch::open));
            for job in jobs {
                job.await.unwrap();
            }
            opens.join().unwrap();
        });
    });
}

#[test]
fn wakes_of_local_jobs_of_a_worker_reach_its_thread() {
    on_each(|runtime| {
        let (latch, started) = (Latch::default(), Arc::new(AtomicBool::new(false)));
        let (waits, starts) = (latch.clone(), started.clone());
        let outer = runtime.spawn(async move {
            let locals: Vec<_> = (0..50)
                .map(|_| spawn_local(same_thread(waits.clone())).unwrap())
                .collect();
            starts.store(true, Ordering::SeqCst);
            for local in locals {
                local.await.unwrap();
            }
        });
        until(|| started.load(Ordering::SeqCst));
        latch.open();
        runtime.block_on(outer).unwrap();
    });
}

#[test]
fn a_local_job_stays_on_its_thread_when_the_worker_is_handed_off() {
    let _watch = watch();
    let runtime = runtime(1);
    let latch = Latch::default();
    let (go, may_go) = mpsc::channel::<()>();
    let waits = latch.clone();
    // Spawns a local job, then blocks its thread; the worker is handed off to another thread.
    let spawner = runtime.spawn(async move {
        let local = spawn_local(same_thread(async move {
            waits.await;
            yield_now().await;
            sleep(Duration::from_millis(1)).await;
            thread::current().id()
        }))
        .unwrap();
        yield_now().await;
        yield_now().await;
        block_in_place(|| may_go.recv().unwrap());
        (thread::current().id(), local)
    });
    until(|| runtime.metrics().announced == 1);
    // The worker runs on another thread.
    let elsewhere = runtime
        .block_on(runtime.spawn(async { thread::current().id() }))
        .unwrap();
    latch.open();
    go.send(()).unwrap();
    let (own_thread, local) = runtime.block_on(spawner).unwrap();
    assert_ne!(own_thread, elsewhere);
    assert_eq!(runtime.block_on(local).unwrap(), own_thread);
}

#[test]
fn the_end_of_block_on_drops_local_jobs_on_their_thread() {
    on_each(|runtime| {
        let mut dropped = Vec::new();
        let handles: Vec<_> = runtime.block_on(async {
            (0..20)
                .map(|n| {
                    let flag = Arc::new(AtomicBool::new(false));
                    dropped.push(flag.clone());
                    let future = same_thread(async move {
                        let _rc = Rc::new(0);
                        for _ in 0..n % 3 {
                            yield_now().await;
                        }
                        std::future::pending::<()>().await;
                    });
                    spawn_local(future.with_drop_flag(flag)).unwrap()
                })
                .collect()
        });
        assert!(dropped.iter().all(|flag| flag.load(Ordering::SeqCst)));
        for handle in handles {
            assert!(runtime.block_on(handle).unwrap_err().is_cancelled());
        }
    });
}

/// Pending forever, with its waker in the list.
async fn listed(wakers: Arc<Mutex<Vec<Waker>>>) {
    std::future::poll_fn(|cx| {
        let mut wakers = wakers.lock().unwrap();
        if !wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            wakers.push(cx.waker().clone());
        }
        Poll::<()>::Pending
    })
    .await;
}

#[test]
fn block_on_returns_while_other_threads_wake_its_local_jobs() {
    on_each(|runtime| {
        let (stop, wakers) = (AtomicBool::new(false), Arc::new(Mutex::new(Vec::new())));
        thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    let wakers = wakers.lock().unwrap().clone();
                    wakers.iter().for_each(Waker::wake_by_ref);
                }
            });
            for _ in 0..100 {
                runtime.block_on(async {
                    for _ in 0..5 {
                        spawn_local(listed(wakers.clone())).unwrap().detach();
                    }
                    until_yielding(|| wakers.lock().unwrap().len() >= 5).await;
                });
                wakers.lock().unwrap().clear();
            }
            stop.store(true, Ordering::SeqCst);
        });
    });
}

#[test]
fn a_local_job_that_always_yields_does_not_starve_the_main_future() {
    on_each(|runtime| {
        runtime.block_on(async {
            let stop = Rc::new(Cell::new(false));
            let stopped = stop.clone();
            let local = spawn_local(async move {
                while !stopped.get() {
                    yield_now().await;
                }
            })
            .unwrap();
            for _ in 0..10 {
                yield_now().await;
            }
            stop.set(true);
            local.await.unwrap();
        });
    });
}

#[test]
fn a_local_job_that_always_yields_does_not_starve_its_worker() {
    let _watch = watch();
    let runtime = runtime(1);
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let spins = runtime.spawn(async move {
        let local = spawn_local(async move {
            while !stopped.load(Ordering::SeqCst) {
                yield_now().await;
            }
        });
        local.unwrap().await.unwrap();
    });
    for _ in 0..100 {
        runtime.block_on(runtime.spawn(yield_now())).unwrap();
    }
    stop.store(true, Ordering::SeqCst);
    runtime.block_on(spins).unwrap();
}

#[test]
fn a_local_job_is_cancelled_and_panics_like_any_other() {
    on_each(|runtime| {
        runtime.block_on(async {
            let waits = spawn_local(same_thread(std::future::pending::<()>())).unwrap();
            yield_now().await;
            waits.cancel();
            assert!(waits.await.unwrap_err().is_cancelled());
            let panics = spawn_local(same_thread(async { panic!("local") })).unwrap();
            assert!(panics.await.unwrap_err().is_panic());
            let never = spawn_local(same_thread(async {})).unwrap();
            never.cancel();
            assert!(never.await.unwrap_err().is_cancelled());
        });
    });
}

#[test]
fn a_panic_of_the_main_future_drops_local_jobs_on_their_thread() {
    on_each(|runtime| {
        let dropped = Arc::new(AtomicBool::new(false));
        let flag = dropped.clone();
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            runtime.block_on(async {
                spawn_local(same_thread(std::future::pending::<()>()).with_drop_flag(flag))
                    .unwrap()
                    .detach();
                yield_now().await;
                panic!("main");
            });
        }));
        assert!(caught.is_err());
        assert!(dropped.load(Ordering::SeqCst));
    });
}

#[test]
fn a_local_job_of_an_outer_block_on_runs_during_an_inner_one() {
    on_each(|runtime| {
        runtime.block_on(async {
            let local = spawn_local(same_thread(async { 3 })).unwrap();
            assert_eq!(local.wait().unwrap(), 3);
        });
    });
}

struct WaitsAtDrop(Latch);

impl Drop for WaitsAtDrop {
    fn drop(&mut self) {
        self.0.clone().wait();
    }
}

#[test]
fn a_local_job_whose_destructor_keeps_block_on_from_returning_is_named() {
    collect_reports();
    let _watch = watch();
    let latch = Latch::default();
    let waits = WaitsAtDrop(latch.clone());
    let ends = thread::spawn(move || {
        runtime(1).block_on(async {
            spawn_local(async {
                let _waits = waits;
                std::future::pending::<()>().await;
            })
            .unwrap()
            .detach();
            yield_now().await;
        });
    });
    let told = || reports("weald::monitor", "has waited in a destructor");
    until(|| !told().is_empty());
    let text = &told()[0].text;
    assert!(
        text.contains("local_jobs.rs") && text.contains("`block_on`"),
        "{text}"
    );
    latch.open();
    ends.join().unwrap();
}
