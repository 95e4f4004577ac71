//! A check of the pool counts the threads that are on their way, and closures are taken back one by one.

use std::{panic::Location, thread};

use super::*;
use crate::scheduler::threads::{blocking_call::Caller, blocking_pool::check::THREAD_IS_LATE};

fn pool(counted: usize, held: usize) -> BlockingPool {
    BlockingPool::new(Bounds { counted, held })
}

fn push(pool: &BlockingPool) -> Queued {
    let caller = Caller::Future {
        site: Location::caller(),
        type_name: "a test",
    };
    pool.push(
        Box::new(|| ()),
        BlockingCall::new(0, |_, waker| waker.wake(), caller),
    )
}

/// Each takes a short time, however many wait: time quadratic in their number would be minutes.
#[test]
fn many_closures_are_taken_back_one_by_one() {
    let (done, is_done) = std::sync::mpsc::channel();
    let test = thread::spawn(move || {
        let pool = pool(0, 0);
        let site = Location::caller();
        let new = |_| {
            let type_name = "a test";
            let caller = Caller::Future { site, type_name };
            BlockingCall::new(0, |_, waker| waker.wake(), caller)
        };
        let calls: Vec<_> = (0..200_000).map(new).collect();
        for call in &calls {
            assert_eq!(pool.push(Box::new(|| ()), call.clone()), Queued::MustWait);
        }
        for call in calls.iter().rev() {
            pool.retract(call);
            pool.retract(call);
        }
        assert_eq!(pool.calls(), (0, 0));
        done.send(()).unwrap();
    });
    is_done.recv_timeout(Duration::from_secs(100)).unwrap();
    test.join().unwrap();
}

/// The queue has waited this long for a thread that the system does not run.
#[allow(clippy::disallowed_methods, reason = "the clock is tested")]
fn let_wait(pool: &BlockingPool, time: Duration) {
    let mut inner = lock(&pool.inner);
    inner.moved = inner.moved.map(|moved| moved.checked_sub(time).unwrap());
    drop(inner);
    thread::sleep(time);
}

#[test]
fn a_check_starts_no_threads_beside_those_on_their_way() {
    for held in [0, 64] {
        let pool = pool(64, held);
        assert_eq!(push(&pool), Queued::NeedsThread(1));
        assert_eq!(push(&pool), Queued::NeedsThread(2));
        assert_eq!(pool.check().starts, [0; 0]);
        // One could not start.
        pool.not_started();
        assert_eq!(pool.check().starts, [3]);
        assert_eq!(pool.threads(), 2);
    }
}

#[test]
fn a_lack_of_threads_is_looked_for_again_once_the_queue_was_empty() {
    let new = || {
        let caller = Caller::Future {
            site: Location::caller(),
            type_name: "a test",
        };
        BlockingCall::new(0, |_, waker| waker.wake(), caller)
    };
    // Taken back by their callers, or refused.
    for is_refused in [false, true] {
        let pool = pool(0, 0);
        let call = new();
        assert_eq!(pool.push(Box::new(|| ()), call.clone()), Queued::MustWait);
        lock(&pool.inner).is_reported = true;
        assert!(!pool.must_check());
        match is_refused {
            true => pool.refuse_queued(CallEnd::NeverRan, |_| true),
            false => pool.retract(&call),
        }
        assert_eq!(pool.push(Box::new(|| ()), new()), Queued::MustWait);
        assert!(pool.must_check());
    }
}

#[test]
fn an_operation_for_which_a_thread_is_on_its_way_gets_it_however_late() {
    let pool = pool(1, 1);
    assert_eq!(push(&pool), Queued::NeedsThread(1));
    let_wait(&pool, THREAD_IS_LATE);
    pool.check();
    assert_eq!(pool.calls(), (0, 1));
}
