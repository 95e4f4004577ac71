//! Supervised servers and machines with bounded mailboxes: what their users see when they end and are started again.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/signals.rs"]
mod signals;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    num::NonZeroU32,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt, future::join_all};
use signals::everywhere;
use tools::Latch;
use weald_kernel::yield_now;
use weald_process::{
    Answer, BoundedMachineMessage, BoundedMachineRef, BoundedServerMessage, BoundedServerRef,
    Builder, CallError, ChildSpec, ExitReason, Machine, MachineScope, MailboxKind, Name, NameError,
    Overflow, Overflowed, RegisterError, Reply, Server, ServerScope, StartError, Step, Strategy,
    Supervisor, Transition, monitor,
};

const HOUR: Duration = Duration::from_secs(3600);

/// A server that is busy while its latch is closed, each time that it is asked to be.
#[derive(Clone, Default)]
struct Worker {
    latch: Latch,
    starts: Arc<AtomicUsize>,
}

struct Work;
/// How often it was started.
struct Starts;

impl Server for Worker {
    type Info = ();

    async fn begin(&mut self, _: &mut ServerScope<Worker>) -> Step {
        self.starts.fetch_add(1, Ordering::SeqCst);
        Step::Receive
    }
}

impl Answer<Work> for Worker {
    type Value = ();

    async fn answer(&mut self, _: Work, _reply: Reply<()>, _: &mut ServerScope<Worker>) -> Step {
        self.latch.clone().await;
        Step::Receive
    }
}

impl Answer<Starts> for Worker {
    type Value = usize;

    async fn answer(
        &mut self,
        _: Starts,
        reply: Reply<usize>,
        _: &mut ServerScope<Worker>,
    ) -> Step {
        let _unheard = reply.send(self.starts.load(Ordering::SeqCst));
        Step::Receive
    }
}

static WORKER: Name<BoundedServerMessage<Worker>> = Name::new("worker");
static DOOR: Name<BoundedMachineMessage<Door>> = Name::new("door");

fn room(capacity: u32) -> NonZeroU32 {
    NonZeroU32::new(capacity).unwrap()
}

/// The successor of a child that has ended.
async fn successor() -> BoundedServerRef<Worker> {
    BoundedServerRef::of(WORKER.registered().await.unwrap()).unwrap()
}

#[test]
fn a_server_whose_mailbox_was_full_is_started_again_with_an_empty_one() {
    everywhere(async || {
        let worker = Worker::default();
        let make = worker.clone();
        let kind = MailboxKind::bounded(room(2), Overflow::Crash);
        let child = ChildSpec::bounded_server_as(&WORKER, kind, move || make.clone());
        let supervisor = Supervisor::new(Strategy::OneForOne).intensity(5, HOUR);
        let supervisor = supervisor.child(child).start().await.unwrap();
        for round in 1..=3 {
            let server = successor().await;
            assert_eq!(server.request(Starts).await, Ok(round));
            assert_eq!((server.pid().capacity(), server.pid().room()), (2, 2));
            let down = monitor(&server);
            let mut busy = pin!(server.request(Work).into_future());
            assert!(busy.as_mut().now_or_never().is_none());
            while server.pid().room() < 2 {
                yield_now().await;
            }
            let calls = (0..3).map(|_| server.request(Starts).into_future());
            let outcomes = join_all(calls).await;
            let down = down.await.reason;
            let ExitReason::Custom(reason) = &down else {
                panic!("it has another reason");
            };
            assert!(reason.downcast_ref::<Overflowed>().is_some());
            let died = CallError::Died(down.clone());
            assert_eq!(outcomes[..2], [Err(died.clone()), Err(died.clone())]);
            assert_eq!(outcomes[2], Err(CallError::Full));
            assert_eq!(busy.await, Err(died));
        }
        supervisor.stop().await;
        let gone = BoundedServerRef::named(&WORKER).map(|_| ());
        assert_eq!(gone, Err(NameError::NotRegistered("worker".to_owned())));
    });
}

#[test]
fn those_that_wait_for_room_in_a_child_learn_of_its_end_and_find_its_successor() {
    everywhere(async || {
        let worker = Worker::default();
        let make = worker.clone();
        let kind = MailboxKind::bounded(room(1), Overflow::Wait);
        let child = ChildSpec::bounded_server_as(&WORKER, kind, move || make.clone());
        let supervisor = Supervisor::new(Strategy::OneForAll).intensity(5, HOUR);
        let supervisor = supervisor.child(child).start().await.unwrap();
        let server = BoundedServerRef::named(&WORKER).unwrap();
        let mut busy = pin!(server.request(Work).into_future());
        assert!(busy.as_mut().now_or_never().is_none());
        while server.pid().room() < 1 {
            yield_now().await;
        }
        let calls = (0..4).map(|_| server.request(Starts).into_future());
        let mut calls = pin!(join_all(calls));
        assert!(calls.as_mut().now_or_never().is_none());
        server.pid().kill();
        let (busy, calls) = futures_util::join!(busy, calls);
        assert_eq!(busy, Err(CallError::Died(ExitReason::Killed)));
        for call in calls {
            assert_eq!(call, Err(CallError::Died(ExitReason::Killed)));
        }
        let next = successor().await;
        assert_eq!(next.request(Starts).await, Ok(2));
        supervisor.stop().await;
    });
}

#[test]
fn a_child_with_a_full_mailbox_is_stopped_with_its_supervisor() {
    everywhere(async || {
        let worker = Worker::default();
        worker.latch.open();
        let make = worker.clone();
        let kind = MailboxKind::bounded(room(1), Overflow::Reject);
        let child = ChildSpec::bounded_server("nameless", kind, move || make.clone());
        let supervisor = Supervisor::new(Strategy::OneForOne);
        let supervisor = supervisor.child(child).start().await.unwrap();
        let states = supervisor.children().await.unwrap();
        assert!(states[0].id == "nameless" && states[0].unit.is_some());
        let taken = BoundedServerRef::start_as(&WORKER, Builder::new(), kind, worker.clone());
        let server = taken.unwrap();
        let again = BoundedServerRef::start_as(&WORKER, Builder::new(), kind, worker.clone());
        assert_eq!(
            again.map(|_| ()),
            Err(RegisterError::Taken("worker".to_owned()))
        );
        let child = ChildSpec::bounded_server_as(&WORKER, kind, move || worker.clone());
        let refused = supervisor.start_child(child).await.unwrap_err();
        assert!(matches!(refused, StartError::Failed { .. }), "{refused:?}");
        server.stop().await;
        supervisor.stop().await;
    });
}

/// A machine that is as wide as it was made.
struct Door;

impl Machine for Door {
    type State = ();
    type Event = Reply<u32>;

    async fn begin(&mut self, _: &mut MachineScope<Door>) {}

    async fn handle(
        &mut self,
        (): &(),
        reply: Reply<u32>,
        _: &mut MachineScope<Door>,
    ) -> Transition<(), Reply<u32>> {
        let _unheard = reply.send(7);
        Transition::Stay
    }
}

#[test]
fn machines_are_children_with_such_mailboxes_too() {
    everywhere(async || {
        let kind = MailboxKind::bounded_priority(room(1), Overflow::Wait);
        let supervisor = Supervisor::new(Strategy::OneForOne).intensity(5, HOUR);
        let supervisor = supervisor
            .child(ChildSpec::bounded_machine_as(&DOOR, kind, || Door))
            .child(ChildSpec::bounded_machine("another", kind, || Door));
        let supervisor = supervisor.start().await.unwrap();
        let door = BoundedMachineRef::named(&DOOR).unwrap();
        assert_eq!(door.call(|reply| reply).await, Ok(7));
        let down = monitor(&door);
        door.pid().kill();
        down.await;
        let next = BoundedMachineRef::of(DOOR.registered().await.unwrap()).unwrap();
        assert_eq!(next.call_urgent(|reply| reply).await, Ok(7));
        assert_eq!(supervisor.count_children().await.unwrap().running, 2);
        supervisor.stop().await;
    });
}
