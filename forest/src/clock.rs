//! The time, and alarms: a trait, so that tests set the time and never wait for it.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant, SystemTime};

use crate::wake::wake;

/// Where a forest gets the time from. See [`Builder::clock`](crate::Builder::clock).
pub trait Clock: Send + Sync + 'static {
    /// The wall-clock time, which commits record. It may go back; the times of commits do not.
    fn now(&self) -> SystemTime;

    /// The time since some fixed moment. It never goes back.
    fn uptime(&self) -> Duration;

    /// Wakes `waker` when [`uptime`](Self::uptime) has reached `deadline`. It is called only when writers wait
    /// for a write lease.
    fn wake_at(&self, deadline: Duration, waker: Waker);
}

/// The clock of the operating system. The first `wake_at` starts a thread, which lives as long as the clock.
#[derive(Debug, Default)]
pub struct SystemClock {
    alarms: OnceLock<Mutex<Sender<(Duration, Waker)>>>,
}

static START: OnceLock<Instant> = OnceLock::new();

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn uptime(&self) -> Duration {
        START.get_or_init(Instant::now).elapsed()
    }

    fn wake_at(&self, deadline: Duration, waker: Waker) {
        let alarms = self.alarms.get_or_init(|| {
            let (sender, receiver) = mpsc::channel();
            let thread = std::thread::Builder::new().name("weald-forest-clock".to_owned());
            let started = thread.spawn(move || run_alarms(&receiver));
            started.expect("the system lets a program start one more thread");
            Mutex::new(sender)
        });
        let sender = alarms.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = sender.send((deadline, waker));
        sent.expect("the thread ends when this sender goes");
    }
}

/// Wakes the wakers that are due, until the clock is gone.
fn run_alarms(asked: &mpsc::Receiver<(Duration, Waker)>) {
    let start = *START.get_or_init(Instant::now);
    let mut pending: BTreeMap<(Duration, u64), Waker> = BTreeMap::new();
    for number in 0.. {
        while let Some(next) = pending.first_entry()
            && next.key().0 <= start.elapsed()
        {
            wake(Some(next.remove()));
        }
        let next = pending.first_key_value().map(|((at, _), _)| *at);
        let asked = match next {
            None => asked.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(at) => asked.recv_timeout(at.saturating_sub(start.elapsed())),
        };
        match asked {
            Ok((deadline, waker)) => _ = pending.insert((deadline, number), waker),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
