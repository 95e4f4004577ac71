//! Priority messages: urgent ones are received before the others.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/signals.rs"]
mod signals;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use signals::everywhere;
use tools::{Drops, Latch, Token, runtime, watch};
use weald_kernel::yield_now;
use weald_process::{
    self as process, Builder, Down, Exit, ExitReason, Inbox, Name, Prioritized, PriorityInbox,
    PriorityPid, Process, Reply,
};
use weald_sync::{after, select};

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

/// A process that receives `count` messages once the latch is open.
fn reader<M: Send + 'static>(
    latch: &Latch,
    count: usize,
) -> (Process<Prioritized<M>, Vec<M>>, PriorityPid<M>) {
    let latch = latch.clone();
    let body = async move |mut inbox: PriorityInbox<M>| {
        latch.await;
        let mut seen = Vec::new();
        while seen.len() < count {
            seen.push(inbox.receive().await);
        }
        seen
    };
    Builder::new().spawn_priority(body).unwrap()
}

#[test]
fn urgent_messages_come_first_and_both_kinds_keep_their_order() {
    everywhere(async || {
        let latch = Latch::default();
        let (reader, pid) = reader(&latch, 6);
        pid.send(1);
        pid.send_urgent(10);
        pid.try_send(2).unwrap();
        pid.try_send_urgent(20).unwrap();
        pid.pid().send(Prioritized::urgent(30));
        pid.pid().send(Prioritized::usual(3));
        latch.open();
        assert_eq!(reader.await.unwrap(), [10, 20, 30, 1, 2, 3]);
        assert!(pid.try_send(4).is_err());
        assert!(pid.try_send_urgent(4).is_err());
    });
}

#[test]
fn an_urgent_message_that_comes_later_passes_those_that_wait() {
    everywhere(async || {
        let latch = Latch::default();
        let opened = latch.clone();
        let body = async move |mut inbox: PriorityInbox<u32>| {
            let first = inbox.receive().await;
            opened.await;
            [first, inbox.receive().await, inbox.receive().await]
        };
        let (process, pid) = Builder::new().spawn_priority(body).unwrap();
        pid.send(1);
        pid.send(2);
        // Both may be sorted already when this comes.
        yield_now().await;
        pid.send_urgent(10);
        latch.open();
        let seen = process.await.unwrap();
        assert!([[1, 10, 2], [10, 1, 2]].contains(&seen), "{seen:?}");
    });
}

#[test]
fn an_urgent_call_is_answered_before_a_long_queue() {
    enum Message {
        Load,
        Handled(Reply<usize>),
    }
    everywhere(async || {
        let latch = Latch::default();
        let opened = latch.clone();
        let body = async move |mut inbox: PriorityInbox<Message>| {
            opened.await;
            for handled in 0.. {
                match inbox.receive().await {
                    Message::Load => {}
                    Message::Handled(reply) => drop(reply.send(handled)),
                }
            }
        };
        let (process, pid) = Builder::new().spawn_priority(body).unwrap();
        for _ in 0..1000 {
            pid.send(Message::Load);
        }
        let call = pid.call_urgent(Message::Handled);
        let usual = pid.call(Message::Handled);
        let (answer, usual, ()) = futures_util::join!(call, usual, async { latch.open() });
        assert_eq!(answer, Ok(0));
        assert_eq!(usual, Ok(1001));
        process.kill();
    });
}

#[test]
fn notices_are_urgent() {
    enum Message {
        Text,
        Down(Down),
        Exit(Exit),
    }
    everywhere(async || {
        let body = async |mut inbox: PriorityInbox<Message>| {
            inbox.trap_exits(Message::Exit);
            let other = process::spawn_link(async |_: Inbox<()>| ()).unwrap();
            inbox.monitor(other.pid(), Message::Down);
            inbox.pid().send(Message::Text);
            while inbox.len() < 3 {
                yield_now().await;
            }
            for _ in 0..2 {
                match inbox.try_receive().unwrap() {
                    Message::Down(down) => assert!(down.process.is_some()),
                    Message::Exit(exit) => assert_eq!(exit.reason, ExitReason::Normal),
                    Message::Text => panic!("a notice comes first"),
                }
            }
            assert!(matches!(inbox.receive().await, Message::Text));
            inbox.untrap_exits();
            let monitor = inbox.monitor(other.pid(), Message::Down);
            assert!(!inbox.demonitor(monitor), "it has told at once");
            assert!(matches!(inbox.receive().await, Message::Down(_)));
            other.await.unwrap();
        };
        Builder::new()
            .spawn_priority(body)
            .unwrap()
            .0
            .await
            .unwrap();
    });
}

#[test]
fn a_selective_receive_prefers_urgent_ones_and_looks_at_each_message_once() {
    everywhere(async || {
        let latch = Latch::default();
        let (opened, looks) = (latch.clone(), Arc::new(AtomicUsize::new(0)));
        let count = looks.clone();
        let body = async move |mut inbox: PriorityInbox<u32>| {
            let even = |n: &u32| {
                count.fetch_add(1, Ordering::SeqCst);
                n.is_multiple_of(2)
            };
            let first = inbox.receive_if(even).await;
            opened.await;
            let second = inbox.receive_if(|n| n % 2 == 0).await;
            assert_eq!(inbox.take_if(|n| *n == 3), Some(3));
            (first, second, inbox.len())
        };
        let (process, pid) = Builder::new().spawn_priority(body).unwrap();
        for _ in 0..20 {
            pid.send(1);
            yield_now().await;
        }
        pid.send(2);
        while looks.load(Ordering::SeqCst) < 21 {
            yield_now().await;
        }
        pid.send(4);
        pid.send_urgent(3);
        pid.send_urgent(6);
        latch.open();
        assert_eq!(process.await, Ok((2, 6, 21)));
        assert_eq!(looks.load(Ordering::SeqCst), 21);
    });
}

#[test]
fn nothing_that_is_sent_after_a_kill_is_received() {
    everywhere(async || {
        let (drops, seen) = (Drops::default(), Arc::new(AtomicUsize::new(0)));
        let count = seen.clone();
        let body = async move |mut inbox: PriorityInbox<Token>| {
            loop {
                let _token = inbox.receive().await;
                count.fetch_add(1, Ordering::SeqCst);
            }
        };
        let (process, pid) = Builder::new().spawn_priority(body).unwrap();
        let process: Process<_, ()> = process;
        for _ in 0..3 {
            pid.send(drops.token());
        }
        pid.kill();
        pid.send_urgent(drops.token());
        assert_eq!(process.await, Err(ExitReason::Killed));
        assert!(seen.load(Ordering::SeqCst) <= 3);
        assert_eq!(drops.count(), 4);
    });
}

#[test]
fn a_receive_can_be_one_of_several_events() {
    everywhere(async || {
        let body = async |mut inbox: PriorityInbox<u32>| {
            assert!(inbox.receive().after(Duration::ZERO).await.is_err());
            let own = inbox.pid();
            own.send(1);
            own.send_urgent(10);
            let mut seen = Vec::new();
            for _ in 0..3 {
                seen.push(select! {
                    number = inbox.receive() => Some(number),
                    () = after(MS) => None,
                });
            }
            assert_eq!(seen, [Some(10), Some(1), None]);
            // It wakes a choice, too.
            own.pid().send_after(MS, Prioritized::urgent(20)).detach();
            select! {
                number = inbox.receive() => number,
                () = after(HOUR) => 0,
            }
        };
        let (process, _) = Builder::new().spawn_priority(body).unwrap();
        assert_eq!(process.await, Ok(20));
    });
}

#[test]
fn a_name_leads_to_a_process_with_priority_messages() {
    everywhere(async || {
        static NAME: Name<Prioritized<u32>> = Name::new("a process with priority messages");
        let latch = Latch::default();
        let (reader, pid) = reader(&latch, 2);
        NAME.register(pid.pid()).unwrap();
        let found = PriorityPid::of(NAME.whereis().unwrap());
        assert_eq!(found, pid);
        found.send(1);
        found.send_urgent(2);
        latch.open();
        assert_eq!(reader.await.unwrap(), [2, 1]);
    });
}

/// A process that always finds a message gives way to the others.
#[test]
fn many_messages_do_not_keep_the_worker() {
    let _watch = watch();
    let is_over = Arc::new(AtomicBool::new(false));
    let (seen, other) = (is_over.clone(), is_over);
    runtime(1).block_on(async move {
        let body = async move |mut inbox: PriorityInbox<()>| {
            inbox.receive().await;
            let flag = process::spawn(async move |_: Inbox<()>| {
                other.store(true, Ordering::SeqCst);
            });
            let mut received = 1;
            while !seen.load(Ordering::SeqCst) {
                inbox.receive().await;
                received += 1;
            }
            flag.unwrap().await.unwrap();
            received
        };
        let (process, pid) = Builder::new().spawn_priority(body).unwrap();
        for _ in 0..100_000 {
            pid.send(());
        }
        assert!(process.await.unwrap() < 10_000);
    });
}
