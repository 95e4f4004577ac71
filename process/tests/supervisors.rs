//! Supervisors: strategies, restart types, intensity, shutdown, and children at run time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/children.rs"]
mod children;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use children::{HOUR, Log, MS, Order, child, on_seeds, order, supervisor};
use tools::on_each;
use weald_kernel::{now, sleep, spawn};
use weald_process::{
    self as process, ChildSpec, ChildState, ExitReason, Inbox, Name, Restart, Shutdown, StartError,
    Strategy, Supervisor, monitor,
};

#[test]
fn children_start_in_order_and_stop_in_reverse() {
    on_seeds(async || {
        let log = Log::default();
        let supervisor = supervisor(Strategy::OneForOne, &log).await;
        assert_eq!(log.take(), ["+a", "+b", "+c"]);
        supervisor.stop().await;
        assert_eq!(log.take(), ["-c", "-b", "-a"]);
        let ended = StartError::Ended(ExitReason::Shutdown);
        assert_eq!(supervisor.children().await, Err(ended));
    });
}

#[test]
fn one_for_one_restarts_the_child_alone() {
    on_seeds(async || {
        let log = Log::default();
        let supervisor = supervisor(Strategy::OneForOne, &log).await;
        log.take();
        order("b", Order::Crash).await;
        order("b", Order::Return).await;
        assert_eq!(log.take(), ["-b", "+b", "-b", "+b"]);
        supervisor.stop().await;
    });
}

#[test]
fn one_for_all_restarts_all() {
    on_seeds(async || {
        let log = Log::default();
        let supervisor = supervisor(Strategy::OneForAll, &log).await;
        log.take();
        order("b", Order::Crash).await;
        assert_eq!(log.take(), ["-b", "-c", "-a", "+a", "+b", "+c"]);
        supervisor.stop().await;
    });
}

#[test]
fn rest_for_one_restarts_the_child_and_those_behind_it() {
    on_seeds(async || {
        let log = Log::default();
        let supervisor = supervisor(Strategy::RestForOne, &log).await;
        log.take();
        order("b", Order::Crash).await;
        assert_eq!(log.take(), ["-b", "-c", "+b", "+c"]);
        supervisor.stop().await;
    });
}

#[test]
fn transient_children_are_restarted_after_a_crash_and_temporary_ones_never() {
    on_seeds(async || {
        let log = Log::default();
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .intensity(5, HOUR)
            .child(child("transient", &log).restart(Restart::Transient))
            .child(child("temporary", &log).restart(Restart::Temporary))
            .start()
            .await
            .unwrap();
        order("transient", Order::Crash).await;
        order("transient", Order::Return).await;
        order("temporary", Order::Crash).await;
        let children = supervisor.children().await.unwrap();
        let ids: Vec<_> = children
            .iter()
            .map(|c| (&*c.id, c.unit.is_some()))
            .collect();
        assert_eq!(ids, [("transient", false)]);
        supervisor.restart_child("transient").await.unwrap();
        assert!(Name::<Order>::of("transient").whereis().is_ok());
        supervisor.stop().await;
    });
}

#[test]
fn beyond_its_intensity_a_supervisor_ends_with_its_children() {
    on_seeds(async || {
        let log = Log::default();
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .intensity(2, Duration::from_secs(5))
            .child(child("a", &log))
            .child(child("b", &log))
            .start()
            .await
            .unwrap();
        let down = monitor(&supervisor);
        for _ in 0..2 {
            order("b", Order::Crash).await;
        }
        // Those of long ago do not count.
        sleep(Duration::from_secs(6)).await;
        for _ in 0..3 {
            order("b", Order::Crash).await;
        }
        assert_eq!(down.await.reason, ExitReason::Shutdown);
        assert!(Name::<Order>::of("a").whereis().is_err());
        assert!(log.take().ends_with(&["-b".to_owned(), "-a".to_owned()]));
    });
}

#[test]
fn children_are_started_terminated_restarted_and_deleted_at_run_time() {
    on_seeds(async || {
        let log = Log::default();
        let supervisor = Supervisor::new(Strategy::OneForOne).limit(2).start().await;
        let supervisor = supervisor.unwrap();
        supervisor.start_child(child("a", &log)).await.unwrap();
        let exists = StartError::Exists("a".to_owned());
        assert_eq!(supervisor.start_child(child("a", &log)).await, Err(exists));
        supervisor.start_child(child("b", &log)).await.unwrap();
        let full = StartError::TooManyChildren { limit: 2 };
        assert_eq!(supervisor.start_child(child("c", &log)).await, Err(full));
        let running = StartError::Running("a".to_owned());
        assert_eq!(supervisor.delete_child("a").await, Err(running.clone()));
        assert_eq!(supervisor.restart_child("a").await, Err(running));
        supervisor.terminate_child("a").await.unwrap();
        let has_unit = |child: &ChildState| child.unit.is_some();
        let states = supervisor.children().await.unwrap();
        assert_eq!(
            states.iter().map(has_unit).collect::<Vec<_>>(),
            [false, true]
        );
        let counts = supervisor.count_children().await.unwrap();
        assert_eq!((counts.specs, counts.running), (2, 1));
        supervisor.restart_child("a").await.unwrap();
        supervisor.terminate_child("a").await.unwrap();
        supervisor.delete_child("a").await.unwrap();
        let gone = StartError::NotFound("a".to_owned());
        assert_eq!(supervisor.terminate_child("a").await, Err(gone));
        assert_eq!(log.take(), ["+a", "+b", "-a", "+a", "-a"]);
        supervisor.stop().await;
    });
}

#[test]
fn each_child_is_ended_as_its_spec_says() {
    on_seeds(async || {
        let reasons = Arc::new(Mutex::new(Vec::new()));
        let stubborn = |id: &'static str, shutdown| {
            let spec = ChildSpec::process(id, |mut inbox: Inbox<process::Exit>| {
                inbox.trap_exits(|exit| exit);
                async move {
                    inbox.receive().await;
                    sleep(50 * MS).await;
                }
            });
            spec.shutdown(shutdown)
        };
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .child(stubborn("killed", Shutdown::Kill))
            .child(stubborn("late", Shutdown::After(10 * MS)))
            .child(stubborn("in time", Shutdown::After(100 * MS)))
            .child(stubborn("patient", Shutdown::Infinity))
            .start()
            .await
            .unwrap();
        // They must have begun, to trap exits.
        sleep(MS).await;
        let watched: Vec<_> = supervisor.children().await.unwrap();
        let watched: Vec<_> = watched
            .into_iter()
            .map(|child| {
                let reasons = reasons.clone();
                spawn(async move {
                    let down = monitor(&child.unit.unwrap()).await;
                    reasons.lock().unwrap().push((child.id, down.reason));
                })
            })
            .collect();
        sleep(MS).await;
        let begin = now();
        supervisor.stop().await;
        for watched in watched {
            watched.await.unwrap();
        }
        assert!((now() - begin) < 200 * MS);
        let expected = [
            ("patient", ExitReason::Normal),
            ("in time", ExitReason::Normal),
            ("late", ExitReason::Killed),
            ("killed", ExitReason::Killed),
        ];
        let mut expected = expected.map(|(id, reason)| (id.to_owned(), reason));
        expected.sort_by(|one, other| one.0.cmp(&other.0));
        let mut reasons = std::mem::take(&mut *reasons.lock().unwrap());
        reasons.sort_by(|one, other| one.0.cmp(&other.0));
        assert_eq!(reasons, expected);
    });
}

#[test]
fn a_unit_that_is_no_child_does_not_end_the_supervisor() {
    on_seeds(async || {
        let helped = ChildSpec::new("helped", |_| {
            let crashes = async |_: Inbox<()>| panic!("on purpose");
            let helper = process::spawn_link(crashes)?.into_pid();
            // It may have ended, and then the link fails.
            process::link(&helper);
            let waits = async |mut inbox: Inbox<()>| inbox.receive().await;
            process::spawn(waits).map(process::Process::into_pid)
        });
        let supervisor = Supervisor::new(Strategy::OneForOne).child(helped);
        let supervisor = supervisor.start().await.unwrap();
        let other = supervisor.clone();
        let other = process::spawn(async move |_: Inbox<()>| {
            process::link(&other);
            process::exit(ExitReason::custom("on purpose"))
        });
        let ended: Result<(), _> = other.unwrap().await;
        assert!(ended.is_err());
        sleep(MS).await;
        assert_eq!(supervisor.children().await.unwrap().len(), 1);
        supervisor.stop().await;
    });
}

static STOPS: Name<()> = Name::new("stops");

#[test]
fn a_child_may_stop_its_supervisor() {
    on_seeds(async || {
        let log = Log::default();
        let supervisor = supervisor(Strategy::OneForOne, &log).await;
        let down = monitor(&supervisor);
        let own = supervisor.clone();
        let stops = ChildSpec::process("stops", move |mut inbox: Inbox<()>| {
            let own = own.clone();
            STOPS.register(&inbox.pid()).unwrap();
            async move {
                inbox.receive().await;
                own.stop().await;
            }
        });
        supervisor.start_child(stops).await.unwrap();
        log.take();
        let unit = supervisor.children().await.unwrap().pop().unwrap().unit;
        let stops = monitor(&unit.unwrap());
        STOPS.send(()).unwrap();
        assert_eq!(stops.await.reason, ExitReason::Shutdown);
        assert_eq!(down.await.reason, ExitReason::Shutdown);
        assert_eq!(log.take(), ["-c", "-b", "-a"]);
    });
}

#[test]
fn a_supervisor_ends_with_its_parent_however_that_ends() {
    on_seeds(async || {
        let dead = process::spawn(async |_: Inbox<()>| ()).unwrap();
        let pid = dead.pid().clone();
        dead.await.unwrap();
        for expected in [
            ExitReason::Normal,
            ExitReason::NoProcess,
            ExitReason::Killed,
        ] {
            let (reason, pid) = (expected.clone(), pid.clone());
            let started = Arc::new(Mutex::new(None));
            let tell = started.clone();
            let parent = process::spawn(async move |inbox: Inbox<()>| {
                let supervisor = Supervisor::new(Strategy::OneForOne)
                    .builder(process::Builder::new().link())
                    .start()
                    .await
                    .unwrap();
                *tell.lock().unwrap() = Some(monitor(&supervisor));
                match reason {
                    ExitReason::NoProcess => process::link(&pid),
                    ExitReason::Killed => inbox.pid().kill(),
                    _ => return,
                }
                sleep(HOUR).await;
            });
            let _ended = parent.unwrap().await;
            let down = started.lock().unwrap().take().unwrap();
            assert_eq!(down.await.reason, expected);
        }
    });
}

#[test]
fn children_end_with_their_supervisor_even_if_it_is_killed() {
    on_each(|runtime| {
        runtime.block_on(async {
            let log = Log::default();
            let inner = log.clone();
            let nested = ChildSpec::supervisor("nested", move || {
                Supervisor::new(Strategy::OneForOne).child(child("inner", &inner))
            });
            let supervisor = Supervisor::new(Strategy::OneForOne)
                .child(child("a", &log))
                .child(nested)
                .start()
                .await
                .unwrap();
            let pids = ["a", "inner"].map(|id| Name::<Order>::of(id).whereis().unwrap());
            let downs = pids.map(|pid| monitor(&pid));
            let unit = process::AsUnit::as_unit(&supervisor).unwrap();
            unit.kill();
            for down in downs {
                let reason = down.await.reason;
                let of_inner = ExitReason::Killed;
                assert!(
                    reason == of_inner || reason == ExitReason::Shutdown,
                    "{reason}"
                );
            }
        });
    });
}
