//! Panics: a job's panic goes to its joiner or is reported, and harms no other job.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::async_yields_async, reason = "a block_on returns handles")]

#[path = "support/reports.rs"]
mod reports;
#[path = "support/tools.rs"]
mod tools;

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use reports::{collect_reports, flushed, reports};
use tools::{Drops, Latch, on_each, until, until_yielding, watch};
use weald_kernel::{
    Attachment, Ending, JoinError, Panic, Runtime, Spawn, Unit, Wait,
    callback::{self, Owner, When},
    sleep, spawn, yield_now,
};

fn panic_of<T>(result: Result<T, JoinError>) -> Panic {
    match result {
        Err(JoinError::Panicked(panic)) => panic,
        Err(other) => panic!("not a panic but: {other}"),
        Ok(_) => panic!("not a panic but a value"),
    }
}

#[test]
fn a_joiner_gets_the_message_and_the_payload() {
    on_each(|runtime| {
        runtime.block_on(async {
            let number = 7;
            let formatted = panic_of(spawn(async move { panic!("formatted {number}") }).await);
            assert_eq!(formatted.message(), "formatted 7");
            let fixed = panic_of(spawn(async { panic!("fixed") }).await);
            assert_eq!(fixed.message(), "fixed");
            let error = spawn(async { std::panic::panic_any(41_u64) })
                .await
                .unwrap_err();
            assert!(error.is_panic() && !error.is_cancelled());
            let payload = panic_of::<()>(Err(error)).into_payload();
            assert_eq!(*payload.downcast::<u64>().unwrap(), 41);
        });
    });
}

#[test]
fn a_panic_drops_what_the_job_held_and_leaves_the_others() {
    on_each(|runtime| {
        runtime.block_on(async {
            let (drops, latch) = (Drops::default(), Latch::default());
            let opened = latch.clone();
            let other = spawn(opened);
            for _ in 0..100 {
                let token = drops.token();
                let job = spawn(async move {
                    let _token = token;
                    yield_now().await;
                    panic!("with something held");
                });
                let _ = panic_of::<()>(job.await);
            }
            assert_eq!(drops.count(), 100);
            latch.open();
            other.await.unwrap();
        });
    });
}

#[test]
fn the_panic_of_a_detached_job_is_reported_with_its_name() {
    collect_reports();
    on_each(|runtime| {
        let before = reports("weald::panic", "`left alone`").len();
        runtime.block_on(async {
            Spawn::new()
                .name("left alone")
                .spawn(async { panic!("never joined") })
                .detach();
        });
        until(|| reports("weald::panic", "`left alone`").len() > before);
        let report = reports("weald::panic", "`left alone`").remove(before);
        assert_eq!(report.level, tracing::Level::ERROR);
        assert!(report.text.contains("never joined"), "{}", report.text);
        assert!(report.text.contains("panics.rs"), "{}", report.text);
    });
}

#[test]
fn a_panic_in_a_dropped_handle_is_reported_too() {
    collect_reports();
    on_each(|runtime| {
        let before = reports("weald::panic", "`dropped late`").len();
        let job = runtime.block_on(async {
            Spawn::new()
                .name("dropped late")
                .spawn(async { panic!("before the drop") })
        });
        until(|| job.is_finished());
        drop(job);
        until(|| reports("weald::panic", "`dropped late`").len() > before);
        flushed();
        assert_eq!(reports("weald::panic", "`dropped late`").len(), before + 1);
    });
}

#[test]
fn a_joined_panic_is_not_reported() {
    collect_reports();
    on_each(|runtime| {
        runtime.block_on(async {
            let job = Spawn::new()
                .name("joined")
                .spawn(async { panic!("for the joiner") });
            let _ = panic_of::<()>(job.await);
        });
        flushed();
        assert_eq!(reports("weald::panic", "`joined`").len(), 0);
    });
}

/// Panics when it is dropped.
struct Bomb(&'static str);

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("{}", self.0);
        }
    }
}

#[test]
fn a_panic_in_a_destructor_is_the_jobs_panic() {
    on_each(|runtime| {
        runtime.block_on(async {
            let bomb = Bomb("in the destructor");
            let job = spawn(async move {
                let _bomb = bomb;
                std::future::pending::<()>().await;
            });
            yield_now().await;
            job.cancel();
            assert_eq!(panic_of(job.await).message(), "in the destructor");
            let bomb = Bomb("after the value");
            let ended = spawn(async move { drop(bomb) });
            assert_eq!(panic_of(ended.await).message(), "after the value");
        });
    });
}

#[test]
fn an_output_that_panics_when_it_is_dropped_harms_no_worker() {
    collect_reports();
    on_each(|runtime| {
        let before = reports("weald::panic", "a bomb as output").len();
        runtime.block_on(async {
            // The job ends after the detach; otherwise the handle would drop the output.
            let latch = Latch::default();
            let opened = latch.clone();
            spawn(async move {
                opened.await;
                Bomb("a bomb as output")
            })
            .detach();
            latch.open();
        });
        until(|| reports("weald::panic", "a bomb as output").len() > before);
        assert_eq!(runtime.block_on(runtime.spawn(async { 1 })).unwrap(), 1);
    });
}

/// A waker that panics when it is woken, with a payload that panics when it is dropped.
struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        std::panic::panic_any(Bomb("the payload of a waker"));
    }
}

/// Asserts that the runtime still runs jobs. Without its only worker it would not.
fn still_serves(runtime: &Runtime) {
    assert_eq!(runtime.block_on(runtime.spawn(async { 1 })).unwrap(), 1);
}

#[test]
fn a_foreign_waker_that_panics_harms_no_worker() {
    on_each(|runtime| {
        let latch = Latch::default();
        let opened = latch.clone();
        let mut job = runtime.spawn(opened);
        let waker = Waker::from(Arc::new(Panics));
        let polled = Pin::new(&mut job).poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        latch.open();
        until(|| job.is_finished());
        still_serves(runtime);
    });
}

#[test]
fn a_foreign_waker_that_panics_in_a_timer_harms_no_worker() {
    collect_reports();
    on_each(|runtime| {
        let reported = || reports("weald::panic", "a waker panicked").len();
        let before = reported();
        runtime.block_on(async {
            let waker = Waker::from(Arc::new(Panics));
            let mut sleep = Box::pin(sleep(Duration::from_millis(1)));
            let polled = sleep.as_mut().poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending());
            until(|| reported() > before);
        });
        still_serves(runtime);
    });
}

#[test]
fn a_foreign_waker_that_panics_when_it_is_dropped_with_its_job_harms_no_worker() {
    struct PanicsAtDrop;
    impl Wake for PanicsAtDrop {
        fn wake(self: Arc<Self>) {}
    }
    impl Drop for PanicsAtDrop {
        fn drop(&mut self) {
            std::panic::panic_any(Bomb("the payload of a dropped waker"));
        }
    }
    on_each(|runtime| {
        let flag = Arc::new(AtomicBool::new(false));
        let ends = flag.clone();
        let mut job = runtime.spawn(async move {
            until_yielding(|| ends.load(Ordering::SeqCst)).await;
        });
        let waker = Waker::from(Arc::new(PanicsAtDrop));
        let polled = Pin::new(&mut job).poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        drop((job, waker));
        flag.store(true, Ordering::SeqCst);
        until(|| runtime.metrics().ended >= 1);
        still_serves(runtime);
    });
}

/// Spawns and detaches a job, and counts its end, on whichever thread that is.
fn spawn_counted<F>(runtime: &Runtime, ended: &Arc<AtomicUsize>, future: F)
where
    F: Future<Output: Send> + Send + 'static,
{
    let (job, ended) = (runtime.spawn(future), ended.clone());
    job.when_ended(move || {
        ended.fetch_add(1, Ordering::SeqCst);
    });
    job.detach();
}

#[test]
fn a_payload_that_panics_when_it_is_dropped_harms_no_worker() {
    /// Panics when it is dropped, whether or not the thread is panicking.
    struct Explodes;
    impl Drop for Explodes {
        fn drop(&mut self) {
            std::panic::panic_any(Bomb("the payload of a destructor"));
        }
    }
    on_each(|runtime| {
        let (latch, ended) = (Latch::default(), Arc::default());
        let spawn = |future: Pin<Box<dyn Future<Output = Option<Explodes>> + Send>>| {
            let waits = latch.clone();
            let job = async move {
                waits.await;
                future.await
            };
            spawn_counted(runtime, &ended, job);
        };
        // The payload of the job's own panic; then that of its output's destructor.
        spawn(Box::pin(async {
            std::panic::panic_any(Bomb("the payload"))
        }));
        spawn(Box::pin(async { Some(Explodes) }));
        // The payload of the job's panic, when the destructor of its future panics as well.
        let held = Explodes;
        let twice = poll_fn(move |_| -> Poll<()> {
            let _held = &held;
            std::panic::panic_any(Bomb("the payload"))
        });
        spawn_counted(runtime, &ended, twice);
        until(|| latch.waiters() == 2);
        latch.open();
        until(|| ended.load(Ordering::SeqCst) == 3);
        still_serves(runtime);
    });
}

#[test]
fn a_panic_of_the_main_future_leaves_block_on_and_the_runtime_usable() {
    on_each(|runtime| {
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            runtime.block_on(async { panic!("main") });
        }));
        assert_eq!(*caught.unwrap_err().downcast::<&str>().unwrap(), "main");
        assert_eq!(
            runtime.block_on(async { spawn(async { 2 }).await.unwrap() }),
            2
        );
    });
}

#[test]
fn a_shutdown_that_ends_a_wait_of_a_handler_of_panics_is_no_panic() {
    collect_reports();
    let _watch = watch();
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let (waits, waiting) = mpsc::channel();
    let owner = runtime.spawn(async move {
        let owner = Owner::current();
        owner.on_panic(move |_| {
            waits.send(()).unwrap();
            std::future::pending::<()>().wait();
        });
        callback::once(owner, When::Ready, || panic!("for the handler")).detach();
        std::future::pending::<()>().await;
    });
    waiting.recv().unwrap();
    let _left = runtime.shutdown(Duration::from_millis(100));
    drop(owner);
    flushed();
    assert!(reports("weald::panic", "has set no on_panic").is_empty());
}

/// Blocks, when it is told that its job goes on, until another job releases it.
struct Blocks(Mutex<mpsc::Receiver<()>>);

impl Attachment for Blocks {
    fn ended(&self, _: Ending) {}

    fn survived(&self) {
        let _ = self.0.lock().unwrap().recv();
    }
}

/// The next job releases what is told. If the worker had taken that job before, the two would wait for each other.
#[test]
fn what_is_told_of_a_survived_panic_holds_up_no_other_job() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let (release, released) = mpsc::channel::<()>();
    let both = runtime.block_on(runtime.spawn(async move {
        let survivor = spawn(async move {
            Unit::current()
                .unwrap()
                .attach(|_| Blocks(Mutex::new(released)));
            let mut is_first = true;
            poll_fn(move |cx| {
                if std::mem::take(&mut is_first) {
                    Unit::tell_if_it_goes_on();
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Poll::Ready(())
            })
            .await;
        });
        (survivor, spawn(async move { release.send(()) }))
    }));
    let (survivor, next) = both.unwrap();
    runtime.block_on(next).unwrap().unwrap();
    runtime.block_on(survivor).unwrap();
}
