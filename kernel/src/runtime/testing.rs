//! The test runtime: one thread, a seed, virtual time.
//!
//! The calling thread drives everything, so a run is a function of the program and the seed: which
//! runnable job comes next is drawn from the seed, within the orders that workers could show, and time
//! moves on to the next deadline exactly when nothing can run. A run that can no longer go on panics
//! with the names of the jobs that wait.
//!
//! Jobs in `wait()` leave their stacks standing, as they do on workers. Those that still do when `block_on`
//! returns are cancelled then: the thread is no longer there for them.
//!
//! # Safety
//! - **driver**: what the loops share lies in the frame of `block_on`, which names it until every stack that
//!   stands on the thread has ended.
//! - **until**: a base names what it waits for while it waits for the loop, and then names what an outer base
//!   waits for, or nothing.

#![allow(unsafe_code)]

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::pin,
    ptr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use crate::{
    biased_lock::Lease,
    observe::waits::Waits,
    runtime::{
        builder::BuildError,
        handle::{self, Runtime},
        shutdown::{self, Drain},
    },
    scheduler::{
        stackful::{
            pinned::PinnedQueue,
            stack_context::{self, Duty, Flow},
        },
        threads::evict,
        workers::{config::Config, context, driven, shared::Shared, worker::WorkerLoop},
    },
    services,
    timer::clock,
};

/// A runtime for tests; see [`Runtime::test`].
#[derive(Debug)]
pub struct TestRuntime {
    shared: Arc<Shared>,
    lease: Lease,
    seed: u64,
}

thread_local! {
    /// What the seed has become, and the tenure's epoch.
    static DRIVE: Cell<Option<(u64, Lease)>> = const { Cell::new(None) };
    /// What the loops of the thread's driver share. Valid while set.
    static DRIVER: Cell<*const DriverLoop<'static>> = const { Cell::new(ptr::null()) };
}

impl Runtime {
    /// A runtime for tests: one worker on the calling thread, an order drawn from `seed`, and virtual
    /// time, which moves when nothing else can.
    ///
    /// Jobs that are in [`wait()`](crate::Wait::wait) when `block_on` returns are cancelled.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// weald_kernel::Runtime::test(7).block_on(async {
    ///     let before = weald_kernel::now();
    ///     weald_kernel::sleep(Duration::from_secs(3600)).await;
    ///     assert_eq!(weald_kernel::now() - before, Duration::from_secs(3600));
    /// });
    /// ```
    ///
    /// # Panics
    /// If the program aborts on panic.
    pub fn test(seed: u64) -> TestRuntime {
        match TestRuntime::with_builder(Runtime::builder(), seed) {
            Ok(runtime) => runtime,
            Err(error) => panic!("the test runtime could not start: {error}"),
        }
    }
}

impl TestRuntime {
    /// A test runtime with settings; those about threads have no effect.
    ///
    /// # Errors
    /// As [`Builder::build`](crate::Builder::build).
    pub fn with_builder(builder: crate::Builder, seed: u64) -> Result<TestRuntime, BuildError> {
        let config = Config {
            workers: 1,
            ..builder.workers(1).check()?
        };
        let (shared, rights) = handle::new_shared(config, clock::ClockKind::Virtual)?;
        Ok(TestRuntime {
            shared,
            lease: rights[0].lease,
            seed,
        })
    }

    /// Runs `future`, and whatever it spawns, until it is done.
    ///
    /// # Panics
    /// If the future panics; inside another runtime; or if nothing can run any more, with the seed and
    /// the names of the jobs that wait.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(Some(future));
        let flag = Arc::new(Flag(AtomicBool::new(true)));
        let waker = Waker::from(flag.clone());
        let mut drive = Drive::begin(self);
        let (shared, pinned) = (self.shared.clone(), drive.pinned.clone());
        // Lives until `drive` has ended: stacks that stand keep using it when they go on.
        let driver = DriverLoop::new(&shared, &pinned, self.lease);
        DRIVER.set(ptr::from_ref(&driver).cast());
        // Caught, because the driver ends what stands on this thread, which must not be unwinding then.
        let ran = catch_unwind(AssertUnwindSafe(|| {
            loop {
                if flag.0.swap(false, Ordering::AcqRel)
                    && let Some(future) = future.as_mut().as_pin_mut()
                    && let Poll::Ready(output) = future.poll(&mut Context::from_waker(&waker))
                {
                    return Ok(output);
                }
                drive_until(&|| flag.0.load(Ordering::Acquire))?;
            }
        }));
        let stuck = match &ran {
            Ok(Err(Stuck)) => Some(drive.stuck()),
            _ => None,
        };
        // Before the driver ends: it may wait for what it spawned.
        let dropped = catch_unwind(AssertUnwindSafe(|| future.set(None)));
        std::mem::forget(dropped);
        drive.end();
        DRIVER.set(ptr::null());
        match ran {
            Ok(Ok(output)) => output,
            Ok(Err(Stuck)) => panic!("{}", stuck.unwrap_or_default()),
            Err(payload) => resume_unwind(payload),
        }
    }
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

/// The calling thread's time as the driver.
struct Drive<'a> {
    runtime: &'a TestRuntime,
    pinned: Arc<PinnedQueue>,
}

/// Nothing can run any more.
struct Stuck;

impl<'a> Drive<'a> {
    fn begin(runtime: &'a TestRuntime) -> Drive<'a> {
        let pinned = Arc::new(PinnedQueue::new());
        context::with(|cx| {
            assert!(
                cx.shared().is_none(),
                "a test runtime cannot run inside another runtime"
            );
            cx.set_shared(Arc::as_ptr(&runtime.shared));
            cx.set_pinned(Arc::as_ptr(&pinned));
        });
        DRIVE.set(Some((runtime.seed, runtime.lease)));
        Drive { runtime, pinned }
    }

    fn end(&mut self) {
        evict::evict(&self.runtime.shared, &self.pinned);
        DRIVE.set(None);
        context::with(|cx| {
            cx.clear_worker();
            cx.set_pinned(std::ptr::null());
            cx.set_shared(std::ptr::null());
        });
    }

    /// What there is to say when nothing can run any more.
    fn stuck(&self) -> String {
        // Jobs that wait on this thread run, for the state; but nothing does.
        let waits = Waits::among(&self.runtime.shared.live_jobs(), |_| true).to_string();
        let waits = match waits.is_empty() {
            true => "none but the main future",
            false => waits.trim_end(),
        };
        let state = DRIVE.get().map_or(0, |(state, _)| state);
        format!(
            "nothing can run any more, and no timer is pending (drive state {state}). Jobs that wait: \
             {waits}"
        )
    }
}

/// What the scheduler asks of the driver of a test runtime.
pub(crate) struct TestDriver;

impl services::Driver for TestDriver {
    fn is_driving(&self) -> bool {
        DRIVE.get().is_some()
    }

    fn drive_until(&self, is_over: &dyn Fn() -> bool) {
        if drive_until(is_over).is_err() {
            panic!(
                "nothing can run any more, and no timer is pending: this wait would last for ever"
            );
        }
    }
}

/// What the driver's loops share, from the beginning of its `block_on` to the end: a stack that was left under one
/// base goes on under another, in the middle of a step.
pub(crate) struct DriverLoop<'a> {
    worker_loop: WorkerLoop<'a>,
    /// Until when the base that waits now wants jobs to be run; null while none does. Valid while set.
    until: Cell<*const Until<'static>>,
    stuck: Cell<bool>,
}

/// What a base waits for.
struct Until<'a>(&'a dyn Fn() -> bool);

impl<'a> DriverLoop<'a> {
    fn new(shared: &'a Shared, pinned: &'a PinnedQueue, lease: Lease) -> DriverLoop<'a> {
        let worker_loop = WorkerLoop::new(context::here(), shared, pinned);
        worker_loop.begin(&shared.workers[0], lease);
        DriverLoop {
            worker_loop,
            until: Cell::new(ptr::null()),
            stuck: Cell::new(false),
        }
    }
}

impl Duty for DriverLoop<'_> {
    /// Runs a job, or moves time.
    fn step(&self, _cx: &context::Context) -> Flow {
        // A job first, even if there is no need: a main future that yields until a job has run must end.
        let ran = driven::step(&self.worker_loop, draw);
        // SAFETY: until: the base that set it waits for the loop.
        let is_over = unsafe { self.until.get().as_ref() }.is_none_or(|until| (until.0)());
        if is_over {
            return Flow::End;
        }
        match ran || move_time(&self.worker_loop) || await_reports(&self.worker_loop) {
            true => Flow::Continue,
            false => {
                self.stuck.set(true);
                Flow::End
            }
        }
    }
}

/// Runs jobs, and moves time, until `until` is true.
///
/// # Errors
/// If nothing can run any more.
fn drive_until(until: &dyn Fn() -> bool) -> Result<(), Stuck> {
    let cx = context::here();
    // SAFETY: driver: `block_on` set it, and waits for this.
    let driver = unsafe { DRIVER.get().as_ref() }.expect("only a driver drives");
    let place = context::nested_run::OuterRun::new();
    let _nested = cx.begin_nested(&place);
    let until = Until(until);
    let outer = driver.until.replace(ptr::from_ref(&until).cast());
    driver.worker_loop.restore_worker();
    stack_context::run_loop(cx, driver.worker_loop.shared.stack_class(), driver);
    driver.until.set(outer);
    match driver.stuck.replace(false) {
        true => Err(Stuck),
        false => Ok(()),
    }
}

/// A number below `below`, drawn from the seed.
fn draw(below: usize) -> usize {
    let (state, lease) = DRIVE.get().expect("only a driver draws");
    let state = next(state);
    DRIVE.set(Some((state, lease)));
    ((state >> 33) % below as u64) as usize
}

/// Migration time on to the next deadline. False if there is none.
fn move_time(worker_loop: &WorkerLoop<'_>) -> bool {
    let Ok(core) = worker_loop.enter() else {
        return false;
    };
    let next = core.wheel.next_tick();
    drop(core);
    let Some(tick) = next else { return false };
    worker_loop.shared.clock.move_to(tick);
    true
}

/// Waits for a moment for what the world outside reports. False if nobody waits for that.
fn await_reports(worker_loop: &WorkerLoop<'_>) -> bool {
    /// A thread outside may also make a job runnable, which no report tells.
    const MOMENT: Duration = Duration::from_millis(5);
    let reactor = &worker_loop.shared.reactor;
    if !reactor.is_waited_for() {
        return false;
    }
    let mut batch = worker_loop.batch.take();
    if let Some(poller_guard) = reactor.lock_poller() {
        reactor.wait(&poller_guard, &mut batch, Some(MOMENT));
    }
    reactor.handle(&mut batch);
    worker_loop.batch.set(batch);
    true
}

/// The next state of the generator (xorshift; Marsaglia 2003). Zero would stay zero.
fn next(state: u64) -> u64 {
    let mut x = state.wrapping_add(0x9e37_79b9_7f4a_7c15).max(1);
    x ^= x << 13;
    x ^= x >> 7;
    x ^ (x << 17)
}

impl Drop for TestRuntime {
    fn drop(&mut self) {
        let _report = shutdown::run(&self.shared, std::time::Duration::ZERO, Drain::No);
    }
}
