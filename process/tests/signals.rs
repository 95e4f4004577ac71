//! Links and exit signals: Erlang's table, row by row. Every test runs on many schedules of the test runtime and on
//! real workers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/signals.rs"]
mod signals;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::panic::catch_unwind;

use signals::{Message, custom, everywhere, exits, settle, trapping, waiting};
use tools::{Drops, Latch};
use weald_kernel::{SpawnError, spawn, yield_now};
use weald_process::{self as process, ExitReason, Inbox, Pid, link, monitor, unlink};

/// A process linked with one that traps exits or not; `end` then ends the other one.
async fn linked(traps: bool, end: impl Fn(&Pid<Message>)) -> Result<Vec<Message>, ExitReason> {
    let other = waiting(|_| ());
    let pid = other.pid().clone();
    let latch = Latch::default();
    let is_linked = latch.clone();
    let process = waiting(move |inbox| {
        if traps {
            inbox.trap_exits(Message::Exit);
        }
        link(&pid);
        is_linked.open();
    });
    latch.await;
    let watch = monitor(&other);
    end(other.pid());
    watch.await;
    process.pid().send(Message::Stop);
    process.await
}

#[test]
fn a_link_with_reason_normal_is_dropped() {
    everywhere(async || {
        let seen = linked(false, |other| other.send(Message::Stop))
            .await
            .unwrap();
        assert!(seen.is_empty());
    });
}

#[test]
fn a_link_with_reason_normal_is_a_message_to_a_process_that_traps_exits() {
    everywhere(async || {
        let seen = linked(true, |other| other.send(Message::Stop))
            .await
            .unwrap();
        assert_eq!(exits(&seen), [&ExitReason::Normal]);
    });
}

#[test]
fn a_link_with_another_reason_ends_the_process_with_it() {
    everywhere(async || {
        let ended = linked(false, |other| other.exit(&custom())).await;
        assert_eq!(ended.unwrap_err(), custom());
    });
}

#[test]
fn a_link_with_another_reason_is_a_message_to_a_process_that_traps_exits() {
    everywhere(async || {
        let seen = linked(true, |other| other.exit(&custom())).await.unwrap();
        assert_eq!(exits(&seen), [&custom()]);
    });
}

#[test]
fn a_killed_process_ends_those_it_is_linked_with_unless_they_trap_exits() {
    everywhere(async || {
        let ended = linked(false, Pid::kill).await;
        assert_eq!(ended.unwrap_err(), ExitReason::Killed);
        let seen = linked(true, Pid::kill).await.unwrap();
        assert_eq!(exits(&seen), [&ExitReason::Killed]);
    });
}

#[test]
fn a_panic_goes_along_links_with_message_and_location() {
    everywhere(async || {
        let latch = Latch::default();
        let is_linked = latch.clone();
        let crash = process::spawn(async move |_: Inbox<()>| -> () {
            latch.await;
            panic!("on purpose, number {}", 7);
        })
        .unwrap();
        let pid = crash.pid().clone();
        let process = waiting(move |_| {
            link(&pid);
            is_linked.open();
        });
        let reason = crash.await.unwrap_err();
        assert_eq!(process.await.unwrap_err(), reason);
        let ExitReason::Crash(crash) = reason else {
            panic!("not a crash but {reason:?}");
        };
        assert_eq!(crash.message(), "on purpose, number 7");
        assert_eq!(crash.site().unwrap().file, file!());
    });
}

#[test]
fn an_exit_signal_with_reason_normal_from_another_process_is_dropped() {
    everywhere(async || {
        let process = waiting(|_| ());
        process.pid().exit(&ExitReason::Normal);
        process.pid().send(Message::Stop);
        assert!(process.await.unwrap().is_empty());
    });
}

#[test]
fn an_exit_signal_with_reason_normal_is_a_message_to_a_process_that_traps_exits() {
    everywhere(async || {
        let process = trapping().await;
        process.pid().exit(&ExitReason::Normal);
        process.pid().send(Message::Stop);
        let seen = process.await.unwrap();
        assert_eq!(exits(&seen), [&ExitReason::Normal]);
    });
}

#[test]
fn an_exit_signal_with_reason_normal_from_itself_ends_a_process() {
    everywhere(async || {
        let process = waiting(|inbox| inbox.pid().exit(&ExitReason::Normal));
        assert_eq!(process.await.unwrap_err(), ExitReason::Normal);
        let code = Drops::default();
        let token = code.token();
        let process = process::spawn(async move |_: Inbox<()>| {
            let _token = token;
            process::exit(ExitReason::Normal)
        });
        let ended: Result<(), _> = process.unwrap().await;
        assert_eq!((ended, code.count()), (Err(ExitReason::Normal), 1));
    });
}

#[test]
fn an_exit_signal_with_another_reason_ends_a_process_with_it() {
    everywhere(async || {
        let process = waiting(|_| ());
        process.pid().exit(&custom());
        // The first counts.
        process.pid().exit(&ExitReason::Shutdown);
        process.pid().kill();
        assert_eq!(process.await.unwrap_err(), custom());
    });
}

#[test]
fn an_exit_signal_after_a_kill_does_not_change_the_reason() {
    everywhere(async || {
        let process = waiting(|_| ());
        process.pid().kill();
        process.pid().exit(&custom());
        assert_eq!(process.await.unwrap_err(), ExitReason::Killed);
    });
}

#[test]
fn an_exit_signal_with_another_reason_is_a_message_to_a_process_that_traps_exits() {
    everywhere(async || {
        let process = trapping().await;
        let pid = process.pid().clone();
        let sender = process::spawn(async move |inbox: Inbox<()>| {
            pid.exit(&custom());
            pid.send(Message::Stop);
            inbox.pid().id()
        });
        let sender = sender.unwrap().await.unwrap();
        let seen = process.await.unwrap();
        assert_eq!(exits(&seen), [&custom()]);
        let Message::Exit(exit) = &seen[0] else {
            unreachable!("it was counted above")
        };
        assert_eq!(exit.from, Some(sender));
    });
}

#[test]
fn a_kill_ends_a_process_that_traps_exits() {
    everywhere(async || {
        let process = trapping().await;
        process.pid().kill();
        assert_eq!(process.await.unwrap_err(), ExitReason::Killed);
        // The reason alone is no kill.
        let process = trapping().await;
        process.pid().exit(&ExitReason::Killed);
        process.pid().send(Message::Stop);
        let seen = process.await.unwrap();
        assert_eq!(exits(&seen), [&ExitReason::Killed]);
    });
}

#[test]
fn a_process_that_no_longer_traps_exits_is_ended_by_them() {
    everywhere(async || {
        let latch = Latch::default();
        let has_untrapped = latch.clone();
        let process = waiting(move |inbox| {
            inbox.trap_exits(Message::Exit);
            inbox.untrap_exits();
            has_untrapped.open();
        });
        latch.await;
        process.pid().exit(&custom());
        assert_eq!(process.await.unwrap_err(), custom());
    });
}

#[test]
fn a_link_that_is_no_longer_active_passes_nothing_on() {
    everywhere(async || {
        let other = waiting(|_| ());
        let pid = other.pid().clone();
        let latch = Latch::default();
        let is_unlinked = latch.clone();
        let process = waiting(move |inbox| {
            inbox.trap_exits(Message::Exit);
            link(&pid);
            assert_eq!(process::links(), [pid.id()]);
            unlink(&pid);
            assert_eq!(process::links(), []);
            is_unlinked.open();
        });
        latch.await;
        let watch = monitor(&other);
        other.kill();
        watch.await;
        process.pid().send(Message::Stop);
        assert!(process.await.unwrap().is_empty());
    });
}

#[test]
fn after_an_unlink_no_exit_arrives_that_is_not_in_the_mailbox() {
    everywhere(async || {
        let other = waiting(|_| ());
        let pid = other.pid().clone();
        let process = process::spawn(async move |mut inbox: Inbox<Message>| {
            inbox.trap_exits(Message::Exit);
            link(&pid);
            settle().await;
            unlink(&pid);
            let _flushed = inbox.take_if(|message| matches!(message, Message::Exit(_)));
            settle().await;
            inbox.len()
        })
        .unwrap();
        spawn(async move {
            for _ in 0..25 {
                yield_now().await;
            }
            other.kill();
        })
        .detach();
        assert_eq!(process.await, Ok(0));
    });
}

#[test]
fn a_link_is_bidirectional_and_there_is_one_per_pair() {
    everywhere(async || {
        let first = trapping().await;
        let pid = first.pid().clone();
        let latch = Latch::default();
        let is_linked = latch.clone();
        let second = waiting(move |_| {
            link(&pid);
            link(&pid);
            assert_eq!(process::links(), [pid.id()]);
            is_linked.open();
        });
        latch.await;
        let watch = monitor(&second);
        second.pid().exit(&custom());
        watch.await;
        first.pid().send(Message::Stop);
        let seen = first.await.unwrap();
        assert_eq!(exits(&seen), [&custom()]);
    });
}

#[test]
fn a_link_with_itself_does_nothing() {
    everywhere(async || {
        let process = waiting(|inbox| {
            link(&inbox.pid());
            assert_eq!(process::links(), []);
        });
        process.pid().send(Message::Stop);
        assert!(process.await.unwrap().is_empty());
    });
}

#[test]
fn a_link_to_a_missing_process_is_an_exit_signal_noproc() {
    everywhere(async || {
        for traps in [false, true] {
            let gone = waiting(|_| ());
            let pid = gone.pid().clone();
            pid.send(Message::Stop);
            gone.await.unwrap();
            let id = pid.id();
            let latch = Latch::default();
            let is_linked = latch.clone();
            let process = waiting(move |inbox| {
                if traps {
                    inbox.trap_exits(Message::Exit);
                }
                link(&pid);
                is_linked.open();
            });
            latch.await;
            process.pid().send(Message::Stop);
            match process.await {
                Ok(seen) => {
                    assert!(traps);
                    assert_eq!(exits(&seen), [&ExitReason::NoProcess]);
                    assert!(matches!(&seen[0], Message::Exit(exit) if exit.from == Some(id)));
                }
                Err(reason) => assert_eq!((traps, reason), (false, ExitReason::NoProcess)),
            }
        }
    });
}

#[test]
fn a_process_whose_body_is_not_made_is_linked_with_nobody() {
    everywhere(async || {
        let process = process::spawn(async |_: Inbox<()>| {
            let spawned = catch_unwind(|| {
                let body = |_: Inbox<()>| -> std::future::Ready<()> { panic!("on purpose") };
                process::spawn_link(body).map(drop)
            });
            assert!(spawned.is_err());
            assert!(process::links().is_empty());
            yield_now().await;
        });
        assert_eq!(process.unwrap().await, Ok(()));
    });
}

#[test]
fn spawn_link_is_one_step() {
    everywhere(async || {
        for _ in 0..20 {
            let process = process::spawn(async |mut inbox: Inbox<Message>| {
                inbox.trap_exits(Message::Exit);
                let child = process::spawn_link(async |_: Inbox<()>| ())?.into_pid();
                let Message::Exit(exit) = inbox.receive().await else {
                    panic!("not an exit");
                };
                assert_eq!(exit.from, Some(child.id()));
                Ok::<_, SpawnError>(exit.reason)
            });
            assert_eq!(process.unwrap().await, Ok(Ok(ExitReason::Normal)));
        }
        // The other way round: the parent's end ends the child.
        let (sender, child) = std::sync::mpsc::channel();
        let parent = process::spawn(async move |_: Inbox<()>| -> () {
            let child = process::spawn_link(async |mut inbox: Inbox<()>| inbox.receive().await);
            sender.send(child.unwrap()).unwrap();
            process::exit(custom())
        });
        assert_eq!(parent.unwrap().await, Err(custom()));
        assert_eq!(child.recv().unwrap().await, Err(custom()));
    });
}

#[test]
fn an_exit_signal_that_a_callback_sends_comes_from_outside_of_all_units() {
    everywhere(async || {
        let process = trapping().await;
        let (pid, sent) = (process.pid().clone(), Latch::default());
        let opens = sent.clone();
        process::callback::spawn(move || {
            pid.exit(&custom());
            opens.open();
        })
        .detach();
        sent.await;
        process.pid().send(Message::Stop);
        let seen = process.await.unwrap();
        assert!(
            matches!(&seen[..], [Message::Exit(exit)] if exit.from.is_none()),
            "{seen:?}"
        );
    });
}
