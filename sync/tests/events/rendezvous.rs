//! Selects that meet selects: both choose the same exchange, or neither does.

use std::{
    future::Future,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread,
};

use weald_sync::{
    Event, Wait,
    channel::{self, Receiver, Sender, TrySendError},
    choose, of_future, select,
};

use crate::hand::hand;

type Ends = (Sender<u32>, Receiver<u32>);

/// What a select of sends and receives did.
#[derive(Debug, PartialEq)]
enum Did {
    Sent(u32),
    Received(u32),
    Closed,
}

fn send(sender: &Sender<u32>, value: u32) -> impl Event<Output = Did> {
    let send = sender.send(value);
    send.wrap(move |sent: Result<(), _>| sent.map_or(Did::Closed, |()| Did::Sent(value)))
}

fn receive(receiver: &Receiver<u32>) -> impl Event<Output = Did> {
    let receive = receiver.receive();
    receive.wrap(|received: Result<u32, _>| received.map_or(Did::Closed, Did::Received))
}

#[test]
fn two_selects_meet_in_both_directions() {
    let ((a, from_a), (b, from_b)) = (channel::rendezvous(), channel::rendezvous());
    let mut seen = [0; 2];
    for _ in 0..100 {
        let mut one = hand(choose((send(&a, 1), receive(&from_b))));
        let mut two = hand(choose((receive(&from_a), send(&b, 2))));
        assert!(one.is_pending());
        match (two.ready(), one.ready()) {
            (Did::Received(1), Did::Sent(1)) => seen[0] += 1,
            (Did::Sent(2), Did::Received(2)) => seen[1] += 1,
            both => panic!("{both:?}"),
        }
        assert_eq!(one.wakes(), 1);
    }
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
    assert_eq!(
        [a.waiting(), b.waiting(), from_a.waiting(), from_b.waiting()],
        [0; 4]
    );
}

#[test]
fn a_select_never_meets_itself() {
    let (sender, receiver) = channel::rendezvous();
    for _ in 0..20 {
        let mut alone = hand(choose((
            send(&sender, 1),
            receive(&receiver),
            send(&sender, 2),
        )));
        assert!(alone.is_pending());
        assert!(alone.is_pending());
        assert_eq!(
            (alone.wakes(), sender.waiting(), receiver.waiting()),
            (0, 2, 1)
        );
        // Another select of the same kind does meet it.
        let mut other = hand(choose((receive(&receiver), send(&sender, 3))));
        match (other.ready(), alone.ready()) {
            (Did::Received(n), Did::Sent(m)) => assert_eq!(n, m),
            (Did::Sent(3), Did::Received(3)) => {}
            both => panic!("{both:?}"),
        }
        assert_eq!((sender.waiting(), receiver.waiting()), (0, 0));
    }
}

#[test]
fn a_select_may_send_to_itself_through_a_buffer() {
    let (sender, receiver) = channel::bounded(1);
    let event = || choose((send(&sender, 1), receive(&receiver)));
    assert_eq!(event().sync().wait(), Did::Sent(1));
    assert_eq!(event().sync().wait(), Did::Received(1));
}

#[test]
fn room_that_appears_between_the_steps_is_used() {
    for _ in 0..50 {
        let (sender, receiver) = channel::bounded(1);
        sender.try_send(0).unwrap();
        // Empties the buffer after the send was tried and before it is enrolled. When the send is enrolled, the
        // receive of the same wait is in the list: the send must not take it for a partner.
        let drain = std::future::poll_fn(|_| {
            let _ = receiver.try_receive();
            Poll::Pending
        });
        let mut wait = hand(choose((
            receive(&receiver),
            send(&sender, 1),
            of_future(drain),
        )));
        let did = wait.ready();
        assert!(matches!(did, Did::Sent(1) | Did::Received(0)), "{did:?}");
    }
}

#[test]
fn a_partner_met_while_offers_are_left_is_the_only_one() {
    for _ in 0..50 {
        let ((a, from_a), (b, from_b)) = (channel::rendezvous(), channel::rendezvous());
        // When the wait wakes its partner, it has an offer to receive from `b` that it has not yet taken back.
        let late = Arc::new(Late(b, Mutex::new(None)));
        let waker = Waker::from(Arc::clone(&late));
        let mut partner = Box::pin(a.send(1));
        // The partner comes while the events are tried.
        let arrival = std::future::poll_fn(|_| {
            let waits = partner.as_mut().poll(&mut Context::from_waker(&waker));
            assert!(waits.is_pending());
            Poll::Pending
        });
        let mut wait = hand(choose((
            receive(&from_b),
            receive(&from_a),
            of_future(arrival),
        )));
        assert_eq!(wait.ready(), Did::Received(1));
        let refused = late.1.lock().unwrap().take();
        assert_eq!(refused, Some(Err(TrySendError::Full(2))));
    }
}

/// A partner that sends something else when it is woken, and the result of that send.
struct Late(Sender<u32>, Mutex<Option<Result<(), TrySendError<u32>>>>);

impl Wake for Late {
    fn wake(self: Arc<Self>) {
        *self.1.lock().unwrap() = Some(self.0.try_send(2));
    }
}

/// Many threads that all select over the same channels, until `MEETINGS` have happened.
fn crowd(channels: &[Ends], act: impl Fn(&[Ends], u32) -> Did + Sync) -> [u64; 4] {
    const THREADS: u32 = 6;
    const MEETINGS: usize = if cfg!(miri) { 100 } else { 20_000 };
    let (met, sums) = (AtomicUsize::new(0), [const { AtomicU64::new(0) }; 4]);
    let add = |at: usize, value: u32| {
        sums[at].fetch_add(u64::from(value), Ordering::Relaxed);
        sums[at + 1].fetch_add(1, Ordering::Relaxed);
        if met.fetch_add(1, Ordering::Relaxed) == MEETINGS {
            channels.iter().for_each(|(sender, _)| sender.close());
        }
    };
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (act, add) = (&act, &add);
            scope.spawn(move || {
                for n in 0.. {
                    match act(channels, thread + n * THREADS) {
                        Did::Sent(value) => add(0, value),
                        Did::Received(value) => add(2, value),
                        Did::Closed => return,
                    }
                }
            });
        }
    });
    for (sender, receiver) in channels {
        assert_eq!(
            (sender.waiting(), receiver.waiting(), receiver.len()),
            (0, 0, 0)
        );
    }
    sums.map(AtomicU64::into_inner)
}

#[test]
fn what_many_selects_send_is_what_they_receive() {
    let channels = [channel::rendezvous(), channel::rendezvous()];
    let [sent, sends, received, receives] = crowd(&channels, |channels, value| {
        let [(a, from_a), (b, from_b)] = channels else {
            unreachable!("two channels")
        };
        select! {
            wait;
            did = send(a, value) => did,
            did = receive(from_a) => did,
            did = receive(from_b) => did,
            did = send(b, value) => did,
        }
    });
    assert_eq!((sent, sends), (received, receives));
}

#[test]
fn selects_and_single_waits_mix() {
    let channels = [channel::rendezvous(), channel::rendezvous()];
    let [sent, sends, received, receives] = crowd(&channels, |channels, value| {
        let [(a, from_a), (b, from_b)] = channels else {
            unreachable!("two channels")
        };
        match value % 6 {
            0 | 1 => choose((send(a, value), send(b, value))).wait(),
            2 => choose((receive(from_a), send(b, value))).wait(),
            3 => receive(from_a).sync().wait(),
            4 => receive(from_b).sync().wait(),
            _ => choose(vec![receive(from_b), receive(from_a)]).wait(),
        }
    });
    assert_eq!((sent, sends), (received, receives));
}

#[test]
fn values_in_a_buffer_are_received_once() {
    let channels = [channel::bounded(1), channel::bounded(2)];
    let [mut sent, mut sends, received, receives] = crowd(&channels, |channels, value| {
        let [(a, from_a), (b, from_b)] = channels else {
            unreachable!("two channels")
        };
        let did = match value % 3 {
            0 => choose((send(a, value), receive(from_a), receive(from_b))).wait(),
            1 => choose((send(a, value), send(b, value))).wait(),
            _ => choose((receive(from_b), receive(from_a))).wait(),
        };
        match did {
            // Closed, but the other channel's buffer may still hold a value.
            Did::Closed => match (from_a.try_receive(), from_b.try_receive()) {
                (Ok(value), Err(_)) | (Err(_), Ok(value)) => Did::Received(value),
                (Ok(first), Ok(second)) => {
                    // Both count as one receive; the sum below is the same.
                    Did::Received(first + second)
                }
                _ => Did::Closed,
            },
            did => did,
        }
    });
    // Two values that were received as one.
    let difference = sends - receives;
    assert!(difference <= 6, "{sends} {receives}");
    sends -= difference;
    assert_eq!((std::mem::take(&mut sent), sends), (received, receives));
}
