//! Giving way: yield, sleep, park.

use std::{
    thread,
    time::{Duration, Instant},
};

use weald_kernel::{Wait, is_in_job, timeout, yield_with_stack};

use crate::thread::park_os;

/// Whom a yield prefers; the names are MassiveThreads'.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefer {
    /// Whoever waits longest: the caller goes behind everybody at this worker.
    #[default]
    Fair,
    /// What is at hand at this worker. It is what `Fair` does too, since that looks nowhere else while
    /// somebody runs.
    Local,
    /// What other workers have: one of their jobs is taken first, if there is one.
    Steal,
}

/// Lets others run, and goes on behind them. Legal everywhere; outside of jobs it yields the OS thread.
///
/// ```
/// # let runtime = weald_kernel::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// use std::sync::{Arc, atomic::{AtomicBool, Ordering}};
///
/// let ready = Arc::new(AtomicBool::new(false));
/// let sets = ready.clone();
/// let waits = weald_fiber::spawn(move || {
///     while !ready.load(Ordering::Acquire) {
///         weald_fiber::yield_now();
///     }
/// });
/// weald_fiber::spawn(move || sets.store(true, Ordering::Release)).detach();
/// waits.join().unwrap();
/// # });
/// ```
///
/// # Cancelling
/// It does not return to a thread that was cancelled before or meanwhile: its stack unwinds, unless it does so
/// already.
pub fn yield_now() {
    match is_in_job() {
        true => yield_with_stack(),
        false => thread::yield_now(),
    }
}

/// As [`yield_now`], with a preference.
///
/// ```
/// # let runtime = weald_kernel::Runtime::builder().workers(2).build().unwrap();
/// # runtime.block_on(async {
/// use weald_fiber::{Prefer, yield_to};
///
/// let helps = weald_fiber::spawn(|| {
///     // What this thread waits for may lie in another worker's queue.
///     yield_to(Prefer::Steal);
///     7
/// });
/// assert_eq!(helps.join().unwrap(), 7);
/// # });
/// ```
///
/// # Cancelling
/// As [`yield_now`].
pub fn yield_to(prefer: Prefer) {
    if prefer == Prefer::Steal {
        weald_kernel::prefer_stealing();
    }
    yield_now();
}

/// Waits for at least `duration`, while others run. Legal everywhere. Ends up to a tick of 1 ms late if its worker is
/// free.
///
/// ```
/// # let runtime = weald_kernel::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// use std::time::{Duration, Instant};
///
/// let sleeper = weald_fiber::spawn(|| {
///     let begin = Instant::now();
///     weald_fiber::sleep(Duration::from_millis(5));
///     begin.elapsed()
/// });
/// assert!(sleeper.join().unwrap() >= Duration::from_millis(5));
/// # });
/// ```
///
/// # Cancelling
/// A cancel ends the sleep of a thread, and so does one that came before: its stack unwinds, unless it does so
/// already.
pub fn sleep(duration: Duration) {
    weald_kernel::sleep(duration).wait();
}

/// Waits until `deadline`, while others run; not at all if it has passed. Else as [`sleep`].
///
/// ```
/// # let runtime = weald_kernel::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// use std::time::Duration;
///
/// let sleeper = weald_fiber::spawn(|| {
///     let deadline = weald_kernel::now() + Duration::from_millis(5);
///     weald_fiber::sleep_until(deadline);
///     assert!(weald_kernel::now() >= deadline);
/// });
/// sleeper.join().unwrap();
/// # });
/// ```
///
/// # Cancelling
/// As [`sleep`].
pub fn sleep_until(deadline: Instant) {
    weald_kernel::sleep_until(deadline).wait();
}

/// Waits until the caller is unparked ([`Thread::unpark`](crate::Thread::unpark)); not at all if it was since the
/// last park.
///
/// ```
/// # let runtime = weald_kernel::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// let sleeper = weald_fiber::spawn(weald_fiber::park);
/// sleeper.thread().unpark();
/// sleeper.join().unwrap();
/// # });
/// ```
///
/// # Cancelling
/// A cancel ends the park of a thread, and so does one that came before: its stack unwinds, unless it does so
/// already. An unpark that came, too, then counts for the next park, in a destructor say.
pub fn park() {
    match is_in_job() {
        true => weald_kernel::park().wait(),
        false => {
            park_os(None);
        }
    }
}

/// As [`park`], for at most `duration`. True if the caller was unparked; if not, a later unpark counts for the next
/// park.
///
/// ```
/// # let runtime = weald_kernel::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// use std::time::Duration;
///
/// let parks = weald_fiber::spawn(|| weald_fiber::park_timeout(Duration::from_millis(5)));
/// assert!(!parks.join().unwrap());
/// # });
/// ```
///
/// # Cancelling
/// As [`park`].
pub fn park_timeout(duration: Duration) -> bool {
    match is_in_job() {
        true => timeout(duration, weald_kernel::park()).wait().is_ok(),
        // A deadline beyond what the clock can name is none.
        false => park_os(Instant::now().checked_add(duration)),
    }
}
