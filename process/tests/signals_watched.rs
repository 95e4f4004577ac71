//! What can be monitored beside processes: threads, owners of callbacks, units that are joined, and whatever has a
//! name. Every test runs on many schedules of the test runtime and on real workers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/signals.rs"]
mod signals;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    sync::{Mutex, mpsc},
    time::Duration,
};

use signals::{everywhere, waiting};
use tools::{Drops, Latch, runtime, watch};
use weald_kernel::{DEFAULT_STACK, JoinHandle, Sleep, Spawn, Wait, sleep, spawn, spawn_local};
use weald_process::{
    self as process, Builder, Down, ExitReason, Inbox, Name, ProcessId,
    callback::{self, Owner},
    link, monitor,
};

fn thread(code: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    Spawn::new().spawn_fiber(DEFAULT_STACK, code).unwrap()
}

fn for_ever() -> Sleep {
    sleep(Duration::from_secs(1_000_000))
}

#[test]
fn a_monitor_of_a_thread_tells_how_it_ended() {
    everywhere(async || {
        let latch = Latch::default();
        let go = latch.clone();
        let returns = thread(move || go.wait());
        let returned = monitor(&returns);
        let panics = thread(|| panic!("on purpose, in a thread"));
        let watch = monitor(&panics);
        assert!(panics.await.is_err());
        let crashed = watch.await;
        latch.open();
        assert_eq!(returned.await.reason, ExitReason::Normal);
        // It may have ended before it was monitored.
        match crashed.reason {
            ExitReason::Crash(crash) => assert_eq!(crash.message(), "on purpose, in a thread"),
            other => assert_eq!(other, ExitReason::NoProcess),
        }
    });
}

#[test]
fn a_monitor_of_a_thread_that_is_cancelled_in_a_wait_tells_killed_once_its_values_are_dropped() {
    everywhere(async || {
        let (drops, latch) = (Drops::default(), Latch::default());
        let (token, waits) = (drops.token(), latch.clone());
        let job = thread(move || {
            let _token = token;
            waits.open();
            for_ever().wait();
        });
        latch.await;
        let watch = monitor(&job);
        job.cancel();
        assert_eq!(watch.await.reason, ExitReason::Killed);
        assert_eq!(drops.count(), 1);
    });
}

#[test]
fn a_process_that_is_linked_with_a_thread_ends_with_it() {
    everywhere(async || {
        let process = waiting(|_| ());
        let pid = process.pid().clone();
        let job = thread(move || {
            link(&pid);
            panic!("on purpose");
        });
        assert!(job.await.is_err());
        assert!(matches!(process.await, Err(ExitReason::Crash(_))));
    });
}

#[test]
fn a_monitor_of_the_owner_of_callbacks_tells_its_end_when_they_are_dropped() {
    everywhere(async || {
        let (drops, latch) = (Drops::default(), Latch::default());
        let (token, ready) = (drops.token(), latch.clone());
        let (sender, owners) = std::sync::mpsc::channel();
        let process = process::spawn(async move |mut inbox: Inbox<()>| {
            callback::after(Duration::from_secs(1_000_000), move || drop(token)).detach();
            // A callback has the owner of the code that started it, and can watch it.
            let found = Mutex::new(sender);
            callback::spawn(move || {
                found.lock().unwrap().send(Owner::current()).unwrap();
                ready.open();
            })
            .detach();
            inbox.receive().await
        })
        .unwrap();
        latch.await;
        let owner = owners.recv().unwrap();
        let watch = monitor(&owner);
        process.kill();
        let Down {
            process: unit,
            reason,
            ..
        } = watch.await;
        assert_eq!(
            (unit, reason),
            (Some(process.pid().id()), ExitReason::Killed)
        );
        assert_eq!(drops.count(), 1);
        // It is gone, and what it was is forgotten.
        assert_eq!(monitor(&owner).await.reason, ExitReason::NoProcess);
        // The runtime is no unit.
        let none = monitor(&Owner::runtime()).await;
        assert_eq!((none.process, none.reason), (None, ExitReason::NoProcess));
    });
}

#[test]
fn a_monitor_of_a_unit_that_is_joined_tells_its_end_as_the_join_does() {
    everywhere(async || {
        let latch = Latch::default();
        let (one, other) = (latch.clone(), latch.clone());
        let shared = spawn(async move {
            one.await;
            7
        });
        let local = spawn_local(async move {
            other.await;
            panic!("on purpose, in a local job")
        })
        .unwrap();
        let (ends, crashes) = (monitor(&shared), monitor(&local));
        latch.open();
        assert_eq!(shared.await.unwrap(), 7);
        let down = ends.await;
        assert_eq!(down.reason, ExitReason::Normal);
        assert!(down.process.is_some());
        let crashed: Result<(), _> = local.await;
        assert!(crashed.is_err());
        assert!(matches!(crashes.await.reason, ExitReason::Crash(_)));
    });
}

#[test]
fn a_monitor_by_name_is_one_of_the_process_that_has_the_name() {
    everywhere(async || {
        let name: Name<()> = Name::of("watched by name");
        let missing = monitor(&name).await;
        assert_eq!(
            (missing.process, missing.reason),
            (None, ExitReason::NoProcess)
        );
        let spawn_one = || {
            let body = async |mut inbox: Inbox<()>| inbox.receive().await;
            name.spawn(Builder::new(), body).unwrap()
        };
        let (first, watch) = (spawn_one(), monitor(&name));
        // The type of the messages does not matter to a monitor.
        let untyped: Name<u64> = Name::of("watched by name");
        let second_watch = monitor(&untyped);
        // It is the process that is watched: that another one has the name later changes nothing.
        assert!(name.unregister());
        let successor = spawn_one();
        let other_watch = monitor(&name);
        first.kill();
        let id: ProcessId = first.pid().id();
        for watch in [watch, second_watch] {
            let down = watch.await;
            assert_eq!((down.process, down.reason), (Some(id), ExitReason::Killed));
        }
        successor.pid().send(());
        let down = other_watch.await;
        assert_eq!(down.process, Some(successor.pid().id()));
        assert_eq!(down.reason, ExitReason::Normal);
        // The name is free when that is told.
        assert!(name.whereis().is_err());
        assert_eq!(monitor(&name).await.process, None);
    });
}

#[test]
fn a_link_by_name_is_one_with_the_process_that_has_the_name() {
    everywhere(async || {
        let name: Name<()> = Name::of("linked by name");
        let other = name.spawn(Builder::new(), async |mut inbox: Inbox<()>| {
            inbox.receive().await
        });
        let other = other.unwrap();
        let latch = Latch::default();
        let is_linked = latch.clone();
        let process = waiting(move |_| {
            link(&name);
            is_linked.open();
        });
        latch.await;
        other.kill();
        assert_eq!(process.await.unwrap_err(), ExitReason::Killed);
        let missing: Name<()> = Name::of("linked by nobody");
        let process = waiting(move |_| link(&missing));
        assert_eq!(process.await.unwrap_err(), ExitReason::NoProcess);
    });
}

fn twice(latch: Latch) -> (Latch, Latch) {
    (latch.clone(), latch)
}

/// Links are told in the order of the numbers of the processes, and then monitors.
#[test]
fn a_closure_that_blocks_when_a_unit_ends_holds_up_none_of_its_other_peers() {
    let _watch = watch();
    let runtime = runtime(1);
    runtime.block_on(async {
        let ends = waiting(|_| ());
        let (links, is_linked) = twice(Latch::default());
        let (go, may_go) = mpsc::channel::<()>();
        let may_go = Mutex::new(may_go);
        let target = ends.pid().clone();
        let blocks = process::spawn(async move |mut inbox: Inbox<ExitReason>| {
            inbox.trap_exits(move |exit| {
                may_go.lock().unwrap().recv().unwrap();
                exit.reason
            });
            link(&target);
            links.open();
            inbox.receive().await
        });
        let blocks = blocks.unwrap();
        is_linked.await;
        let (links, is_linked) = twice(Latch::default());
        let target = ends.pid().clone();
        let linked = process::spawn(async move |mut inbox: Inbox<ExitReason>| {
            inbox.trap_exits(|exit| exit.reason);
            link(&target);
            let _down = inbox.monitor(&target, |down| down.reason);
            links.open();
            (inbox.receive().await, inbox.receive().await)
        });
        let linked = linked.unwrap();
        is_linked.await;
        let told = monitor(ends.pid());
        ends.kill();
        assert_eq!(told.await.reason, ExitReason::Killed);
        let reasons = (ExitReason::Killed, ExitReason::Killed);
        assert_eq!(linked.await, Ok(reasons));
        go.send(()).unwrap();
        assert_eq!(blocks.await, Ok(ExitReason::Killed));
    });
}
