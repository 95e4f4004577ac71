//! How supervisors start children: starts that fail, are late, or are delayed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/children.rs"]
mod children;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    future::Ready,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use children::{HOUR, Log, MS, Order, child, on_seeds, order, supervisor};
use tools::watch;
use weald_kernel::{now, sleep, spawn, yield_now};
use weald_process::{
    self as process, Backoff, ChildSpec, ExitReason, Inbox, Name, Restart, StartError, Strategy,
    Supervisor, monitor,
};

#[test]
fn a_child_that_does_not_start_ends_those_before_it() {
    on_seeds(async || {
        let log = Log::default();
        let failing = || {
            [
                ChildSpec::new("panics", |_| -> Result<process::Unit, StartError> {
                    panic!("on purpose")
                }),
                ChildSpec::new("fails", |_| {
                    Err::<process::Unit, _>(std::io::Error::other("on purpose"))
                }),
                ChildSpec::process("panics before it runs", |_: Inbox<()>| -> Ready<()> {
                    panic!("on purpose")
                }),
                ChildSpec::new("fails after a linked process", |_| {
                    let crashes = async |_: Inbox<()>| panic!("on purpose");
                    process::spawn_link(crashes).unwrap().into_pid();
                    Err::<process::Unit, _>(std::io::Error::other("on purpose"))
                }),
                ChildSpec::new("cannot say why", |_| Err::<process::Unit, _>(Unspeakable)),
                ChildSpec::new("never ready", |_| {
                    let waits = async |mut inbox: Inbox<()>| inbox.receive().await;
                    process::spawn(waits).map(process::Process::into_pid)
                })
                .ready_within(MS),
                ChildSpec::new("crashes before it is ready", |starting| {
                    let ready = starting.ready();
                    let crashes = async move |_: Inbox<()>| {
                        let _ready = ready;
                        panic!("on purpose")
                    };
                    process::spawn(crashes).map(process::Process::into_pid)
                })
                .ready_within(HOUR),
            ]
        };
        for spec in failing() {
            let supervisor = Supervisor::new(Strategy::OneForOne).child(child("a", &log));
            let error = supervisor.child(spec).start().await.unwrap_err();
            assert!(matches!(error, StartError::Failed { .. }), "{error}");
            assert_eq!(log.take(), ["+a", "-a"]);
        }
        // At run time the supervisor goes on.
        let supervisor = supervisor(Strategy::OneForOne, &log).await;
        for spec in failing() {
            let error = supervisor.start_child(spec).await.unwrap_err();
            assert!(matches!(error, StartError::Failed { .. }), "{error}");
            sleep(MS).await;
        }
        assert_eq!(supervisor.children().await.unwrap().len(), 3);
        supervisor.stop().await;
    });
}

#[test]
fn a_child_that_says_when_it_is_ready_holds_up_the_next_one() {
    on_seeds(async || {
        let log = Log::default();
        let slow = log.clone();
        let slow = ChildSpec::new("slow", move |starting| {
            let (ready, log) = (starting.ready(), slow.clone());
            process::spawn(async move |mut inbox: Inbox<()>| {
                sleep(50 * MS).await;
                log.note("ready".to_owned());
                ready.say();
                inbox.receive().await;
            })
            .map(process::Process::into_pid)
        });
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .child(slow.ready_within(HOUR))
            .child(child("a", &log));
        let supervisor = supervisor.start().await.unwrap();
        assert_eq!(log.take(), ["ready", "+a"]);
        supervisor.stop().await;
    });
}

#[test]
fn a_restart_that_fails_counts_and_is_tried_again() {
    on_seeds(async || {
        let attempts = Arc::new(AtomicU32::new(0));
        let counted = attempts.clone();
        let spec = ChildSpec::new("flaky", move |_| {
            match counted.fetch_add(1, Ordering::SeqCst) {
                1 | 2 => Err(std::io::Error::other("on purpose").into()),
                _ => process::spawn(async |inbox: Inbox<Order>| serve(inbox).await)
                    .map(process::Process::into_pid)
                    .map_err(process::StartFailure::from),
            }
        });
        async fn serve(mut inbox: Inbox<Order>) {
            Name::of("flaky").register(&inbox.pid()).unwrap();
            inbox.receive().await;
        }
        let supervisor = Supervisor::new(Strategy::OneForOne).intensity(3, HOUR);
        let supervisor = supervisor.child(spec).start().await.unwrap();
        Name::<Order>::of("flaky").registered().await.unwrap();
        order("flaky", Order::Return).await;
        assert_eq!(attempts.load(Ordering::SeqCst), 4);
        // It was the third restart.
        let down = monitor(&supervisor);
        order("flaky", Order::Return).await;
        assert_eq!(down.await.reason, ExitReason::Shutdown);
    });
}

#[test]
fn a_backoff_delays_restarts_longer_and_longer() {
    on_seeds(async || {
        let log = Log::default();
        let backoff = Backoff {
            first: 100 * MS,
            longest: 400 * MS,
        };
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .intensity(100, HOUR)
            .child(child("a", &log).backoff(backoff))
            .start()
            .await
            .unwrap();
        for pause in [100, 200, 400, 400] {
            let pid = Name::<Order>::of("a").registered().await.unwrap();
            let down = monitor(&pid);
            pid.send(Order::Crash);
            down.await;
            let begin = now();
            yield_now().await;
            Name::<Order>::of("a").registered().await.unwrap();
            let took = now() - begin;
            assert!(
                took >= pause * MS && took <= pause * MS * 5 / 4 + 2 * MS,
                "{took:?}"
            );
        }
        // Requests are served meanwhile.
        order("a", Order::Crash).await;
        assert!(supervisor.children().await.unwrap()[0].is_restarting);
        let restarting = Err(StartError::Restarting("a".to_owned()));
        assert_eq!(supervisor.restart_child("a").await, restarting);
        assert_eq!(supervisor.delete_child("a").await, restarting);
        assert_eq!(supervisor.count_children().await.unwrap().restarting, 1);
        supervisor.stop().await;
    });
}

#[test]
fn a_backoff_without_end_is_no_panic() {
    on_seeds(async || {
        let log = Log::default();
        let backoff = Backoff {
            first: Duration::MAX,
            longest: Duration::MAX,
        };
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .child(child("a", &log).backoff(backoff))
            .start()
            .await
            .unwrap();
        order("a", Order::Crash).await;
        assert!(supervisor.children().await.unwrap()[0].is_restarting);
        supervisor.stop().await;
    });
}

#[derive(Debug)]
struct Unspeakable;

impl std::fmt::Display for Unspeakable {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        panic!("on purpose")
    }
}

impl std::error::Error for Unspeakable {}

#[test]
fn a_child_that_ended_before_it_was_linked_has_its_own_reason() {
    let _watch = watch();
    let runtime = tools::runtime(2);
    runtime.block_on(async {
        let starts = Arc::new(AtomicU32::new(0));
        let (counted, crashes) = (starts.clone(), Arc::new(AtomicU32::new(0)));
        let crashed = crashes.clone();
        // The start function returns when the job has ended.
        let ended = |job: process::Unit| {
            tools::until(|| job.has_ended());
            Ok::<_, StartError>(job)
        };
        let unit = |job: &weald_kernel::JoinHandle<()>| process::AsUnit::as_unit(job).unwrap();
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .intensity(usize::MAX, HOUR)
            .child(
                ChildSpec::new("returns", move |_| {
                    counted.fetch_add(1, Ordering::SeqCst);
                    let job = spawn(async {});
                    ended(unit(&job))
                })
                .restart(Restart::Transient),
            )
            .child(
                ChildSpec::new("crashes twice", move |_| {
                    let is_last = crashed.fetch_add(1, Ordering::SeqCst) == 2;
                    let job = spawn(async move { assert!(is_last, "on purpose") });
                    ended(unit(&job))
                })
                .restart(Restart::Transient),
            )
            .start()
            .await
            .unwrap();
        loop {
            let children = supervisor.children().await.unwrap();
            if children
                .iter()
                .all(|c| c.unit.is_none() && !c.is_restarting)
            {
                break;
            }
            yield_now().await;
        }
        supervisor.stop().await;
        assert_eq!(starts.load(Ordering::SeqCst), 1);
        assert_eq!(crashes.load(Ordering::SeqCst), 3);
    });
}
