//! Sets of processes: each is joined once, with its pid and its reason; a drop kills, a detach does not.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/signals.rs"]
mod signals;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{collections::BTreeSet, task::Poll};

use signals::everywhere;
use tools::{Drops, Latch};
use weald_kernel::yield_now;
use weald_process::{self as process, ExitReason, Inbox, Pid, ProcessSet, monitor};

/// Processes that wait for a number and return it.
fn set(count: u32) -> (ProcessSet<u32, u32>, Vec<Pid<u32>>) {
    let mut set = ProcessSet::new();
    for _ in 0..count {
        set.spawn(async |mut inbox: Inbox<u32>| inbox.receive().await)
            .unwrap();
    }
    let pids = set.pids().cloned().collect();
    (set, pids)
}

#[test]
fn processes_are_joined_in_the_order_in_which_they_end() {
    everywhere(async || {
        let (mut set, pids) = set(8);
        assert_eq!(set.len(), 8);
        for (number, pid) in pids.iter().enumerate().rev() {
            let number = u32::try_from(number).unwrap();
            pid.send(number);
            assert_eq!(set.join_next().await, Some((pid.clone(), Ok(number))));
        }
        assert!(set.is_empty());
        assert_eq!(set.join_next().await, None);
    });
}

#[test]
fn each_end_has_its_reason() {
    everywhere(async || {
        let mut set = ProcessSet::<(), ()>::default();
        let ended = process::spawn(async |_: Inbox<()>| ()).unwrap();
        monitor(ended.pid()).await;
        let returned = set.insert(ended).clone();
        let crashed = async |_: Inbox<()>| std::panic::resume_unwind(Box::new("on purpose"));
        let crashed = set.spawn(crashed).unwrap().clone();
        let waits = async |mut inbox: Inbox<()>| inbox.receive().await;
        let killed = set.spawn(waits).unwrap().clone();
        let told = set.spawn(waits).unwrap().clone();
        killed.kill();
        told.exit(&ExitReason::custom("told"));
        let mut joined = 0;
        while let Some((pid, end)) = set.join_next().await {
            joined += 1;
            match end {
                Ok(()) => assert_eq!(pid, returned),
                Err(ExitReason::Killed) => assert_eq!(pid, killed),
                Err(ExitReason::Crash(crash)) => {
                    assert_eq!((crash.message(), pid), ("on purpose", crashed.clone()));
                }
                Err(reason) => {
                    assert_eq!((reason, pid), (ExitReason::custom("told"), told.clone()));
                }
            }
        }
        assert_eq!(joined, 4);
    });
}

#[test]
fn a_join_that_is_given_up_loses_no_end() {
    everywhere(async || {
        let (mut set, pids) = set(20);
        let latch = Latch::default();
        let senders = pids.clone();
        let open = latch.clone();
        process::spawn(async move |_: Inbox<()>| {
            for pid in &senders {
                pid.send(1);
                yield_now().await;
            }
            open.open();
        })
        .unwrap()
        .into_pid();
        let mut joined = BTreeSet::new();
        while joined.len() < pids.len() {
            let mut join = Box::pin(set.join_next());
            if let Some(ended) = futures_util::FutureExt::now_or_never(&mut join) {
                assert!(joined.insert(ended.unwrap().0.id()));
            }
            drop(join);
            yield_now().await;
        }
        latch.await;
        assert!(set.is_empty());
    });
}

#[test]
fn a_try_joins_those_that_have_ended() {
    everywhere(async || {
        // More than one poll may join: a try does not care.
        let (mut set, pids) = set(150);
        assert_eq!(set.try_join_next(), None);
        let monitors: Vec<_> = pids.iter().map(monitor).collect();
        set.kill_all();
        for monitor in monitors {
            monitor.await;
        }
        let mut ended = BTreeSet::new();
        while ended.len() < pids.len() {
            // The last ones may have told their monitors, and not ended yet.
            while let Some((pid, end)) = set.try_join_next() {
                assert_eq!(end, Err(ExitReason::Killed));
                assert!(ended.insert(pid.id()));
            }
            yield_now().await;
        }
        assert!(set.is_empty());
        assert_eq!(set.try_join_next(), None);
    });
}

#[test]
fn a_try_leaves_a_poll_waiting() {
    everywhere(async || {
        let (mut set, pids) = set(2);
        let waits = std::future::poll_fn(|cx| Poll::Ready(set.poll_join_next(cx).is_pending()));
        assert!(waits.await);
        assert_eq!(set.try_join_next(), None);
        pids[1].send(1);
        // Woken by the poll before the try.
        let mut is_first = true;
        std::future::poll_fn(|_| match std::mem::take(&mut is_first) {
            true => Poll::Pending,
            false => Poll::Ready(()),
        })
        .await;
        assert_eq!(set.join_next().await, Some((pids[1].clone(), Ok(1))));
    });
}

#[test]
fn a_drop_kills_and_a_detach_does_not() {
    everywhere(async || {
        let (dropped, pids) = set(3);
        let monitors: Vec<_> = pids.iter().map(monitor).collect();
        drop(dropped);
        for monitor in monitors {
            assert_eq!(monitor.await.reason, ExitReason::Killed);
        }
        let (mut detached, pids) = set(3);
        let monitors: Vec<_> = pids.iter().map(monitor).collect();
        detached.detach_all();
        assert!(detached.is_empty());
        drop(detached);
        for (pid, monitor) in pids.iter().zip(monitors) {
            pid.send(1);
            assert_eq!(monitor.await.reason, ExitReason::Normal);
        }
    });
}

#[test]
fn a_shutdown_waits_for_the_destructors() {
    everywhere(async || {
        let drops = Drops::default();
        let mut set = ProcessSet::<(), ()>::new();
        for _ in 0..5 {
            let token = drops.token();
            let body = async move |mut inbox: Inbox<()>| {
                let _token = token;
                inbox.receive().await;
            };
            set.spawn(body).unwrap();
        }
        set.exit_all(&ExitReason::Normal);
        assert_eq!(set.len(), 5);
        set.shutdown().await;
        assert_eq!((drops.count(), set.len()), (5, 0));
    });
}
