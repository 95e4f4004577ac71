//! Supervisors that are told to end while a child is not ready: they end it, and those that run, and do not wait for
//! it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/children.rs"]
mod children;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use children::{HOUR, Log, MS, Order, child, on_seeds};
use weald_kernel::{SpawnError, now, sleep, spawn};
use weald_process::{
    self as process, Builder, ChildFault, ChildSpec, Exit, ExitReason, Inbox, Name, Server,
    ServerScope, Shutdown, StartError, Step, Strategy, Supervisor, SupervisorPid, monitor,
    registered,
};

/// A server whose first step takes as long as it is told to, for ever if it is told to hang.
struct Slow {
    log: Log,
    hangs: Arc<AtomicBool>,
}

impl Server for Slow {
    type Info = ();

    async fn begin(&mut self, scope: &mut ServerScope<Slow>) -> Step {
        let name = Name::of("slow");
        name.register(scope.server().pid()).unwrap();
        self.log.note("+slow".to_owned());
        if self.hangs.load(Ordering::SeqCst) {
            sleep(HOUR).await;
        }
        Step::Receive
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        self.log.note("-slow".to_owned());
    }
}

fn slow(log: &Log, hangs: &Arc<AtomicBool>) -> ChildSpec {
    let (log, hangs) = (log.clone(), hangs.clone());
    ChildSpec::server("slow", move || Slow {
        log: log.clone(),
        hangs: hangs.clone(),
    })
}

fn supervisor(log: &Log) -> Supervisor {
    let supervisor = Supervisor::new(Strategy::OneForOne).intensity(0, HOUR);
    supervisor.child(child("a", log))
}

/// All have ended, the last first, and long before the slow one would have.
fn all_have_ended(log: &Log, begin: Instant) {
    assert_eq!(log.take(), ["+a", "+slow", "-slow", "-a"]);
    assert!(registered().is_empty(), "{:?}", registered());
    assert!(now() - begin < HOUR / 2);
}

fn is_interrupted(error: &StartError) -> bool {
    matches!(
        error,
        StartError::Failed { child, reason: ChildFault::Interrupted } if child == "slow"
    )
}

#[test]
fn a_supervisor_that_starts_one_more_child_can_be_stopped() {
    on_seeds(async || {
        let (log, hangs) = (Log::default(), Arc::new(AtomicBool::new(true)));
        let begin = now();
        let supervisor = supervisor(&log).start().await.unwrap();
        let (asked, spec) = (supervisor.clone(), slow(&log, &hangs));
        let asks = spawn(async move { asked.start_child(spec).await });
        sleep(MS).await;
        supervisor.stop().await;
        assert!(is_interrupted(&asks.await.unwrap().unwrap_err()));
        all_have_ended(&log, begin);
    });
}

#[test]
fn a_supervisor_that_starts_a_child_again_can_be_stopped_and_has_not_given_up() {
    on_seeds(async || {
        let (log, hangs) = (Log::default(), Arc::new(AtomicBool::new(false)));
        let supervisor = supervisor(&log)
            .intensity(1, HOUR)
            .child(slow(&log, &hangs));
        let supervisor = supervisor.start().await.unwrap();
        let unit = supervisor.children().await.unwrap().pop().unwrap().unit;
        hangs.store(true, Ordering::SeqCst);
        unit.unwrap().kill();
        sleep(MS).await;
        assert_eq!(log.take(), ["+a", "+slow", "-slow", "+slow"]);
        supervisor.stop().await;
        assert_eq!(log.take(), ["-slow", "-a"]);
        let ended = StartError::Ended(ExitReason::Shutdown);
        assert_eq!(supervisor.children().await, Err(ended));
    });
}

/// The supervisor is a child, whose supervisor waits for its end however long it takes.
#[test]
fn a_tree_whose_leaf_is_never_ready_can_be_stopped() {
    on_seeds(async || {
        let (log, hangs) = (Log::default(), Arc::new(AtomicBool::new(true)));
        let begin = now();
        let inner = {
            let log = log.clone();
            move || supervisor(&log).child(slow(&log, &hangs))
        };
        let outer = Supervisor::new(Strategy::OneForAll).start().await.unwrap();
        let (asked, spec) = (outer.clone(), ChildSpec::supervisor("inner", inner));
        let asks = spawn(async move { asked.start_child(spec).await });
        sleep(MS).await;
        outer.stop().await;
        let error = asks.await.unwrap().unwrap_err();
        let interrupted = matches!(&error, StartError::Failed { child, reason: ChildFault::Interrupted } if child == "inner");
        assert!(interrupted, "{error}");
        all_have_ended(&log, begin);
    });
}

#[test]
fn a_supervisor_that_starts_its_children_ends_with_the_unit_that_started_it() {
    on_seeds(async || {
        let (log, hangs) = (Log::default(), Arc::new(AtomicBool::new(true)));
        let begin = now();
        let inner = supervisor(&log).child(slow(&log, &hangs));
        let inner = inner.builder(Builder::new().link());
        let reason = ExitReason::custom("on purpose");
        let parent = process::spawn(async move |_: process::Inbox<()>| {
            let started: Result<SupervisorPid, StartError> = inner.start().await;
            started.map(drop)
        });
        let parent = parent.unwrap();
        sleep(MS).await;
        let down = monitor(&Name::<process::ServerMessage<Slow>>::of("slow"));
        parent.exit(&reason);
        assert_eq!(parent.await, Err(reason));
        down.await;
        sleep(MS).await;
        all_have_ended(&log, begin);
    });
}

/// What is not an order to end stays in the mailbox, in its order.
#[test]
fn what_comes_while_a_child_starts_is_done_when_it_is_ready() {
    on_seeds(async || {
        let log = Log::default();
        let supervisor = supervisor(&log).intensity(1, HOUR).start().await.unwrap();
        let ready = ChildSpec::new("slow", |starting| {
            let ready = starting.ready();
            let process = process::spawn(async move |mut inbox: process::Inbox<()>| {
                sleep(10 * MS).await;
                ready.say();
                inbox.receive().await;
            })?;
            Ok::<_, SpawnError>(process.into_pid())
        });
        let asked = supervisor.clone();
        let asks = spawn(async move { asked.start_child(ready.ready_within(HOUR)).await });
        sleep(MS).await;
        Name::<Order>::of("a").send(Order::Crash).unwrap();
        sleep(MS).await;
        assert_eq!(log.take(), ["+a", "-a"]);
        let counts = supervisor.count_children().await.unwrap();
        assert_eq!((counts.specs, counts.running), (2, 2));
        assert_eq!(asks.await.unwrap(), Ok(()));
        assert_eq!(log.take(), ["+a"]);
        supervisor.stop().await;
    });
}

/// A child that traps exits, and goes on.
fn refuses(id: &'static str, shutdown: Shutdown) -> ChildSpec {
    let child = ChildSpec::process(id, move |mut inbox: Inbox<Option<Exit>>| {
        inbox.trap_exits(Some);
        Name::of(id).register(&inbox.pid()).unwrap();
        async move {
            loop {
                inbox.receive().await;
            }
        }
    });
    child.shutdown(shutdown)
}

#[test]
fn a_supervisor_that_is_killed_while_it_ends_a_child_leaves_it_not_behind() {
    on_seeds(async || {
        let shutdown = Shutdown::After(HOUR);
        let supervisor = Supervisor::new(Strategy::OneForOne);
        let supervisor = supervisor.child(refuses("refuses", shutdown));
        let supervisor = supervisor.start().await.unwrap();
        let child = Name::<Option<Exit>>::of("refuses").whereis().unwrap();
        let down = monitor(&child);
        let asked = supervisor.clone();
        let asks = spawn(async move { asked.terminate_child("refuses").await });
        sleep(MS).await;
        assert!(child.is_alive());
        supervisor.pid().kill();
        assert_eq!(down.await.reason, ExitReason::Killed);
        assert!(registered().is_empty());
        assert_eq!(
            asks.await.unwrap(),
            Err(StartError::Ended(ExitReason::Killed))
        );
    });
}

/// A supervisor that is a child ends its own children in their order, even when its supervisor is killed meanwhile.
#[test]
fn a_supervisor_that_ends_its_children_goes_on_when_its_own_supervisor_is_killed() {
    on_seeds(async || {
        let log = Log::default();
        let takes_long = {
            let log = log.clone();
            move |mut inbox: Inbox<Option<Exit>>| {
                inbox.trap_exits(Some);
                let log = log.clone();
                async move {
                    inbox.receive().await;
                    sleep(10 * MS).await;
                    log.note("in its time".to_owned());
                }
            }
        };
        let inner = {
            let log = log.clone();
            move || {
                let last = ChildSpec::process("last", takes_long.clone());
                supervisor(&log).child(last.shutdown(Shutdown::After(HOUR)))
            }
        };
        let outer = Supervisor::new(Strategy::OneForOne);
        let outer = outer.child(ChildSpec::supervisor("inner", inner));
        let outer = outer.start().await.unwrap();
        let first = monitor(&Name::<Order>::of("a").whereis().unwrap());
        let asked = outer.clone();
        let asks = spawn(async move { asked.terminate_child("inner").await });
        sleep(MS).await;
        outer.pid().kill();
        assert_eq!(first.await.reason, ExitReason::Shutdown);
        assert_eq!(log.take(), ["+a", "in its time", "-a"]);
        assert!(asks.await.unwrap().is_err());
    });
}
