//! Supervisors, servers and machines that are found by a name.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/children.rs"]
mod children;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    future::Ready,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use children::{HOUR, on_seeds};
use tools::on_each;
use weald_kernel::sleep;
use weald_process::{
    self as process, Builder, ChildFault, ChildSpec, ExitReason, Inbox, Machine, MachineMessage,
    MachineRef, MachineScope, Name, RegisterError, Server, ServerMessage, ServerRef, StartError,
    Strategy, Supervisor, SupervisorMessage, SupervisorPid, Transition, monitor, registered,
};

static ROOMS: Name<SupervisorMessage> = Name::new("rooms");

fn room(id: &'static str) -> ChildSpec {
    ChildSpec::process(id, async |mut inbox: Inbox<()>| inbox.receive().await)
}

#[test]
fn a_supervisor_with_a_name_is_found_again_after_its_restart() {
    on_seeds(async || {
        let rooms = ChildSpec::supervisor("rooms", || {
            Supervisor::new(Strategy::OneForOne).register(&ROOMS)
        });
        let root = Supervisor::new(Strategy::OneForOne).intensity(1, HOUR);
        let root = root.child(rooms).start().await.unwrap();
        let first = SupervisorPid::of(ROOMS.whereis().unwrap());
        first.start_child(room("1")).await.unwrap();
        let taken = Supervisor::new(Strategy::OneForOne).register(&ROOMS);
        let taken = taken.start().await.unwrap_err();
        let expected = RegisterError::Taken("rooms".to_owned());
        assert_eq!(taken, StartError::Register(expected));
        let down = monitor(&first);
        first.pid().kill();
        assert_eq!(down.await.reason, ExitReason::Killed);
        let second = SupervisorPid::of(ROOMS.registered().await.unwrap());
        assert_ne!(first.id(), second.id());
        second.start_child(room("2")).await.unwrap();
        assert_eq!(second.count_children().await.unwrap().running, 1);
        root.stop().await;
        assert!(registered().is_empty());
    });
}

struct Idle;

impl Server for Idle {
    type Info = ();
}

impl Machine for Idle {
    type State = ();
    type Event = ();

    async fn begin(&mut self, _: &mut MachineScope<Idle>) {}

    async fn handle(&mut self, (): &(), (): (), _: &mut MachineScope<Idle>) -> Transition<(), ()> {
        Transition::Stay
    }
}

static SERVER: Name<ServerMessage<Idle>> = Name::new("server");
static MACHINE: Name<MachineMessage<Idle>> = Name::new("machine");

#[test]
fn a_server_and_a_machine_have_their_name_before_they_run_or_are_not_started() {
    on_seeds(async || {
        let server = ServerRef::start_as(&SERVER, Builder::new(), Idle).unwrap();
        let machine = MachineRef::start_as(&MACHINE, Builder::new(), Idle).unwrap();
        assert_eq!(SERVER.whereis().as_ref(), Ok(server.pid()));
        assert_eq!(MACHINE.whereis().as_ref(), Ok(machine.pid()));
        let server_again = ServerRef::start_as(&SERVER, Builder::new(), Idle);
        let taken = RegisterError::Taken("server".to_owned());
        assert_eq!(server_again.err(), Some(taken));
        let machine_again = MachineRef::start_as(&MACHINE, Builder::new(), Idle);
        assert!(matches!(machine_again, Err(RegisterError::Taken(_))));
        server.stop().await;
        machine.stop().await;
        assert!(registered().is_empty());
    });
}

#[test]
fn a_server_and_a_machine_that_are_linked_end_with_the_unit_that_started_them_however_that_ends() {
    on_seeds(async || {
        let parent = process::spawn(async |mut inbox: Inbox<()>| {
            let linked = || Builder::new().link();
            let server = ServerRef::start(linked(), Idle).unwrap();
            let machine = MachineRef::start(linked(), Idle).unwrap();
            let ends = (monitor(&server), monitor(&machine));
            // Another unit that ends normally is news, and no order to end.
            let other = server.clone();
            let helper = process::spawn(async move |_: Inbox<()>| process::link(&other));
            helper.unwrap().await.unwrap();
            assert!(server.state(|_| ()).await.is_ok());
            inbox.receive().await;
            ends
        });
        let parent = parent.unwrap();
        sleep(children::MS).await;
        parent.pid().send(());
        let (server, machine) = parent.await.unwrap();
        assert_eq!(server.await.reason, ExitReason::Normal);
        assert_eq!(machine.await.reason, ExitReason::Normal);
    });
}

#[test]
fn children_have_their_names_before_they_run_and_so_have_their_successors() {
    static PROCESS: Name<()> = Name::new("process");
    on_seeds(async || {
        let process = ChildSpec::process_as(&PROCESS, async |mut inbox: Inbox<()>| {
            assert_eq!(PROCESS.whereis(), Ok(inbox.pid()));
            inbox.receive().await;
        });
        let supervisor = Supervisor::new(Strategy::OneForOne).intensity(10, children::HOUR);
        let supervisor = supervisor
            .child(process)
            .child(ChildSpec::server_as(&SERVER, || Idle))
            .child(ChildSpec::machine_as(&MACHINE, || Idle));
        let supervisor = supervisor.start().await.unwrap();
        let names = ["machine", "process", "server"];
        assert_eq!(registered(), names);
        let first = SERVER.whereis().unwrap();
        let downs = [monitor(&PROCESS), monitor(&SERVER), monitor(&MACHINE)];
        PROCESS.send(()).unwrap();
        first.kill();
        MACHINE.whereis().unwrap().kill();
        for down in downs {
            down.await;
        }
        PROCESS.registered().await.unwrap();
        assert_ne!(SERVER.registered().await.unwrap(), first);
        MACHINE.registered().await.unwrap();
        let ids = supervisor.children().await.unwrap();
        let ids: Vec<_> = ids.into_iter().map(|child| child.id).collect();
        assert_eq!(ids, ["process", "server", "machine"]);
        supervisor.stop().await;
        assert!(registered().is_empty());
    });
}

#[test]
fn a_child_whose_name_is_taken_does_not_start() {
    on_seeds(async || {
        let server = ServerRef::start_as(&SERVER, Builder::new(), Idle).unwrap();
        let supervisor = Supervisor::new(Strategy::OneForOne);
        let supervisor = supervisor.child(ChildSpec::server_as(&SERVER, || Idle));
        match supervisor.start().await.unwrap_err() {
            StartError::Failed {
                reason: ChildFault::Failed(failure),
                ..
            } => {
                let taken = RegisterError::Taken("server".to_owned());
                assert_eq!(failure.downcast_ref(), Some(&taken));
            }
            other => panic!("{other}"),
        }
        server.stop().await;
    });
}

/// Takes its time to be dropped.
struct LongDrop(Arc<AtomicBool>);

impl Drop for LongDrop {
    fn drop(&mut self) {
        for _ in 0..1000 {
            std::thread::yield_now();
        }
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn the_name_of_a_supervisor_that_does_not_start_is_free_when_that_is_known() {
    on_each(|runtime| {
        runtime.block_on(async {
            for _ in 0..20 {
                let is_dropped = Arc::new(AtomicBool::new(false));
                let held = LongDrop(is_dropped.clone());
                let first = ChildSpec::process("first", move |mut inbox: Inbox<()>| {
                    let _held = &held;
                    async move { inbox.receive().await }
                });
                let second = ChildSpec::process("second", |_: Inbox<()>| -> Ready<()> {
                    panic!("on purpose")
                });
                let supervisor = Supervisor::new(Strategy::OneForOne).register(&ROOMS);
                let error = supervisor.child(first).child(second).start().await;
                assert!(matches!(error, Err(StartError::Failed { .. })), "{error:?}");
                assert!(is_dropped.load(Ordering::SeqCst));
                assert!(ROOMS.whereis().is_err());
            }
        });
    });
}
