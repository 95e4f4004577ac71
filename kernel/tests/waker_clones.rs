//! Wakers whose clone is user code: it may use what is being waited for, because it runs under no lock, and may be at
//! another address than the waker. It runs in the unit that polls, as whose it is watched.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(unsafe_code)]

#[path = "support/blocker.rs"]
mod blocker;
#[path = "support/reports.rs"]
mod reports;
#[path = "support/tickers.rs"]
mod tickers;
#[path = "support/tools.rs"]
mod tools;

use std::{
    cell::Cell,
    mem::ManuallyDrop,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, RawWaker, RawWakerVTable, Wake, Waker},
    time::Duration,
};

use blocker::Blocker;
use reports::{collect_reports, reports};
use tickers::Tickers;
use tools::{Latch, runtime, until, watch};
use weald_kernel::{JoinHandle, JoinSet, Runtime, Scope, Spawn, sleep};
use weald_sync::channel;

/// What a waker does when it is cloned.
type OnClone = Arc<Box<dyn Fn() + Send + Sync>>;

const TABLE: RawWakerVTable = RawWakerVTable::new(clone, release, |_| (), release);

/// # Safety
/// `data` is that of a waker of `TABLE`, which lives during the call.
unsafe fn clone(data: *const ()) -> RawWaker {
    let on_clone = data.cast::<Box<dyn Fn() + Send + Sync>>();
    // SAFETY: `data` comes from `Arc::into_raw`, and the waker that is cloned has a count.
    unsafe { Arc::increment_strong_count(on_clone) };
    // SAFETY: as above.
    (unsafe { &*on_clone })();
    RawWaker::new(data, &TABLE)
}

unsafe fn release(data: *const ()) {
    // SAFETY: as in `clone`; each waker gives back one count.
    drop(unsafe { OnClone::from_raw(data.cast()) });
}

fn waker(on_clone: impl Fn() + Send + Sync + 'static) -> Waker {
    let on_clone: OnClone = Arc::new(Box::new(on_clone));
    let data = Arc::into_raw(on_clone).cast();
    // SAFETY: the functions of the table treat `data` as what it is, and may be called on any thread.
    unsafe { Waker::from_raw(RawWaker::new(data, &TABLE)) }
}

#[test]
fn a_job_of_a_join_set_ends_while_the_waker_is_cloned() {
    let _watch = watch();
    let runtime: Arc<Runtime> = Arc::new(runtime(1));
    let latch = Latch::default();
    let mut set = JoinSet::new();
    set.insert(runtime.spawn({
        let latch = latch.clone();
        async move {
            latch.await;
            7
        }
    }));
    until(|| latch.waiters() == 1);
    let ended = runtime.metrics().ended;
    let waker = waker({
        let runtime = runtime.clone();
        move || {
            latch.open();
            until(|| runtime.metrics().ended > ended);
        }
    });
    let mut cx = Context::from_waker(&waker);
    let Poll::Ready(Some(joined)) = set.poll_join_next(&mut cx) else {
        panic!("the job ended before the set began to wait");
    };
    assert_eq!(joined.unwrap(), 7);
}

#[test]
fn a_scope_is_used_while_the_waker_is_cloned() {
    let _watch = watch();
    let runtime = runtime(1);
    let (scope, latch) = (Scope::default(), Latch::default());
    scope.adopt(&runtime.spawn(latch.clone()));
    let waker = waker({
        let scope = scope.clone();
        move || scope.cancel()
    });
    let mut ended = pin!(scope.all_ended());
    let mut cx = Context::from_waker(&waker);
    while ended.as_mut().poll(&mut cx).is_pending() {
        std::thread::yield_now();
    }
}

type Wait = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What keeps a waker while it waits. None of it ends.
fn waits(runtime: &Runtime) -> Vec<(&'static str, Wait)> {
    let hour = Duration::from_secs(3600);
    let job = runtime.spawn(std::future::pending::<()>());
    let mut set = JoinSet::new();
    set.insert(runtime.spawn(std::future::pending::<()>()));
    let scope = Scope::default();
    scope.adopt(&runtime.spawn(std::future::pending::<()>()));
    let (sender, receiver) = channel::unbounded::<()>();
    vec![
        ("clones in a sleep", Box::pin(sleep(hour))),
        ("clones in a join", Box::pin(async { drop(job.await) })),
        (
            "clones in a set",
            Box::pin(async move { drop(set.join_next().await) }),
        ),
        (
            "clones in a scope",
            Box::pin(async move { scope.all_ended().await }),
        ),
        (
            "clones in a channel",
            Box::pin(async move {
                let _open = sender;
                receiver.receive().await.unwrap();
            }),
        ),
    ]
}

/// Polls `wait` once with this waker, in a job with this name.
fn poll_in_a_job(
    runtime: &Runtime,
    name: &'static str,
    mut wait: Wait,
    waker: Waker,
) -> JoinHandle<()> {
    let polls = async move {
        let mut cx = Context::from_waker(&waker);
        assert!(wait.as_mut().poll(&mut cx).is_pending());
    };
    runtime
        .block_on(async { (Spawn::new().name(name).spawn(polls),) })
        .0
}

#[test]
fn a_clone_that_blocks_is_named_as_the_unit_that_polls_and_stops_nobody() {
    collect_reports();
    let _watch = watch();
    let runtime = runtime(1);
    let tickers = Tickers::start(&runtime, 20);
    for (name, wait) in waits(&runtime) {
        let blocker = Blocker::default();
        let blocks = blocker.clone();
        let waker = waker(move || blocks.block());
        let job = poll_in_a_job(&runtime, name, wait, waker);
        until(|| blocker.begun() == 1);
        tickers.tick(20);
        // The same waits of others.
        for (_, mut wait) in waits(&runtime) {
            let mut cx = Context::from_waker(Waker::noop());
            assert!(runtime.block_on(async { wait.as_mut().poll(&mut cx).is_pending() }));
        }
        let quoted = format!("`{name}` spawned at kernel/tests/waker_clones.rs:");
        until(|| !reports("weald::monitor", &quoted).is_empty());
        blocker.open();
        runtime.block_on(job).unwrap();
    }
    tickers.end(&runtime);
    runtime.shutdown(Duration::ZERO);
}

#[test]
fn a_clone_that_panics_ends_the_unit_that_polls_and_no_other() {
    let _watch = watch();
    let runtime = runtime(1);
    let tickers = Tickers::start(&runtime, 20);
    for (name, wait) in waits(&runtime) {
        let waker = waker(|| panic!("on purpose"));
        let job = poll_in_a_job(&runtime, name, wait, waker);
        let failed = runtime.block_on(job).unwrap_err().to_string();
        assert!(failed.ends_with(" panicked: on purpose"), "{failed}");
        tickers.tick(5);
    }
    tickers.end(&runtime);
    runtime.shutdown(Duration::ZERO);
}

/// The waker in an executor's frame; its clones are those of the waker that the frame holds.
const IN_FRAME: RawWakerVTable = RawWakerVTable::new(clone_out, |_| (), |_| (), |_| ());

/// # Safety
/// `data` is the frame of an executor, which lives during the call.
unsafe fn clone_out(data: *const ()) -> RawWaker {
    // SAFETY: `data` is the frame of an executor, which lives while its waker does.
    let waker = ManuallyDrop::new(unsafe { &*data.cast::<Waker>() }.clone());
    RawWaker::new(waker.data(), waker.vtable())
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_sleep_wakes_the_later_of_two_wakers_at_one_address() {
    let _watch = watch();
    let runtime = runtime(1);
    runtime.block_on(async {
        let mut sleep = pin!(sleep(Duration::from_millis(50)));
        let woken = Arc::new(Woken::default());
        let frame = Cell::new(Waker::noop().clone());
        let mut poll = || {
            let raw = RawWaker::new(frame.as_ptr().cast_const().cast(), &IN_FRAME);
            // SAFETY: the waker is dropped before the frame is used again.
            let waker = unsafe { Waker::from_raw(raw) };
            assert!(
                sleep
                    .as_mut()
                    .poll(&mut Context::from_waker(&waker))
                    .is_pending()
            );
        };
        poll();
        frame.set(Waker::from(woken.clone()));
        poll();
        until(|| woken.0.load(Ordering::Relaxed));
    });
}
