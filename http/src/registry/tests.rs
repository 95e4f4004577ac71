//! Which connection must go, and what is waited for.

#![allow(unsafe_code)]

use std::{
    cell::RefCell,
    future::Future,
    pin::pin,
    sync::{
        Weak,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, RawWaker, RawWakerVTable, Wake},
};

use super::*;
use crate::activity::Busy;

/// A job's waker, which keeps the job's description.
struct OfJob(
    #[allow(dead_code, reason = "only its life counts")] Arc<Activity>,
    AtomicUsize,
);

impl Wake for OfJob {
    fn wake(self: Arc<Self>) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

fn enter(registry: &Arc<Registry>) -> (Arc<Activity>, Arc<OfJob>, Entry, ConnectionPermit) {
    let activity = Activity::new(None, "a service", Arc::default());
    let waker = Arc::new(OfJob(activity.clone(), AtomicUsize::new(0)));
    activity.set_waker(waker.clone().into());
    let (entry, permit) = registry.enter(&activity);
    (activity, waker, entry, permit)
}

#[test]
fn the_end_of_a_connection_lets_its_state_go() {
    let registry = Arc::new(Registry::default());
    let (activity, waker, entry, permit) = enter(&registry);
    let state: Weak<Activity> = Arc::downgrade(&activity);
    drop((activity, waker, entry, permit));
    assert!(state.upgrade().is_none());
}

#[test]
fn one_that_lingers_is_stopped_before_idle_ones_are_closed() {
    let registry = Arc::new(Registry::default());
    let [a, b] = [(); 2].map(|()| enter(&registry));
    b.2.lingers();
    registry.evict();
    assert!(b.0.must_stop() && !a.0.is_draining());
    registry.evict();
    assert!(!a.0.is_draining(), "another one is about to close");
    drop(b);
    registry.evict();
    assert!(a.0.is_draining());
    assert_eq!(registry.lock().lingering, 0);

    let is_empty = || {
        let cx = &mut Context::from_waker(Waker::noop());
        pin!(registry.empty()).poll(cx).is_ready()
    };
    assert!(!is_empty());
    a.2.lingers();
    assert!(is_empty(), "one that lingers is not waited for");
    assert!(registry.stop().is_empty(), "nor reported");
}

#[test]
fn the_one_that_is_idle_longest_is_closed_first_and_one_at_a_time() {
    let registry = Arc::new(Registry::default());
    let [a, b, c] = [(); 3].map(|()| enter(&registry));
    a.2.became_idle();
    // In the order b, c, a; but b has a request.
    b.0.received();
    registry.evict();
    let draining = [&a, &b, &c].map(|(activity, ..)| activity.is_draining());
    assert_eq!(draining, [false, false, true]);
    assert_eq!(c.1.1.load(Ordering::Relaxed), 1, "it is woken");
    registry.evict();
    assert!(!a.0.is_draining(), "another one is about to close");
    drop(c);
    registry.evict();
    assert!(a.0.is_draining());
    assert!(!b.0.is_draining(), "it is busy");
    drop(a);
    registry.evict();
    assert!(!b.0.is_draining());
}

#[test]
fn making_room_takes_a_constant_time_however_many_there_are() {
    const MANY: usize = 20_000;
    let registry = Arc::new(Registry::default());
    let mut all: Vec<_> = (0..MANY).map(|_| Some(enter(&registry))).collect();
    // In another order than that of the keys; and each of some falls idle often.
    for at in (0..MANY).rev() {
        let (activity, _, entry, _) = all[at].as_ref().unwrap();
        for _ in 0..3 {
            activity.set_idle_order(u64::MAX);
            entry.became_idle();
        }
    }
    for at in (0..MANY).rev() {
        registry.evict();
        assert!(all[at].as_ref().unwrap().0.is_draining(), "at {at}");
        // Each arrival looks whether there is room.
        registry.evict();
        all[at] = None;
    }
    let table = registry.lock();
    assert!(table.idle.looked <= 20 * MANY, "{}", table.idle.looked);
    assert!(table.idle.queue.len() <= 1 && table.ordered.is_none());
}

#[test]
fn one_that_often_falls_idle_takes_no_more_memory() {
    let registry = Arc::new(Registry::default());
    let one = enter(&registry);
    for _ in 0..10_000 {
        one.2.became_idle();
    }
    assert!(registry.lock().idle.queue.len() < 100);
}

#[test]
fn one_that_is_idle_for_a_moment_makes_room_if_no_other_does() {
    let registry = Arc::new(Registry::default());
    let (activity, _waker, _entry, _place) = enter(&registry);
    activity.set_idle_order(u64::MAX);
    registry.evict();
    assert!(activity.is_draining());
}

/// What most connections do.
#[test]
fn the_report_of_a_full_server_tells_what_most_connections_do() {
    let registry = Arc::new(Registry::default());
    let all = [(); 4].map(|()| enter(&registry));
    let told = |what: &str| {
        let text = registry.tell_full(4);
        assert!(text.contains(what), "{text}");
    };
    told("4 are idle");
    all[0].0.begin_ending();
    all[1].0.begin_ending();
    assert_eq!(all[0].0.busy(), Some(Busy::Ending));
    all[2].0.received();
    told("2 wait for the destructors of their clones of the service");
    all[0].0.end_ending();
    assert_eq!(all[0].0.busy(), None);
    let upgraded: Vec<_> = (0..3).map(|_| enter(&registry)).collect();
    let _permits: Vec<_> = upgraded.into_iter().map(|(.., permit)| permit).collect();
    told("3 were upgraded");
}

/// They keep no new client waiting.
#[test]
fn the_report_of_a_full_server_is_silent_about_destructors_of_connections_that_have_left() {
    let registry = Arc::new(Registry::default());
    let reading = [(); 2].map(|()| enter(&registry));
    reading.iter().for_each(|one| one.0.received());
    let left = [(); 5].map(|()| {
        let (activity, waker, entry, permit) = enter(&registry);
        permit.leave(&activity);
        assert_eq!(activity.busy(), Some(Busy::Ending));
        (activity, waker, entry)
    });
    let told = |what: &str| {
        let text = registry.tell_full(2);
        assert!(text.contains(what), "{text}");
    };
    told("2 wait for the rest of a request's head");
    let upgraded = [(); 3].map(|()| enter(&registry)).map(|one| one.3);
    told("3 were upgraded");
    drop((left, upgraded));
    assert_eq!(registry.lock().permits, 2);
}

#[test]
fn another_one_is_asked_to_make_room_when_the_one_that_was_asked_drops_its_service() {
    let registry = Arc::new(Registry::default());
    let [a, b] = [(); 2].map(|()| enter(&registry));
    let (_, server, ..) = enter(&Arc::default());
    let waker = Waker::from(server.clone());
    let cx = &mut Context::from_waker(&waker);
    assert!(pin!(registry.room_below(2)).poll(cx).is_pending());
    assert!(a.0.is_draining() && !b.0.is_draining());
    a.2.ends();
    assert_eq!(server.1.load(Ordering::Relaxed), 1, "the server is woken");
    assert!(pin!(registry.room_below(2)).poll(cx).is_pending());
    assert!(b.0.is_draining());
}

thread_local! {
    /// The registry that the waker below looks at.
    static LOOKED_AT: RefCell<Option<Arc<Registry>>> = const { RefCell::new(None) };
}

/// A clone of a waker is user code.
const CLONES: RawWakerVTable = RawWakerVTable::new(
    |data| {
        LOOKED_AT.with_borrow(|registry| {
            let registry = registry.as_ref().unwrap();
            assert!(registry.table.try_lock().is_ok(), "cloned under the lock");
        });
        RawWaker::new(data, &CLONES)
    },
    |_| (),
    |_| (),
    |_| (),
);

#[test]
fn a_waiter_is_cloned_under_no_lock() {
    let registry = Arc::new(Registry::default());
    LOOKED_AT.set(Some(registry.clone()));
    let _one = enter(&registry);
    // SAFETY: the functions of the table use no data.
    let waker = unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &CLONES)) };
    let cx = &mut Context::from_waker(&waker);
    assert!(pin!(registry.room_below(1)).poll(cx).is_pending());
    registry.lock().waiter = None;
}
