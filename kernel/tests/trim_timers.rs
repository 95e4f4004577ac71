//! `Runtime::trim`: timers that were cancelled leave the wheels, even that of a stuck worker.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    pin::Pin,
    sync::{Arc, Mutex, mpsc},
    task::{Context, Wake, Waker},
    time::Duration,
};

use tools::{until, watch};
use weald_kernel::{
    Runtime, Sleep,
    callback::{self, Handle, Owner, When},
    sleep,
};

/// A waker that does nothing. A timer keeps a reference to it while it is in a wheel.
struct Nothing;

impl Wake for Nothing {
    fn wake(self: Arc<Self>) {}
}

/// A runtime of two workers that lose no thread.
fn two_workers() -> Runtime {
    let builder = Runtime::builder().workers(2);
    builder
        .stuck_after(Duration::from_secs(3600))
        .build()
        .unwrap()
}

/// Starts sleeps of an hour and more, in every slot of the wheel.
fn start(count: u64, waker: &Waker) -> Vec<Pin<Box<Sleep>>> {
    let sleeps = (0..count).map(|n| {
        let duration = Duration::from_secs(3600) + Duration::from_millis(n * 977);
        let mut sleep = Box::pin(sleep(duration));
        assert!(
            sleep
                .as_mut()
                .poll(&mut Context::from_waker(waker))
                .is_pending()
        );
        sleep
    });
    sleeps.collect()
}

#[test]
fn cancelled_timers_of_every_worker_are_freed() {
    let _watch = watch();
    let runtime = two_workers();
    let nothing = Arc::new(Nothing);
    let (started, sleeps) = mpsc::channel();
    let blocked = [0, 1].map(|_| {
        let (started, waker) = (started.clone(), Waker::from(nothing.clone()));
        let (release, released) = mpsc::channel::<()>();
        let job = runtime.spawn(async move {
            started.send(start(1_000, &waker)).unwrap();
            drop(waker);
            // Until the end of the test, so that no worker sweeps its own wheel.
            let _ended = released.recv();
        });
        (job, release)
    });
    let mut sleeps: Vec<_> = (0..2).flat_map(|_| sleeps.recv().unwrap()).collect();
    until(|| Arc::strong_count(&nothing) == 2_001);
    drop(sleeps.split_off(600));
    assert_eq!(runtime.metrics().timers, 600);
    assert_eq!(Arc::strong_count(&nothing), 2_001, "they are in the wheels");
    let (first, second) = blocked.into();
    drop(second.1);
    runtime.block_on(second.0).unwrap();
    runtime.trim();
    // A worker drops the wakers.
    until(|| Arc::strong_count(&nothing) == 601);
    assert_eq!(runtime.metrics().timers, 600);
    drop(first.1);
    runtime.block_on(first.0).unwrap();
    drop(sleeps);
}

/// A job that holds its worker's thread once it has started these, until the sender is dropped.
fn hold<T: Send + 'static>(
    runtime: &Runtime,
    start: impl FnOnce() -> T + Send + 'static,
) -> (T, mpsc::Sender<()>) {
    let (started, starts) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let job = runtime.spawn(async move {
        started.send(start()).unwrap();
        let _ended = released.recv();
    });
    job.detach();
    (starts.recv().unwrap(), release)
}

/// Callbacks that are ready are no timers any longer, so their cancels leave the count of the timers alone.
#[test]
fn cancelled_callbacks_that_are_ready_hide_no_timer_of_another_worker() {
    let _watch = watch();
    let runtime = two_workers();
    let (sleeps, _sleeping) = hold(&runtime, || start(500, Waker::noop()));
    let (callbacks, _busy) = hold(&runtime, || start_ready(700));
    assert_eq!(runtime.metrics().timers, 500);
    assert!(callbacks.iter().all(Handle::cancel));
    let metrics = runtime.metrics();
    assert_eq!((metrics.timers, metrics.runnable), (500, 700));
    drop(sleeps);
}

fn start_ready(count: usize) -> Vec<Handle> {
    let ready = (0..count).map(|_| callback::once(Owner::runtime(), When::Ready, || {}));
    ready.collect()
}

/// Callbacks are cancelled at one worker, and another one finds them.
#[test]
fn cancelled_callbacks_that_move_to_another_worker_leave_the_count_of_timers_right() {
    let _watch = watch();
    let runtime = two_workers();
    // No worker is free, so nothing moves.
    let ((), idle) = hold(&runtime, || {});
    let (callbacks, _busy) = hold(&runtime, || start_ready(700));
    assert!(callbacks.iter().all(Handle::cancel));
    // The first worker has nothing to do now, so what is ready at the second one moves to it.
    drop(idle);
    until(|| {
        let metrics = runtime.metrics();
        metrics.moved_callbacks == 700 && metrics.runnable == 0 && metrics.sleeping == 1
    });
    let nothing = Arc::new(Nothing);
    let waker = Waker::from(nothing.clone());
    let (mut sleeps, sleeping) = hold(&runtime, move || start(600, &waker));
    drop(sleeps.split_off(100));
    until(|| runtime.metrics().timers == 100);
    drop(sleeping);
    runtime.trim();
    // A worker drops the wakers.
    until(|| Arc::strong_count(&nothing) == 101);
    assert_eq!(runtime.metrics().timers, 100);
    drop(sleeps);
}

/// Blocks in its destructor, once it has told so, until it is told to go on.
struct BlocksAtDrop(mpsc::Sender<()>, Mutex<mpsc::Receiver<()>>);

impl Wake for BlocksAtDrop {
    fn wake(self: Arc<Self>) {}
}

impl Drop for BlocksAtDrop {
    fn drop(&mut self) {
        self.0.send(()).unwrap();
        _ = self.1.lock().unwrap().recv();
    }
}

/// Starts sleeps with wakers of another executor. The destructor of the waker in their middle blocks.
fn start_around(blocks: &Waker, others: &Waker) -> Vec<Pin<Box<Sleep>>> {
    const HALF: u64 = 5_000;
    let mut sleeps = start(HALF, others);
    sleeps.extend(start(1, blocks));
    sleeps.extend(start(HALF, others));
    sleeps
}

/// As many jobs at once would take many times the memory of the timers.
#[test]
fn many_cancelled_wakers_are_few_jobs_at_a_time() {
    let _watch = watch();
    let runtime = two_workers();
    let nothing = Arc::new(Nothing);
    let waker = Waker::from(nothing.clone());
    let (sleeps, working) = hold(&runtime, move || start_around(&waker, &waker));
    let ((), working_too) = hold(&runtime, || ());
    drop(sleeps);
    runtime.trim();
    let runnable = runtime.metrics().runnable;
    assert!((1..1_000).contains(&runnable), "{runnable}");
    drop((working, working_too));
    until(|| Arc::strong_count(&nothing) == 1);
}

#[test]
fn a_cancelled_waker_whose_destructor_blocks_holds_up_none_of_many_others() {
    let _watch = watch();
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let nothing = Arc::new(Nothing);
    let ((begin, begun), (go, goes)) = (mpsc::channel(), mpsc::channel());
    let blocks = Waker::from(Arc::new(BlocksAtDrop(begin, Mutex::new(goes))));
    let waker = Waker::from(nothing.clone());
    let sleeps = runtime.block_on(runtime.spawn(async move { start_around(&blocks, &waker) }));
    drop(sleeps);
    runtime.trim();
    begun.recv().unwrap();
    until(|| Arc::strong_count(&nothing) == 1);
    go.send(()).unwrap();
}
