//! Mailboxes that are bounded and take urgent messages first.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/signals.rs"]
mod signals;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{num::NonZeroU32, pin::pin, time::Duration};

use futures_util::FutureExt;
use signals::{everywhere, settle};
use tools::{Latch, runtime, watch};
use weald_process::{
    self as process, Bounded, BoundedPid, BoundedPriorityInbox, Builder, CallError, Down, Exit,
    ExitReason, Inbox, Overflow, Overflowed, Prioritized, Process, Reply, SendError, monitor,
};
use weald_sync::{after, select};

const HOUR: Duration = Duration::from_secs(3600);

fn room(capacity: u32) -> NonZeroU32 {
    NonZeroU32::new(capacity).unwrap()
}

type Reader<M> = Process<Bounded<Prioritized<M>>, Vec<M>>;

/// A process that receives nothing before the latch opens, and then `count` messages.
fn reader<M: Send + 'static>(
    capacity: u32,
    overflow: Overflow,
    latch: &Latch,
    count: usize,
) -> (Reader<M>, BoundedPid<Prioritized<M>>) {
    let latch = latch.clone();
    let body = async move |mut inbox: BoundedPriorityInbox<M>| {
        latch.await;
        let mut seen = Vec::new();
        while seen.len() < count {
            seen.push(inbox.receive().await);
        }
        seen
    };
    let builder = Builder::new().name("reader");
    builder
        .spawn_bounded_priority(room(capacity), overflow, body)
        .unwrap()
}

#[test]
fn an_urgent_message_finds_room_in_a_mailbox_that_is_full_of_others_and_is_received_first() {
    everywhere(async || {
        let latch = Latch::default();
        let (reader, pid) = reader(2, Overflow::Reject, &latch, 5);
        for number in [1, 2] {
            assert!(pid.try_send(Prioritized::usual(number)).is_ok());
        }
        assert!(matches!(
            pid.try_send(Prioritized::usual(3)),
            Err(SendError::Full(_))
        ));
        assert_eq!((pid.room(), pid.room_for_urgent()), (0, 2));
        assert_eq!(pid.try_send_urgent(10), Ok(()));
        assert_eq!(pid.try_send_urgent(20), Ok(()));
        assert_eq!(pid.try_send_urgent(30), Err(SendError::Full(30)));
        // From those that only have its pid: without room, and so never refused.
        let notice = Bounded::notice(Prioritized::urgent(40));
        pid.pid().send(notice);
        latch.open();
        assert_eq!(reader.await.unwrap(), [10, 20, 40, 1, 2]);
        assert_eq!(pid.try_send_urgent(50), Err(SendError::Dead(50)));
        assert_eq!(pid.send_urgent(50).await, Err(SendError::Dead(50)));
    });
}

#[test]
fn a_message_that_is_received_makes_room_for_one_of_its_kind() {
    everywhere(async || {
        let latch = Latch::default();
        let (reader, pid) = reader(1, Overflow::Wait, &latch, 4);
        pid.send(Prioritized::usual(1)).await.unwrap();
        pid.send_urgent(10).await.unwrap();
        let mut usual = pin!(pid.send(Prioritized::usual(2)));
        let mut urgent = pin!(pid.send_urgent(20));
        assert!(usual.as_mut().now_or_never().is_none());
        assert!(urgent.as_mut().now_or_never().is_none());
        latch.open();
        let (urgent, usual) = futures_util::join!(urgent, usual);
        assert!(urgent.is_ok() && usual.is_ok());
        let seen = reader.await.unwrap();
        assert_eq!(seen[0], 10);
        // The second urgent message may come after the first of the others, never before its own kind.
        let kind = |urgent| seen.iter().filter(move |n| (**n >= 10) == urgent).copied();
        assert!(kind(true).eq([10, 20]) && kind(false).eq([1, 2]));
    });
}

#[test]
fn messages_that_are_sorted_keep_their_room_until_they_are_received() {
    let _watch = watch();
    runtime(1).block_on(async {
        let body = async |mut inbox: BoundedPriorityInbox<u32>| {
            let pid = inbox.pid();
            assert!(pid.try_send(Prioritized::usual(1)).is_ok());
            assert!(pid.try_send_urgent(10).is_ok());
            let mut mark = inbox.mark();
            // They are sorted, and nobody has taken them.
            assert_eq!((inbox.len(), pid.room(), pid.room_for_urgent()), (2, 1, 1));
            assert!(pid.try_send(Prioritized::usual(2)).is_ok());
            assert_eq!(inbox.take_since(&mut mark, |_| true), Some(2));
            assert_eq!((pid.room(), pid.room_for_urgent()), (1, 1));
            assert_eq!(inbox.take_if(|number| *number == 1), Some(1));
            assert_eq!(inbox.receive_if(|number| *number == 10).await, 10);
            assert_eq!((pid.room(), pid.room_for_urgent()), (2, 2));
            assert!(inbox.is_empty() && inbox.try_receive().is_none());
        };
        let spawned = Builder::new().spawn_bounded_priority(room(2), Overflow::Reject, body);
        spawned.unwrap().0.await.unwrap();
    });
}

#[test]
fn notices_are_urgent_and_take_no_room() {
    enum Message {
        Text,
        Down(Down),
        Exit(Exit),
    }
    everywhere(async || {
        let latch = Latch::default();
        let full = latch.clone();
        let ended = process::spawn(async |_: Inbox<()>| ()).unwrap();
        let down = monitor(ended.pid());
        down.await;
        let body = async move |mut inbox: BoundedPriorityInbox<Message>| {
            inbox.trap_exits(Message::Exit);
            full.await;
            assert!(inbox.pid().try_send_urgent(Message::Text).is_ok());
            inbox.monitor(ended.pid(), Message::Down);
            process::link(ended.pid());
            let mut seen = Vec::new();
            for _ in 0..4 {
                seen.push(match inbox.receive().await {
                    Message::Text => "text",
                    Message::Down(down) if down.reason == ExitReason::NoProcess => "down",
                    Message::Exit(exit) if exit.reason == ExitReason::NoProcess => "exit",
                    Message::Down(_) | Message::Exit(_) => "another reason",
                });
            }
            seen
        };
        let spawned = Builder::new().spawn_bounded_priority(room(1), Overflow::Reject, body);
        let (process, pid) = spawned.unwrap();
        assert!(pid.try_send(Prioritized::usual(Message::Text)).is_ok());
        latch.open();
        assert_eq!(process.await.unwrap(), ["text", "down", "exit", "text"]);
    });
}

#[test]
fn too_many_of_either_kind_end_a_receiver_that_is_to_crash() {
    everywhere(async || {
        for urgent in [false, true] {
            let (reader, pid) = reader(1, Overflow::Crash, &Latch::default(), 1);
            let send = |number| match urgent {
                true => pid.try_send_urgent(number).is_ok(),
                false => pid.try_send(Prioritized::usual(number)).is_ok(),
            };
            assert!(send(1));
            assert!(!send(2));
            let Err(ExitReason::Custom(reason)) = reader.await else {
                panic!("it ends for a reason of its own");
            };
            let overflowed = reason.downcast_ref::<Overflowed>().unwrap();
            assert_eq!(overflowed.capacity, 1);
        }
    });
}

#[test]
fn those_that_wait_for_room_of_either_kind_learn_of_the_end() {
    everywhere(async || {
        let (reader, pid) = reader(1, Overflow::Wait, &Latch::default(), 1);
        pid.send(Prioritized::usual(1)).await.unwrap();
        pid.send_urgent(10).await.unwrap();
        let (usual, urgent) = (pid.clone(), pid.clone());
        let usual =
            weald_kernel::spawn(async move { usual.send(Prioritized::usual(2)).await.is_err() });
        let urgent = weald_kernel::spawn(async move { urgent.send_urgent(20).await });
        settle().await;
        pid.kill();
        assert!(usual.await.unwrap());
        assert_eq!(urgent.await.unwrap(), Err(SendError::Dead(20)));
        assert_eq!(reader.await, Err(ExitReason::Killed));
    });
}

#[test]
fn an_urgent_call_passes_a_full_mailbox() {
    struct Ask(u32, Reply<u32>);
    everywhere(async || {
        let latch = Latch::default();
        let opens = latch.clone();
        let body = async move |mut inbox: BoundedPriorityInbox<Ask>| {
            opens.await;
            for place in 0..2 {
                let Ask(number, reply) = inbox.receive().await;
                let _unheard = reply.send(10 * number + place);
            }
        };
        let spawned = Builder::new().spawn_bounded_priority(room(1), Overflow::Reject, body);
        let (process, pid) = spawned.unwrap();
        let usual = pid.clone();
        let usual = weald_kernel::spawn(async move {
            let call = usual.call(|reply| Prioritized::usual(Ask(1, reply)));
            call.within(HOUR).await
        });
        while pid.room() > 0 {
            weald_kernel::yield_now().await;
        }
        let refused = pid.call(|reply| Prioritized::usual(Ask(3, reply))).await;
        assert_eq!(refused, Err(CallError::Full));
        let urgent = pid.clone();
        let urgent = weald_kernel::spawn(async move {
            let call = urgent.call_urgent(|reply| Ask(2, reply));
            call.within(HOUR).await
        });
        while pid.room_for_urgent() > 0 {
            weald_kernel::yield_now().await;
        }
        latch.open();
        assert_eq!(urgent.await.unwrap(), Ok(20));
        assert_eq!(usual.await.unwrap(), Ok(11));
        process.await.unwrap();
    });
}

#[test]
fn a_receive_can_be_one_of_several_events_and_have_a_limit() {
    everywhere(async || {
        let body = async |mut inbox: BoundedPriorityInbox<u32>| {
            let pid = inbox.pid();
            assert!(inbox.receive().after(Duration::ZERO).await.is_err());
            assert!(pid.try_send(Prioritized::usual(1)).is_ok());
            assert!(pid.try_send_urgent(10).is_ok());
            let first = select! {
                message = inbox.receive() => message,
                () = after(HOUR) => 0,
            };
            [first, inbox.receive().after(HOUR).await.unwrap()]
        };
        let spawned = Builder::new().spawn_bounded_priority(room(1), Overflow::Reject, body);
        assert_eq!(spawned.unwrap().0.await.unwrap(), [10, 1]);
    });
}
