//! The foreign wakers that [alarms](super::alarm) have fired. They are user code, which may block, so they run on
//! threads of their own, each of which takes one after the other.
//!
//! The thread of the alarms is the *keeper*: it runs none of them, and starts a thread when each one has been held by
//! one waker for [`HELD`]. A waker that holds its thread for [`REPORTED`] is reported. A thread that finds no waker for
//! a while ends.
//!
//! Invariants:
//! - While the queue is not empty and more threads are allowed, the keeper looks again within [`HELD`].
//! - No waker is called or dropped under the lock.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError},
    task::Waker,
    thread::{self, ThreadId},
    time::{Duration, Instant},
};

use crate::queue::wake;

/// How long a waker may hold its thread before another thread takes those behind it.
const HELD: Duration = Duration::from_millis(5);

/// A waker that holds its thread for this long is reported: twice as long as it delays others.
const REPORTED: Duration = Duration::from_millis(10);

/// The most threads that call wakers. If each of them is held, those behind wait.
const MOST_THREADS: usize = 64;

/// How long a thread waits for the next waker.
const LINGER: Duration = Duration::from_secs(1);

/// A waker that blocks or computes; see [`Hooks::waker_blocks`](super::hooks::Hooks::waker_blocks).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct HeldWaker {
    /// For how long it has held its thread.
    pub held: Duration,
    /// How many more threads may be started for other wakers of this kind. If none, those behind it wait.
    pub threads_left: usize,
}

static ON_HELD: OnceLock<fn(HeldWaker)> = OnceLock::new();

/// Wakers that block are reported to `on_held` from now on, unless they are to another function already.
pub(super) fn tell_of_held(on_held: fn(HeldWaker)) {
    let _first = ON_HELD.set(on_held);
}

/// The wakers, and the threads that call them.
#[derive(Default)]
pub(super) struct ForeignAlarms {
    state: Mutex<Firing>,
    /// Notified when a waker is queued.
    queued: Condvar,
}

#[derive(Default)]
struct Firing {
    queue: VecDeque<Waker>,
    threads: usize,
    /// What the threads call at this moment; the others are about to look at the queue.
    calls: Vec<Call>,
}

/// A waker that a thread calls.
struct Call {
    thread: ThreadId,
    since: Instant,
    is_reported: bool,
}

impl Firing {
    fn is_thread_missing(&self) -> bool {
        let is_held = |call: &Call| call.since.elapsed() >= HELD;
        !self.queue.is_empty()
            && self.threads < MOST_THREADS
            && self.calls.len() == self.threads
            && self.calls.iter().all(is_held)
    }

    /// The calls that are to be reported now.
    fn take_long(&mut self) -> Vec<HeldWaker> {
        let threads_left = MOST_THREADS - self.threads;
        let held = |call: &mut Call| {
            let held = call.since.elapsed();
            if call.is_reported || held < REPORTED {
                return None;
            }
            call.is_reported = true;
            Some(HeldWaker { held, threads_left })
        };
        self.calls.iter_mut().filter_map(held).collect()
    }

    /// When the keeper is to look again, at the latest.
    fn next_look(&self) -> Option<Duration> {
        let is_behind = !self.queue.is_empty() && self.threads < MOST_THREADS;
        let is_watched = self.calls.iter().any(|call| !call.is_reported);
        (is_behind || is_watched).then_some(HELD)
    }
}

impl ForeignAlarms {
    fn state(&self) -> MutexGuard<'_, Firing> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues wakers. Called by the keeper, which [looks](ForeignAlarms::look) afterwards.
    pub(super) fn add(&self, wakers: Vec<Waker>) {
        if wakers.is_empty() {
            return;
        }
        self.state().queue.extend(wakers);
        self.queued.notify_one();
    }

    /// Starts a thread if one is missing, and reports what holds one for long. Returns how soon the keeper must look
    /// again, if it must. Called by the keeper.
    pub(super) fn look(&'static self) -> Option<Duration> {
        let mut state = self.state();
        let long = state.take_long();
        let is_thread_missing = state.is_thread_missing();
        state.threads += usize::from(is_thread_missing);
        drop(state);
        if is_thread_missing {
            self.start_thread();
        }
        if let Some(on_held) = ON_HELD.get() {
            long.into_iter().for_each(on_held);
        }
        self.state().next_look()
    }

    /// Starts a thread, which is counted already. If the system refuses and there is no other, the keeper calls the
    /// wakers itself.
    fn start_thread(&'static self) {
        let thread = thread::Builder::new().name("weald-wakers".to_owned());
        if thread.spawn(|| self.serve()).is_ok() {
            return;
        }
        let mut state = self.state();
        state.threads -= 1;
        if state.threads == 0 {
            let queue = std::mem::take(&mut state.queue);
            drop(state);
            queue.into_iter().for_each(wake::wake);
        }
    }

    /// The life of a thread that calls wakers.
    fn serve(&self) {
        let thread = thread::current().id();
        let mut state = self.state();
        loop {
            let Some(waker) = state.queue.pop_front() else {
                let is_idle = |state: &mut Firing| state.queue.is_empty();
                let waited = self.queued.wait_timeout_while(state, LINGER, is_idle);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                if state.queue.is_empty() {
                    state.threads -= 1;
                    return;
                }
                continue;
            };
            state.calls.push(Call {
                thread,
                since: Instant::now(),
                is_reported: false,
            });
            drop(state);
            wake::wake(waker);
            state = self.state();
            state.calls.retain(|call| call.thread != thread);
        }
    }
}
