//! Timers of processes: messages that are sent again and again, and their end.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::time::Duration;

use tools::each_seed;
use weald_kernel::{Runtime, now, sleep};
use weald_process::{self as process, Inbox};

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_message_is_sent_on_the_grid_until_the_timer_is_cancelled() {
    each_seed(100, async || {
        let process = process::spawn(async |mut inbox: Inbox<u32>| {
            let begin = now();
            let mut next = 0..;
            let timer = inbox.send_every(10 * MS, move || next.next().unwrap());
            for n in 0..5 {
                assert_eq!(inbox.receive().await, n);
                assert_eq!(now() - begin, 10 * MS * (n + 1));
            }
            assert!(timer.cancel());
            sleep(100 * MS).await;
            inbox.try_receive()
        });
        assert_eq!(process.unwrap().await.unwrap(), None);
    });
}

#[test]
fn a_timer_ends_with_the_process_that_set_it() {
    each_seed(100, async || {
        let receiver = process::spawn(async |mut inbox: Inbox<()>| {
            for _ in 0..3 {
                inbox.receive().await;
            }
            sleep(100 * MS).await;
            inbox.try_receive()
        })
        .unwrap();
        let pid = receiver.pid().clone();
        let sender = process::spawn(async move |_: Inbox<()>| {
            pid.send_every(10 * MS, || ()).detach();
            pid.send_after(200 * MS, ()).detach();
            sleep(35 * MS).await;
        });
        sender.unwrap().await.unwrap();
        assert_eq!(receiver.await.unwrap(), None);
    });
}

#[test]
fn a_longer_time_counts_as_a_century() {
    const SECOND: Duration = Duration::from_secs(1);
    const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    Runtime::test(1).block_on(async {
        let process = process::spawn(async |mut inbox: Inbox<&str>| {
            for duration in [CENTURY, CENTURY + MS, 3 * CENTURY, Duration::MAX] {
                let timer = inbox.send_after(duration, "late");
                assert_eq!(timer.remaining(), Some(CENTURY), "{duration:?}");
                sleep(SECOND).await;
                assert_eq!(timer.remaining(), Some(CENTURY - SECOND), "{duration:?}");
                assert_eq!(timer.cancel(), Some(CENTURY - SECOND), "{duration:?}");
                assert_eq!(timer.remaining(), None);
            }
            let begin = now();
            let timer = inbox.send_after(Duration::MAX, "a century later");
            let every = inbox.send_every(Duration::MAX, || "again");
            assert_eq!(inbox.receive().await, "a century later");
            assert!(now() - begin >= CENTURY);
            assert_eq!((timer.remaining(), timer.cancel()), (None, None));
            assert_eq!(inbox.receive().await, "again");
            every.cancel();
        });
        process.unwrap().await.unwrap();
    });
}
