//! The order of signals and messages, and signals that are given up while they are on their way.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/signals.rs"]
mod signals;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    panic,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use signals::{Message, custom, everywhere, trapping, waiting};
use tools::{Latch, watch};
use weald_process::{self as process, Inbox, Pid, link, monitor, unlink};

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

/// Panics without the panic hook, which on a slow machine takes so long that the other peers are told apart, by jobs
/// for which a join does not wait.
fn panic_at_once() -> ! {
    panic::resume_unwind(Box::new("on purpose"))
}

#[test]
fn a_conversion_of_a_signal_that_panics_harms_nobody_else() {
    everywhere(async || {
        let other = waiting(|_| ());
        let pid = other.pid().clone();
        let latch = Latch::default();
        let is_ready = latch.clone();
        let process = process::spawn(async move |mut inbox: Inbox<Message>| {
            inbox.trap_exits(|_| panic_at_once());
            link(&pid);
            let monitor = inbox.monitor(&pid, |_| panic_at_once());
            is_ready.open();
            inbox.receive().await;
            (process::links(), inbox.demonitor(monitor), inbox.len())
        })
        .unwrap();
        latch.await;
        // The sender does not crash.
        process.exit(&custom());
        other.kill();
        // A join waits for the conversions, and a monitor does not.
        other.await.unwrap_err();
        process.pid().send(Message::Stop);
        assert_eq!(process.await, Ok((Vec::new(), false, 0)));
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
