//! Events and processes: joins and mailboxes are events, and a kill or a crash abandons a sync.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::time::Duration;

use tools::{on_each, runtime, until, watch};
use weald_kernel::{Wait, spawn, yield_now};
use weald_process::{self as process, ExitReason, Inbox, ProcessSet};
use weald_sync::{
    Event, Mutex, after, always, channel, choose, never, of_source, select, with_nack,
};

#[test]
fn processes_their_monitors_and_sets_are_events_that_lose_nothing() {
    on_each(|runtime| {
        let ended = runtime.block_on(async {
            let (mut set, mut ended) = (ProcessSet::new(), Vec::new());
            for number in 0..50_u32 {
                set.spawn(async move |_: Inbox<()>| {
                    yield_now().await;
                    number
                })
                .unwrap();
            }
            let add = async |mut inbox: Inbox<u32>| inbox.receive().await + 2;
            let mut adder = process::spawn(add).unwrap();
            let mut down = process::monitor(adder.pid());
            adder.pid().send(40);
            let (mut sum, mut reason) = (None, None);
            while !set.is_empty() || sum.is_none() || reason.is_none() {
                select! {
                    next = (!set.is_empty()).then(|| set.join_next()) => ended.push(next.unwrap().1.unwrap()),
                    end = sum.is_none().then_some(&mut adder) => sum = Some(end),
                    down = reason.is_none().then_some(&mut down) => reason = Some(down.reason),
                    () = always(()) => yield_now().await,
                }
            }
            assert_eq!((sum, reason), (Some(Ok(42)), Some(ExitReason::Normal)));
            ended.sort();
            ended
        });
        assert!(ended.into_iter().eq(0..50));
    });
}

#[test]
fn a_message_and_a_join_are_events() {
    on_each(|runtime| {
        let (name, sum) = runtime.block_on(async {
            let process = process::spawn(async |mut inbox: Inbox<u32>| {
                let mut helper = spawn(async {
                    yield_now().await;
                    40
                });
                let mut sum = 0;
                let mut first = None;
                for _ in 0..2 {
                    select! {
                        number = inbox.receive() => {
                            first.get_or_insert("message");
                            sum += number;
                        }
                        helped = of_source(&mut helper) => {
                            first.get_or_insert("join");
                            sum += helped.unwrap_or(0);
                        }
                    }
                }
                (first, sum)
            })
            .unwrap();
            process.pid().send(1);
            process.pid().send(1);
            process.await.unwrap()
        });
        assert!(name.is_some());
        // Two messages; or the helper's value and one message, or twice the handle, which is empty the second time.
        assert!([1, 2, 40, 41].contains(&sum), "{sum}");
    });
}

#[test]
fn a_message_that_lost_to_another_event_is_not_lost() {
    on_each(|runtime| {
        runtime.block_on(async {
            let process = process::spawn(async |mut inbox: Inbox<u32>| {
                let mut received = Vec::new();
                let mut skipped = 0;
                while received.len() < 100 {
                    select! {
                        number = inbox.receive() => received.push(number),
                        () = always(()) => skipped += 1,
                    }
                }
                (received, skipped)
            })
            .unwrap();
            for n in 0..100 {
                process.pid().send(n);
            }
            let (received, skipped) = process.await.unwrap();
            assert_eq!(received, (0..100).collect::<Vec<_>>());
            assert!(skipped > 0);
        });
    });
}

#[test]
fn a_process_that_waits_for_an_event_can_be_killed_and_its_nack_fires() {
    let _watch = watch();
    let runtime = runtime(2);
    let (sender, nacks) = channel::unbounded();
    let process = runtime.block_on(async {
        process::spawn(async move |mut inbox: Inbox<()>| {
            let lost = with_nack(|nack| {
                sender.try_send(nack).unwrap();
                never()
            });
            choose((lost, inbox.receive())).sync().await;
        })
        .unwrap()
    });
    let nack = nacks.receive().wait().unwrap();
    process.pid().kill();
    nack.wait();
    assert_eq!(process.wait(), Err(ExitReason::Killed));
}

#[test]
fn a_crash_in_a_later_guard_fires_the_nacks_before_it() {
    let _watch = watch();
    let runtime = runtime(2);
    let (sender, nacks) = channel::unbounded();
    let process = runtime.block_on(async {
        process::spawn(async move |_inbox: Inbox<()>| {
            let first = with_nack(|nack| {
                sender.try_send(nack).unwrap();
                never()
            });
            let second = weald_sync::guard(|| -> weald_sync::Never<()> { panic!("no event") });
            choose((first, second)).sync().await;
        })
        .unwrap()
    });
    nacks.receive().wait().unwrap().wait();
    let reason = process.wait();
    assert!(
        matches!(&reason, Err(ExitReason::Crash(crash)) if crash.message() == "no event"),
        "{reason:?}"
    );
}

#[test]
fn a_killed_owner_releases_its_lock() {
    let _watch = watch();
    let runtime = runtime(2);
    let mutex: &'static Mutex<u32> = Box::leak(Box::new(Mutex::new(0)));
    let (sender, held) = channel::unbounded();
    let process = runtime.block_on(async {
        process::spawn(async move |mut inbox: Inbox<()>| {
            let _guard = mutex.lock().await;
            sender.try_send(()).unwrap();
            inbox.receive().await;
        })
        .unwrap()
    });
    held.receive().wait().unwrap();
    let waiting = runtime.spawn(async move { *mutex.lock().await });
    until(|| !runtime.waits().jobs.is_empty());
    process.pid().kill();
    assert_eq!(waiting.wait().unwrap(), 0);
}

#[test]
fn a_deadline_in_virtual_time_is_exact() {
    let runtime = weald_kernel::Runtime::test(3);
    runtime.block_on(async {
        let begun = weald_kernel::now();
        let (_sender, receiver) = channel::bounded::<()>(1);
        let hour = Duration::from_secs(3600);
        assert!(receiver.receive().within(hour).await.is_err());
        assert_eq!(weald_kernel::now() - begun, hour);
        after(hour).await;
        assert_eq!(weald_kernel::now() - begun, 2 * hour);
    });
}
