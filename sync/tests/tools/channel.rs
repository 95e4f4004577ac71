//! Channels: order, bounds, closing, and waits that are dropped.

use std::{
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::future::{join, join_all};
use weald_sync::{
    Wait,
    backlog::{self, LongChannel},
    channel::{self, Closed, SendError, TryReceiveError, TrySendError},
};

use crate::hand::{hand, waiting};

#[test]
fn a_bounded_channel_keeps_its_bound_and_its_order() {
    let (sender, receiver) = channel::bounded(2);
    sender.try_send(0).unwrap();
    hand(sender.send(1)).now().unwrap();
    assert_eq!(sender.try_send(9), Err(TrySendError::Full(9)));
    let sends: Vec<_> = (2..5).map(|n| waiting(sender.send(n))).collect();
    assert_eq!(receiver.len(), 2);
    let received: Vec<_> = (0..5).map(|_| receiver.try_receive().unwrap()).collect();
    assert_eq!(received, [0, 1, 2, 3, 4]);
    sends.into_iter().for_each(|send| send.woken().unwrap());
    assert_eq!(receiver.try_receive(), Err(TryReceiveError::Empty));
}

#[test]
fn receivers_are_served_in_the_order_of_their_arrival() {
    for (sender, receiver) in [
        channel::bounded(3),
        channel::unbounded(),
        channel::rendezvous(),
    ] {
        let receives: Vec<_> = (0..3).map(|_| waiting(receiver.receive())).collect();
        (0..3).for_each(|n| sender.try_send(n).unwrap());
        let received: Vec<_> = receives.into_iter().map(|r| r.woken().unwrap()).collect();
        assert_eq!(received, [0, 1, 2]);
    }
}

#[test]
fn a_send_to_an_unbounded_channel_never_waits() {
    let (sender, receiver) = channel::unbounded();
    (0..1000).for_each(|n| hand(sender.send(n)).now().unwrap());
    assert!((0..1000).eq(std::iter::from_fn(|| receiver.try_receive().ok())));
}

#[test]
fn a_rendezvous_takes_two() {
    let (sender, receiver) = channel::rendezvous();
    assert_eq!(sender.try_send(9), Err(TrySendError::Full(9)));
    let send = waiting(sender.send(1));
    assert_eq!(hand(receiver.receive()).now(), Ok(1));
    send.woken().unwrap();
    let receive = waiting(receiver.receive());
    hand(sender.send(2)).now().unwrap();
    assert_eq!(receive.woken(), Ok(2));
    assert!(receiver.is_empty());
}

#[test]
fn closing_ends_all_waits_and_keeps_what_was_sent() {
    let (sender, receiver) = channel::bounded(1);
    sender.try_send(0).unwrap();
    let sends: Vec<_> = (0..50).map(|n| waiting(sender.send(n))).collect();
    receiver.close();
    for (n, send) in sends.into_iter().enumerate() {
        assert_eq!(send.woken(), Err(SendError(n)));
    }
    assert!(sender.is_closed());
    assert_eq!(sender.try_send(1), Err(TrySendError::Closed(1)));
    assert_eq!(hand(receiver.receive()).now(), Ok(0));
    assert_eq!(hand(receiver.receive()).now(), Err(Closed));
    assert!(Closed.to_string().contains("closed and empty"));
}

#[test]
fn the_last_handle_of_a_side_closes() {
    let (sender, receiver) = channel::unbounded();
    let receives: Vec<_> = (0..3).map(|_| waiting(receiver.receive())).collect();
    drop((sender.clone(), sender.clone()));
    sender.try_send(1).unwrap();
    drop(sender);
    let received: Vec<_> = receives.into_iter().map(|r| r.woken()).collect();
    assert_eq!(received, [Ok(1), Err(Closed), Err(Closed)]);

    let (sender, receiver) = channel::bounded(1);
    let value = Arc::new(());
    sender.try_send(Arc::clone(&value)).unwrap();
    let send = waiting(sender.send(Arc::clone(&value)));
    drop(receiver);
    drop(send.woken().unwrap_err());
    assert_eq!(Arc::strong_count(&value), 1, "nobody can receive it");
}

#[test]
fn a_wait_that_is_dropped_leaves_nothing_behind() {
    let (sender, receiver) = channel::bounded(1);
    drop(waiting(receiver.receive()));
    sender.try_send(1).unwrap();
    let (second, third) = (waiting(sender.send(2)), waiting(sender.send(3)));
    drop(second);
    assert_eq!(receiver.try_receive(), Ok(1));
    third.woken().unwrap();
    assert_eq!(receiver.try_receive(), Ok(3));
    assert_eq!(receiver.try_receive(), Err(TryReceiveError::Empty));
}

#[test]
fn the_value_of_a_dropped_wait_goes_to_the_next_or_back() {
    for (sender, receiver) in [
        channel::bounded(1),
        channel::unbounded(),
        channel::rendezvous(),
    ] {
        let (first, second) = (waiting(receiver.receive()), waiting(receiver.receive()));
        sender.try_send(1).unwrap();
        assert_eq!((first.wakes(), second.wakes()), (1, 0));
        drop(first);
        assert_eq!(second.woken(), Ok(1));
        let only = waiting(receiver.receive());
        sender.try_send(2).unwrap();
        drop(only);
        assert_eq!(receiver.try_receive(), Ok(2));
    }
}

#[test]
fn dropping_a_send_after_its_value_was_received_makes_no_difference() {
    let (sender, receiver) = channel::rendezvous();
    let send = waiting(sender.send(1));
    assert_eq!(receiver.try_receive(), Ok(1));
    drop(send);
    assert_eq!(receiver.try_receive(), Err(TryReceiveError::Empty));
}

#[test]
fn a_deadline_leaves_no_waiter_behind() {
    let (sender, receiver) = channel::bounded(1);
    assert!(receiver.receive_within(Duration::ZERO).wait().is_err());
    assert!(
        receiver
            .receive_within(Duration::from_millis(1))
            .wait()
            .is_err()
    );
    sender.try_send(1).unwrap();
    assert!(
        sender
            .send_within(Duration::from_millis(1), 2)
            .wait()
            .is_err()
    );
    assert_eq!(receiver.receive_within(Duration::ZERO).wait(), Ok(Ok(1)));
    assert_eq!(receiver.try_receive(), Err(TryReceiveError::Empty));
}

#[test]
fn threads_lose_and_duplicate_nothing() {
    const EACH: u64 = if cfg!(miri) { 20 } else { 5000 };
    for bound in [0, 1, 7, 1000] {
        let (sender, receiver) = match bound {
            0 => channel::rendezvous(),
            _ => channel::bounded(bound),
        };
        let sum = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (sender, receiver, sum) = (sender.clone(), receiver.clone(), &sum);
                scope.spawn(move || {
                    (0..EACH).for_each(|n| sender.send(thread * EACH + n).wait().unwrap());
                });
                scope.spawn(move || {
                    receiver.iter().for_each(|n| {
                        sum.fetch_add(n, Ordering::Relaxed);
                    });
                });
            }
            drop(sender);
        });
        assert_eq!(sum.into_inner(), (0..3 * EACH).sum());
    }
}

/// The values of one sender arrive in order, even if other receives are dropped.
#[test]
fn dropped_receives_lose_nothing() {
    const VALUES: u32 = if cfg!(miri) { 40 } else { 5000 };
    let (sender, receiver) = channel::bounded(2);
    std::thread::scope(|scope| {
        scope.spawn(move || (0..VALUES).for_each(|n| sender.send(n).wait().unwrap()));
        let mut expected = 0;
        while expected < VALUES {
            let limit = Duration::from_micros(u64::from(expected % 3));
            if let Ok(received) = receiver.receive_within(limit).wait() {
                assert_eq!(received, Ok(expected));
                expected += 1;
            }
        }
    });
}

#[test]
fn another_executor_can_wait() {
    let (sender, receiver) = channel::rendezvous();
    let sends = join_all((0..100).map(|n| sender.send(n)));
    let receives = join_all((0..100).map(|_| receiver.receive()));
    let (sent, received) = join(sends, receives).wait();
    assert!(sent.into_iter().all(|sent| sent.is_ok()));
    assert!(received.into_iter().eq((0..100).map(Ok)));
}

/// The long channel with this name.
fn long(name: &str) -> Option<LongChannel> {
    let found = backlog::long_channels();
    found.into_iter().find(|channel| channel.name == Some(name))
}

#[test]
fn a_long_channel_is_listed_with_its_length_and_the_age_of_its_oldest_value() {
    let (sender, receiver) = channel::unbounded();
    sender.set_name("a long channel");
    let send = |count| (0..count).for_each(|n| sender.try_send(n).unwrap());
    send(64);
    assert_eq!(long("a long channel"), None);
    send(6);
    let first = long("a long channel").unwrap();
    assert_eq!((first.values, first.type_name), (70, "i32"));
    assert!(first.site.file().ends_with("channel.rs"), "{first}");
    send(30);
    let second = long("a long channel").unwrap();
    assert!(second.waited > first.waited);
    // Those of the first look are received, so the oldest one came after it.
    let since = Instant::now();
    let receive = |count| (0..count).all(|_| receiver.try_receive().is_ok());
    assert!(receive(70));
    let third = long("a long channel").unwrap();
    assert_eq!(third.values, 30);
    assert!(receive(30));
    assert_eq!(long("a long channel"), None);
    send(1);
    let last = long("a long channel").unwrap();
    assert!(last.waited <= since.elapsed());
    drop(receiver);
    assert_eq!(long("a long channel"), None);
    drop(sender);
}

#[test]
fn a_channel_beyond_a_mark_is_named_once() {
    let (sender, _receiver) = channel::unbounded::<u8>();
    sender.set_name("beyond a mark");
    let named = |mark| {
        let named = backlog::take_unnamed(mark);
        let names = named.into_iter().filter_map(|channel| channel.name);
        names.filter(|name| *name == "beyond a mark").count()
    };
    (0..99).for_each(|n| sender.try_send(n).unwrap());
    assert_eq!(named(100), 0);
    sender.try_send(99).unwrap();
    assert_eq!(named(100), 1);
    sender.try_send(100).unwrap();
    assert_eq!(named(100), 0);
}

/// The last handles of many long channels go on other threads, while the list is looked at. The values need not be
/// `'static`, nor `Send`.
#[test]
fn long_channels_come_and_go_while_they_are_listed() {
    const ROUNDS: usize = if cfg!(miri) { 4 } else { 200 };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for round in 0..ROUNDS {
                    let local = Rc::new(round);
                    let (sender, receiver) = channel::bounded(200);
                    (0..100).for_each(|_| sender.try_send((&local, local.clone())).unwrap());
                    match round % 2 {
                        0 => drop((sender, receiver)),
                        _ => drop((receiver, sender)),
                    }
                }
            });
        }
        for _ in 0..ROUNDS {
            let own = |channel: &LongChannel| channel.type_name.contains("Rc");
            let found = backlog::long_channels();
            assert!(found.iter().filter(|it| own(it)).all(|it| it.values <= 100));
        }
    });
    let is_left = |channel: &LongChannel| channel.type_name.contains("Rc");
    assert!(!backlog::long_channels().iter().any(is_left));
}

#[test]
fn a_bounded_channel_that_becomes_long_keeps_its_bound() {
    for waits in [false, true] {
        let (sender, receiver) = channel::bounded(66);
        for n in 0..66 {
            match waits {
                true => hand(sender.send(n)).now().unwrap(),
                false => sender.try_send(n).unwrap(),
            }
        }
        assert_eq!(sender.try_send(66), Err(TrySendError::Full(66)));
        let sends = waiting(sender.send(66));
        assert_eq!(receiver.try_receive(), Ok(0));
        sends.woken().unwrap();
        let received: Vec<_> = std::iter::from_fn(|| receiver.try_receive().ok()).collect();
        assert_eq!(received, (1..67).collect::<Vec<_>>());
    }
}
