//! The reporting thread: the only one that calls subscribers and writes reports to stderr. Other user code that the
//! monitor must not run goes to the [releasing thread](super::releases).
//!
//! There is one for the whole program. It starts with the first runtime, so that it exists when the system later
//! refuses threads. It never ends: runtimes come and go, and the count of reports left out is written up to a second
//! after the last report. A subscriber that panics loses the report that it was given; one that blocks delays the
//! others, until the queue is full and they are counted instead. Only [`flush`] waits for it, for [`FLUSH`] at most,
//! and no second time for the same call.
//!
//! Any thread may make reports. The lock of the queue is held for a few instructions, never while user code runs.

#![allow(unsafe_code)]

use std::{
    cell::Cell,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Condvar, LazyLock, Mutex, MutexGuard, Once, PoisonError},
    thread,
    time::{Duration, Instant},
};

use crate::{
    report::{
        self,
        data::{Report, ReportKind, ReportOrigin},
        output, panic_message, payload,
        queue::{QueueEntry, ReportQueue},
        releases,
        subscriber::AudienceId,
    },
    sys::lock,
};

/// How long a flush waits at most.
const FLUSH: Duration = Duration::from_millis(200);
/// A subscriber formats and writes on this stack. Only touched pages cost memory.
const STACK: usize = 512 << 10;

static REPORTER: LazyLock<Reporter> = LazyLock::new(Reporter::default);

#[derive(Default)]
struct Reporter {
    state: Mutex<ReporterState>,
    /// Signalled when an entry was queued.
    queued: Condvar,
    /// Signalled when a flush is over.
    flushed: Condvar,
}

#[derive(Default)]
struct ReporterState {
    queue: ReportQueue,
    is_running: bool,
    /// Whether the thread handles an entry that it took.
    is_busy: bool,
    /// How many flushes were requested, and the number of the last one that ended.
    flushes: u64,
    flushed: u64,
    /// How many entries the thread has taken.
    taken: u64,
    /// When it took the last one.
    taken_at: Option<Instant>,
    /// The entry, by its number, that kept the thread for most of the last flush that gave up.
    keeps: Option<u64>,
}

thread_local! {
    static IS_REPORTER: Cell<bool> = const { Cell::new(false) };
    static IS_FORBIDDEN: Cell<bool> = const { Cell::new(false) };
}

/// Starts the thread, and the releasing one, unless they run. If the system refuses one, reports wait for the next
/// attempt.
pub(crate) fn start() {
    releases::start(|payload| report::user_call_panicked(panic_message(payload.as_ref())));
    start_in(&mut lock(&REPORTER.state));
}

fn start_in(state: &mut ReporterState) {
    if state.is_running {
        return;
    }
    let started = thread::Builder::new()
        .name("weald-reports".to_owned())
        .stack_size(STACK)
        .spawn(run);
    state.is_running = started.is_ok();
    if state.is_running {
        flush_at_exit();
    }
}

/// Whether a report of the calling thread, with the limits of `audience`, is within that of its kind and origin. If
/// not, it is counted.
pub(super) fn admits(kind: &ReportKind, origin: &ReportOrigin, audience: AudienceId) -> bool {
    let now = Instant::now();
    let mut state = lock(&REPORTER.state);
    let is_counting = state.queue.next_count().is_some();
    let is_admitted = state.queue.admit((kind, origin, audience), now);
    drop(state);
    if !is_counting {
        // The count may have to be written although no report is queued; see `admits_panic_at`.
        REPORTER.queued.notify_one();
    }
    is_admitted
}

/// Queues a report that was admitted.
pub(super) fn submit(report: Report) {
    let now = Instant::now();
    let mut state = lock(&REPORTER.state);
    start_in(&mut state);
    let refused = state.queue.push_report(report, now);
    drop(state);
    REPORTER.queued.notify_one();
    // Outside the lock.
    if let Some(refused) = refused {
        discard(refused);
    }
}

/// Drops what would have become a report. It may hold the last references to subscribers and to descriptions of jobs,
/// which are the user's.
pub(super) fn discard(unreported: impl Send + 'static) {
    call_for_user(move || drop(unreported));
}

/// The calling thread runs no user code from now on.
pub(crate) fn forbid_user_code() {
    IS_FORBIDDEN.set(true);
}

/// Whether the calling thread must not run user code at present.
#[inline]
pub(crate) fn forbids_user_code() -> bool {
    IS_FORBIDDEN.get()
}

/// Calls `act`, during which the calling thread runs no user code.
pub(crate) fn without_user_code<R>(act: impl FnOnce() -> R) -> R {
    struct Restores(bool);
    impl Drop for Restores {
        fn drop(&mut self) {
            IS_FORBIDDEN.set(self.0);
        }
    }
    let _before = Restores(IS_FORBIDDEN.replace(true));
    act()
}

/// Drops `value`, which is the user's: here, or on the releasing thread if the calling thread must not run user code.
#[inline]
pub(crate) fn drop_for_user(value: impl Send + 'static) {
    match IS_FORBIDDEN.get() {
        true => releases::push(Box::new(value)),
        false => drop(value),
    }
}

/// Calls `call`, which is user code: here, or on the releasing thread if the calling thread must not. A panic ends
/// there. If it ends here, it is reported, but not if a cancel of the running job has ended a wait in the call: then
/// the job's own next wait ends, too.
pub(crate) fn call_for_user(call: impl FnOnce() + Send + 'static) {
    let call = CallAtDrop(Some(call));
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop_for_user(call))) {
        if !payload::delivers_cancel_again(&payload) {
            report::user_call_panicked(panic_message(payload.as_ref()));
        }
        payload::discard(payload);
    }
}

/// Makes its call when it is dropped.
struct CallAtDrop<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Drop for CallAtDrop<F> {
    fn drop(&mut self) {
        if let Some(call) = self.0.take() {
            call();
        }
    }
}

/// How a flush has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flush {
    /// Nothing is left.
    Over,
    /// It has waited for [`FLUSH`].
    GaveUp,
    /// It did not wait, because the thread still has the entry for which another flush has given up.
    Refused,
}

/// Waits until the reports made so far, and the counts of those left out, have reached their subscribers; for
/// [`FLUSH`] at most, and only once for a subscriber that blocks. Any thread; within a subscriber it does nothing.
pub(crate) fn flush() -> Flush {
    let mut state = lock(&REPORTER.state);
    if IS_REPORTER.get() || !state.is_running {
        return Flush::Over;
    }
    state.queue.push_counts();
    if state.queue.is_empty() && !state.is_busy {
        return Flush::Over;
    }
    if state.is_busy && state.keeps == Some(state.taken) {
        return Flush::Refused;
    }
    state.flushes += 1;
    let number = state.flushes;
    state.queue.push(QueueEntry::Flush(number));
    REPORTER.queued.notify_one();
    let give_up = Instant::now() + FLUSH;
    while state.flushed < number {
        let left = give_up.saturating_duration_since(Instant::now());
        if left.is_zero() {
            // The thread may have taken it after this flush began.
            let kept_for = state.taken_at.map(|at| at.elapsed());
            if state.is_busy && kept_for.is_some_and(|time| time >= FLUSH / 2) {
                state.keeps = Some(state.taken);
            }
            return Flush::GaveUp;
        }
        let waited = REPORTER.flushed.wait_timeout(state, left);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    Flush::Over
}

/// The default runtime is never dropped, so a program that uses no other is flushed when it exits.
fn flush_at_exit() {
    extern "C" fn at_exit() {
        // A forked child has no reporting thread, and the lock may have been held at the fork.
        if *PROCESS == rustix::process::getpid() {
            let _end = flush();
        }
    }
    static PROCESS: LazyLock<rustix::process::Pid> = LazyLock::new(rustix::process::getpid);
    LazyLock::force(&PROCESS);
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the function lives as long as the program, and does not unwind. If the system refuses it, the last
        // reports may be missing.
        let _accepted = unsafe { libc::atexit(at_exit) };
    });
}

fn run() {
    IS_REPORTER.set(true);
    loop {
        let entry = next_entry();
        // Caught once more here: the drop of a subscriber is user code too.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| handle(entry))) {
            // The payload's destructor could panic again.
            mem::forget(payload);
        }
    }
}

fn next_entry() -> QueueEntry {
    let mut state = lock(&REPORTER.state);
    state.is_busy = false;
    loop {
        let now = Instant::now();
        if let Some(entry) = state.queue.pop(now) {
            state.is_busy = true;
            state.taken += 1;
            state.taken_at = Some(now);
            return entry;
        }
        let count_in = state
            .queue
            .next_count()
            .map(|at| at.saturating_duration_since(now));
        state = wait(state, count_in);
    }
}

/// Waits for an entry, and not longer than `limit`.
fn wait(
    state: MutexGuard<'_, ReporterState>,
    limit: Option<Duration>,
) -> MutexGuard<'_, ReporterState> {
    match limit {
        Some(limit) => {
            let waited = REPORTER.queued.wait_timeout(state, limit);
            waited.unwrap_or_else(PoisonError::into_inner).0
        }
        None => {
            let waited = REPORTER.queued.wait(state);
            waited.unwrap_or_else(PoisonError::into_inner)
        }
    }
}

fn handle(entry: QueueEntry) {
    match entry {
        QueueEntry::Report(report) => output::report(report),
        QueueEntry::LeftOut(left_out) => output::left_out(left_out),
        QueueEntry::Flush(number) => {
            lock(&REPORTER.state).flushed = number;
            REPORTER.flushed.notify_all();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::{
        panic::Location,
        sync::mpsc,
        thread::{self, ThreadId},
    };

    use super::*;
    use crate::report::{data::Details, make_late};

    /// Both tests hold the reporting thread.
    static ALONE: Mutex<()> = Mutex::new(());

    /// Names the thread that drops it.
    struct Dropped(mpsc::Sender<ThreadId>);

    impl Drop for Dropped {
        fn drop(&mut self) {
            let _gone = self.0.send(thread::current().id());
        }
    }

    #[test]
    fn only_the_first_flush_waits_for_a_subscriber_that_blocks() {
        let _alone = lock(&ALONE);
        let (took, taken) = mpsc::channel::<()>();
        let (release, held) = mpsc::channel::<()>();
        let origin = ReportOrigin::Callback("keeps".to_owned(), Location::caller());
        make_late(ReportKind::PanicHookRuns, origin, move || {
            let _heard = took.send(());
            let _released = held.recv();
            Details::new(None, String::new())
        });
        taken.recv().unwrap();
        // The drop of a runtime in another test may have waited before.
        assert_ne!(flush(), Flush::Over);
        assert_eq!(flush(), Flush::Refused);
        drop(release);
        while flush() == Flush::Refused {
            thread::yield_now();
        }
    }

    /// On a busy machine the thread may take the entry too late for the flush; then it begins again.
    #[test]
    fn a_flush_that_begins_before_the_subscriber_blocks_is_the_only_one_that_waits_for_it() {
        let _alone = lock(&ALONE);
        let is_refused_next = || {
            let releases = ["first", "second"].map(|name| {
                let (release, held) = mpsc::channel::<()>();
                let origin = ReportOrigin::Callback(name.to_owned(), Location::caller());
                make_late(ReportKind::PanicHookRuns, origin, move || {
                    let _released = held.recv();
                    Details::new(None, String::new())
                });
                release
            });
            let [first, second] = releases;
            let before = lock(&REPORTER.state).flushes;
            let flushes = thread::spawn(|| (flush(), flush()));
            while lock(&REPORTER.state).flushes == before {
                thread::yield_now();
            }
            drop(first);
            let ends = flushes.join().unwrap();
            drop(second);
            while flush() != Flush::Over {
                thread::yield_now();
            }
            ends == (Flush::GaveUp, Flush::Refused)
        };
        assert!((0..5).any(|_| is_refused_next()));
    }

    #[test]
    fn a_thread_without_user_code_drops_nothing_of_a_report_that_is_left_out_or_refused() {
        let _alone = lock(&ALONE);
        let (dropped, drops) = mpsc::channel();
        // Of a kind that is never printed, because no subscriber is set here.
        let kind = || ReportKind::PanicHookRuns;
        let report = |origin: String| {
            let value = Dropped(dropped.clone());
            let origin = ReportOrigin::Callback(origin, Location::caller());
            make_late(kind(), origin, move || {
                drop(value);
                Details::new(None, String::new())
            });
        };
        // While the reporting thread is held here, the queue becomes full.
        let (release, held) = mpsc::channel::<()>();
        let origin = ReportOrigin::Callback("holds".to_owned(), Location::caller());
        make_late(kind(), origin, move || {
            let _released = held.recv();
            Details::new(None, String::new())
        });
        without_user_code(|| {
            (0..50).for_each(|_| report("over its limit".to_owned()));
            (0..2_000).for_each(|n| report(format!("{n} of many")));
        });
        drop(release);
        let here = thread::current().id();
        assert!(drops.iter().take(2_050).all(|thread| thread != here));
        // The other tests find the queue empty.
        let _end = flush();
    }
}
