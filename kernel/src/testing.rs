//! The test runtime: one thread, a seed, virtual time.
//!
//! The calling thread drives everything, so a run is a function of the program and the seed: which
//! runnable job comes next is drawn from the seed, within the orders that workers could show, and time
//! moves on to the next deadline exactly when nothing can run. A run that can no longer go on panics
//! with the names of the jobs that wait.
//!
//! There is one stack: whatever runs during a `wait()` lies on top of it. So of several jobs in `wait()`
//! the last one goes on first, even if another one's future was ready before; a job whose `wait()` needs
//! the end of a `wait()` below its own can go on under workers, but not here, and the run says so.

use std::{
    cell::Cell,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use crate::{
    builder::{BuildError, Config},
    clock, context,
    gate::Epoch,
    local::{self, Home},
    runtime::Runtime,
    shared::Shared,
    shutdown::{self, Drain},
    waits::Waits,
    worker::{self, Tenure},
};

/// A runtime for tests; see [`Runtime::test`].
#[derive(Debug)]
pub struct TestRuntime {
    shared: Arc<Shared>,
    epoch: Epoch,
    seed: u64,
}

thread_local! {
    /// What the seed has become, and the tenure's epoch; for nested waits.
    static DRIVE: Cell<Option<(u64, Epoch)>> = const { Cell::new(None) };
    /// How many waits lie on one another on the driver's stack.
    static WAITS: Cell<usize> = const { Cell::new(0) };
}

impl Runtime {
    /// A runtime for tests: one worker on the calling thread, an order drawn from `seed`, and virtual
    /// time, which moves when nothing else can.
    ///
    /// Jobs in [`wait()`](crate::Wait::wait) share the calling thread's stack, so the one that came last
    /// goes on first. A job that waits for one that is in `wait()` below it would wait for ever; this
    /// panics. Such jobs should await, or be tested on workers.
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
        let (shared, rights) = Shared::new(config, clock::Kind::Virtual)?;
        Ok(TestRuntime {
            shared,
            epoch: rights[0].epoch,
            seed,
        })
    }

    /// Runs `future`, and whatever it spawns, until it is done.
    ///
    /// # Panics
    /// If the future panics; inside another runtime; or if nothing can run any more, with the seed and
    /// the names of the jobs that wait.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        let flag = Arc::new(Flag(AtomicBool::new(true)));
        let waker = Waker::from(flag.clone());
        let home = Arc::new(Home::new());
        context::with(|cx| {
            assert!(
                cx.shared().is_none(),
                "a test runtime cannot run inside another runtime"
            );
            cx.set_shared(Arc::as_ptr(&self.shared));
            cx.set_home(Arc::as_ptr(&home));
        });
        let drive = Drive {
            runtime: self,
            home,
        };
        DRIVE.set(Some((self.seed, self.epoch)));
        loop {
            if flag.0.swap(false, Ordering::AcqRel)
                && let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker))
            {
                drop(drive);
                return output;
            }
            drive_until(|| flag.0.load(Ordering::Acquire));
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
    home: Arc<Home>,
}

impl Drop for Drive<'_> {
    fn drop(&mut self) {
        local::evict(&self.runtime.shared, &self.home);
        DRIVE.set(None);
        context::with(|cx| {
            cx.lose();
            cx.set_home(std::ptr::null());
            cx.set_shared(std::ptr::null());
        });
    }
}

/// Whether the calling thread drives a test runtime.
pub(crate) fn is_driver() -> bool {
    DRIVE.get().is_some()
}

/// Runs jobs, and moves time, until `until` is true, on top of whatever waits for that.
///
/// # Panics
/// If nothing can run any more.
pub(crate) fn drive_nested(until: impl Fn() -> bool) {
    struct Wait;
    impl Drop for Wait {
        fn drop(&mut self) {
            WAITS.set(WAITS.get() - 1);
        }
    }
    WAITS.set(WAITS.get() + 1);
    let _wait = Wait;
    drive_until(until);
}

fn drive_until(until: impl Fn() -> bool) {
    let cx = context::here();
    let (seed, epoch) = DRIVE.get().expect("only a driver drives");
    let (Some(shared), Some(home)) = (cx.shared(), cx.home()) else {
        unreachable!("a driver has a runtime and a home");
    };
    let _aside = cx.set_aside();
    let mut tenure = Tenure::begin(cx, shared, (&shared.workers[0], epoch), &home);
    // A job first, even if there is no need: a main future that yields until a job has run must end.
    loop {
        let ran = worker::step(&mut tenure, draw);
        if until() {
            return;
        }
        if !ran && !move_time(shared, epoch) {
            stuck(shared, seed);
        }
    }
}

/// A number below `below`, drawn from the seed.
fn draw(below: usize) -> usize {
    let (state, epoch) = DRIVE.get().expect("only a driver draws");
    let state = next(state);
    DRIVE.set(Some((state, epoch)));
    ((state >> 33) % below as u64) as usize
}

/// Moves time on to the next deadline. False if there is none.
fn move_time(shared: &Shared, epoch: Epoch) -> bool {
    let Ok(inside) = shared.workers[0].gate.enter(epoch) else {
        return false;
    };
    let next = inside.wheel.next_tick();
    drop(inside);
    let Some(tick) = next else { return false };
    shared.clock.move_to(tick);
    true
}

fn stuck(shared: &Shared, seed: u64) -> ! {
    // Jobs that wait on this stack run, for the state; but nothing does.
    let waits = Waits::among(&shared.live_jobs(), |_| true).to_string();
    let waits = match waits.is_empty() {
        true => "none but the main future",
        false => waits.trim_end(),
    };
    let below = match WAITS.get().saturating_sub(1) {
        0 => String::new(),
        below => format!(
            ". Below the last wait() on this stack there are {below} more, which can go on only after \
             it; with workers that would not matter"
        ),
    };
    panic!(
        "nothing can run any more, and no timer is pending (drive state {seed}). Jobs that wait: \
         {waits}{below}"
    );
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
