//! The laws of Concurrent ML's combinators.

use std::{cell::RefCell, panic::AssertUnwindSafe, task::Poll, thread, time::Duration};

use weald_sync::{
    Event, Mutex, Wait, after, always,
    channel::{self, Receiver},
    choose, guard, never, one_of,
};

use crate::hand::{hand, is_ready};

/// A channel, with a value in it if `is_ready`.
fn source(is_ready: bool, value: u32) -> Receiver<u32> {
    let (sender, receiver) = channel::unbounded();
    if is_ready {
        sender.try_send(value).unwrap();
    }
    // The channel stays open.
    std::mem::forget(sender);
    receiver
}

fn of(receiver: &Receiver<u32>) -> impl Event<Output = u32, Branch: Send> + Send {
    receiver.receive().wrap(|received| received.unwrap())
}

#[test]
fn a_choice_of_none_is_never() {
    let mut none = hand(choose(Vec::<weald_sync::Always<u32>>::new()));
    let mut no_array = hand(choose::<[weald_sync::Always<u32>; 0]>([]));
    let mut never = hand(never::<u32>());
    for _ in 0..3 {
        assert!(none.is_pending() && no_array.is_pending() && never.is_pending());
    }
    assert_eq!((none.wakes(), no_array.wakes(), never.wakes()), (0, 0, 0));
}

#[test]
fn never_is_the_unit_of_choice() {
    for _ in 0..100 {
        assert_eq!(choose((always(1), weald_sync::never())).wait(), 1);
        assert_eq!(choose((weald_sync::never(), always(1))).wait(), 1);
    }
    assert!(!is_ready(choose((never::<u32>(), never()))));
}

#[test]
fn always_is_ready_at_every_sync() {
    let event = always(5);
    assert!((0..100).all(|_| event.wait() == 5));
}

#[test]
fn choice_is_commutative() {
    for states in 0..4 {
        let bit = |n: u32| source(states & (1 << n) != 0, n);
        let forth = is_ready(choose((of(&bit(0)), of(&bit(1)))));
        let back = is_ready(choose((of(&bit(1)), of(&bit(0)))));
        assert_eq!((forth, back), (states != 0, states != 0));
    }
}

#[test]
fn choice_is_associative() {
    for states in 0..8_u32 {
        // The choice is random: many syncs show every possible one.
        let mut seen = [0; 3];
        for _ in 0..200 {
            let [a, b, c] = [0, 1, 2].map(|n| source(states & (1 << n) != 0, n));
            let flat = choose((of(&a), of(&b), of(&c))).try_sync();
            let [a, b, c] = [0, 1, 2].map(|n| source(states & (1 << n) != 0, n));
            let left = choose((choose((of(&a), of(&b))), of(&c))).try_sync();
            let [a, b, c] = [0, 1, 2].map(|n| source(states & (1 << n) != 0, n));
            let right = choose((of(&a), choose(vec![of(&b).boxed(), of(&c).boxed()]))).try_sync();
            for (seen, chosen) in seen.iter_mut().zip([flat, left, right]) {
                *seen |= chosen.map_or(0, |n| 1 << n);
            }
        }
        assert_eq!(seen, [states; 3]);
    }
}

#[test]
fn wraps_compose() {
    let f = |n: u32| n + 1;
    let g = |n: u32| n * 10;
    assert_eq!(
        always(1).wrap(f).wrap(g).wait(),
        always(1).wrap(|n| g(f(n))).wait()
    );
    assert_eq!(always(1).wrap(|n| n).wait(), always(1).wait());
}

#[test]
fn wrapping_a_choice_is_choosing_among_wraps() {
    let (a, b) = (source(false, 0), source(true, 7));
    assert_eq!(choose((of(&a), of(&b))).wrap(|n| n + 1).wait(), 8);
    let b = source(true, 7);
    let each = choose((of(&a).wrap(|n| n + 1), of(&b).wrap(|n| n + 1)));
    assert_eq!(each.wait(), 8);
}

#[test]
fn the_function_of_a_wrap_runs_after_the_choice_in_the_unit_that_syncs() {
    let (sender, receiver) = channel::rendezvous();
    let (_other, from_other) = channel::rendezvous::<u32>();
    let ran = RefCell::new(None);
    let mut wait = hand(choose((
        receiver.receive().wrap(|received| {
            *ran.borrow_mut() = Some((thread::current().id(), from_other.waiting()));
            received.unwrap()
        }),
        of(&from_other),
    )));
    assert!(wait.is_pending());
    assert_eq!((receiver.waiting(), from_other.waiting()), (1, 1));
    let partner = thread::spawn(move || sender.send(3).wait());
    assert_eq!(partner.join().unwrap(), Ok(()));
    assert_eq!(*ran.borrow(), None, "the partner does not run it");
    assert_eq!(wait.ready(), 3);
    assert_eq!(*ran.borrow(), Some((thread::current().id(), 0)));
}

#[test]
fn a_panic_after_the_choice_leaves_nothing_behind() {
    let mutex = Mutex::new(0);
    let (_sender, receiver) = channel::rendezvous::<u32>();
    let panicking = |is_locked: bool| {
        let first = is_locked.then(|| mutex.lock().wait());
        let mut wait = hand(choose((
            mutex.lock().wrap(|_guard| panic!("after the choice")),
            of(&receiver),
        )));
        if is_locked {
            assert!(wait.is_pending());
        }
        drop(first);
        std::panic::catch_unwind(AssertUnwindSafe(|| wait.poll())).map(|_| ())
    };
    for is_locked in [false, true] {
        panicking(is_locked).unwrap_err();
        assert!(!mutex.is_locked(), "the guard was dropped once");
        assert_eq!(receiver.waiting(), 0);
        drop(mutex.try_lock().unwrap());
    }
}

#[test]
fn guards_run_at_each_sync_from_left_to_right_even_if_another_is_ready() {
    let log = RefCell::new(Vec::new());
    let logged = |n| {
        let log = &log;
        guard(move || {
            log.borrow_mut().push(n);
            always(n)
        })
    };
    let event = guard(|| {
        choose((
            always(0),
            logged(1),
            choose((logged(2), logged(3))),
            logged(4),
        ))
    });
    assert_eq!(*log.borrow(), [], "creating the event runs no guard");
    for round in 1..=20 {
        event.wait();
        assert_eq!(*log.borrow(), [1, 2, 3, 4].repeat(round));
    }
    log.borrow_mut().clear();
    choose(vec![logged(1), logged(2), logged(3)]).wait();
    choose([logged(4), logged(5)]).wait();
    assert_eq!(*log.borrow(), [1, 2, 3, 4, 5]);
    let log = Mutex::new(Vec::new());
    let logged = |n| {
        let log = &log;
        guard(move || {
            log.lock().wait().push(n);
            always(n)
        })
    };
    choose([logged(1).boxed(), logged(2).boxed()]).wait();
    assert_eq!(*log.lock().wait(), [1, 2]);
}

#[test]
fn a_sync_chooses_exactly_one() {
    const SYNCS: u32 = if cfg!(miri) { 30 } else { 1000 };
    let (a, b) = (channel::unbounded(), channel::unbounded());
    for n in 0..SYNCS {
        a.0.try_send(n).unwrap();
        b.0.try_send(n).unwrap();
        choose((of(&a.1), of(&b.1))).wait();
        assert_eq!(a.1.len() + b.1.len(), n as usize + 1);
    }
}

#[test]
fn a_partner_ends_a_choice_once() {
    let (a, b) = (channel::rendezvous(), channel::rendezvous());
    let mut wait = hand(choose((of(&a.1), of(&b.1))));
    assert!(wait.is_pending());
    assert_eq!(b.0.try_send(2), Ok(()));
    assert_eq!(a.0.try_send(1), Err(channel::TrySendError::Full(1)));
    assert_eq!(b.0.try_send(3), Err(channel::TrySendError::Full(3)));
    assert_eq!(wait.wakes(), 1);
    assert_eq!(wait.poll(), Poll::Ready(2));
}

#[test]
fn a_poll_is_a_sync_that_never_waits() {
    let (a, b) = (source(false, 0), source(true, 4));
    assert_eq!(choose((of(&a), of(&b))).try_sync(), Some(4));
    assert_eq!(choose((of(&a), of(&b))).try_sync(), None);
    assert_eq!((a.waiting(), b.waiting()), (0, 0));
    // Two polls do not meet; a poll and a wait do.
    let (sender, receiver) = channel::rendezvous();
    assert_eq!(sender.send(1).try_sync(), None);
    assert_eq!(receiver.receive().try_sync(), None);
    let mut send = hand(sender.send(2));
    assert!(send.is_pending());
    assert_eq!(receiver.receive().try_sync(), Some(Ok(2)));
    assert_eq!(send.ready(), Ok(()));
}

#[test]
fn a_duration_of_zero_is_ready_at_once() {
    assert!(is_ready(after(Duration::ZERO)));
    assert_eq!(after(Duration::ZERO).try_sync(), Some(()));
    assert!(!is_ready(after(Duration::MAX)), "never");
}

#[test]
fn choices_may_be_of_twelve_kinds_and_of_lists() {
    let a = [false, false].map(|r| source(r, 0));
    let last = source(true, 9);
    let twelve = choose((
        never(),
        never(),
        never(),
        never(),
        never(),
        never(),
        of(&a[0]),
        of(&a[1]),
        choose([never(), never()]),
        choose(Vec::<weald_sync::Never<u32>>::new()),
        guard(never),
        of(&last),
    ));
    assert_eq!(twelve.wait(), 9);
    let chosen = one_of((of(&a[0]), always("text"))).wait();
    assert_eq!(
        chosen,
        weald_sync::Either::Rest(weald_sync::Either::First("text"))
    );
}

#[test]
fn offers_of_nested_lists_are_numbered_right() {
    // Each channel in turn is the one that a partner chooses.
    let channels: Vec<_> = (0..9).map(|_| channel::rendezvous::<usize>()).collect();
    let event = |n: usize| {
        let receiver = &channels[n].1;
        receiver
            .receive()
            .wrap(move |received| (n, received.unwrap()))
    };
    for n in 0..9 {
        let mut wait = hand(choose((
            event(0),
            choose(vec![
                choose([event(1).boxed(), weald_sync::never().boxed()]),
                choose([event(2).boxed(), event(3).boxed()]),
            ]),
            choose((choose((event(4), event(5))), event(6))),
            choose([event(7), event(8)]),
        )));
        assert!(wait.is_pending());
        assert!(channels.iter().all(|(_, receiver)| receiver.waiting() == 1));
        channels[n].0.try_send(n * 10).unwrap();
        assert_eq!(wait.ready(), (n, n * 10));
        assert!(channels.iter().all(|(_, receiver)| receiver.waiting() == 0));
    }
}
