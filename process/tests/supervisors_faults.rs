//! What a supervisor says of children that fail: errors that keep their type, the report that it gives up, and names by
//! lines of user code.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/children.rs"]
mod children;
#[path = "../../kernel/tests/support/reports.rs"]
mod reports;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};

use children::{HOUR, Log, MS, Order, child, on_seeds, order};
use reports::{collect_reports, flushed, reports};
use tools::{runtime, watch};
use weald_kernel::{Runtime, SpawnError, now, sleep, timeout};
use weald_process::{
    self as process, AsUnit, Builder, ChildFault, ChildSpec, ExitReason, Inbox, Machine,
    MachineScope, Name, Restart, Server, ServerScope, StartError, Step, Strategy, Supervisor,
    SupervisorPid, Transition, Unit, monitor, registered,
};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no connection to the data base")]
struct NoConnection;

/// The fault of a child that does not start.
fn fault(error: StartError) -> ChildFault {
    match error {
        StartError::Failed { child, reason } if child == "c" => reason,
        other => panic!("{other}"),
    }
}

async fn fault_of(spec: ChildSpec) -> ChildFault {
    let supervisor = Supervisor::new(Strategy::OneForOne).child(spec);
    fault(supervisor.start().await.unwrap_err())
}

#[test]
fn a_supervisor_that_gives_up_reports_the_child_and_its_last_error() {
    collect_reports();
    on_seeds(async || {
        let mut is_first = true;
        let flaky = ChildSpec::new("flaky", move |_| {
            if !std::mem::take(&mut is_first) {
                return Err::<_, process::StartFailure>(NoConnection.into());
            }
            let name = Name::<Order>::of("flaky");
            let process = name.spawn(Builder::new(), async |mut inbox: Inbox<Order>| {
                inbox.receive().await;
            })?;
            Ok(process.into_pid())
        });
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .builder(Builder::new().name("root"))
            .intensity(2, HOUR);
        let supervisor = supervisor.child(flaky).start().await.unwrap();
        let down = monitor(&supervisor);
        order("flaky", Order::Return).await;
        assert_eq!(down.await.reason, ExitReason::Shutdown);
        let Err(StartError::GaveUp(gave_up)) = supervisor.children().await else {
            panic!("the supervisor has not given up");
        };
        assert_eq!((&*gave_up.child, gave_up.restarts), ("flaky", 2));
        let ChildFault::Failed(failure) = gave_up.fault else {
            panic!("{:?}", gave_up.fault);
        };
        assert_eq!(failure.downcast_ref(), Some(&NoConnection));
    });
    flushed();
    let report = reports("weald::supervisor", "`root` spawned at").remove(0);
    assert_eq!(report.level, tracing::Level::ERROR);
    let text = "has given up: more than 2 restarts within 3600s; at last its child `flaky`: no connection to the data base";
    assert!(report.text.contains(text), "{}", report.text);
}

#[test]
fn a_supervisor_that_was_stopped_says_so() {
    on_seeds(async || {
        let supervisor = Supervisor::new(Strategy::OneForOne).start().await.unwrap();
        supervisor.stop().await;
        let ended = StartError::Ended(ExitReason::Shutdown);
        assert_eq!(supervisor.children().await, Err(ended));
    });
}

#[test]
fn errors_and_panics_of_a_start_function_keep_their_type_and_their_message() {
    on_seeds(async || {
        let fails = ChildSpec::new("c", |_| Err::<Unit, _>(NoConnection));
        let ChildFault::Failed(failure) = fault_of(fails).await else {
            panic!("it returned an error");
        };
        assert_eq!(failure.downcast_ref(), Some(&NoConnection));
        assert_eq!(failure.to_string(), NoConnection.to_string());
        let panics = ChildSpec::new("c", |_| -> Result<Unit, SpawnError> {
            panic!("on purpose")
        });
        let panicked = ChildFault::Panicked("on purpose".to_owned());
        assert_eq!(fault_of(panics).await, panicked);
        let inner = || Supervisor::new(Strategy::OneForOne).child(failing("inner"));
        let ChildFault::Failed(failure) = fault_of(ChildSpec::supervisor("c", inner)).await else {
            panic!("the inner supervisor refused");
        };
        assert!(matches!(
            failure.downcast_ref(),
            Some(StartError::Failed { child, .. }) if child == "inner"
        ));
    });
}

fn failing(id: &'static str) -> ChildSpec {
    ChildSpec::new(id, |_| Err::<Unit, _>(NoConnection))
}

/// Stops in its first step, and takes its time to end.
struct Refuses(Arc<Mutex<Vec<&'static str>>>);

impl Server for Refuses {
    type Info = ();

    async fn begin(&mut self, _: &mut ServerScope<Refuses>) -> Step {
        Step::Stop(ExitReason::custom(NoConnection))
    }

    async fn end(&mut self, _: &ExitReason) {
        self.0.lock().unwrap().push("end begins");
        sleep(50 * MS).await;
        self.0.lock().unwrap().push("end ends");
    }
}

#[test]
fn a_server_that_stops_in_its_first_step_says_why_and_comes_to_its_end() {
    on_seeds(async || {
        let steps: Arc<Mutex<Vec<_>>> = Arc::default();
        let noted = Arc::clone(&steps);
        let server = ChildSpec::server("c", move || Refuses(noted.clone()));
        let reason = ExitReason::custom(NoConnection);
        assert_eq!(fault_of(server).await, ChildFault::Ended(reason));
        assert_eq!(*steps.lock().unwrap(), ["end begins", "end ends"]);
    });
}

struct RefusesToo;

impl Machine for RefusesToo {
    type State = ();
    type Event = ();

    async fn begin(&mut self, _: &mut MachineScope<RefusesToo>) {
        process::exit(ExitReason::custom(NoConnection))
    }

    async fn handle(
        &mut self,
        (): &(),
        (): (),
        _: &mut MachineScope<RefusesToo>,
    ) -> Transition<(), ()> {
        Transition::Stay
    }
}

#[test]
fn a_machine_that_exits_while_it_begins_says_why() {
    on_seeds(async || {
        let machine = ChildSpec::machine("c", || RefusesToo);
        let reason = ExitReason::custom(NoConnection);
        assert_eq!(fault_of(machine).await, ChildFault::Ended(reason));
    });
}

#[test]
fn a_spec_that_lets_nobody_say_ready_is_told_so() {
    on_seeds(async || {
        let waits = ChildSpec::process("c", async |mut inbox: Inbox<()>| inbox.receive().await);
        let fault = fault_of(waits.ready_within(HOUR)).await;
        assert_eq!(fault, ChildFault::ReadyNotTaken);
        let drops = ChildSpec::new("c", |starting| {
            drop(starting.ready());
            process::spawn(async |mut inbox: Inbox<()>| inbox.receive().await)
                .map(process::Process::into_pid)
        });
        let fault = fault_of(drops.ready_within(HOUR)).await;
        assert_eq!(fault, ChildFault::ReadyDropped);
    });
}

#[test]
fn a_child_that_ends_before_it_is_ready_is_noticed_at_once_whoever_may_say_ready() {
    on_seeds(async || {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let keeps = kept.clone();
        let child = ChildSpec::new("c", move |starting| {
            keeps.lock().unwrap().push(starting.ready());
            let crashes = async |_: Inbox<()>| panic!("on purpose");
            process::spawn(crashes).map(process::Process::into_pid)
        });
        let begin = now();
        let ChildFault::Ended(ExitReason::Crash(crash)) = fault_of(child.ready_within(HOUR)).await
        else {
            panic!("it crashed");
        };
        assert_eq!(crash.message(), "on purpose");
        assert!(now() - begin < MS);
        // Too late, and harmless.
        let ready = kept.lock().unwrap().pop();
        ready.unwrap().say();
    });
}

#[test]
fn a_start_that_is_given_up_leaves_nobody() {
    on_seeds(async || {
        let log = Log::default();
        let never_ready = ChildSpec::new("never ready", |starting| {
            let ready = starting.ready();
            let name = Name::<()>::of("never ready");
            let process = name.spawn(Builder::new(), async move |mut inbox: Inbox<()>| {
                let _ready = ready;
                inbox.receive().await;
            });
            process.map(process::Process::into_pid)
        });
        let supervisor = Supervisor::new(Strategy::OneForOne).child(child("a", &log));
        let supervisor = supervisor.child(never_ready.ready_within(HOUR));
        assert!(timeout(MS, supervisor.start()).await.is_err());
        sleep(MS).await;
        assert_eq!(log.take(), ["+a", "-a"]);
        assert!(registered().is_empty(), "{:?}", registered());
        // One that is given up when all run, and nobody has heard of it yet.
        let supervisor = Supervisor::new(Strategy::OneForOne).child(child("a", &log));
        let mut start = Box::pin(supervisor.start());
        assert!(futures_util::poll!(&mut start).is_pending());
        sleep(MS).await;
        assert_eq!(log.take(), ["+a"]);
        drop(start);
        sleep(MS).await;
        assert_eq!(log.take(), ["-a"]);
    });
}

#[test]
fn a_unit_is_the_child_of_one_supervisor_once_and_no_supervisor_is_its_own() {
    on_seeds(async || {
        let waits = process::spawn(async |mut inbox: Inbox<()>| inbox.receive().await).unwrap();
        let unit = waits.as_unit().unwrap();
        let same = |id| {
            let unit = unit.clone();
            ChildSpec::new(id, move |_| Ok::<_, SpawnError>(unit.clone()))
        };
        let supervisor = Supervisor::new(Strategy::OneForOne).child(same("first"));
        let supervisor = supervisor.start().await.unwrap();
        let error = supervisor.start_child(same("c")).await.unwrap_err();
        assert_eq!(fault(error), ChildFault::SharedUnit);
        let own: SupervisorPid = supervisor.clone();
        let own = ChildSpec::new("c", move |_| Ok::<_, SpawnError>(own.clone()));
        let error = supervisor.start_child(own).await.unwrap_err();
        assert_eq!(fault(error), ChildFault::Itself);
        assert_eq!(supervisor.children().await.unwrap().len(), 1);
        assert!(!waits.is_finished());
        supervisor.stop().await;
    });
}

#[test]
#[should_panic(expected = "a period that is longer than zero")]
fn a_period_of_zero_is_refused() {
    let _refused = Supervisor::new(Strategy::OneForOne).intensity(1, Duration::ZERO);
}

/// Serves nothing.
struct Idle;

impl Server for Idle {
    type Info = ();
}

#[test]
fn supervised_units_are_named_by_lines_of_the_program() {
    collect_reports();
    Runtime::test(1).block_on(async {
        let first = line!();
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .child(ChildSpec::process("p", async |_: Inbox<()>| {
                panic!("on purpose")
            }))
            .child(ChildSpec::server("s", || Idle))
            .child(ChildSpec::supervisor("v", || {
                Supervisor::new(Strategy::OneForAll)
            }))
            .intensity(0, HOUR)
            .start()
            .await
            .unwrap();
        let lines = first..line!();
        let units = supervisor.children().await.unwrap();
        let units = units.into_iter().filter_map(|child| child.unit);
        for unit in units.chain(supervisor.as_unit()) {
            let site = unit.name().site;
            assert_eq!(site.file(), file!(), "{}", unit.name());
            assert!(lines.contains(&site.line()), "{}", unit.name());
        }
        monitor(&supervisor).await;
    });
    flushed();
    let report = reports("weald::panic", "`p` spawned at").remove(0).text;
    assert!(
        report.contains("panicked; its links and monitors are told: on purpose"),
        "{report}"
    );
}

#[test]
#[should_panic(expected = "call it in a process or a job")]
fn a_builder_that_links_outside_of_units_says_what_to_do() {
    let supervisor = Supervisor::new(Strategy::OneForOne).builder(Builder::new().link());
    let _unstarted = Runtime::test(1).block_on(supervisor.start());
}

/// A value whose destructor panics.
struct Breaks;

impl Drop for Breaks {
    fn drop(&mut self) {
        panic!("on purpose");
    }
}

#[test]
fn a_start_function_that_panics_when_it_is_dropped_harms_no_supervisor() {
    on_seeds(async || {
        let spec = |id| {
            let held = Breaks;
            ChildSpec::process(id, move |mut inbox: Inbox<Order>| {
                let _held = &held;
                Name::of(id).register(&inbox.pid()).unwrap();
                async move {
                    let _order = inbox.receive().await;
                }
            })
            .restart(Restart::Temporary)
        };
        let supervisor = Supervisor::new(Strategy::OneForOne).limit(1);
        let supervisor = supervisor.child(spec("a")).start().await.unwrap();
        let full = supervisor.start_child(spec("b")).await;
        assert_eq!(full, Err(StartError::TooManyChildren { limit: 1 }));
        order("a", Order::Return).await;
        assert!(supervisor.children().await.unwrap().is_empty());
        supervisor.stop().await;
    });
}

#[test]
fn a_supervisor_whose_child_cannot_start_in_a_runtime_that_shuts_down_ends() {
    let _watch = watch();
    for workers in [1, 2] {
        let runtime = runtime(workers);
        let child = ChildSpec::process("crashes", |_: Inbox<()>| async { panic!("on purpose") });
        // It never gives up, and has never nothing to do.
        let supervisor = Supervisor::new(Strategy::OneForOne).intensity(usize::MAX, HOUR);
        let (sender, ended) = mpsc::channel();
        runtime.block_on(async move {
            let supervisor = supervisor.child(child).start().await.unwrap();
            let job = weald_kernel::spawn(async move {
                let down = monitor(&supervisor).await;
                sender.send(down.reason).unwrap();
            });
            drop(job);
        });
        let report = runtime.shutdown(Duration::from_secs(200));
        assert_eq!(ended.recv(), Ok(ExitReason::Shutdown));
        assert_eq!((report.cancelled, report.not_stopped), (0, Vec::new()));
    }
}

#[test]
fn a_child_that_cannot_start_in_a_runtime_that_shuts_down_ends_no_other_one() {
    let _watch = watch();
    for workers in [1, 2] {
        let (runtime, log) = (runtime(workers), Log::default());
        runtime.block_on(async {
            let supervisor = Supervisor::new(Strategy::OneForOne).child(child("a", &log));
            let supervisor = supervisor.start().await.unwrap();
            let (log, late) = (log.clone(), child("late", &Log::default()));
            drop(weald_kernel::spawn(async move {
                while !weald_kernel::is_shutting_down() {
                    sleep(MS).await;
                }
                let error = supervisor.start_child(late).await.unwrap_err();
                assert!(matches!(error, StartError::Failed { .. }), "{error}");
                let counts = supervisor.count_children().await.unwrap();
                assert_eq!((counts.running, log.take()), (1, vec!["+a".to_owned()]));
                supervisor.stop().await;
            }));
        });
        let report = runtime.shutdown(Duration::from_secs(200));
        assert_eq!((report.cancelled, report.not_stopped), (0, Vec::new()));
        assert_eq!(log.take(), ["-a"], "the checks were reached");
    }
}
