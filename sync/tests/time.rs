//! Durations count from the sync, not from the creation of the event. The clock is set by hand.

use std::{
    future::poll_fn,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use weald_sync::{
    Event, Wait, after, always, at, channel, choose, guard,
    hooks::{self, Alarm, Hooks},
    never,
    reason::Reason,
    select,
};

/// A runtime that has only a clock.
struct Clock {
    now: Mutex<Option<Instant>>,
    sleepers: Mutex<Vec<Waker>>,
}

static CLOCK: Clock = Clock {
    now: Mutex::new(None),
    sleepers: Mutex::new(Vec::new()),
};

const SECOND: Duration = Duration::from_secs(1);

impl Clock {
    fn pass(&self, duration: Duration) {
        let now = self.now();
        *self.now.lock().unwrap() = Some(now + duration);
        let sleepers = std::mem::take(&mut *self.sleepers.lock().unwrap());
        sleepers.into_iter().for_each(Waker::wake);
    }
}

impl Hooks for Clock {
    fn wait(&self, poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>) {
        let mut cx = Context::from_waker(Waker::noop());
        while poll(&mut cx).is_pending() {
            self.pass(SECOND);
        }
    }

    fn now(&self) -> Instant {
        *self.now.lock().unwrap().get_or_insert_with(Instant::now)
    }

    fn alarm(&self, deadline: Instant) -> Alarm {
        Box::pin(poll_fn(move |cx| {
            if CLOCK.now() >= deadline {
                return Poll::Ready(());
            }
            CLOCK.sleepers.lock().unwrap().push(cx.waker().clone());
            Poll::Pending
        }))
    }

    fn note(&self, _reason: Reason, _waker: &Waker) {}

    fn give_way(&self, waker: &Waker) {
        waker.wake_by_ref();
    }
}

/// Whole seconds that pass while `act` runs.
fn seconds(act: impl FnOnce()) -> u64 {
    let before = CLOCK.now();
    act();
    (CLOCK.now() - before).as_secs()
}

/// The clock for one test at a time.
fn clock() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    hooks::install(&CLOCK);
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn durations_count_from_the_sync() {
    let _clock = clock();
    let event = after(3 * SECOND);
    CLOCK.pass(10 * SECOND);
    assert_eq!(seconds(|| event.wait()), 3);
    assert_eq!(seconds(|| event.wait()), 3, "at each sync");

    // Also within guards and choices.
    let nested = guard(|| {
        choose((
            after(5 * SECOND).wrap(|()| 5),
            after(2 * SECOND).wrap(|()| 2),
        ))
    });
    CLOCK.pass(10 * SECOND);
    assert_eq!(seconds(|| assert_eq!(nested.wait(), 2)), 2);

    let deadline = CLOCK.now() + 3 * SECOND;
    CLOCK.pass(SECOND);
    assert_eq!(seconds(|| at(deadline).wait()), 2);
    assert_eq!(seconds(|| at(deadline).wait()), 0, "it has passed");

    assert_eq!(seconds(|| after(Duration::ZERO).wait()), 0);

    // What is ready is chosen before time passes.
    let late = || after(SECOND).wrap(|()| 1);
    assert_eq!(
        seconds(|| assert_eq!(choose((late(), always(0))).wait(), 0)),
        0
    );

    let (_sender, receiver) = channel::rendezvous::<()>();
    let passed = seconds(|| {
        select! {
            wait;
            _ = receiver.receive() => unreachable!(),
            () = after(4 * SECOND) => {}
            () = never() => unreachable!(),
        }
    });
    assert_eq!((passed, receiver.waiting()), (4, 0));
}

#[test]
fn sleep_sort() {
    let _clock = clock();
    let mut left = vec![5, 1, 4, 2, 3];
    let begin = CLOCK.now();
    let mut sorted = Vec::new();
    while !left.is_empty() {
        let events = left
            .iter()
            .map(|n| at(begin + *n * SECOND).wrap(move |()| *n));
        let n = choose(events.collect::<Vec<_>>()).wait();
        left.retain(|other| *other != n);
        sorted.push(n);
    }
    assert_eq!(sorted, [1, 2, 3, 4, 5]);
}
