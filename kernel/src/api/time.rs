//! Waiting for time: sleep, timeout, interval.
//!
//! Deadlines are rounded up to the next 1/64 ms, so no wait ends early. Waits are capped at a hundred years. On the
//! test runtime time is virtual: it advances only when nothing can run, by whole milliseconds.
//!
//! A sleep goes from `poll`, `arm` and `insert` here to the worker's [wheel](crate::timer::wheel), or from a foreign
//! thread to its [arrivals](crate::timer::arrivals). When it is due, [`search`](crate::scheduler::workers::search)
//! fires it (`fire_due`, `fire_and_unlock`: `expire` under the worker's lock, `fire` without it): the first job of a
//! look runs next ([`FirstOfLook`](crate::scheduler::workers::waker::FirstOfLook)), the others go to the end of the
//! ring.

#![allow(unsafe_code)]

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use weald_sync::{
    Event, Polled, Source, of_source,
    reason::{Kind, Reason},
};

use crate::{
    api::sync_hooks::note_wait,
    scheduler::workers::config::FOREVER,
    scheduler::workers::{
        context, current,
        shared::{self, Shared},
        waker::keep,
    },
    timer::{
        arrivals::Pushed,
        entry::{EntryPtr, TimerOwes},
    },
};

/// The current time, by the clock of the current runtime.
///
/// ```
/// use std::time::Duration;
///
/// // The clock of a test runtime goes as fast as its units let it.
/// weald::Runtime::test(7).block_on(async {
///     let before = weald::now();
///     weald::sleep(Duration::from_secs(3_600)).await;
///     assert!(weald::now() - before >= Duration::from_secs(3_600));
/// });
/// ```
pub fn now() -> Instant {
    current::with_current(|shared| shared.clock.now())
}

/// Waits until `duration` has passed since this call, at most a hundred years. Cancel-safe.
///
/// ```
/// use std::time::{Duration, Instant};
///
/// let begin = Instant::now();
/// weald::block_on(weald::sleep(Duration::from_millis(5)));
/// assert!(begin.elapsed() >= Duration::from_millis(5));
/// ```
pub fn sleep(duration: Duration) -> Sleep {
    Sleep::until(now() + duration.min(FOREVER))
}

/// Waits until `deadline`, at most a hundred years. Cancel-safe.
pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep::until(deadline.min(now() + FOREVER))
}

/// A future that is ready at its deadline, and an event; see [`sleep`]. Works under any executor; outside of a runtime
/// it uses the timers of the default runtime.
#[must_use = "a sleep does nothing unless it is awaited"]
pub struct Sleep {
    deadline: Instant,
    armed: Option<Armed>,
}

/// An entry in a timer wheel.
struct Armed {
    entry: EntryPtr,
    runtime: u16,
    /// The identity (data and table) of the waker that the entry holds until it fires, so that a poll with another
    /// waker is noticed. While that waker lives, no other one has this identity. A waker whose clones have other
    /// addresses counts as another one each time.
    waker: (*const (), *const std::task::RawWakerVTable),
}

// SAFETY: the waker's address is only compared.
unsafe impl Send for Armed {}
// SAFETY: as above; the entry's protocol works from any thread.
unsafe impl Sync for Armed {}

fn identity(waker: &Waker) -> (*const (), *const std::task::RawWakerVTable) {
    (waker.data(), waker.vtable())
}

impl Sleep {
    fn until(deadline: Instant) -> Sleep {
        Sleep {
            deadline,
            armed: None,
        }
    }

    /// A sleep for [`poll_limit`](Sleep::poll_limit). Does not look at the clock, and so is not capped at a hundred
    /// years.
    pub fn limit(deadline: Instant) -> Sleep {
        Sleep::until(deadline)
    }

    /// As a poll, for a deadline that is the limit of another wait and mostly not reached: nothing looks at the clock
    /// before the timer has fired. So a deadline that has passed before the first poll is noticed by the timer, when
    /// the worker next looks at its timers. A look at the clock costs more than arming and disarming the timer. The
    /// caller waits for something else in the first place, so this notes no wait.
    pub fn poll_limit(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.has_fired() {
            return self.poll(cx);
        }
        self.arm_for(cx.waker());
        Poll::Pending
    }

    /// When the sleep is ready.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether the timer of a sleep that was polled has fired, so that the sleep should be polled again. Cheaper than a
    /// poll, and stores no waker. For futures that mostly wait for other things.
    #[inline]
    pub fn has_fired(&self) -> bool {
        // SAFETY: this future has not given up its claim.
        let fired = |armed: &Armed| unsafe { armed.entry.get() }.state.has_fired();
        self.armed.as_ref().is_some_and(fired)
    }

    fn arm(&mut self, waker: &Waker) {
        self.armed = Some(current::with_current(|shared| {
            let deadline = shared.clock.step_after(self.deadline);
            let clone = waker.clone();
            let waker = identity(&clone);
            Armed {
                entry: insert(shared, deadline, keep(clone)),
                runtime: shared.id(),
                waker,
            }
        }));
    }

    /// Arms the timer, unless it is armed for this waker.
    fn arm_for(&mut self, waker: &Waker) {
        let is_known = |armed: &Armed| armed.waker == identity(waker);
        if !self.armed.as_ref().is_some_and(is_known) || self.has_fired() {
            self.disarm();
            self.arm(waker);
        }
    }

    fn disarm(&mut self) {
        let Some(Armed { entry, runtime, .. }) = self.armed.take() else {
            return;
        };
        // SAFETY: this future has not given up its claim.
        let has_fired = unsafe { entry.get() }.state.has_fired();
        if has_fired || remove_here(entry, runtime) {
            // SAFETY: the worker has fired the entry, or it was unlinked under the worker's lock.
            return unsafe { entry.free() };
        }
        // SAFETY: this future has not given up its claim.
        let armed = unsafe { entry.get() };
        let worker = usize::from(armed.place().worker);
        match armed.state.cancel() {
            // SAFETY: `TimerOwes::Free` leaves the entry to this side.
            TimerOwes::Free => unsafe { entry.free() },
            _ => {
                if let Some(shared) = shared::find(runtime)
                    && let Some(worker) = shared.workers.get(worker)
                {
                    worker.cancelled.count(1);
                }
            }
        }
    }
}

/// Inserts a new entry into the calling worker's wheel, or from any other thread into the arrivals of some worker. Not
/// into its wheel: if the system stopped this thread inside the lock, the worker would wait for it, and a thread that
/// computes may have a low priority.
fn insert(shared: &Shared, deadline: u64, waker: Waker) -> EntryPtr {
    context::with(|cx| {
        let here = cx.worker_of(shared.id());
        let foreign = || shared.thread_number() as usize % shared.workers.len();
        // Outside of the lock: without memory it panics.
        let entry = EntryPtr::new(
            here.map_or_else(foreign, |(worker, _)| worker.index),
            deadline,
            waker,
        );
        if let Some((worker, lease)) = here {
            // SAFETY: *owner*: the worker of this thread's context.
            if let Ok(mut core) = unsafe { worker.core.enter(lease) } {
                core.wheel.insert(entry);
                return entry;
            }
            cx.clear_worker();
        }
        let index = foreign();
        // SAFETY: nobody else knows the entry yet.
        unsafe { entry.get() }.set_worker(index);
        let worker = &shared.workers[index];
        if worker.arrivals.push(entry) == Pushed::Closed {
            // The runtime has stopped: `Shared::fire_due_after_stop` fires the timer.
            worker.core.enter_foreign().wheel.insert(entry);
        }
        // The worker may sleep until a later deadline.
        if let Some(sleeper) = shared.sleepers.take_sleeper_of(index) {
            sleeper.wake(shared);
        }
        entry
    })
}

/// Unlinks an entry from the calling worker's own wheel. False if the entry is in another wheel, or in none any
/// longer.
fn remove_here(entry: EntryPtr, runtime: u16) -> bool {
    // SAFETY: the caller's future has not given up its claim.
    let entry_here = unsafe { entry.get() };
    context::with(|cx| {
        let Some((worker, lease)) = cx.worker_of(runtime) else {
            return false;
        };
        if worker.index != usize::from(entry_here.place().worker) {
            return false;
        }
        // SAFETY: *owner*: the worker of this thread's context.
        let Ok(mut core) = (unsafe { worker.core.enter(lease) }) else {
            return false;
        };
        core.take_arrivals(&worker.arrivals);
        let linked = entry_here.state.is_linked();
        if linked {
            core.wheel.remove(entry);
        }
        linked
    })
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // A timer also fires when its runtime shuts down, which may be early.
        let is_over = match &self.armed {
            Some(_) => self.has_fired() && self.deadline <= now(),
            None => self.deadline <= now(),
        };
        if is_over {
            if !context::with(|here| here.spend(cx.waker())) {
                return Poll::Pending;
            }
            self.disarm();
            return Poll::Ready(());
        }
        self.arm_for(cx.waker());
        note_wait(Reason::unspecified(Kind::Time));
        Poll::Pending
    }
}

/// In a choice, [`after`](weald_sync::after) costs less.
impl Event for Sleep {
    type Output = ();
    type Branch = <Polled<Sleep> as Event>::Branch;

    fn open(self) -> Self::Branch {
        of_source(self).open()
    }

    fn conclude((): ()) {}
}

impl Source for Sleep {
    type Output = ();

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.poll(cx)
    }

    fn take(self: Pin<&mut Self>) {}

    fn reason(&self) -> Reason {
        Reason::unspecified(Kind::Time)
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.disarm();
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep")
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

/// The deadline of a [`timeout`] passed before its future was ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the deadline passed before the operation was done")]
pub struct Elapsed;

/// Waits for `future`, at most for `duration`; then the future is dropped. Cancel-safe if `future` is.
///
/// ```
/// # use std::time::Duration;
/// # let runtime = weald::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// let never = std::future::pending::<()>();
/// assert!(weald::timeout(Duration::from_millis(1), never).await.is_err());
/// # });
/// ```
///
/// # Errors
/// [`Elapsed`] if the deadline passed first. A future that is ready in the same poll wins.
pub async fn timeout<F: Future>(duration: Duration, future: F) -> Result<F::Output, Elapsed> {
    let mut sleep = sleep(duration);
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(move |cx| {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return Poll::Ready(Ok(output));
        }
        Pin::new(&mut sleep).poll(cx).map(|()| Err(Elapsed))
    })
    .await
}

/// An interval that ticks every `period`, first one period from now. The period is capped at a hundred years.
///
/// # Panics
/// If `period` is zero.
pub fn interval(period: Duration) -> Interval {
    assert!(
        !period.is_zero(),
        "an interval needs a period longer than zero"
    );
    let period = period.min(FOREVER);
    Interval {
        next: now() + period,
        period,
    }
}

/// A sequence of ticks at a fixed period; see [`interval`].
#[derive(Debug)]
pub struct Interval {
    next: Instant,
    period: Duration,
}

impl Interval {
    /// Waits for the next tick and returns when it was due. Ticks stay on their grid: delays do not accumulate, and
    /// missed ticks are skipped. Cancel-safe.
    pub async fn tick(&mut self) -> Instant {
        Sleep::until(self.next).await;
        let (due, now) = (self.next, now());
        let late = now.saturating_duration_since(due).as_nanos() % self.period.as_nanos();
        let late = u64::try_from(late).expect("a period is at most a century");
        // The first point of the grid in the future.
        self.next = now + (self.period - Duration::from_nanos(late));
        due
    }
}

/// One reduction of the running job's budget. Pending if it is used up: the job then goes to the end of its worker's
/// queue, and its waker is woken. For operations of other crates that may be ready many times in a row.
#[inline(always)]
pub fn poll_budget(cx: &mut Context<'_>) -> Poll<()> {
    match context::here().spend_if_any() {
        true => Poll::Ready(()),
        false => spend_last(cx),
    }
}

/// [`poll_budget`] of a unit that has used its budget up, or of a thread that runs none.
#[cold]
fn spend_last(cx: &mut Context<'_>) -> Poll<()> {
    match context::with(|here| here.spend(cx.waker())) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    }
}

/// Yields once: the job goes to the end of its worker's queue. Cancel-safe: a future that is dropped after its first
/// poll leaves the job in the queue, so the job is polled once more.
///
/// ```
/// weald::block_on(async {
///     let mut sum = 0_u64;
///     for number in 0..10_000 {
///         sum += number;
///         if number % 1_000 == 0 {
///             weald::yield_now().await;
///         }
///     }
///     assert_eq!(sum, 49_995_000);
/// });
/// ```
pub async fn yield_now() {
    let mut yielded = false;
    std::future::poll_fn(move |cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context::with(|here| here.yield_run(cx.waker()));
        Poll::Pending
    })
    .await;
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::{future::poll_fn, pin::pin, thread};

    use super::*;

    /// With the monitor, a trim or the metrics inside, a thread would wait for them; and the worker for the thread.
    #[test]
    fn a_foreign_thread_starts_a_sleep_while_another_is_inside_the_workers_lock() {
        let runtime = crate::Runtime::builder().workers(1).build().unwrap();
        let inside = runtime.shared.workers[0].core.enter_foreign();
        let starts = async {
            let mut sleep = pin!(sleep(FOREVER));
            poll_fn(|cx| Poll::Ready(sleep.as_mut().poll(cx))).await
        };
        let started = thread::scope(|scope| scope.spawn(|| runtime.block_on(starts)).join());
        assert_eq!(started.unwrap(), Poll::Pending);
        drop(inside);
    }
}
