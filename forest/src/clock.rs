//! What time it is, and who is woken when: a trait, so that tests decide and never wait.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant, SystemTime};

/// Where a forest has its time from. See [`Builder::clock`](crate::Builder::clock).
pub trait Clock: Send + Sync + 'static {
    /// The time of the day, which stands in commits. It may go back; the times of commits do not.
    fn now(&self) -> SystemTime;

    /// The time since some fixed moment, which never goes back.
    fn uptime(&self) -> Duration;

    /// Wakes `waker` when [`uptime`](Self::uptime) has come to `deadline`. It is asked for only when
    /// writers wait for someone's turn.
    fn wake_at(&self, deadline: Duration, waker: Waker);
}

/// The clock of the operating system. The first `wake_at` starts a thread, which then stays.
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
            let started = thread.spawn(move || ring(&receiver));
            started.expect("the system lets a program start one more thread");
            Mutex::new(sender)
        });
        let sender = alarms.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = sender.send((deadline, waker));
        sent.expect("the thread ends when this sender goes");
    }
}

/// Wakes who is due, until nobody can ask any more.
fn ring(asked: &mpsc::Receiver<(Duration, Waker)>) {
    let start = *START.get_or_init(Instant::now);
    let mut pending: BTreeMap<(Duration, u64), Waker> = BTreeMap::new();
    for number in 0.. {
        while let Some(next) = pending.first_entry()
            && next.key().0 <= start.elapsed()
        {
            next.remove().wake();
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
