//! A unit that was killed ends while it runs code of others that waits: all are told nevertheless.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/signals.rs"]
mod signals;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::time::Duration;

use signals::{Message, custom, everywhere, waiting};
use tools::{Latch, on_each, watch};
use weald_kernel::{Wait, cancel_point, sleep};
use weald_process::{self as process, ExitReason, Inbox, monitor};

/// Calls this in its destructor.
struct AtEnd(fn());

impl Drop for AtEnd {
    fn drop(&mut self) {
        self.0();
    }
}

async fn all_are_told(waits: fn()) {
    let other = waiting(|_| ());
    let seen = other.pid().clone();
    let latch = Latch::default();
    let ready = latch.clone();
    let victim = waiting(move |inbox| {
        let (trap, convert) = (AtEnd(waits), AtEnd(waits));
        inbox.trap_exits(move |exit| {
            let _held = &trap;
            Message::Exit(exit)
        });
        inbox.monitor(&seen, move |down| {
            let _held = &convert;
            Message::Down(down)
        });
        ready.open();
    });
    latch.await;
    // A watcher whose code waits in the victim does not lose its message, which may come after others are told.
    let pid = victim.pid().clone();
    let latch = Latch::default();
    let watches = latch.clone();
    let watcher = process::spawn(async move |mut inbox: Inbox<Message>| {
        let held = AtEnd(waits);
        inbox.monitor(&pid, move |down| {
            let _held = held;
            Message::Down(down)
        });
        watches.open();
        inbox.receive().await
    });
    let watcher = watcher.unwrap();
    latch.await;
    let end = monitor(victim.pid());
    victim.pid().kill();
    assert_eq!(end.await.reason, ExitReason::Killed);
    assert!(matches!(watcher.await.unwrap(), Message::Down(_)));
    // Its thread tells of later ends, too.
    let end = monitor(other.pid());
    other.pid().exit(&custom());
    assert_eq!(end.await.reason, custom());
}

#[test]
fn a_killed_unit_whose_closures_wait_in_their_destructors_is_told_of() {
    everywhere(async || all_are_told(cancel_point).await);
    let _watch = watch();
    on_each(|runtime| runtime.block_on(all_are_told(|| sleep(Duration::from_millis(1)).wait())));
}

#[test]
fn a_watcher_whose_closure_exits_keeps_no_other_one_from_its_message() {
    everywhere(async || {
        let (victim, other) = (waiting(|_| ()), waiting(|_| ()));
        let pid = victim.pid().clone();
        let latch = Latch::default();
        let watches = latch.clone();
        let watcher = process::spawn(async move |mut inbox: Inbox<()>| {
            inbox.monitor(&pid, |_| process::exit(ExitReason::Shutdown));
            watches.open();
            inbox.receive().await
        });
        let watcher = watcher.unwrap();
        latch.await;
        let end = monitor(victim.pid());
        victim.pid().kill();
        assert_eq!(end.await.reason, ExitReason::Killed);
        let end = monitor(other.pid());
        other.pid().exit(&custom());
        assert_eq!(end.await.reason, custom());
        watcher.pid().send(());
        assert_eq!(watcher.await, Ok(()));
    });
}
