//! The condition variable: which waits a notification reaches, deadlines, and waits that are dropped.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Wake, Waker},
    time::{Duration, Instant},
};

use weald_sync::{Condvar, Mutex, Wait};

use crate::hand::waiting;

#[test]
fn the_mutex_is_free_while_it_waits_and_locked_after() {
    let (mutex, condvar) = (Mutex::new(1), Condvar::new());
    let wait = waiting(condvar.wait(mutex.try_lock().unwrap()));
    *mutex.try_lock().expect("the wait released it") = 2;
    condvar.notify_one();
    let guard = wait.woken();
    assert_eq!(*guard, 2);
    assert!(mutex.is_locked());
}

#[test]
fn one_notification_wakes_the_longest_waiter() {
    let (mutex, condvar) = (Mutex::new(()), Condvar::new());
    let first = waiting(condvar.wait(mutex.try_lock().unwrap()));
    let mut second = waiting(condvar.wait(mutex.try_lock().unwrap()));
    condvar.notify_one();
    drop(first.woken());
    second.still_waits();
    condvar.notify_one();
    drop(second.woken());
}

#[test]
fn a_notification_is_not_remembered() {
    let (mutex, condvar) = (Mutex::new(()), Condvar::new());
    condvar.notify_one();
    condvar.notify_all();
    waiting(condvar.wait(mutex.try_lock().unwrap())).still_waits();
}

#[test]
fn all_waiters_are_notified_and_no_later_one() {
    let (mutex, condvar) = (Mutex::new(()), Condvar::new());
    let waits: Vec<_> = (0..100)
        .map(|_| waiting(condvar.wait(mutex.try_lock().unwrap())))
        .collect();
    condvar.notify_all();
    let mut late = waiting(condvar.wait(mutex.try_lock().unwrap()));
    for wait in waits {
        drop(wait.woken());
    }
    late.still_waits();
}

type Late = Vec<Pin<Box<dyn Future<Output = ()> + Send>>>;

/// A waker that starts one more wait.
struct Another {
    shared: Arc<(Mutex<()>, Condvar)>,
    late: std::sync::Mutex<Late>,
}

impl Wake for Another {
    fn wake(self: Arc<Self>) {
        let shared = Arc::clone(&self.shared);
        let mut late: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async move {
            let guard = shared.0.try_lock().unwrap();
            drop(shared.1.wait(guard).await);
        });
        let mut cx = Context::from_waker(Waker::noop());
        assert!(late.as_mut().poll(&mut cx).is_pending());
        self.late.lock().unwrap().push(late);
    }
}

#[test]
fn a_wait_that_starts_while_all_are_woken_is_not_notified() {
    let another = Arc::new(Another {
        shared: Arc::default(),
        late: std::sync::Mutex::default(),
    });
    let (mutex, condvar) = &*another.shared;
    let waker = Waker::from(Arc::clone(&another));
    let mut cx = Context::from_waker(&waker);
    // More than one batch of wakes.
    let mut waits = Vec::new();
    for _ in 0..100 {
        let mut wait = Box::pin(condvar.wait(mutex.try_lock().unwrap()));
        assert!(wait.as_mut().poll(&mut cx).is_pending());
        waits.push(wait);
    }
    condvar.notify_all();
    assert!(
        waits
            .iter_mut()
            .all(|wait| wait.as_mut().poll(&mut cx).is_ready())
    );
    let mut late = std::mem::take(&mut *another.late.lock().unwrap());
    assert_eq!(late.len(), 100);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(
        late.iter_mut()
            .all(|wait| wait.as_mut().poll(&mut cx).is_pending())
    );
}

#[test]
fn the_notification_of_a_dropped_wait_goes_to_the_next() {
    let (mutex, condvar) = (Mutex::new(()), Condvar::new());
    let first = waiting(condvar.wait(mutex.try_lock().unwrap()));
    let second = waiting(condvar.wait(mutex.try_lock().unwrap()));
    condvar.notify_one();
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    drop(first);
    drop(second.woken());
    assert!(!mutex.is_locked());
}

#[test]
fn a_notification_also_passes_on_from_a_wait_for_the_mutex() {
    let (mutex, condvar) = (Mutex::new(()), Condvar::new());
    let mut first = waiting(condvar.wait(mutex.try_lock().unwrap()));
    let second = waiting(condvar.wait(mutex.try_lock().unwrap()));
    let guard = mutex.try_lock().unwrap();
    condvar.notify_one();
    assert!(first.poll().is_pending(), "the mutex is locked");
    assert_eq!(second.wakes(), 0);
    drop(first);
    drop(guard);
    drop(second.woken());
}

#[test]
fn a_notification_of_all_is_not_passed_on() {
    let (mutex, condvar) = (Mutex::new(()), Condvar::new());
    let first = waiting(condvar.wait(mutex.try_lock().unwrap()));
    condvar.notify_all();
    let mut late = waiting(condvar.wait(mutex.try_lock().unwrap()));
    drop(first);
    late.still_waits();
}

#[test]
fn a_wait_that_is_dropped_is_not_notified() {
    let (mutex, condvar) = (Mutex::new(()), Condvar::new());
    let first = waiting(condvar.wait(mutex.try_lock().unwrap()));
    let second = waiting(condvar.wait(mutex.try_lock().unwrap()));
    drop(first);
    condvar.notify_one();
    drop(second.woken());
    assert!(!mutex.is_locked());
}

#[test]
fn a_deadline_gives_the_mutex_back_and_reports_it() {
    let (mutex, condvar) = (Mutex::new(7), Condvar::new());
    let wait = condvar.wait_timeout(mutex.try_lock().unwrap(), Duration::ZERO);
    let (guard, result) = wait.wait();
    assert_eq!((*guard, result.timed_out()), (7, true));
    let (guard, result) = condvar.wait_until(guard, Instant::now()).wait();
    assert!(mutex.is_locked() && result.timed_out());
    let wait = waiting(condvar.wait_timeout(guard, Duration::from_secs(600)));
    condvar.notify_one();
    let (_guard, result) = wait.woken();
    assert!(mutex.is_locked() && !result.timed_out());
}

#[test]
fn a_deadline_leaves_no_waiter_behind() {
    let (mutex, condvar) = (Mutex::new(()), Condvar::new());
    drop(
        condvar
            .wait_timeout(mutex.try_lock().unwrap(), Duration::from_millis(1))
            .wait(),
    );
    let wait = waiting(condvar.wait(mutex.try_lock().unwrap()));
    condvar.notify_one();
    drop(wait.woken());
}

#[test]
fn the_while_forms_test_again() {
    let (mutex, condvar) = (Mutex::new(0), Condvar::new());
    let mut wait = waiting(condvar.wait_while(mutex.try_lock().unwrap(), |n| *n < 2));
    for (n, is_done) in [(1, false), (2, true)] {
        *mutex.try_lock().unwrap() = n;
        condvar.notify_all();
        assert_eq!(wait.poll().is_ready(), is_done);
    }
    let guard = mutex.try_lock().unwrap();
    let wait = condvar.wait_timeout_while(guard, Duration::from_millis(1), |n| *n < 9);
    assert!(wait.wait().1.timed_out());
    let guard = mutex.try_lock().unwrap();
    let wait = condvar.wait_timeout_while(guard, Duration::ZERO, |n| *n < 1);
    assert!(!wait.wait().1.timed_out());
}

/// Two threads pass a number to and fro: a lost wake-up would hang.
#[test]
fn no_wake_up_is_lost_between_threads() {
    const ROUNDS: u32 = if cfg!(miri) { 20 } else { 5000 };
    let (turn, condvar) = (Mutex::new(0), Condvar::new());
    std::thread::scope(|scope| {
        for me in 0..2 {
            let (turn, condvar) = (&turn, &condvar);
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    let guard = turn.lock().wait();
                    let mut guard = condvar.wait_while(guard, |turn| *turn % 2 != me).wait();
                    *guard += 1;
                    condvar.notify_one();
                }
            });
        }
    });
    assert_eq!(turn.into_inner(), 2 * ROUNDS);
}

/// Deadlines drop some waits while there is one notification for each item.
#[test]
fn dropped_waits_lose_no_notification() {
    const ITEMS: u32 = if cfg!(miri) { 60 } else { 4000 };
    let (items, condvar) = (Mutex::new(0), Condvar::new());
    std::thread::scope(|scope| {
        let takers: Vec<_> = (0..3)
            .map(|thread| {
                let (items, condvar) = (&items, &condvar);
                scope.spawn(move || {
                    let mut taken = 0;
                    while taken < ITEMS / 3 {
                        let guard = items.lock().wait();
                        let limit =
                            Duration::from_micros(if thread == 0 { 600_000_000 } else { 5 });
                        let waited = condvar.wait_timeout_while(guard, limit, |items| *items == 0);
                        let (mut items, result) = waited.wait();
                        if !result.timed_out() {
                            *items -= 1;
                            taken += 1;
                        }
                    }
                })
            })
            .collect();
        for _ in 0..ITEMS {
            *items.lock().wait() += 1;
            condvar.notify_one();
        }
        takers.into_iter().for_each(|taker| taker.join().unwrap());
    });
}

#[test]
fn it_is_small() {
    assert_eq!(size_of::<Condvar>(), 24);
}
