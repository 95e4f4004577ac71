//! `blocking`: the closure runs on a blocking thread, borrows from a caller that is not unwound before, and holds up
//! nobody.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::async_yields_async, reason = "a block_on returns handles")]

#[path = "support/reports.rs"]
mod reports;
#[path = "support/tools.rs"]
mod tools;

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use reports::{collect_reports, reports};
use tools::{Latch, on_each, runtime, until, watch};
use weald_kernel::{
    Builder, DEFAULT_STACK, Runtime, Spawn, Wait, block_in_place, blocking, current_name, offload,
    sleep, spawn, yield_now,
};

/// A runtime with one worker, which is never retaken while the test runs.
fn patient() -> Builder {
    Runtime::builder()
        .workers(1)
        .stuck_after(Duration::from_secs(3600))
}

/// Many other jobs have run since the call.
fn others_run(runtime: &Runtime) {
    for _ in 0..100 {
        runtime.block_on(runtime.spawn(yield_now())).unwrap();
    }
}

#[test]
fn the_closure_borrows_and_returns() {
    on_each(|runtime| {
        let job = runtime.spawn(async {
            let mut words = vec!["one"];
            let worker = thread::current().id();
            let other = blocking(|| {
                words.push("two");
                thread::current().id()
            });
            assert_ne!(worker, other);
            words
        });
        assert_eq!(runtime.block_on(job).unwrap(), ["one", "two"]);
    });
}

/// Says whether the closure had ended when the caller's frame was unwound.
struct Frame<'a> {
    closure_ended: &'a AtomicBool,
    unwound_after: mpsc::Sender<bool>,
}

impl Drop for Frame<'_> {
    fn drop(&mut self) {
        let ended = self.closure_ended.load(Ordering::SeqCst);
        self.unwound_after.send(ended).unwrap();
    }
}

#[test]
fn a_cancelled_caller_is_unwound_only_after_its_closure_has_ended() {
    let _watch = watch();
    let runtime = runtime(2);
    // In a future, whose loop's stack is suspended, and in a fiber.
    for is_fiber in [false, true] {
        let (go, may_go) = mpsc::channel::<()>();
        let (begins, has_begun) = mpsc::channel();
        let (unwinds, unwound_after) = mpsc::channel();
        let code = move || {
            let closure_ended = AtomicBool::new(false);
            let text = String::from("borrowed");
            let _frame = Frame {
                closure_ended: &closure_ended,
                unwound_after: unwinds,
            };
            let (text, closure_ended) = (&text, &closure_ended);
            blocking(move || {
                begins.send(()).unwrap();
                may_go.recv().unwrap();
                assert_eq!(text, "borrowed");
                closure_ended.store(true, Ordering::SeqCst);
            });
            unreachable!("the cancel unwinds the caller");
        };
        let job = runtime.block_on(async {
            match is_fiber {
                true => Spawn::new().spawn_fiber(DEFAULT_STACK, code).unwrap(),
                false => spawn(async move { code() }),
            }
        });
        has_begun.recv().unwrap();
        job.cancel();
        others_run(&runtime);
        assert!(!job.is_finished());
        assert!(unwound_after.try_recv().is_err());
        go.send(()).unwrap();
        assert!(unwound_after.recv().unwrap());
        assert!(runtime.block_on(job).unwrap_err().is_cancelled());
    }
}

#[test]
fn a_closure_that_waits_for_a_thread_never_runs_after_a_cancel() {
    let _watch = watch();
    let runtime = Runtime::builder().workers(2).blocking_threads(1);
    let runtime = runtime.build().unwrap();
    let (go, may_go) = mpsc::channel::<()>();
    let holder = runtime.spawn(async move { blocking(move || may_go.recv().unwrap()) });
    until(|| runtime.metrics().blocking == 1);
    let ran = Arc::new(AtomicBool::new(false));
    let runs = ran.clone();
    let waits = runtime.spawn(async move { blocking(|| runs.store(true, Ordering::SeqCst)) });
    until(|| runtime.metrics().blocking_queued == 1);
    until(|| {
        let waits = runtime.waits().to_string();
        waits.contains("for a closure on a blocking thread")
            && waits.contains("for a free blocking thread")
    });
    waits.cancel();
    // The holder still has the only thread.
    assert!(runtime.block_on(waits).unwrap_err().is_cancelled());
    assert_eq!(runtime.metrics().blocking_queued, 0);
    go.send(()).unwrap();
    runtime.block_on(holder).unwrap();
    assert!(!ran.load(Ordering::SeqCst));
}

#[test]
fn a_panic_of_the_closure_is_the_callers() {
    on_each(|runtime| {
        let job = runtime.spawn(async {
            let caught = catch_unwind(AssertUnwindSafe(|| blocking(|| panic!("first"))));
            let payload = caught.unwrap_err();
            assert_eq!(payload.downcast_ref(), Some(&"first"));
            blocking(|| panic!("second"))
        });
        let error = runtime.block_on(job).unwrap_err();
        assert!(error.is_panic() && error.to_string().contains("second"));
    });
}

#[test]
fn started_threads_of_the_same_os_thread_go_on() {
    let _watch = watch();
    let runtime = patient().build().unwrap();
    let (tick, ticks) = mpsc::channel();
    let ticking = Arc::new(AtomicBool::new(true));
    let still = ticking.clone();
    let neighbour = move || {
        while still.load(Ordering::SeqCst) {
            sleep(Duration::from_micros(100)).wait();
            // The receiver ends first.
            let _gone = tick.send(thread::current().id());
        }
    };
    let code = move || {
        sleep(Duration::from_micros(100)).wait();
        let here = thread::current().id();
        blocking(move || {
            for _ in 0..50 {
                // It is pinned to the caller's OS thread.
                assert_eq!(ticks.recv().unwrap(), here);
            }
        });
        assert_eq!(thread::current().id(), here);
    };
    let (neighbour, caller) = runtime.block_on(async {
        let neighbour = Spawn::new().spawn_fiber(DEFAULT_STACK, neighbour);
        let caller = Spawn::new().spawn_fiber(DEFAULT_STACK, code);
        (neighbour.unwrap(), caller.unwrap())
    });
    runtime.block_on(caller).unwrap();
    ticking.store(false, Ordering::SeqCst);
    runtime.block_on(neighbour).unwrap();
}

#[test]
fn six_hundred_closures_at_once_all_end() {
    let _watch = watch();
    let runtime = Runtime::builder().workers(2).blocking_threads(50);
    let runtime = runtime.build().unwrap();
    let lock = Arc::new(std::sync::RwLock::new(()));
    let closed = lock.write().unwrap();
    let ended = Arc::new(AtomicUsize::new(0));
    let jobs: Vec<_> = (0..600)
        .map(|_| {
            let (lock, ended) = (lock.clone(), ended.clone());
            runtime.spawn(async move {
                blocking(|| {
                    drop(lock.read().unwrap());
                    ended.fetch_add(1, Ordering::SeqCst);
                });
            })
        })
        .collect();
    until(|| {
        let metrics = runtime.metrics();
        (metrics.blocking, metrics.blocking_queued) == (50, 550)
    });
    assert_eq!(runtime.metrics().blocking_threads, 50);
    others_run(&runtime);
    assert_eq!(ended.load(Ordering::SeqCst), 0);
    drop(closed);
    for job in jobs {
        runtime.block_on(job).unwrap();
    }
    assert_eq!(ended.load(Ordering::SeqCst), 600);
    assert_eq!(runtime.metrics().blocking, 0);
}

#[test]
fn a_closure_that_waits_with_weald_leaves_its_thread_to_another() {
    let _watch = watch();
    let runtime = Runtime::builder().workers(1).blocking_threads(1);
    let runtime = runtime.build().unwrap();
    let latch = Latch::default();
    let opens = latch.clone();
    let waits = runtime.spawn(async move { blocking(|| latch.wait()) });
    // Needs a blocking thread, too.
    let other = runtime.spawn(async move { blocking(|| opens.open()) });
    runtime.block_on(other).unwrap();
    runtime.block_on(waits).unwrap();
}

#[test]
#[allow(clippy::disallowed_methods, reason = "until the threads are idle")]
fn a_thread_that_ends_because_a_wait_has_ended_leaves_its_closure_to_another() {
    let _watch = watch();
    let runtime = patient()
        .blocking_threads(2)
        .retire_after(Duration::from_secs(3600));
    let runtime = runtime.build().unwrap();
    let (go, may_go) = mpsc::channel::<()>();
    let (latch, has_waited) = (Latch::default(), Arc::new(AtomicBool::new(false)));
    let (wait, waited) = (latch.clone(), has_waited.clone());
    let waits = runtime.spawn(offload(move || {
        wait.wait();
        waited.store(true, Ordering::SeqCst);
        let _dropped = may_go.recv();
    }));
    until(|| runtime.metrics().blocking == 1);
    // Two threads beside that one, which are idle then.
    let both = Arc::new(std::sync::Barrier::new(2));
    let idle = [both.clone(), both].map(|both| runtime.spawn(offload(move || both.wait())));
    for job in idle {
        runtime.block_on(job).unwrap().unwrap();
    }
    assert_eq!(runtime.metrics().blocking_threads, 3);
    thread::sleep(Duration::from_millis(50));
    latch.open();
    until(|| has_waited.load(Ordering::SeqCst));
    // Three threads are now one too many, and two of them are idle.
    let runs = runtime.spawn(offload(|| 8));
    assert_eq!(runtime.block_on(runs).unwrap(), Ok(8));
    drop(go);
    runtime.block_on(waits).unwrap().unwrap();
}

#[test]
fn a_closure_that_waits_for_a_thread_for_long_is_reported() {
    let _watch = watch();
    collect_reports();
    let runtime = Runtime::builder().workers(1).blocking_threads(1);
    let runtime = runtime.build().unwrap();
    let (go, may_go) = mpsc::channel::<()>();
    let holder = runtime.block_on(async move {
        let holder = Spawn::new().name("holds the only thread");
        holder.spawn(async move { blocking(move || may_go.recv().unwrap()) })
    });
    until(|| runtime.metrics().blocking == 1);
    let waits = runtime.spawn(async { blocking(|| 7) });
    until(|| !reports("weald::blocking", "`holds the only thread`").is_empty());
    go.send(()).unwrap();
    runtime.block_on(holder).unwrap();
    assert_eq!(runtime.block_on(waits).unwrap(), 7);
    let found = reports("weald::blocking", "`holds the only thread`");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].level, tracing::Level::ERROR);
}

#[test]
fn a_dropped_runtime_names_the_caller_whose_closure_does_not_end() {
    let _watch = watch();
    collect_reports();
    let runtime = Runtime::builder()
        .workers(1)
        .shutdown_deadline(Duration::from_millis(50))
        .build()
        .unwrap();
    let (go, may_go) = mpsc::channel::<()>();
    let (go_too, may_go_too) = mpsc::channel::<()>();
    let (unwinds, unwound_after) = mpsc::channel();
    let blocks = runtime.block_on(async move {
        let spawn = Spawn::new().name("blocks beyond the end");
        spawn.spawn(async move {
            let closure_ended = AtomicBool::new(false);
            let _frame = Frame {
                closure_ended: &closure_ended,
                unwound_after: unwinds,
            };
            let closure_ended = &closure_ended;
            blocking(move || {
                may_go.recv().unwrap();
                closure_ended.store(true, Ordering::SeqCst);
            });
        })
    });
    let offloads = runtime.spawn(offload(move || may_go_too.recv().unwrap()));
    let site = line!() - 1;
    until(|| runtime.metrics().blocking == 2);
    drop(runtime);
    let text = "did not stop when its runtime was dropped";
    let is_named = |part: &str| {
        let found = reports("weald::shutdown", text);
        found.iter().any(|report| report.text.contains(part))
    };
    until(|| is_named("`blocks beyond the end`"));
    until(|| is_named(&format!("blocking.rs:{site}")));
    assert!(!blocks.is_finished());
    go.send(()).unwrap();
    go_too.send(()).unwrap();
    assert!(unwound_after.recv().unwrap());
    until(|| blocks.is_finished());
    assert!(blocks.wait().unwrap_err().is_cancelled());
    assert!(offloads.wait().unwrap_err().is_cancelled());
}

#[test]
fn a_closure_may_block_again() {
    on_each(|runtime| {
        let job = runtime.spawn(async {
            blocking(|| {
                let outer = thread::current().id();
                blocking(|| assert_eq!(thread::current().id(), outer));
                // A job of its runtime.
                spawn(async { blocking(|| 8) }).wait().unwrap()
            })
        });
        assert_eq!(runtime.block_on(job).unwrap(), 8);
    });
}

#[test]
fn on_a_foreign_thread_the_closure_is_called() {
    let _watch = watch();
    let here = thread::current().id();
    let local = Cell::new(3);
    let seen = blocking(|| thread::current().id());
    assert_eq!(seen, here);
    let runtime = runtime(1);
    let seen = runtime.block_on(async { blocking(|| thread::current().id()) });
    assert_eq!((seen, local.get()), (here, 3));
}

#[test]
fn on_a_test_runtime_the_closure_runs_in_place() {
    let _watch = watch();
    let here = thread::current().id();
    Runtime::test(1).block_on(async {
        let job = spawn(async { blocking(|| thread::current().id()) });
        assert_eq!(job.await.unwrap(), here);
        assert_eq!(offload(|| thread::current().id()).await.unwrap(), here);
    });
}

struct BlocksWhenDropped(mpsc::Sender<u32>);

impl Drop for BlocksWhenDropped {
    fn drop(&mut self) {
        let n = blocking(|| 9);
        self.0.send(n).unwrap();
    }
}

#[test]
fn a_destructor_may_block_while_its_thread_unwinds() {
    on_each(|runtime| {
        for panics in [false, true] {
            let (blocked, has_blocked) = mpsc::channel();
            let latch = Latch::default();
            let waits = latch.clone();
            let job = runtime.spawn(async move {
                let _blocks = BlocksWhenDropped(blocked);
                waits.wait();
                assert!(!panics, "as it should");
            });
            until(|| latch.waiters() == 1);
            match panics {
                true => latch.open(),
                false => job.cancel(),
            }
            assert!(runtime.block_on(job).is_err());
            assert_eq!(has_blocked.recv().unwrap(), 9);
        }
    });
}

#[test]
fn offloaded_work_that_is_dropped_before_its_turn_never_runs() {
    let _watch = watch();
    let runtime = Runtime::builder().workers(1).blocking_threads(1);
    let runtime = runtime.build().unwrap();
    let (go, may_go) = mpsc::channel::<()>();
    let holder = runtime.spawn(async move { blocking(move || may_go.recv().unwrap()) });
    until(|| runtime.metrics().blocking == 1);
    let ran = Arc::new(AtomicBool::new(false));
    let runs = ran.clone();
    let offloads = runtime.spawn(offload(move || runs.store(true, Ordering::SeqCst)));
    until(|| runtime.metrics().blocking_queued == 1);
    offloads.cancel();
    assert!(runtime.block_on(offloads).unwrap_err().is_cancelled());
    assert_eq!(runtime.metrics().blocking_queued, 0);
    go.send(()).unwrap();
    runtime.block_on(holder).unwrap();
    assert!(!ran.load(Ordering::SeqCst));
}

#[test]
fn a_closure_is_named_by_its_caller() {
    let _watch = watch();
    let runtime = runtime(1);
    let name = || current_name().and_then(|name| name.name);
    let caller = Spawn::new().name("the caller");
    let job = runtime.block_on(async move { caller.spawn(async move { blocking(name) }) });
    assert_eq!(
        runtime.block_on(job).unwrap().as_deref(),
        Some("the caller")
    );
    // The same thread serves a caller without a name, and then none.
    let job = runtime.spawn(async move { blocking(name) });
    assert_eq!(runtime.block_on(job).unwrap(), None);
    let offloaded = runtime.block_on(async { offload(current_name).await });
    let site = offloaded.unwrap().unwrap().site;
    assert_eq!(site.file(), file!());
}

/// What a job does after the closure is watched as any run is.
#[test]
fn a_job_that_blocks_or_computes_after_it_announced_a_block_is_named() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(1);
    let (release, released) = mpsc::channel::<()>();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let jobs = runtime.block_on(async {
        let blocks = Spawn::new().name("announces, then blocks");
        let computes = Spawn::new().name("announces, then computes");
        [
            blocks.spawn(async move {
                block_in_place(|| ());
                _ = released.recv();
            }),
            computes.spawn(async move {
                block_in_place(|| ());
                while !stopped.load(Ordering::SeqCst) {}
            }),
        ]
    });
    for name in ["`announces, then blocks`", "`announces, then computes`"] {
        until(|| !reports("weald::monitor", name).is_empty());
    }
    drop(release);
    stop.store(true, Ordering::SeqCst);
    for job in jobs {
        runtime.block_on(job).unwrap();
    }
}

type Run = Box<dyn FnOnce(&(AtomicBool, AtomicBool)) + Send>;

/// The report of a job that blocked later shows that this one would have been reported by then.
#[test]
fn an_announcement_within_another_does_not_end_it_and_a_panic_does() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(1);
    let (release, held) = (AtomicBool::new(false), AtomicBool::new(false));
    let shared = Arc::new((release, held));
    let hold = |shared: &(AtomicBool, AtomicBool)| until(|| shared.0.load(Ordering::SeqCst));
    let spawn = |name: &'static str, run: Run| {
        let own = shared.clone();
        let job = async move { run(&own) };
        runtime.block_on(async { Spawn::new().name(name).spawn(job) })
    };
    let outer = spawn(
        "announces twice",
        Box::new(move |shared| {
            block_in_place(|| {
                block_in_place(|| ());
                shared.1.store(true, Ordering::SeqCst);
                hold(shared);
            });
        }),
    );
    until(|| shared.1.load(Ordering::SeqCst));
    let panics = spawn(
        "announces, and panics",
        Box::new(move |shared| {
            let panicked = AssertUnwindSafe(|| block_in_place(|| resume_unwind(Box::new(()))));
            catch_unwind(panicked).unwrap_err();
            hold(shared);
        }),
    );
    until(|| !reports("weald::monitor", "`announces, and panics`").is_empty());
    assert!(reports("weald::monitor", "`announces twice`").is_empty());
    shared.0.store(true, Ordering::SeqCst);
    for job in [outer, panics] {
        runtime.block_on(job).unwrap();
    }
}
