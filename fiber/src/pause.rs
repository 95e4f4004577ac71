//! Pausing the calling thread: yield, sleep, park.

use std::{
    thread,
    time::{Duration, Instant},
};

use weald_kernel::{Wait, cancel_point, is_in_job, timeout, yield_with_stack};

use crate::thread::park_os;

/// What a yield runs next; the names are those of MassiveThreads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefer {
    /// The job that has waited longest: the caller goes to the end of this worker's queue.
    #[default]
    Fair,
    /// A job of this worker. The same as `Fair`, which looks at other workers only when this one has no job.
    Local,
    /// A job of another worker, if there is one.
    Steal,
    /// Only a job of this worker. If there is none, the caller continues at once, and spends a reduction; with none
    /// left it yields as with `Fair`.
    LocalOnly,
    /// Only a job of another worker: it runs first, and the caller goes to the end of this worker's queue. If there is
    /// none to take, it is as with `LocalOnly`.
    StealOnly,
}

/// Lets others run, and resumes behind them. Can be called anywhere; outside of jobs it yields the OS thread.
///
/// ```
/// # let runtime = weald::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// use std::sync::{Arc, atomic::{AtomicBool, Ordering}};
///
/// let ready = Arc::new(AtomicBool::new(false));
/// let sets = ready.clone();
/// let waits = weald::thread::spawn(move || {
///     while !ready.load(Ordering::Acquire) {
///         weald::thread::yield_now();
///     }
/// });
/// weald::thread::spawn(move || sets.store(true, Ordering::Release)).detach();
/// waits.join().unwrap();
/// # });
/// ```
///
/// # Cancelling
/// If the thread was cancelled before or during the yield, its stack unwinds instead of returning, unless it is
/// already unwinding.
pub fn yield_now() {
    if !yield_with_stack() {
        thread::yield_now();
    }
}

/// As [`yield_now`], with a preference.
///
/// ```
/// # let runtime = weald::Runtime::builder().workers(2).build().unwrap();
/// # runtime.block_on(async {
/// use weald::thread::{Prefer, yield_to};
///
/// let helps = weald::thread::spawn(|| {
///     // What this thread waits for may be in another worker's queue.
///     yield_to(Prefer::Steal);
///     7
/// });
/// assert_eq!(helps.join().unwrap(), 7);
/// # });
/// ```
///
/// Where the stack cannot be suspended, as in a destructor while a panic unwinds, a yield holds the OS thread and hands
/// the worker off, as [`yield_now`] does there. A loop of yields that find nothing does the same once its budget is
/// used up.
///
/// # Cancelling
/// As [`yield_now`].
pub fn yield_to(prefer: Prefer) {
    let yields = match prefer {
        Prefer::Fair | Prefer::Local => true,
        Prefer::Steal => {
            weald_kernel::prefer_stealing();
            true
        }
        Prefer::LocalOnly => {
            if weald_kernel::yield_to_next_fiber() {
                return;
            }
            weald_kernel::has_local_jobs()
        }
        Prefer::StealOnly => weald_kernel::steal_next(),
    };
    // A loop of these must come to the reactor, the timers, and what other threads have woken.
    match yields || !is_in_job() || !weald_kernel::spend_reduction() {
        true => yield_now(),
        false => cancel_point(),
    }
}

/// Waits for at least `duration`, while others run. Can be called anywhere. Ends at most some 16 µs late, and what the
/// system needs to wake a thread, if its worker is free; at most 1 ms late, if that worker has more than eight timers
/// in the same millisecond.
///
/// ```
/// # let runtime = weald::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// use std::time::{Duration, Instant};
///
/// let sleeper = weald::thread::spawn(|| {
///     let start = Instant::now();
///     weald::thread::sleep(Duration::from_millis(5));
///     start.elapsed()
/// });
/// assert!(sleeper.join().unwrap() >= Duration::from_millis(5));
/// # });
/// ```
///
/// # Cancelling
/// A cancel before or during the sleep ends it: the thread's stack unwinds, unless it is already unwinding.
#[track_caller]
pub fn sleep(duration: Duration) {
    weald_kernel::sleep(duration).wait();
}

/// Waits until `deadline`, while others run; returns at once if it has passed. Otherwise as [`sleep`].
///
/// ```
/// # let runtime = weald::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// use std::time::Duration;
///
/// let sleeper = weald::thread::spawn(|| {
///     let deadline = weald::now() + Duration::from_millis(5);
///     weald::thread::sleep_until(deadline);
///     assert!(weald::now() >= deadline);
/// });
/// sleeper.join().unwrap();
/// # });
/// ```
///
/// # Cancelling
/// As [`sleep`].
#[track_caller]
pub fn sleep_until(deadline: Instant) {
    weald_kernel::sleep_until(deadline).wait();
}

/// Waits until the caller is unparked ([`Thread::unpark`](crate::Thread::unpark)); returns at once if it has been
/// unparked since the last park.
///
/// ```
/// # let runtime = weald::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// let sleeper = weald::thread::spawn(weald::thread::park);
/// sleeper.thread().unpark();
/// sleeper.join().unwrap();
/// # });
/// ```
///
/// # Cancelling
/// A cancel before or during the park ends it: the thread's stack unwinds, unless it is already unwinding. If there
/// was an unpark, too, it counts for the next park, for example in a destructor.
#[track_caller]
pub fn park() {
    match is_in_job() {
        true => weald_kernel::park().wait(),
        false => {
            park_os(None);
        }
    }
}

/// As [`park`], for at most `duration`. Returns whether the caller was unparked; if not, a later unpark counts for
/// the next park.
///
/// ```
/// # let runtime = weald::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// use std::time::Duration;
///
/// let parks = weald::thread::spawn(|| weald::thread::park_timeout(Duration::from_millis(5)));
/// assert!(!parks.join().unwrap());
/// # });
/// ```
///
/// # Cancelling
/// As [`park`].
#[track_caller]
pub fn park_timeout(duration: Duration) -> bool {
    match is_in_job() {
        true => timeout(duration, weald_kernel::park()).wait().is_ok(),
        // A deadline that the clock cannot represent counts as no deadline.
        false => park_os(Instant::now().checked_add(duration)),
    }
}
