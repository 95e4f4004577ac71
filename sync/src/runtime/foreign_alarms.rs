//! The foreign wakers that [alarms](super::alarm) have fired. They are user code, which may block, so they run on
//! threads of their own, each of which takes one after the other.
//!
//! The thread of the alarms is the *keeper*: it runs none of them. When each call has been held by its waker for
//! [`HELD`], it wakes an idle thread for those behind, or starts one. A waker that holds its thread for [`REPORTED`] is
//! reported. A thread that finds no waker for a while ends.
//!
//! Invariants:
//! - While a waker is queued, or a call is not reported, the keeper looks again within [`HELD`]. So a waker that a
//!   thread takes from the queue is watched, even if no further thread may be started.
//! - While a waker is queued and no call is made, a thread, if there is one, is about to look at the queue: the one
//!   that `add` has notified, one that has ended a call, or one that starts.
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
///
/// A unit test that needed it would not end.
const LINGER: Duration = Duration::from_secs(if cfg!(test) { 3600 } else { 1 });

/// A waker that blocks or computes; see [`Hooks::waker_blocks`](super::hooks::Hooks::waker_blocks).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct HeldWaker {
    /// For how long it has held its thread.
    pub held: Duration,
    /// How many more threads may call other wakers of this kind: those that are idle, and those that may be started. If
    /// none, the wakers behind this one wait.
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
    /// What the threads call at this moment; the others are idle, or about to look at the queue.
    calls: Vec<Call>,
}

/// A waker that a thread calls.
struct Call {
    thread: ThreadId,
    since: Instant,
    is_reported: bool,
}

/// What the wakers in the queue need that no thread does unasked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    Nothing,
    /// An idle thread is to be notified.
    IdleThread,
    /// One more thread is to be started.
    NewThread,
}

impl Firing {
    fn need(&self, now: Instant) -> Need {
        let is_held = |call: &Call| now.saturating_duration_since(call.since) >= HELD;
        if self.queue.is_empty() || !self.calls.iter().all(is_held) {
            return Need::Nothing;
        }
        let idle = self.threads - self.calls.len();
        if idle > 0 {
            // Without a call, a thread looks at the queue unasked.
            return match self.calls.is_empty() {
                true => Need::Nothing,
                false => Need::IdleThread,
            };
        }
        match self.threads < MOST_THREADS {
            true => Need::NewThread,
            false => Need::Nothing,
        }
    }

    /// The calls that are to be reported now.
    fn take_long(&mut self, now: Instant) -> Vec<HeldWaker> {
        let threads_left = MOST_THREADS - self.calls.len();
        let held = |call: &mut Call| {
            let held = now.saturating_duration_since(call.since);
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
        let is_unreported = |call: &Call| !call.is_reported;
        let is_watched = !self.queue.is_empty() || self.calls.iter().any(is_unreported);
        is_watched.then_some(HELD)
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

    /// Finds a thread for wakers behind those that block, and reports what holds one for long. Returns how soon the
    /// keeper must look again, if it must. Called by the keeper.
    pub(super) fn look(&'static self) -> Option<Duration> {
        let now = Instant::now();
        let mut state = self.state();
        let long = state.take_long(now);
        let need = state.need(now);
        state.threads += usize::from(need == Need::NewThread);
        drop(state);
        match need {
            Need::Nothing => {}
            Need::IdleThread => self.queued.notify_one(),
            Need::NewThread => self.start_thread(),
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

#[cfg(all(test, not(loom)))]
mod tests {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
            mpsc::{self, Receiver, Sender},
        },
        task::Wake,
    };

    use super::*;

    /// Counts that it is called, and blocks until its latch is dropped.
    struct Blocks {
        begun: Arc<AtomicUsize>,
        latch: Mutex<Receiver<()>>,
    }

    impl Wake for Blocks {
        fn wake(self: Arc<Blocks>) {
            self.begun.fetch_add(1, Ordering::SeqCst);
            let latch = self.latch.lock().unwrap_or_else(PoisonError::into_inner);
            _ = latch.recv();
        }
    }

    /// The wakers of a program, and how many of them were called.
    struct Scene {
        alarms: &'static ForeignAlarms,
        begun: Arc<AtomicUsize>,
    }

    impl Scene {
        fn new() -> Scene {
            Scene {
                alarms: Box::leak(Box::<ForeignAlarms>::default()),
                begun: Arc::default(),
            }
        }

        /// Adds wakers that block at once. Returns their latches.
        fn add(&self, count: usize) -> Vec<Sender<()>> {
            let (latches, wakers): (Vec<_>, Vec<_>) = (0..count)
                .map(|_| {
                    let (opens, latch) = mpsc::channel();
                    let blocks = Blocks {
                        begun: self.begun.clone(),
                        latch: Mutex::new(latch),
                    };
                    (opens, Waker::from(Arc::new(blocks)))
                })
                .unzip();
            self.alarms.add(wakers);
            latches
        }

        /// Does what the keeper does, until `is_done`.
        fn keep_until(&self, is_done: impl Fn(&Firing) -> bool) {
            for _ in 0..12_000 {
                let look_in = self.alarms.look();
                if is_done(&self.alarms.state()) {
                    return;
                }
                thread::park_timeout(look_in.unwrap_or(HELD));
            }
            panic!("a waker waits although a thread may call it, or is not reported");
        }

        fn begun(&self) -> usize {
            self.begun.load(Ordering::SeqCst)
        }
    }

    #[test]
    fn an_idle_thread_calls_the_waker_behind_one_that_blocks() {
        let scene = Scene::new();
        let latches = scene.add(3);
        scene.keep_until(|_| scene.begun() == 3);
        drop(latches);
        scene.keep_until(|state| state.calls.is_empty());
        let _latches = scene.add(2);
        scene.keep_until(|_| scene.begun() == 5);
        assert_eq!(scene.alarms.state().threads, 3, "two were idle");
    }

    #[test]
    fn a_waker_that_blocks_after_all_threads_were_held_is_watched_and_reported() {
        let is_full = |state: &Firing| {
            state.calls.len() == MOST_THREADS && state.calls.iter().all(|call| call.is_reported)
        };
        let scene = Scene::new();
        let mut latches = scene.add(MOST_THREADS + 1);
        scene.keep_until(is_full);
        let look_in = scene.alarms.look();
        assert_eq!(
            look_in,
            Some(HELD),
            "a thread that gets free takes the last one"
        );
        drop(latches.remove(0));
        scene.keep_until(|state| scene.begun() == MOST_THREADS + 1 && is_full(state));
        assert_eq!(scene.alarms.look(), None);
    }

    #[test]
    fn a_report_counts_idle_threads_as_those_that_may_call_others() {
        let scene = Scene::new();
        let latches = scene.add(MOST_THREADS);
        scene.keep_until(|_| scene.begun() == MOST_THREADS);
        drop(latches);
        scene.keep_until(|state| state.calls.is_empty());
        let _latches = scene.add(1);
        scene.keep_until(|_| scene.begun() == MOST_THREADS + 1);
        let mut state = scene.alarms.state();
        state
            .calls
            .iter_mut()
            .for_each(|call| call.is_reported = false);
        let long = state.take_long(Instant::now() + REPORTED);
        assert_eq!(long.len(), 1);
        assert_eq!(long[0].threads_left, MOST_THREADS - 1);
    }
}
