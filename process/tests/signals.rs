//! Signals: Erlang's table, row by row. Every test runs on many schedules of the test runtime and on real workers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tools::{Drops, Latch, on_each, watch};
use weald_kernel::{Runtime, SpawnError, sleep, spawn, timeout, yield_now};
use weald_process::{
    self as process, Down, Exit, ExitReason, Inbox, MonitorRef, Pid, Process, link, monitor, unlink,
};

/// Runs `test` with a hundred seeds of the test runtime, and on runtimes of 1, 2 and 4 workers.
fn everywhere(test: impl AsyncFn()) {
    let _watch = watch();
    for seed in 0..100 {
        Runtime::test(seed).block_on(test());
    }
    on_each(|runtime| runtime.block_on(test()));
}

#[derive(Debug)]
enum Message {
    Text(u32),
    Exit(Exit),
    Down(Down),
    Stop,
}

/// The steps of a process that a test drives.
type Step = Box<dyn FnOnce(&mut Inbox<Message>) + Send>;

/// A process that waits for [`Message::Stop`], after `step`, and then returns what came before.
fn waiting(step: impl FnOnce(&mut Inbox<Message>) + Send + 'static) -> Waiting {
    let step: Step = Box::new(step);
    process::spawn(async move |mut inbox: Inbox<Message>| {
        step(&mut inbox);
        until_stop(inbox).await
    })
    .unwrap()
}

async fn until_stop(mut inbox: Inbox<Message>) -> Vec<Message> {
    let mut seen = Vec::new();
    loop {
        match inbox.receive().await {
            Message::Stop => return seen,
            message => seen.push(message),
        }
    }
}

type Waiting = Process<Message, Vec<Message>>;

/// Lets others run. No test depends on how far they come.
async fn settle() {
    for _ in 0..50 {
        yield_now().await;
    }
}

fn custom() -> ExitReason {
    ExitReason::custom("on purpose")
}

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

fn exits(seen: &[Message]) -> Vec<&ExitReason> {
    seen.iter()
        .filter_map(|message| match message {
            Message::Exit(exit) => Some(&exit.reason),
            _ => None,
        })
        .collect()
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
        assert_eq!(crash.site().unwrap().file, "process/tests/signals.rs");
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

/// A process that traps exits already.
async fn trapping() -> Waiting {
    let latch = Latch::default();
    let traps = latch.clone();
    let process = waiting(move |inbox| {
        inbox.trap_exits(Message::Exit);
        traps.open();
    });
    latch.await;
    process
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
fn spawn_monitor_is_one_step() {
    everywhere(async || {
        for _ in 0..20 {
            let (process, monitor) = process::spawn_monitor(async |_: Inbox<()>| ()).unwrap();
            let down = monitor.await;
            assert_eq!(down.reason, ExitReason::Normal);
            assert_eq!(down.process, Some(process.pid().id()));
            assert!(!process.pid().is_alive());
        }
    });
}

#[test]
fn monitors_stack_up_and_each_tells_once() {
    everywhere(async || {
        let other = waiting(|_| ());
        let pid = other.pid().clone();
        let (sender, numbers) = std::sync::mpsc::channel();
        let process = waiting(move |inbox| {
            let monitors = [0; 3].map(|_| inbox.monitor(&pid, Message::Down));
            sender.send(monitors).unwrap();
        });
        let mut futures = [0; 2].map(|_| monitor(&other));
        let monitors = loop {
            match numbers.try_recv() {
                Ok(monitors) => break monitors,
                Err(_) => yield_now().await,
            }
        };
        let last = monitor(&other);
        other.pid().exit(&custom());
        assert_eq!(last.await.reason, custom());
        for monitor in &mut futures {
            assert_eq!(monitor.await.reason, custom());
        }
        process.pid().send(Message::Stop);
        let seen = process.await.unwrap();
        let mut told: Vec<MonitorRef> = seen
            .iter()
            .map(|message| match message {
                Message::Down(down) => {
                    assert_eq!(down.reason, custom());
                    down.monitor
                }
                other => panic!("not a down but {other:?}"),
            })
            .collect();
        told.sort_unstable();
        assert_eq!(told, monitors);
    });
}

#[test]
fn a_monitor_of_a_missing_process_tells_noproc_at_once() {
    everywhere(async || {
        let gone = waiting(|_| ());
        let pid = gone.pid().clone();
        pid.kill();
        let _killed = gone.await;
        assert_eq!(monitor(&pid).await.reason, ExitReason::NoProcess);
        let process = waiting(move |inbox| {
            let monitor = inbox.monitor(&pid, Message::Down);
            let noproc =
                |down: &Down| down.reason == ExitReason::NoProcess && down.monitor == monitor;
            let down = inbox.try_receive();
            assert!(matches!(down, Some(Message::Down(down)) if noproc(&down)));
            inbox.pid().send(Message::Stop);
        });
        process.await.unwrap();
    });
}

#[test]
fn a_monitor_is_unidirectional() {
    everywhere(async || {
        let other = waiting(|_| ());
        let pid = other.pid().clone();
        let latch = Latch::default();
        let monitors = latch.clone();
        let process = waiting(move |inbox| {
            inbox.monitor(&pid, Message::Down);
            monitors.open();
        });
        latch.await;
        process.pid().exit(&custom());
        assert_eq!(process.await.unwrap_err(), custom());
        other.pid().send(Message::Stop);
        assert!(other.await.unwrap().is_empty());
    });
}

/// Panics when it is dropped.
struct Breaks;

impl Drop for Breaks {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("on purpose");
        }
    }
}

#[test]
fn a_monitor_that_panics_when_it_is_dropped_keeps_no_peer_from_its_signal() {
    everywhere(async || {
        let other = waiting(|_| ());
        let pid = other.pid().clone();
        let latch = Latch::default();
        let is_ready = latch.clone();
        let process = waiting(move |inbox| {
            let breaks = Breaks;
            inbox.monitor(&pid, move |down| {
                std::mem::forget(breaks);
                Message::Down(down)
            });
            is_ready.open();
        });
        latch.await;
        let watch = monitor(&process);
        let pid = process.pid().clone();
        let linked = waiting(move |_| link(&pid));
        settle().await;
        process.kill();
        assert_eq!(watch.await.reason, ExitReason::Killed);
        // It was linked before, or finds nobody now.
        assert!(linked.await.is_err());
        other.kill();
    });
}

#[test]
fn a_conversion_of_a_signal_that_panics_harms_nobody_else() {
    everywhere(async || {
        let other = waiting(|_| ());
        let pid = other.pid().clone();
        let latch = Latch::default();
        let is_ready = latch.clone();
        let process = process::spawn(async move |mut inbox: Inbox<Message>| {
            inbox.trap_exits(|_| panic!("on purpose"));
            link(&pid);
            let monitor = inbox.monitor(&pid, |_| panic!("on purpose"));
            is_ready.open();
            inbox.receive().await;
            (process::links(), inbox.demonitor(monitor), inbox.len())
        })
        .unwrap();
        latch.await;
        // The sender does not crash.
        process.exit(&custom());
        let watch = monitor(&other);
        other.kill();
        watch.await;
        process.pid().send(Message::Stop);
        assert_eq!(process.await, Ok((Vec::new(), false, 0)));
    });
}

#[test]
fn after_a_demonitor_with_flush_no_down_arrives() {
    everywhere(async || {
        let other = waiting(|_| ());
        let pid = other.pid().clone();
        let process = process::spawn(async move |mut inbox: Inbox<Message>| {
            let monitor = inbox.monitor(&pid, Message::Down);
            settle().await;
            let stood = inbox.demonitor(monitor);
            let ours = |message: &Message| matches!(message, Message::Down(down) if down.monitor == monitor);
            let flushed = inbox.take_if(ours);
            assert_eq!(stood, flushed.is_none());
            settle().await;
            inbox.len()
        })
        .unwrap();
        spawn(async move {
            for _ in 0..25 {
                yield_now().await;
            }
            other.kill();
            let _killed = other.await;
        })
        .detach();
        assert_eq!(process.await, Ok(0));
    });
}

#[test]
fn a_monitor_that_is_dropped_leaves_nothing() {
    everywhere(async || {
        let other = waiting(|_| ());
        let before = monitor(&other);
        drop(before);
        let mut never = monitor(&other);
        assert_eq!(never.try_down(), None);
        let late = timeout(std::time::Duration::from_millis(1), &mut never).await;
        assert!(late.is_err());
        other.kill();
        assert_eq!(never.await.reason, ExitReason::Killed);
    });
}

#[test]
fn what_a_dead_process_held_is_dropped_before_anyone_is_told() {
    everywhere(async || {
        let drops = Drops::default();
        let token = drops.token();
        let other = process::spawn(async move |mut inbox: Inbox<()>| {
            let _token = token;
            inbox.receive().await
        })
        .unwrap();
        let pid = other.pid().clone();
        let (sender, told) = std::sync::mpsc::channel();
        let (count, seen) = (drops.clone(), pid.clone());
        let latch = Latch::default();
        let is_linked = latch.clone();
        let process = waiting(move |inbox| {
            let (exits, ends) = (sender.clone(), count.clone());
            let alive = seen.clone();
            inbox.trap_exits(move |exit| {
                exits.send((ends.count(), alive.is_alive())).unwrap();
                Message::Exit(exit)
            });
            let alive = seen.clone();
            inbox.monitor(&seen, move |down| {
                sender.send((count.count(), alive.is_alive())).unwrap();
                Message::Down(down)
            });
            link(&seen);
            is_linked.open();
        });
        latch.await;
        let last = monitor(&pid);
        other.kill();
        last.await;
        process.pid().send(Message::Stop);
        process.await.unwrap();
        let told: Vec<_> = told.try_iter().collect();
        assert!(told.iter().all(|told| *told == (1, false)), "{told:?}");
        assert_eq!(told.len(), 2);
    });
}

#[test]
fn what_was_sent_before_an_exit_signal_is_received_and_what_was_sent_after_is_not() {
    everywhere(async || {
        let process = waiting(|_| ());
        process.pid().send(Message::Text(1));
        process.pid().exit(&custom());
        assert!(process.pid().try_send(Message::Text(2)).is_err());
        assert_eq!(process.await.unwrap_err(), custom());
        // A trapping process sees all three in their order.
        let process = trapping().await;
        process.pid().send(Message::Text(1));
        process.pid().exit(&custom());
        process.pid().send(Message::Text(2));
        process.pid().send(Message::Stop);
        let seen = process.await.unwrap();
        assert!(
            matches!(
                &seen[..],
                [Message::Text(1), Message::Exit(_), Message::Text(2)]
            ),
            "{seen:?}"
        );
    });
}

#[test]
fn last_messages_come_before_the_exit_and_the_down() {
    everywhere(async || {
        let process = trapping().await;
        let pid = process.pid().clone();
        let other = process::spawn(async move |mut inbox: Inbox<()>| {
            link(&pid);
            inbox.receive().await;
            pid.send(Message::Text(9));
        })
        .unwrap();
        let watch = monitor(&other);
        other.pid().send(());
        watch.await;
        process.pid().send(Message::Stop);
        let seen = process.await.unwrap();
        assert!(
            matches!(&seen[..], [Message::Text(9), Message::Exit(_)]),
            "{seen:?}"
        );
    });
}

#[test]
fn jobs_are_monitored_and_linked_as_processes_are() {
    everywhere(async || {
        let job = spawn(async { sleep(std::time::Duration::from_secs(3600)).await });
        let watch = monitor(&job);
        job.cancel();
        assert_eq!(watch.await.reason, ExitReason::Killed);
        let process = waiting(|_| ());
        let pid = process.pid().clone();
        let job = spawn(async move {
            link(&pid);
            panic!("on purpose");
        });
        let watch = monitor(&job);
        let reason = watch.await.reason;
        assert!(matches!(
            reason,
            ExitReason::Crash(_) | ExitReason::NoProcess
        ));
        assert!(matches!(process.await, Err(ExitReason::Crash(_))));
    });
}

/// Two moments of a signal that is on its way while its receiver gives it up.
#[derive(Clone, Default)]
struct OnItsWay {
    converting: Arc<AtomicBool>,
    given_up: Arc<AtomicBool>,
}

impl OnItsWay {
    /// Within the conversion: goes on when the receiver has given the signal up.
    fn pass(&self) {
        self.converting.store(true, Ordering::SeqCst);
        tools::until(|| self.given_up.load(Ordering::SeqCst));
    }

    /// In the receiver: gives it up within the conversion; returns when the signal had time to arrive.
    async fn give_up(&self, other: &Pid<Message>, give_up: impl FnOnce()) {
        let told = monitor(other);
        other.kill();
        tools::until_yielding(|| self.converting.load(Ordering::SeqCst)).await;
        give_up();
        self.given_up.store(true, Ordering::SeqCst);
        told.await;
    }
}

#[test]
fn an_exit_that_is_on_its_way_when_its_link_is_removed_never_arrives() {
    let _watch = watch();
    let runtime = tools::runtime(2);
    let process = runtime.block_on(async {
        let other = waiting(|_| ()).into_pid();
        process::spawn(async move |mut inbox: Inbox<Message>| {
            let way = OnItsWay::default();
            let passing = way.clone();
            inbox.trap_exits(move |exit| {
                passing.pass();
                Message::Exit(exit)
            });
            link(&other);
            way.give_up(&other, || unlink(&other)).await;
            inbox.len()
        })
        .unwrap()
    });
    assert_eq!(runtime.block_on(process), Ok(0));
}

#[test]
fn a_down_that_is_on_its_way_when_its_monitor_is_ended_never_arrives() {
    let _watch = watch();
    let runtime = tools::runtime(2);
    let process = runtime.block_on(async {
        let other = waiting(|_| ()).into_pid();
        process::spawn(async move |mut inbox: Inbox<Message>| {
            let way = OnItsWay::default();
            let passing = way.clone();
            let down = inbox.monitor(&other, move |down| {
                passing.pass();
                Message::Down(down)
            });
            way.give_up(&other, || assert!(inbox.demonitor(down))).await;
            inbox.len()
        })
        .unwrap()
    });
    assert_eq!(runtime.block_on(process), Ok(0));
}
