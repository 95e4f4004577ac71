//! The test runtime: one thread, a seed, virtual time.
//!
//! The calling thread drives everything, so a run is a function of the program and the seed. The seed
//! decides which runnable job comes next, among the orders that real workers could produce, and which ready event
//! a `choose` or `select!` takes. Time advances to the next deadline exactly when nothing can run. A run that cannot
//! continue panics with the names of the waiting jobs.
//!
//! Nothing else may decide an order: no address, no clock of the system, no hash with a random key, and nothing that an
//! earlier run left on the thread, and no other runtime. A walk over all jobs goes through them in the order in which
//! they were spawned, and touches none of another runtime. Numbers that are unique in the program, such as those of
//! processes, continue from run to run. Sockets and foreign threads are outside of this: when their events come depends
//! on the system.
//!
//! Jobs in `wait()` suspend their stacks, as they do on workers. Jobs that are still suspended when `block_on`
//! returns are cancelled then: the thread no longer runs them.
//!
//! The standard library counts unwindings by thread, so while a destructor waits in one, the other jobs count as
//! unwinding, too (0054).
//!
//! # Safety
//! - **driver**: what the loops share lives in the frame of `block_on`, and `DRIVER` points to it until every stack
//!   that is suspended on the thread has ended.
//! - **until**: `DriverLoop::until` points to the condition of a base while that base waits for the loop. Afterwards it
//!   points to the condition of the outer base, or is null.

#![allow(unsafe_code)]

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::pin,
    ptr,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use weald_sync::{hooks::Parker, unit};

use crate::{
    biased_lock::Lease,
    observe::waits::Waits,
    report::{self, payload},
    runtime::{
        builder::BuildError,
        handle::{self, Runtime},
        shutdown::{self, Drain},
    },
    scheduler::services,
    scheduler::{
        stackful::{
            pinned::PinnedQueue,
            stack_context::{self, Duty, Flow},
        },
        threads::evict,
        workers::{config::Config, context, driven, search, shared::Shared, worker::WorkerLoop},
    },
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
    /// The generator's state, which began as the seed, and the lease of the only worker.
    static DRIVE: Cell<Option<(u64, Lease)>> = const { Cell::new(None) };
    /// The driver that the loops of this thread share. Valid while set.
    static DRIVER: Cell<*const DriverLoop<'static>> = const { Cell::new(ptr::null()) };
}

impl Runtime {
    /// A runtime for tests: one worker on the calling thread, an order of jobs drawn from `seed`, and virtual
    /// time, which advances only when nothing can run.
    ///
    /// A run is a function of the program and the seed, the choices of `choose` and `select!` included, as long as
    /// the program uses no socket, no thread of its own and no clock but the runtime's.
    ///
    /// Jobs that are inside [`wait()`](crate::Wait::wait) when `block_on` returns are cancelled.
    ///
    /// While a destructor waits because its job unwinds, [`std::thread::panicking`] is true in the other jobs, too,
    /// which run on the same thread (on workers, only in jobs that are pinned to the thread). A guard of a `std` lock
    /// that one of them has taken before, and drops meanwhile, poisons the lock. To avoid it: let destructors only
    /// start what others finish, or use the locks of `weald::sync`, which are never poisoned.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// weald::Runtime::test(7).block_on(async {
    ///     let before = weald::now();
    ///     weald::sleep(Duration::from_secs(3600)).await;
    ///     assert_eq!(weald::now() - before, Duration::from_secs(3600));
    /// });
    /// ```
    ///
    /// # Panics
    /// If the program is built with `panic = "abort"`.
    pub fn test(seed: u64) -> TestRuntime {
        match TestRuntime::with_builder(Runtime::builder(), seed) {
            Ok(runtime) => runtime,
            Err(error) => panic!("the test runtime could not start: {error}"),
        }
    }
}

impl TestRuntime {
    /// A test runtime with the settings of `builder`; those about workers and threads have no effect.
    ///
    /// # Errors
    /// As [`Builder::build`](crate::Builder::build).
    pub fn with_builder(builder: crate::Builder, seed: u64) -> Result<TestRuntime, BuildError> {
        let config = Config {
            workers: 1,
            ..builder.workers(1).check()?
        };
        let (shared, handoffs) = handle::new_shared(config, clock::ClockKind::Virtual)?;
        Ok(TestRuntime {
            shared,
            lease: handoffs[0].lease,
            seed,
        })
    }

    /// Runs `future` on the calling thread, and the jobs that it spawns, until `future` is done.
    ///
    /// # Panics
    /// If the future panics; if called inside another runtime; or if nothing can run any longer. The last message
    /// has the state of the generator and the names of the waiting jobs.
    pub fn block_on<F: IntoFuture>(&self, future: F) -> F::Output {
        let mut future = pin!(Some(future.into_future()));
        let parker = Parker::woken();
        let waker = parker.waker();
        let _reports = self.shared.subscriber.enter();
        let mut drive = Drive::begin(self);
        let (shared, pinned) = (self.shared.clone(), drive.pinned.clone());
        // Lives until `drive` has ended: suspended stacks use it when they resume.
        let driver = DriverLoop::new(&shared, &pinned, self.lease);
        DRIVER.set(ptr::from_ref(&driver).cast());
        // Caught, because the driver evicts suspended jobs from this thread, which must not be unwinding then.
        let ran = catch_unwind(AssertUnwindSafe(|| {
            loop {
                if parker.take()
                    && let Some(future) = future.as_mut().as_pin_mut()
                    && let Poll::Ready(output) = future.poll(&mut Context::from_waker(&waker))
                {
                    return Ok(output);
                }
                drive_until(&|| parker.is_woken())?;
            }
        }));
        let stuck = match &ran {
            Ok(Err(Stuck)) => Some(drive.stuck_message()),
            _ => None,
        };
        // Before the driver ends: a destructor may wait for jobs that the future spawned.
        let dropped = catch_unwind(AssertUnwindSafe(|| future.set(None)));
        dropped.err().into_iter().for_each(payload::discard);
        drive.end();
        DRIVER.set(ptr::null());
        match ran {
            Ok(Ok(output)) => output,
            Ok(Err(Stuck)) => panic!("{}", stuck.unwrap_or_default()),
            Err(payload) => resume_unwind(payload),
        }
    }
}

/// The time during which the calling thread is the driver.
struct Drive<'a> {
    runtime: &'a TestRuntime,
    pinned: Arc<PinnedQueue>,
    /// Until the end: a job that is evicted may choose, too.
    choices: Option<SeededChoices>,
}

/// While it lives, the calling thread draws the choices of `choose` and `select!` from a seed.
struct SeededChoices {
    /// The state from which the thread drew them before.
    before: u32,
}

impl SeededChoices {
    fn begin(seed: u64) -> SeededChoices {
        // The seed differs from the one that draws the jobs, and is never zero, which is not a valid state.
        let state = u32::try_from(next(next(!seed)) >> 32).expect("it has 32 bits");
        SeededChoices {
            before: unit::with(|unit| unit.set_random(state.max(1))),
        }
    }
}

impl Drop for SeededChoices {
    fn drop(&mut self) {
        unit::with(|unit| unit.set_random(self.before));
    }
}

/// Nothing can run any longer.
struct Stuck;

/// What is known then. A thread that is none of the runtime may still make a job runnable; nobody waits for that.
const NOTHING_TO_RUN: &str = "no job can run, no timer is pending, and no descriptor is waited for";

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
        let choices = SeededChoices::begin(runtime.seed);
        Drive {
            runtime,
            pinned,
            choices: Some(choices),
        }
    }

    fn end(&mut self) {
        evict::evict(&self.runtime.shared, &self.pinned);
        DRIVE.set(None);
        self.choices = None;
        context::with(|cx| {
            cx.clear_worker();
            cx.set_pinned(std::ptr::null());
            cx.set_shared(std::ptr::null());
        });
    }

    /// The message for a run that cannot continue.
    fn stuck_message(&self) -> String {
        // By its state, a job that waits on this thread with its stack is running. Nothing runs now, so all wait.
        let waits = Waits::among(&self.runtime.shared.live_jobs(), |_| true).to_string();
        let waits = match waits.is_empty() {
            true => "none but the main future",
            false => waits.trim_end(),
        };
        let state = DRIVE.get().map_or(0, |(state, _)| state);
        format!("{NOTHING_TO_RUN} (generator state {state}). Waiting jobs: {waits}")
    }
}

/// So long a wait in a panic hook lasts in which no timer is pending, and nothing but descriptors may end it.
const MOST_IDLE: Duration = Duration::from_secs(1);

/// What the scheduler asks of a test runtime's driver.
pub(crate) struct TestDriver;

impl services::Driver for TestDriver {
    fn is_driving(&self) -> bool {
        DRIVE.get().is_some()
    }

    fn drive_until(&self, is_over: &dyn Fn() -> bool) {
        if drive_until(is_over).is_err() {
            panic!("{NOTHING_TO_RUN}: nothing of this test runtime can end this wait");
        }
    }

    fn advance_until(&self, is_over: &dyn Fn() -> bool) -> bool {
        // SAFETY: driver: `block_on` set the pointer, and this runs within it.
        let driver = unsafe { DRIVER.get().as_ref() }.expect("only a driver drives");
        let worker_loop = &driver.worker_loop;
        worker_loop.restore_worker();
        let mut idle_since = None;
        loop {
            search::fire_timers(worker_loop);
            if is_over() {
                return true;
            }
            if advance_time(worker_loop) {
                idle_since = None;
                continue;
            }
            // Others may wait for descriptors for ever. A report that wakes the caller ends its wait.
            let idle_since = *idle_since.get_or_insert_with(Instant::now);
            if idle_since.elapsed() >= MOST_IDLE || !await_reports(worker_loop) {
                return false;
            }
        }
    }
}

/// What the driver's loops share for the whole `block_on`: a stack that was suspended under one base resumes under
/// another, in the middle of a step.
pub(crate) struct DriverLoop<'a> {
    worker_loop: WorkerLoop<'a>,
    /// The condition until which the waiting base wants jobs to run; null while no base waits. Valid while set.
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
    /// Runs a job, or advances time.
    fn step(&self, _cx: &context::Context) -> Flow {
        // A job first, even if the condition holds: a main future that yields until a job has run must end.
        let ran = driven::step(&self.worker_loop, draw);
        // SAFETY: until: the base that set the pointer waits for the loop.
        let is_over = unsafe { self.until.get().as_ref() }.is_none_or(|until| (until.0)());
        if is_over {
            return Flow::End;
        }
        match ran || advance_time(&self.worker_loop) || await_reports(&self.worker_loop) {
            true => Flow::Continue,
            false => {
                self.stuck.set(true);
                Flow::End
            }
        }
    }
}

/// Runs jobs, and advances time, until `until` is true.
///
/// # Errors
/// If nothing can run any longer.
fn drive_until(until: &dyn Fn() -> bool) -> Result<(), Stuck> {
    let cx = context::here();
    // SAFETY: driver: `block_on` set the pointer, and this runs within it.
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

/// Advances time to the next deadline. False if there is none.
fn advance_time(worker_loop: &WorkerLoop<'_>) -> bool {
    let Ok(core) = worker_loop.enter() else {
        return false;
    };
    let next = core.wheel.next_deadline();
    drop(core);
    let Some(step) = next else { return false };
    worker_loop.shared.clock.move_to(step);
    true
}

/// Waits a moment for reports of the reactor. False if no job waits for one.
fn await_reports(worker_loop: &WorkerLoop<'_>) -> bool {
    /// Short, because a foreign thread may make a job runnable too, without a report.
    const MOMENT: Duration = Duration::from_millis(5);
    let reactor = &worker_loop.shared.reactor;
    if !reactor.is_waited_for() {
        return false;
    }
    let mut batch = worker_loop.batch.take();
    if let Some(poller_guard) = reactor.lock_poller() {
        reactor.wait(&poller_guard, &mut batch, Some(MOMENT));
    }
    search::handle_ready(worker_loop.shared, &mut batch);
    worker_loop.batch.set(batch);
    true
}

/// The next state of the generator (xorshift; Marsaglia 2003). Never starts from zero, which would stay zero.
fn next(state: u64) -> u64 {
    let mut x = state.wrapping_add(0x9e37_79b9_7f4a_7c15).max(1);
    x ^= x << 13;
    x ^= x >> 7;
    x ^ (x << 17)
}

impl Drop for TestRuntime {
    fn drop(&mut self) {
        // What the jobs hold is the other process's.
        if !self.shared.process.is_here() {
            return;
        }
        let _choices = SeededChoices::begin(self.seed);
        let _report = shutdown::run(&self.shared, std::time::Duration::ZERO, Drain::No);
        report::flush();
    }
}
