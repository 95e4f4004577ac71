//! Supervisors: strategies, restart types, intensity, shutdown, starts that fail, and a client that loses no call
//! without an error while children are killed at random.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    future::Ready,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tools::{Random, for_seeds, on_each, watch};
use weald_kernel::{Runtime, now, sleep, spawn, yield_now};
use weald_process::{
    self as process, Backoff, CallError, ChildSpec, ChildState, ExitReason, Inbox, Name, Pid,
    Reply, Restart, Shutdown, StartError, Strategy, Supervisor, SupervisorPid, monitor,
};

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

/// What happens to the children of a test, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn note(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

enum Order {
    Return,
    Crash,
}

/// A child that notes its starts and its end, and obeys.
fn child(id: &'static str, log: &Log) -> ChildSpec {
    let log = log.clone();
    ChildSpec::process(id, move |mut inbox: Inbox<Order>| {
        log.note(format!("+{id}"));
        Name::of(id).register(&inbox.pid()).unwrap();
        let ending = Ending(log.clone(), id);
        async move {
            let _ending = ending;
            match inbox.receive().await {
                Order::Return => {}
                Order::Crash => panic!("on purpose"),
            }
        }
    })
}

struct Ending(Log, &'static str);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.note(format!("-{}", self.1));
    }
}

fn on_seeds(test: impl AsyncFn()) {
    let _watch = watch();
    for seed in 0..100 {
        Runtime::test(seed).block_on(test());
    }
}

/// Ends the child `id`, and waits until the supervisor has dealt with it.
async fn order(id: &str, order: Order) {
    let pid = Name::of(id.to_owned()).whereis().unwrap();
    let down = monitor(&pid);
    pid.send(order);
    down.await;
    sleep(10 * MS).await;
}

async fn supervisor(strategy: Strategy, log: &Log) -> SupervisorPid {
    let supervisor = Supervisor::new(strategy).intensity(5, HOUR);
    let children = ["a", "b", "c"].map(|id| child(id, log));
    let supervisor = children.into_iter().fold(supervisor, Supervisor::child);
    supervisor.start().await.unwrap()
}

#[test]
fn children_start_in_order_and_stop_in_reverse() {
    on_seeds(async || {
        let log = Log::default();
        let supervisor = supervisor(Strategy::OneForOne, &log).await;
        assert_eq!(log.take(), ["+a", "+b", "+c"]);
        supervisor.stop().await;
        assert_eq!(log.take(), ["-c", "-b", "-a"]);
        let ended = StartError::Ended(ExitReason::NoProcess);
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

enum Request {
    Double(u32, Reply<u32>),
}

static SERVER: Name<Request> = Name::new("server");

fn server(starts: &Arc<AtomicU32>) -> ChildSpec {
    let starts = starts.clone();
    ChildSpec::process("server", move |mut inbox: Inbox<Request>| {
        starts.fetch_add(1, Ordering::SeqCst);
        SERVER.register(&inbox.pid()).unwrap();
        async move {
            loop {
                let Request::Double(n, reply) = inbox.receive().await;
                yield_now().await;
                let _unheard = reply.send(2 * n);
            }
        }
    })
}

/// Kills the server again and again while clients call it.
async fn chaos(random: &mut Random, kills: u32) {
    let starts = Arc::new(AtomicU32::new(0));
    let supervisor = Supervisor::new(Strategy::OneForOne)
        .intensity(usize::MAX, HOUR)
        .child(server(&starts));
    let supervisor = supervisor.start().await.unwrap();
    let clients: Vec<_> = (0..3)
        .map(|n| {
            spawn(async move {
                let (mut done, mut lost) = (0_u32, 0_u32);
                while done < 20 {
                    let server: Pid<Request> = SERVER.registered().await.unwrap();
                    match server.call(|reply| Request::Double(n, reply)).await {
                        Ok(double) => {
                            assert_eq!(double, 2 * n);
                            done += 1;
                        }
                        Err(CallError::Died(_)) => lost += 1,
                        Err(other) => panic!("{other}"),
                    }
                }
                lost
            })
        })
        .collect();
    for _ in 0..kills {
        for _ in 0..random.below(12) {
            yield_now().await;
        }
        let server = SERVER.registered().await.unwrap();
        let down = monitor(&server);
        server.kill();
        down.await;
    }
    for client in clients {
        client.await.unwrap();
    }
    let last = SERVER.registered().await.unwrap();
    assert!(last.is_alive());
    supervisor.stop().await;
    assert_eq!(starts.load(Ordering::SeqCst), kills + 1);
}

#[test]
fn no_call_is_lost_without_an_error_and_no_restart_is_missed() {
    for_seeds(100, |random| {
        let seed = random.next();
        Runtime::test(seed).block_on(chaos(random, 20));
    });
    on_each(|runtime| runtime.block_on(chaos(&mut Random(1), 100)));
}
