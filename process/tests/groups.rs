//! Groups: membership, which ends before anyone learns of the member's end; broadcasts; slow members; watches.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::sync::{Arc, Mutex};

use tools::{Latch, each_seed, for_seeds, on_each};
use weald_kernel::{spawn, yield_now};
use weald_process::{
    self as process, Broadcast, ExitReason, Group, GroupChange, GroupError, Inbox, Pid, Process,
    Slow, monitor,
};

static GROUP: Group<u32> = Group::new("group");

fn everywhere(test: impl AsyncFn()) {
    each_seed(100, &test);
    on_each(|runtime| runtime.block_on(test()));
}

enum Message {
    Number(Broadcast<u32>),
    Changed(GroupChange),
    Stop,
}

/// A process that returns what was broadcast to it before it was stopped, and how much it missed.
fn listener() -> Process<Message, (Vec<u32>, usize)> {
    let process = process::spawn(async |mut inbox: Inbox<Message>| {
        let (mut numbers, mut missed) = (Vec::new(), 0);
        loop {
            match inbox.receive().await {
                Message::Number(number) => {
                    missed += number.missed();
                    numbers.push(*number);
                }
                Message::Changed(_) => {}
                Message::Stop => return (numbers, missed),
            }
        }
    });
    process.unwrap()
}

#[test]
fn a_broadcast_reaches_the_members_of_that_moment_in_its_order() {
    everywhere(async || {
        let listeners = [0; 5].map(|_| listener());
        for listener in &listeners {
            GROUP
                .join(listener.pid(), Slow::Queue, Message::Number)
                .unwrap();
        }
        let joined = GroupError::Joined("group".to_owned());
        let again = GROUP.join(listeners[0].pid(), Slow::Queue, Message::Number);
        assert_eq!(again, Err(joined));
        assert_eq!(GROUP.members().len(), 5);
        assert_eq!(GROUP.broadcast(1).unwrap().sent, 5);
        assert!(GROUP.leave(listeners[0].pid()));
        assert!(!GROUP.leave(listeners[0].pid()));
        assert_eq!(GROUP.broadcast(2).unwrap().sent, 4);
        assert!(matches!(
            Group::<&str>::new("group").broadcast("text"),
            Err(GroupError::WrongType { .. })
        ));
        for (n, listener) in listeners.into_iter().enumerate() {
            listener.pid().send(Message::Stop);
            let expected: &[u32] = if n == 0 { &[1] } else { &[1, 2] };
            assert_eq!(listener.await.unwrap().0, expected);
        }
        assert_eq!(GROUP.broadcast(3).unwrap().sent, 0);
        // An empty group has no type.
        assert_eq!(
            Group::<&str>::new("group").broadcast("text").unwrap().sent,
            0
        );
    });
}

#[test]
fn a_member_has_left_when_its_end_is_told() {
    everywhere(async || {
        let listener = listener();
        GROUP
            .join(listener.pid(), Slow::Queue, Message::Number)
            .unwrap();
        let down = monitor(&listener);
        listener.kill();
        down.await;
        assert!(GROUP.members().is_empty());
        let gone = GROUP.join(listener.pid(), Slow::Queue, Message::Number);
        assert_eq!(gone, Err(GroupError::NoProcess("group".to_owned())));
    });
}

/// A message that a dead receiver leaves to its sender to drop.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("on purpose");
    }
}

#[test]
fn a_receiver_whose_messages_panic_when_they_are_dropped_harms_no_other_one() {
    everywhere(async || {
        let is_deaf = Latch::default();
        let hears_nothing = is_deaf.clone();
        let deaf = process::spawn(async move |inbox: Inbox<Bomb>| {
            drop(inbox);
            hears_nothing.open();
            std::future::pending::<()>().await;
        });
        let deaf = deaf.unwrap();
        is_deaf.await;
        let heard = process::spawn(async |mut inbox: Inbox<Message>| {
            let (mut numbers, mut changes) = (0, 0);
            loop {
                match inbox.receive().await {
                    Message::Number(_) => numbers += 1,
                    Message::Changed(_) => changes += 1,
                    Message::Stop => return (numbers, changes),
                }
            }
        });
        let heard = heard.unwrap();
        let (_, watches_in_vain) = GROUP.watch(deaf.pid(), |_| Bomb).unwrap();
        let (_, watches) = GROUP.watch(heard.pid(), Message::Changed).unwrap();
        // The deaf one has joined first, and so comes first.
        GROUP.join(deaf.pid(), Slow::Queue, |_| Bomb).unwrap();
        GROUP
            .join(heard.pid(), Slow::Queue, Message::Number)
            .unwrap();
        for n in 0..3 {
            assert_eq!(GROUP.broadcast(n).unwrap().sent, 2);
        }
        assert!(GROUP.leave(deaf.pid()));
        heard.pid().send(Message::Stop);
        assert_eq!(heard.await, Ok((3, 3)));
        drop((watches_in_vain, watches));
        deaf.kill();
    });
}

#[test]
fn a_watch_that_ends_while_it_tells_harms_no_other_one_although_its_closure_panics_when_it_is_dropped()
 {
    everywhere(async || {
        let member = process::spawn(async |mut inbox: Inbox<Message>| {
            let mut changes = 0;
            while let Message::Changed(_) = inbox.receive().await {
                changes += 1;
            }
            changes
        });
        let member = member.unwrap();
        let own = Arc::new(Mutex::new(None));
        let (watch, bomb) = (own.clone(), Bomb);
        let (_, dropped) = GROUP
            .watch(member.pid(), move |change| {
                let _held = &bomb;
                drop(watch.lock().unwrap().take());
                Message::Changed(change)
            })
            .unwrap();
        *own.lock().unwrap() = Some(dropped);
        let (_, kept) = GROUP.watch(member.pid(), Message::Changed).unwrap();
        GROUP
            .join(member.pid(), Slow::Queue, Message::Number)
            .unwrap();
        assert!(GROUP.leave(member.pid()));
        member.pid().send(Message::Stop);
        // The first change for both, the second for the one that is left.
        assert_eq!(member.await, Ok(3));
        drop(kept);
    });
}

/// Numbers, and how many were missed before each.
type Seen = Vec<(u32, usize)>;

/// A member that takes nothing until it is stopped, and then returns what it finds.
fn sleeper(slow: Slow) -> (Pid<Message>, Process<(), Seen>) {
    let (sender, receiver) = std::sync::mpsc::channel();
    let mailbox = process::spawn(async move |inbox: Inbox<Message>| {
        sender.send(inbox).unwrap();
        std::future::pending::<()>().await;
    });
    let pid = mailbox.unwrap().into_pid();
    GROUP.join(&pid, slow, Message::Number).unwrap();
    let reader = process::spawn(async move |mut stop: Inbox<()>| {
        stop.receive().await;
        let mut inbox = loop {
            match receiver.try_recv() {
                Ok(inbox) => break inbox,
                Err(_) => yield_now().await,
            }
        };
        let mut seen = Vec::new();
        while let Some(message) = inbox.try_receive() {
            if let Message::Number(number) = message {
                seen.push((*number, number.missed()));
            }
        }
        GROUP.broadcast(100).unwrap();
        while let Some(Message::Number(number)) = inbox.try_receive() {
            seen.push((*number, number.missed()));
        }
        seen
    });
    (pid, reader.unwrap())
}

#[test]
fn a_slow_member_misses_leaves_or_ends_as_it_said() {
    everywhere(async || {
        let (missing, misses) = sleeper(Slow::Miss(2));
        let (leaving, leaves) = sleeper(Slow::Leave(2));
        let reason = ExitReason::custom("too slow");
        let (ending, _ends) = sleeper(Slow::Exit(2, reason.clone()));
        let (queueing, queues) = sleeper(Slow::Queue);
        let down = monitor(&ending);
        for n in 0..2 {
            assert_eq!(GROUP.broadcast(n).unwrap().sent, 4);
        }
        let third = GROUP.broadcast(2).unwrap();
        assert_eq!((third.sent, third.missed, third.left), (1, 1, 2));
        assert_eq!(down.await.reason, reason);
        assert!(leaving.is_alive());
        let fourth = GROUP.broadcast(3).unwrap();
        assert_eq!((fourth.sent, fourth.missed, fourth.left), (1, 1, 0));
        misses.pid().send(());
        assert_eq!(misses.await.unwrap(), [(0, 0), (1, 0), (100, 2)]);
        leaves.pid().send(());
        assert_eq!(leaves.await.unwrap(), [(0, 0), (1, 0)]);
        queues.pid().send(());
        let numbers: Vec<u32> = queues
            .await
            .unwrap()
            .into_iter()
            .map(|seen| seen.0)
            .collect();
        assert_eq!(numbers, [0, 1, 2, 3, 100, 100, 100]);
        for pid in [missing, leaving, queueing] {
            pid.kill();
            monitor(&pid).await;
        }
    });
}

#[test]
fn a_watch_tells_every_change_in_its_order() {
    for_seeds(50, |random| {
        let runtime = tools::runtime(1 + random.below(3));
        let rounds = 1 + random.below(20);
        runtime.block_on(async {
            let watching = Latch::default();
            let is_watching = watching.clone();
            let watcher = process::spawn(async move |mut inbox: Inbox<Message>| {
                let (members, _watch) = GROUP.watch(&inbox.pid(), Message::Changed).unwrap();
                let mut members: Vec<_> = members;
                is_watching.open();
                let mut count = 0;
                while count < 2 * 3 * rounds {
                    match inbox.receive().await {
                        Message::Changed(GroupChange::Joined(id)) => {
                            assert!(!members.contains(&id));
                            members.push(id);
                        }
                        Message::Changed(GroupChange::Left(id)) => {
                            assert!(members.contains(&id));
                            members.retain(|member| *member != id);
                        }
                        _ => continue,
                    }
                    count += 1;
                }
                members.len()
            })
            .unwrap();
            watching.await;
            let jobs: Vec<_> = (0..3)
                .map(|n| {
                    spawn(async move {
                        for round in 0..rounds {
                            let listener = listener();
                            GROUP
                                .join(listener.pid(), Slow::Queue, Message::Number)
                                .unwrap();
                            match (n + round) % 2 {
                                0 => assert!(GROUP.leave(listener.pid())),
                                _ => listener.kill(),
                            }
                            listener.kill();
                            let _killed = listener.await;
                        }
                    })
                })
                .collect();
            for job in jobs {
                job.await.unwrap();
            }
            assert_eq!(watcher.await, Ok(0));
        });
        assert!(runtime.block_on(async { GROUP.members() }).is_empty());
    });
}

/// A value whose destructor panics.
struct Breaks;

impl Drop for Breaks {
    fn drop(&mut self) {
        panic!("on purpose");
    }
}

#[test]
fn a_member_that_leaves_during_a_broadcast_drops_what_it_held_without_harm_to_the_sender() {
    everywhere(async || {
        let (first, second) = (listener(), listener());
        // The members are told in ascending order.
        assert!(first.pid().id() < second.pid().id());
        let (pid, held) = (second.pid().clone(), Breaks);
        let leaves = move |number| {
            GROUP.leave(&pid);
            Message::Number(number)
        };
        GROUP.join(first.pid(), Slow::Queue, leaves).unwrap();
        let holds = move |number| {
            let _held = &held;
            Message::Number(number)
        };
        GROUP.join(second.pid(), Slow::Queue, holds).unwrap();
        let broadcasts = process::spawn(async |_: Inbox<()>| GROUP.broadcast(1).unwrap().sent);
        assert_eq!(broadcasts.unwrap().await, Ok(2));
        assert_eq!(GROUP.members(), [first.pid().id()]);
        for listener in [first, second] {
            listener.kill();
            let _killed = listener.await;
        }
    });
}
