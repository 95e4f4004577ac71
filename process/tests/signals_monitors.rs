//! Monitors: Erlang's table of signals, row by row. Every test runs on many schedules of the test runtime and on real
//! workers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/signals.rs"]
mod signals;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use signals::{Message, custom, everywhere, settle, waiting};
use tools::{Drops, Latch};
use weald_kernel::{sleep, spawn, timeout, yield_now};
use weald_process::{self as process, Down, ExitReason, Inbox, MonitorRef, link, monitor};

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
