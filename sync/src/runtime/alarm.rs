//! Deadlines for programs without a runtime: one thread, started at the first use, that serves them all.
//!
//! It wakes those that wait with a parker, and the jobs of a runtime. All other wakers are user code, which
//! [other threads](super::foreign_alarms) call, so that one that blocks delays no wait.

use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    sync::{
        Condvar, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    thread,
    time::Instant,
};

use super::{foreign_alarms::ForeignAlarms, parker::Parker};
use crate::queue::wake;

/// The alarms that are set, by deadline and number.
#[derive(Default)]
struct Clock {
    alarms: Mutex<BTreeMap<(Instant, u64), Waker>>,
    /// Notified when an alarm becomes the first.
    earlier: Condvar,
    foreign: ForeignAlarms,
}

/// A future that is ready at its deadline.
pub(crate) struct ThreadAlarm {
    deadline: Instant,
    /// Its number, assigned by the first poll.
    number: Option<u64>,
}

impl Clock {
    fn alarms(&self) -> MutexGuard<'_, BTreeMap<(Instant, u64), Waker>> {
        self.alarms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The loop of the thread.
    fn serve(&'static self) {
        loop {
            let look_in = self.foreign.look();
            let mut alarms = self.alarms();
            let now = Instant::now();
            let later = alarms.split_off(&(now, u64::MAX));
            let due = std::mem::replace(&mut *alarms, later);
            if !due.is_empty() {
                drop(alarms);
                self.fire(due.into_values());
                continue;
            }
            let next = alarms.first_key_value();
            let left = next.map(|((deadline, _), _)| deadline.saturating_duration_since(now));
            match left.into_iter().chain(look_in).min() {
                None => drop(self.earlier.wait(alarms)),
                Some(left) => drop(self.earlier.wait_timeout(alarms, left)),
            }
        }
    }

    /// Wakes those whose wake runs no user code, and leaves the others to other threads. Outside the lock.
    fn fire(&self, due: impl Iterator<Item = Waker>) {
        let (parkers, others): (Vec<_>, Vec<_>) = due.partition(Parker::is_waker);
        parkers.into_iter().for_each(Waker::wake);
        let mut foreign = Vec::new();
        wake::wake_known(others, &mut foreign);
        self.foreign.add(foreign);
    }
}

/// The clock, with its thread running.
fn clock() -> &'static Clock {
    static CLOCK: OnceLock<Clock> = OnceLock::new();
    static THREAD: OnceLock<()> = OnceLock::new();
    let clock = CLOCK.get_or_init(Clock::default);
    THREAD.get_or_init(|| {
        let started = thread::Builder::new()
            .name("weald-alarms".to_owned())
            .spawn(|| clock.serve());
        started.expect("the system must let the program start one thread for its deadlines");
    });
    clock
}

impl ThreadAlarm {
    pub(crate) fn new(deadline: Instant) -> ThreadAlarm {
        ThreadAlarm {
            deadline,
            number: None,
        }
    }
}

impl Future for ThreadAlarm {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        if Instant::now() >= self.deadline {
            return Poll::Ready(());
        }
        let number = *self
            .number
            .get_or_insert_with(|| NEXT.fetch_add(1, Ordering::Relaxed));
        let key = (self.deadline, number);
        let clock = clock();
        // User code: before the lock.
        let waker = cx.waker().clone();
        let mut alarms = clock.alarms();
        let former = alarms.insert(key, waker);
        let is_first = alarms
            .first_key_value()
            .is_some_and(|(first, _)| *first == key);
        drop(alarms);
        drop(former);
        if is_first {
            clock.earlier.notify_one();
        }
        Poll::Pending
    }
}

impl Drop for ThreadAlarm {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let former = clock().alarms().remove(&(self.deadline, number));
            drop(former);
        }
    }
}
