//! Pids: they keep their meaning through any number of spawns, and a send to a dead process is silent.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tools::{Drops, on_each, runtime, watch};
use weald_process::{self as process, Inbox, Pid, SendError};

#[test]
fn a_send_to_a_dead_process_is_silent_and_try_send_returns_the_message() {
    on_each(|runtime| {
        let drops = Drops::default();
        let pid = runtime.block_on(async {
            let process = process::spawn(async |_: Inbox<tools::Token>| ()).unwrap();
            let pid = process.pid().clone();
            process.await.unwrap();
            pid
        });
        pid.send(drops.token());
        assert_eq!(drops.count(), 1);
        let Err(SendError::Dead(token)) = pid.try_send(drops.token()) else {
            panic!("the process is dead")
        };
        assert_eq!(drops.count(), 1);
        drop(token);
        let back = pid.try_send(drops.token()).unwrap_err();
        assert_eq!(
            back.to_string(),
            "the process has ended and takes no more messages"
        );
        drop(back.into_message());
        assert_eq!(drops.count(), 3);
    });
}

#[test]
fn a_kept_pid_never_reaches_another_process() {
    let _watch = watch();
    let runtime = runtime(2);
    let wrong = Arc::new(AtomicUsize::new(0));
    let counted = wrong.clone();
    runtime
        .block_on(runtime.spawn(async move {
            let mut kept: Vec<Pid<u64>> = Vec::new();
            // A million processes in the same memory blocks; some of their pids are kept.
            for n in 0..1_000_000_u64 {
                let wrong = counted.clone();
                let process = process::spawn(move |mut inbox: Inbox<u64>| async move {
                    if inbox.receive().await != n {
                        wrong.fetch_add(1, Ordering::SeqCst);
                    }
                    if inbox.try_receive().is_some() {
                        wrong.fetch_add(1, Ordering::SeqCst);
                    }
                })
                .unwrap();
                for dead in kept.iter().rev().take(3) {
                    dead.send(u64::MAX);
                }
                process.pid().send(n);
                let pid = process.pid().clone();
                process.await.unwrap();
                if n % 1_000 == 0 {
                    kept.push(pid);
                }
            }
            for dead in &kept {
                assert!(!dead.is_alive());
                assert!(dead.try_send(0).is_err());
            }
        }))
        .unwrap();
    assert_eq!(wrong.load(Ordering::SeqCst), 0);
}

#[test]
fn a_pid_outlives_its_runtime() {
    let _watch = watch();
    let drops = Drops::default();
    let pid = {
        let runtime = runtime(2);
        runtime.block_on(async {
            process::spawn(async |mut inbox: Inbox<tools::Token>| {
                loop {
                    inbox.receive().await;
                }
            })
            .unwrap()
            .into_pid()
        })
    };
    assert!(!pid.is_alive());
    pid.send(drops.token());
    pid.clone().kill();
    std::thread::spawn(move || drop(pid)).join().unwrap();
    assert_eq!(drops.count(), 1);
}

#[test]
fn pids_are_equal_exactly_if_they_are_of_the_same_process() {
    on_each(|runtime| {
        runtime.block_on(async {
            let spawn =
                || process::spawn(async |mut inbox: Inbox<()>| inbox.receive().await).unwrap();
            let processes: Vec<_> = (0..100).map(|_| spawn()).collect();
            let set: HashSet<Pid<()>> = processes
                .iter()
                .flat_map(|p| [p.pid().clone(), p.pid().clone()])
                .collect();
            assert_eq!(set.len(), 100);
            assert!(processes[0].pid() == processes[0].pid());
            assert!(processes[0].pid() != processes[1].pid());
        });
    });
}

#[test]
fn a_pid_is_eight_bytes_and_goes_to_any_thread() {
    fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<Pid<u8>>();
    is_send_and_sync::<Pid<std::cell::Cell<u8>>>();
    assert_eq!(size_of::<Pid<[u8; 100]>>(), 8);
    assert_eq!(size_of::<Option<Pid<u8>>>(), 8);
}
