//! The locks of all libraries, their condition variables or what stands in for them, and their barriers.

use std::pin::pin;
use std::sync::Arc;

use event_listener::Event;
use tokio::sync::Notify;

use super::{Lock, Meeting, Turns};

const NO_PANIC: &str = "no holder panics";

/// A mutex, how it is locked, and how its holder gives way.
macro_rules! lock {
    ($name:ident, $mutex:ty, |$lock:ident| $locked:expr, $give_way:expr) => {
        #[derive(Default)]
        pub(crate) struct $name($mutex);

        impl Lock for $name {
            async fn count<const YIELD: bool>(self: Arc<Self>, rounds: usize) -> u64 {
                let $lock = &self.0;
                let mut last = 0;
                for _ in 0..rounds {
                    let mut count = $locked;
                    if YIELD {
                        $give_way;
                    }
                    *count += 1;
                    last = *count;
                }
                last
            }
        }
    };
}

lock!(
    TokioLock,
    tokio::sync::Mutex<u64>,
    |lock| lock.lock().await,
    tokio::task::yield_now().await
);
lock!(
    AsyncLock,
    smol::lock::Mutex<u64>,
    |lock| lock.lock().await,
    smol::future::yield_now().await
);
lock!(
    MayLock,
    may::sync::Mutex<u64>,
    |lock| lock.lock().expect(NO_PANIC),
    may::coroutine::yield_now()
);
lock!(
    StdLock,
    std::sync::Mutex<u64>,
    |lock| lock.lock().expect(NO_PANIC),
    std::thread::yield_now()
);
lock!(
    ParkingLotLock,
    parking_lot::Mutex<u64>,
    |lock| lock.lock(),
    std::thread::yield_now()
);

/// A mutex and a condition variable, how the first is locked, and how the second is waited for.
macro_rules! turns {
    ($name:ident, $mutex:ty, $condvar:ty, |$lock:ident| $locked:expr, |$changed:ident, $turn:ident| $wait:expr) => {
        #[derive(Default)]
        pub(crate) struct $name($mutex, $condvar);

        impl Turns for $name {
            async fn take(&self, me: usize, rounds: usize) {
                let ($lock, $changed) = (&self.0, &self.1);
                let mut $turn = $locked;
                for _ in 0..rounds {
                    while *$turn != me {
                        $wait;
                    }
                    *$turn = 1 - me;
                    $changed.notify_one();
                }
            }
        }
    };
}

turns!(
    StdTurns,
    std::sync::Mutex<usize>,
    std::sync::Condvar,
    |lock| lock.lock().expect(NO_PANIC),
    |changed, turn| turn = changed.wait(turn).expect(NO_PANIC)
);
turns!(
    MayTurns,
    may::sync::Mutex<usize>,
    may::sync::Condvar,
    |lock| lock.lock().expect(NO_PANIC),
    |changed, turn| turn = changed.wait(turn).expect(NO_PANIC)
);
turns!(
    ParkingLotTurns,
    parking_lot::Mutex<usize>,
    parking_lot::Condvar,
    |lock| lock.lock(),
    |changed, turn| changed.wait(&mut turn)
);

/// Tokio has no condition variable; its counterpart here is `Notify`, enabled before the lock is released.
#[derive(Default)]
pub(crate) struct TokioTurns(tokio::sync::Mutex<usize>, Notify);

impl Turns for TokioTurns {
    async fn take(&self, me: usize, rounds: usize) {
        let mut turn = self.0.lock().await;
        for _ in 0..rounds {
            while *turn != me {
                let mut changed = pin!(self.1.notified());
                changed.as_mut().enable();
                drop(turn);
                changed.await;
                turn = self.0.lock().await;
            }
            *turn = 1 - me;
            self.1.notify_one();
        }
    }
}

/// async-lock has none either; its counterpart is an `Event`, listened to before the lock is released.
#[derive(Default)]
pub(crate) struct AsyncTurns(smol::lock::Mutex<usize>, Event);

impl Turns for AsyncTurns {
    async fn take(&self, me: usize, rounds: usize) {
        let mut turn = self.0.lock().await;
        for _ in 0..rounds {
            while *turn != me {
                let changed = self.1.listen();
                drop(turn);
                changed.await;
                turn = self.0.lock().await;
            }
            *turn = 1 - me;
            self.1.notify(1);
        }
    }
}

/// A barrier and how it is waited for.
macro_rules! meeting {
    ($barrier:ty, |$meeting:ident| $wait:expr) => {
        impl Meeting for $barrier {
            fn of(units: usize) -> Self {
                Self::new(units)
            }

            async fn wait(&self) {
                let $meeting = self;
                $wait;
            }
        }
    };
}

meeting!(tokio::sync::Barrier, |meeting| Self::wait(meeting).await);
meeting!(smol::lock::Barrier, |meeting| Self::wait(meeting).await);
meeting!(may::sync::Barrier, |meeting| Self::wait(meeting));
meeting!(std::sync::Barrier, |meeting| Self::wait(meeting));
