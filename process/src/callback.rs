//! Callbacks: code that waits, split before and after the wait, as in Node and Zackernel.
//!
//! A callback is a closure that runs later: [`after`] a while, [`at`] an instant, [`every`] so often, or
//! in its turn ([`spawn`]). Pending, it is one small block; it has no stack and no mailbox. Loops give
//! way after each step: [`repeat`], [`repeat_while`], [`do_while`], [`for_each`].
//!
//! The continuation rule: what a step returns says what comes next, and nothing else does.
//! - A step that returns nothing is over; the next step of its loop goes to the end of the line.
//! - What follows a sleep belongs to the sleeper: a step that returns [`pause`] is not over before that
//!   time has passed, and what was put behind it by [`Pause::then`] has run. Until then its loop has no
//!   further step.
//! - A loop that a step [starts](Loop::start) is a task of its own, for which the step's loop does not
//!   wait. One that a step returns is awaited.
//!
//! Callbacks that are ready run in the order in which they became so. The stack stays flat, however
//! deep they start each other. Times that repeat stay on their grid.
//!
//! The owner of a callback is the process (or job) that starts it; of one that a callback starts, that
//! callback's owner; elsewhere, the runtime. When the owner ends, its callbacks are dropped at once. A
//! panic ends its callback alone and is told to the owner: see [`Owner::on_panic`]. A callback may also
//! block or wait: it is named by the monitor, and stops no other.
//!
//! ```
//! use std::{sync::mpsc, time::Duration};
//! use weald_process::callback::{self, pause};
//!
//! # weald_kernel::Runtime::test(1).block_on(async {
//! let (led, seen) = mpsc::channel();
//! let blink = callback::repeat(move || {
//!     led.send("on").unwrap();
//!     let led = led.clone();
//!     pause(Duration::from_millis(500)).then(move || {
//!         led.send("off").unwrap();
//!         pause(Duration::from_millis(500))
//!     })
//! });
//! let blink = blink.start();
//! weald_kernel::sleep(Duration::from_millis(1_600)).await;
//! blink.cancel();
//! assert_eq!(seen.iter().collect::<Vec<_>>(), ["on", "off", "on", "off"]);
//! # });
//! ```
//!
//! A callback that shall outlive its process is given to the runtime by [`once`], or by [`rounds`]:
//!
//! ```
//! use std::{sync::mpsc, time::Duration};
//! use weald_process::{Inbox, callback::{self, Owner, When}};
//!
//! # weald_kernel::Runtime::test(1).block_on(async {
//! let (sender, outlived) = mpsc::channel();
//! let process = weald_process::spawn(async move |_inbox: Inbox<()>| {
//!     let later = When::At(weald_kernel::now() + Duration::from_secs(1));
//!     callback::once(Owner::runtime(), later, move || sender.send("still here").unwrap()).detach();
//! })?;
//! process.await.unwrap();
//! weald_kernel::sleep(Duration::from_secs(2)).await;
//! assert_eq!(outlived.try_recv(), Ok("still here"));
//! # Ok::<(), weald_kernel::SpawnError>(())
//! # }).unwrap();
//! ```
//!
//! [`Runtime::shutdown`](weald_kernel::Runtime::shutdown) waits for what the runtime owns, as it does for jobs
//! that sleep: while one is to come, [`every`] say, it takes its whole deadline, and then drops it. Cancel such
//! ones before, by their handles.

mod loops;
mod then;

use std::time::{Duration, Instant};

pub use loops::{Loop, do_while, for_each, repeat, repeat_while};
pub use then::{Pause, Then, pause};
pub use weald_kernel::callback::{CallbackPanic, Handle, Next, Owner, When, once, rounds};
use weald_kernel::now;

/// Longer waits count as one of a hundred years.
const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Runs `run` once `duration` has passed; not before that, and at most a tick of 1 ms later if a worker is
/// free. O(1): one block, and a look at the clock.
///
/// ```
/// # weald_kernel::Runtime::test(1).block_on(async {
/// use std::time::Duration;
/// use weald_process::callback;
///
/// let (sender, receiver) = std::sync::mpsc::channel();
/// callback::after(Duration::from_secs(1), move || sender.send(1).unwrap()).detach();
/// weald_kernel::sleep(Duration::from_secs(2)).await;
/// assert_eq!(receiver.try_recv(), Ok(1));
/// # });
/// ```
#[inline]
pub fn after(duration: Duration, run: impl FnOnce() + Send + 'static) -> Handle {
    at(now() + duration.min(CENTURY), run)
}

/// Runs `run` once `deadline` has come, as [`after`]. Does not look at the clock.
#[inline]
pub fn at(deadline: Instant, run: impl FnOnce() + Send + 'static) -> Handle {
    once(Owner::current(), When::At(deadline), run)
}

/// Runs `run` in its turn, behind the callbacks that are ready.
#[inline]
pub fn spawn(run: impl FnOnce() + Send + 'static) -> Handle {
    once(Owner::current(), When::Ready, run)
}

/// Runs `run` each `period`, for the first time one period from now. The times stay on their grid: lateness
/// does not add up, and times that were missed altogether are skipped.
///
/// It never ends by itself: unless it is cancelled or its owner ends, a shutdown of the runtime takes its
/// whole deadline.
///
/// # Panics
/// If `period` is zero.
pub fn every(period: Duration, run: impl FnMut() + Send + 'static) -> Handle {
    assert!(
        !period.is_zero(),
        "a callback needs a period longer than zero; one that is always ready is repeat(..)"
    );
    let period = period.min(CENTURY);
    let mut run = run;
    let mut due = now() + period;
    rounds(Owner::current(), When::At(due), move || {
        run();
        due = following(due, period);
        Next::At(due)
    })
}

/// The first point of the grid behind `due` that is still to come.
fn following(due: Instant, period: Duration) -> Instant {
    let now = now();
    let late = now.saturating_duration_since(due);
    if late < period {
        return due + period;
    }
    let late = late.as_nanos() % period.as_nanos();
    let late = u64::try_from(late).expect("a period is at most a century");
    now + (period - Duration::from_nanos(late))
}
