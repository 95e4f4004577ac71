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

/// Lets others run, and goes on behind them. Legal everywhere; outside of jobs it yields the OS thread. It does not
/// return to who is cancelled: the stack unwinds.
pub fn yield_now() {
    match is_in_job() {
        true => yield_with_stack(),
        false => thread::yield_now(),
    }
}

/// As [`yield_now`], with a preference.
pub fn yield_to(prefer: Prefer) {
    if prefer == Prefer::Steal {
        weald_kernel::prefer_stealing();
    }
    yield_now();
}

/// Waits for at least `duration`, while others run.
pub fn sleep(duration: Duration) {
    weald_kernel::sleep(duration).wait();
}

/// Waits until `deadline`, while others run; not at all if it has passed.
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
pub fn park() {
    match is_in_job() {
        true => weald_kernel::park().wait(),
        false => {
            park_os(None);
        }
    }
}

/// As [`park`], for at most `duration`. True if the caller was unparked.
pub fn park_timeout(duration: Duration) -> bool {
    match is_in_job() {
        true => timeout(duration, weald_kernel::park()).wait().is_ok(),
        // A deadline beyond what the clock can name is none.
        false => park_os(Instant::now().checked_add(duration)),
    }
}
