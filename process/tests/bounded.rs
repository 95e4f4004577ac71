//! Bounded mailboxes: what happens when one is full, and when its process ends.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/signals.rs"]
mod signals;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    num::NonZeroU32,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt, future::join_all};
use signals::{everywhere, settle};
use tools::{Drops, Latch, Token, each_seed, watch};
use weald_kernel::{sleep, yield_now};
use weald_process::{
    self as process, Bounded, BoundedInbox, BoundedPid, Builder, CallError, Down, Exit, ExitReason,
    Inbox, Name, Overflow, Overflowed, Process, Reply, SendError, monitor,
};
use weald_sync::{Wait, after, select};

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

fn room(capacity: u32) -> NonZeroU32 {
    NonZeroU32::new(capacity).unwrap()
}

/// A process that receives nothing before the latch opens, and then `count` messages.
fn reader<M: Send + 'static>(
    capacity: u32,
    overflow: Overflow,
    latch: &Latch,
    count: usize,
) -> (Process<Bounded<M>, Vec<M>>, BoundedPid<M>) {
    let latch = latch.clone();
    let body = async move |mut inbox: BoundedInbox<M>| {
        latch.await;
        let mut seen = Vec::new();
        while seen.len() < count {
            seen.push(inbox.receive().await);
        }
        seen
    };
    let builder = Builder::new().name("reader");
    builder
        .spawn_bounded(room(capacity), overflow, body)
        .unwrap()
}

#[test]
fn senders_wait_for_room_and_keep_their_order() {
    everywhere(async || {
        let latch = Latch::default();
        let (reader, pid) = reader(2, Overflow::Wait, &latch, 40);
        assert_eq!((pid.capacity(), pid.room()), (2, 2));
        let sent = Arc::new(AtomicU32::new(0));
        let senders: Vec<_> = (0..4)
            .map(|sender| {
                let (pid, sent) = (pid.clone(), sent.clone());
                let body = async move |_: Inbox<()>| {
                    for number in 0..10 {
                        pid.send((sender, number)).await.unwrap();
                        sent.fetch_add(1, Ordering::SeqCst);
                    }
                };
                process::spawn(body).unwrap()
            })
            .collect();
        while sent.load(Ordering::SeqCst) < 2 {
            yield_now().await;
        }
        settle().await;
        assert_eq!(sent.load(Ordering::SeqCst), 2);
        assert_eq!(pid.try_send((9, 9)), Err(SendError::Full((9, 9))));
        latch.open();
        let seen = reader.await.unwrap();
        for sender in 0..4 {
            let own = seen.iter().filter(|message| message.0 == sender);
            assert!(own.map(|message| message.1).eq(0..10), "{seen:?}");
        }
        for sender in senders {
            sender.await.unwrap();
        }
    });
}

#[test]
fn room_is_given_in_the_order_in_which_it_was_asked_for() {
    everywhere(async || {
        let latch = Latch::default();
        let (reader, pid) = reader(1, Overflow::Wait, &latch, 4);
        pid.try_send(0).unwrap();
        let mut first = pin!(pid.send(1));
        let mut second = pin!(pid.send(2));
        let mut third = pin!(pid.send(3));
        assert!(first.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        assert!(third.as_mut().now_or_never().is_none());
        latch.open();
        let (third, second, first) = futures_util::join!(third, second, first);
        assert_eq!((first, second, third), (Ok(()), Ok(()), Ok(())));
        assert_eq!(reader.await.unwrap(), [0, 1, 2, 3]);
    });
}

#[test]
fn a_wait_for_room_that_is_dropped_sends_nothing_and_keeps_no_room() {
    everywhere(async || {
        let latch = Latch::default();
        let (reader, pid) = reader(1, Overflow::Wait, &latch, 2);
        pid.try_send(1).unwrap();
        let mut dropped = Box::pin(pid.send(2));
        assert!((&mut dropped).now_or_never().is_none());
        let mut kept = pin!(pid.send(3));
        assert!(kept.as_mut().now_or_never().is_none());
        drop(dropped);
        latch.open();
        assert_eq!(kept.await, Ok(()));
        assert_eq!(reader.await.unwrap(), [1, 3]);
    });
}

#[test]
fn a_message_that_is_too_many_is_refused() {
    everywhere(async || {
        let latch = Latch::default();
        let (reader, pid) = reader(1, Overflow::Reject, &latch, 2);
        assert_eq!(pid.send(1).await, Ok(()));
        assert_eq!(pid.send(2).await, Err(SendError::Full(2)));
        latch.open();
        while let Err(error) = pid.try_send(3) {
            assert_eq!(error, SendError::Full(3));
            yield_now().await;
        }
        assert_eq!(reader.await.unwrap(), [1, 3]);
        assert_eq!(pid.try_send(4), Err(SendError::Dead(4)));
        assert!(!pid.is_alive());
    });
}

#[test]
fn a_message_that_is_too_many_ends_the_receiver() {
    everywhere(async || {
        let drops = Drops::default();
        let (process, pid) = Builder::new()
            .spawn_bounded(
                room(2),
                Overflow::Crash,
                async |mut inbox: BoundedInbox<Result<Token, Exit>>| {
                    inbox.trap_exits(Err);
                    std::future::pending::<()>().await;
                },
            )
            .unwrap();
        let down = monitor(&pid);
        for _ in 0..2 {
            assert!(pid.send(Ok(drops.token())).await.is_ok());
        }
        let refused = pid.try_send(Ok(drops.token()));
        assert!(matches!(refused, Err(SendError::Full(_))));
        drop(refused);
        // It ends, and takes nothing that is sent later.
        assert!(pid.try_send(Ok(drops.token())).is_err());
        let reason = down.await.reason;
        let ExitReason::Custom(custom) = &reason else {
            panic!("{reason}");
        };
        let overflowed: &Overflowed = custom.downcast_ref().unwrap();
        assert_eq!(overflowed.capacity, 2);
        assert_eq!(process.await, Err(reason));
        assert_eq!(drops.count(), drops.made());
    });
}

#[test]
fn those_that_wait_for_room_learn_of_the_end() {
    everywhere(async || {
        let latch = Latch::default();
        let (reader, pid) = reader::<u32>(1, Overflow::Wait, &latch, 1);
        pid.try_send(1).unwrap();
        let senders: Vec<_> = (0..5)
            .map(|number| {
                let pid = pid.clone();
                process::spawn(async move |_: Inbox<()>| pid.send(number).await).unwrap()
            })
            .collect();
        settle().await;
        pid.kill();
        let ends = join_all(senders).await;
        for (number, end) in ends.into_iter().enumerate() {
            let number = u32::try_from(number).unwrap();
            assert_eq!(end, Ok(Err(SendError::Dead(number))));
        }
        assert_eq!(reader.await, Err(ExitReason::Killed));
        assert_eq!(pid.send(6).await, Err(SendError::Dead(6)));
    });
}

/// Every other way to take a message makes room, too.
#[test]
fn whatever_takes_a_message_makes_room() {
    everywhere(async || {
        let (process, pid) = Builder::new()
            .spawn_bounded(
                room(3),
                Overflow::Reject,
                async |mut inbox: BoundedInbox<u32>| {
                    let own = inbox.pid();
                    while own.room() > 0 {
                        yield_now().await;
                    }
                    assert_eq!(inbox.receive_if(|n| *n == 3).await, 3);
                    assert_eq!(own.room(), 1);
                    assert_eq!(inbox.take_if(|n| *n == 2), Some(2));
                    assert_eq!(own.room(), 2);
                    assert_eq!(inbox.len(), 1);
                    assert_eq!(inbox.try_receive(), Some(1));
                    assert_eq!(own.room(), 3);
                    assert!(inbox.is_empty());
                    assert!(inbox.receive().after(MS).await.is_err());
                    own.try_send(4).unwrap();
                    let chosen = select! {
                        number = inbox.receive() => number,
                        () = after(HOUR) => 0,
                    };
                    assert_eq!((chosen, own.room()), (4, 3));
                },
            )
            .unwrap();
        for number in 1..=3 {
            pid.try_send(number).unwrap();
        }
        process.await.unwrap();
    });
}

#[test]
fn notices_need_no_room() {
    #[derive(Debug)]
    enum Message {
        Text,
        Down(Down),
        Exit(Exit),
        Late,
    }
    everywhere(async || {
        let (process, pid) = Builder::new()
            .spawn_bounded(
                room(1),
                Overflow::Crash,
                async |mut inbox: BoundedInbox<Message>| {
                    inbox.trap_exits(Message::Exit);
                    let own = inbox.pid();
                    own.try_send(Message::Text).unwrap();
                    let other = process::spawn_link(async |_: Inbox<()>| ()).unwrap();
                    inbox.monitor(other.pid(), Message::Down);
                    other.await.unwrap();
                    own.pid()
                        .send_after(MS, Bounded::notice(Message::Late))
                        .detach();
                    sleep(2 * MS).await;
                    while inbox.len() < 4 {
                        yield_now().await;
                    }
                    assert_eq!(own.room(), 0);
                    assert!(matches!(inbox.receive().await, Message::Text));
                    assert_eq!(own.room(), 1);
                    let mut seen = [false; 3];
                    for _ in 0..3 {
                        match inbox.receive().await {
                            Message::Down(down) => {
                                seen[0] = down.reason != ExitReason::Killed;
                            }
                            Message::Exit(exit) => {
                                seen[1] = exit.reason == ExitReason::Normal;
                            }
                            Message::Late => seen[2] = true,
                            Message::Text => unreachable!(),
                        }
                    }
                    assert_eq!((seen, own.room()), ([true; 3], 1));
                },
            )
            .unwrap();
        process.await.unwrap();
        assert_eq!(pid.room(), 1);
    });
}

struct Ask(Reply<u32>);

/// A process that answers calls once the latch is open.
fn answering(overflow: Overflow, latch: &Latch) -> (Process<Bounded<Ask>, ()>, BoundedPid<Ask>) {
    let latch = latch.clone();
    let body = async move |mut inbox: BoundedInbox<Ask>| {
        latch.await;
        for number in 0.. {
            let _unheard = inbox.receive().await.0.send(number);
        }
    };
    Builder::new()
        .spawn_bounded(room(1), overflow, body)
        .unwrap()
}

#[test]
fn a_call_waits_for_room() {
    everywhere(async || {
        let latch = Latch::default();
        let (process, pid) = answering(Overflow::Wait, &latch);
        let mut first = pid.call(Ask).into_future();
        let mut second = pid.call(Ask).within(HOUR).into_future();
        assert!((&mut first).now_or_never().is_none());
        assert!((&mut second).now_or_never().is_none());
        assert_eq!(pid.room(), 0);
        latch.open();
        assert_eq!(futures_util::join!(first, second), (Ok(0), Ok(1)));
        process.kill();
    });
}

#[test]
fn the_deadline_of_a_call_covers_the_wait_for_room() {
    everywhere(async || {
        let latch = Latch::default();
        let (process, pid) = answering(Overflow::Wait, &latch);
        let mut first = pid.call(Ask).into_future();
        assert!((&mut first).now_or_never().is_none());
        let late = pid.call(Ask).within(MS);
        assert_eq!(late.await, Err(CallError::TimedOut));
        drop(first);
        latch.open();
        // The request of the call that is over was sent; that of the late one was not.
        assert_eq!(pid.call(Ask).await, Ok(1));
        process.kill();
    });
}

#[test]
fn a_call_to_a_full_mailbox_is_refused() {
    everywhere(async || {
        let latch = Latch::default();
        let (process, pid) = answering(Overflow::Reject, &latch);
        let mut first = pid.call(Ask).into_future();
        assert!((&mut first).now_or_never().is_none());
        assert_eq!(pid.call(Ask).await, Err(CallError::Full));
        latch.open();
        assert_eq!(first.await, Ok(0));
        process.kill();
        assert_eq!(process.await, Err(ExitReason::Killed));
        let died = CallError::Died(ExitReason::NoProcess);
        assert_eq!(pid.call(Ask).await, Err(died));
    });
}

#[test]
fn a_call_that_waits_for_room_learns_why_the_callee_ended() {
    everywhere(async || {
        let latch = Latch::default();
        let (process, pid) = answering(Overflow::Wait, &latch);
        let mut first = pid.call(Ask).into_future();
        let mut second = pid.call(Ask).into_future();
        assert!((&mut first).now_or_never().is_none());
        assert!((&mut second).now_or_never().is_none());
        process.exit(&ExitReason::custom("enough"));
        let died = Err(CallError::Died(ExitReason::custom("enough")));
        assert_eq!(
            futures_util::join!(first, second),
            (died.clone(), died.clone())
        );
    });
}

#[test]
fn a_call_that_waits_for_room_fails_at_once_if_the_callee_drops_its_inbox_and_goes_on() {
    everywhere(async || {
        let (leaves, ends) = (Latch::default(), Latch::default());
        let (until, stays) = (leaves.clone(), ends.clone());
        let body = async move |inbox: BoundedInbox<Ask>| {
            until.await;
            drop(inbox);
            stays.await;
        };
        let spawned = Builder::new().spawn_bounded(room(1), Overflow::Wait, body);
        let (process, pid) = spawned.unwrap();
        let mut first = pid.call(Ask).into_future();
        let mut second = pid.call(Ask).into_future();
        assert!((&mut first).now_or_never().is_none());
        assert!((&mut second).now_or_never().is_none());
        leaves.open();
        let gone = CallError::Died(ExitReason::NoProcess);
        assert_eq!(second.await, Err(gone.clone()));
        assert_eq!(first.await, Err(CallError::NoReply));
        assert_eq!(pid.call(Ask).await, Err(gone));
        assert!(pid.is_alive());
        ends.open();
        process.await.unwrap();
    });
}

#[test]
fn a_call_that_waits_for_room_learns_the_end_of_a_callee_whose_inbox_lives_on() {
    everywhere(async || {
        let (latch, kept) = (Latch::default(), Arc::new(Mutex::new(None)));
        let (until, keeps) = (latch.clone(), kept.clone());
        let body = async move |inbox: BoundedInbox<Ask>| {
            until.await;
            *keeps.lock().unwrap() = Some(inbox);
        };
        let spawned = Builder::new().spawn_bounded(room(1), Overflow::Wait, body);
        let (process, pid) = spawned.unwrap();
        let mut first = pid.call(Ask).into_future();
        let mut second = pid.call(Ask).into_future();
        assert!((&mut first).now_or_never().is_none());
        assert!((&mut second).now_or_never().is_none());
        latch.open();
        let died = CallError::Died(ExitReason::Normal);
        assert_eq!(second.await, Err(died));
        process.await.unwrap();
        drop(kept.lock().unwrap().take());
    });
}

/// Calls another one when it is dropped.
struct CallsAtItsEnd(Arc<Mutex<Option<BoundedPid<Ask>>>>, Arc<AtomicU32>);

impl Drop for CallsAtItsEnd {
    fn drop(&mut self) {
        let other = self.0.lock().unwrap().take().unwrap();
        let answer = other.call(Ask).into_future().wait();
        assert!(matches!(answer, Err(CallError::Died(_))), "{answer:?}");
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn two_that_end_with_full_mailboxes_and_call_each_other_do_not_wait() {
    let _watch = watch();
    each_seed(100, async || {
        let calls = Arc::new(AtomicU32::new(0));
        let others = [(); 2].map(|()| Arc::default());
        let pids = others.clone().map(|other| {
            let calls = CallsAtItsEnd(other, calls.clone());
            let body = async move |_inbox: BoundedInbox<Ask>| {
                let _calls = calls;
                sleep(HOUR).await;
            };
            let spawned = Builder::new().spawn_bounded(room(1), Overflow::Wait, body);
            let (process, pid) = spawned.unwrap();
            drop(process);
            pid
        });
        *others[0].lock().unwrap() = Some(pids[1].clone());
        *others[1].lock().unwrap() = Some(pids[0].clone());
        let fills = pids.each_ref().map(|pid| {
            let mut call = pid.call(Ask).into_future();
            assert!((&mut call).now_or_never().is_none());
            call
        });
        let downs = pids.each_ref().map(monitor);
        // So that both have begun.
        yield_now().await;
        pids.iter().for_each(|pid| pid.kill());
        for down in downs {
            down.await;
        }
        assert_eq!(calls.load(Ordering::SeqCst), 2);
        drop(fills);
    });
}

#[test]
fn a_call_to_a_killed_process_learns_its_end() {
    each_seed(100, async || {
        for overflow in [Overflow::Wait, Overflow::Reject] {
            let (_process, pid) = answering(overflow, &Latch::default());
            pid.kill();
            // It has not had its turn to end.
            assert!(pid.is_alive());
            let died = Err(CallError::Died(ExitReason::Killed));
            assert_eq!(pid.call(Ask).await, died);
            assert!(!pid.is_alive());
        }
    });
}

#[test]
fn a_name_leads_to_a_bounded_process() {
    everywhere(async || {
        static NAME: Name<Bounded<u32>> = Name::new("a bounded process");
        let latch = Latch::default();
        let (reader, pid) = reader(1, Overflow::Reject, &latch, 1);
        NAME.register(pid.pid()).unwrap();
        let found = BoundedPid::of(NAME.whereis().unwrap()).unwrap();
        assert_eq!(found, pid);
        found.try_send(1).unwrap();
        assert_eq!(pid.try_send(2), Err(SendError::Full(2)));
        latch.open();
        assert_eq!(reader.await.unwrap(), [1]);
        let mut down = monitor(&pid);
        assert_eq!((&mut down).await.reason, ExitReason::NoProcess);
        assert_eq!(BoundedPid::of(pid.pid().clone()), None);
    });
}
