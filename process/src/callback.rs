//! Callbacks: code that waits, split before and after the wait, as in Node and Zackernel.
//!
//! A callback is a closure that runs later: [`after`] a duration, [`at`] an instant, once [`every`] period, or in its
//! turn ([`spawn`]). While it is pending it is one small block, without a stack or a mailbox. These loops yield after
//! each step: [`repeat`], [`repeat_while`], [`do_while`], [`for_each`].
//!
//! The continuation rule: the return value of a step, and nothing else, decides what comes next.
//! - A step that returns nothing is over; the next step of its loop goes to the end of the queue.
//! - A sleep belongs to its step: a step that returns [`pause`] is over only when that time has passed and
//!   the closure that [`Pause::then`] added has run. Until then its loop takes no further step.
//! - A loop that a step [starts](Loop::start) is a callback of its own; the step's loop does not wait for it.
//!   A loop that a step returns is awaited.
//!
//! Ready callbacks run in the order in which they became ready, except those of a kind that blocks (see below). The
//! stack stays flat, however deeply callbacks start each other. Repeated times stay on their grid.
//!
//! The owner of a callback is the process (or job) that starts it. A callback that another one starts has the same
//! owner; a callback that is started anywhere else belongs to the runtime. When the owner ends, its callbacks are
//! dropped at once. A panic ends its callback alone and is reported to the owner: see [`Owner::on_panic`]. A callback
//! may also block or wait: the monitor names it, and no other callback stops. The first one that blocks costs the
//! others some milliseconds. Then, for a second after the last such block, callbacks of its kind (started at the same
//! line, with the same type of closure) run on [spare threads](weald_kernel::Builder::spare_threads) of their own,
//! several at a time, and wait for one if all are in use. Meanwhile callbacks of other kinds overtake them, and so may
//! later ones of their own kind: once that second is over, or while thousands wait. If callbacks that
//! have waited block again, more at once than there are spare threads, everything stops. So call blocking functions
//! inside [`blocking`](weald_kernel::blocking()), or in a process.
//!
//! ```
//! use std::{sync::mpsc, time::Duration};
//! use weald::process::callback::{self, pause};
//!
//! # weald::Runtime::test(1).block_on(async {
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
//! weald::sleep(Duration::from_millis(1_600)).await;
//! blink.cancel();
//! assert_eq!(seen.iter().collect::<Vec<_>>(), ["on", "off", "on", "off"]);
//! # });
//! ```
//!
//! A callback that must outlive its process is given to the runtime by [`once`] or [`rounds`]:
//!
//! ```
//! use std::{sync::mpsc, time::Duration};
//! use weald::process::{Inbox, callback::{self, Owner, When}};
//!
//! # weald::Runtime::test(1).block_on(async {
//! let (sender, outlived) = mpsc::channel();
//! let process = weald::process::spawn(async move |_inbox: Inbox<()>| {
//!     let later = When::At(weald::now() + Duration::from_secs(1));
//!     callback::once(Owner::runtime(), later, move || sender.send("still here").unwrap()).detach();
//! })?;
//! process.await.unwrap();
//! weald::sleep(Duration::from_secs(2)).await;
//! assert_eq!(outlived.try_recv(), Ok("still here"));
//! # Ok::<(), weald::SpawnError>(())
//! # }).unwrap();
//! ```
//!
//! [`Runtime::shutdown`](weald_kernel::Runtime::shutdown) waits for the callbacks that the runtime owns, as it does for
//! sleeping jobs. As long as one is pending (a callback of [`every`] always is), the shutdown takes its whole deadline,
//! and then drops the callback. Cancel such callbacks first, by their handles.

mod loops;
mod then;

use std::time::{Duration, Instant};

pub use loops::{Loop, do_while, for_each, repeat, repeat_while};
pub(crate) use then::CENTURY;
pub use then::{Pause, Then, pause};
pub use weald_kernel::callback::{CallbackPanic, Handle, Next, Owner, When, once, rounds};
use weald_kernel::now;

/// Runs `run` once `duration` has passed; never earlier, and at most a tick of 1 ms later if a worker is
/// free. O(1): one block, and one look at the clock.
///
/// ```
/// # weald::Runtime::test(1).block_on(async {
/// use std::time::Duration;
/// use weald::process::callback;
///
/// let (sender, receiver) = std::sync::mpsc::channel();
/// callback::after(Duration::from_secs(1), move || sender.send(1).unwrap()).detach();
/// weald::sleep(Duration::from_secs(2)).await;
/// assert_eq!(receiver.try_recv(), Ok(1));
/// # });
/// ```
#[inline]
#[track_caller]
pub fn after(duration: Duration, run: impl FnOnce() + Send + 'static) -> Handle {
    at(now() + duration.min(CENTURY), run)
}

/// Runs `run` once `deadline` has passed, as [`after`]. Does not look at the clock.
#[inline]
#[track_caller]
pub fn at(deadline: Instant, run: impl FnOnce() + Send + 'static) -> Handle {
    once(Owner::current(), When::At(deadline), run)
}

/// Runs `run` in its turn, behind the callbacks that are already ready.
#[inline]
#[track_caller]
pub fn spawn(run: impl FnOnce() + Send + 'static) -> Handle {
    once(Owner::current(), When::Ready, run)
}

/// Runs `run` every `period`, for the first time one period from now. The times stay on their grid: lateness
/// does not add up, and times that were missed altogether are skipped.
///
/// It never ends on its own: unless it is cancelled or its owner ends, a shutdown of the runtime takes its
/// whole deadline.
///
/// # Panics
/// If `period` is zero.
#[track_caller]
pub fn every(period: Duration, run: impl FnMut() + Send + 'static) -> Handle {
    assert!(
        !period.is_zero(),
        "a callback needs a period longer than zero; use repeat(..) for one that is always ready"
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

/// The first point of `due`'s grid that is after `due` and in the future.
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
