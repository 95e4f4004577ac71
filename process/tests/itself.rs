//! Units that wait for themselves: a call is an error at once, and so is the wait for one's own end.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::num::NonZeroU32;

use tools::{Latch, each_seed, on_each};
use weald_kernel::{Wait, fork::join};
use weald_process::{
    self as process, BoundedInbox, BoundedPid, Builder, CallError, ChildFault, ChildSpec, Down,
    ExitReason, Inbox, Monitor, Name, Overflow, PriorityInbox, Reply, Server, ServerRef,
    ServerScope, StartError, Step, Strategy, Supervisor, SupervisorMessage, SupervisorPid, monitor,
};

static NAME: Name<Reply<()>> = Name::new("itself");

fn everywhere(test: impl AsyncFn()) {
    each_seed(100, &test);
    on_each(|runtime| runtime.block_on(test()));
}

const ITSELF: Result<Result<(), CallError>, ExitReason> = Ok(Err(CallError::Itself));

#[test]
fn a_process_that_calls_itself_gets_an_error_at_once_and_no_message() {
    everywhere(async || {
        let body = async |mut inbox: Inbox<Reply<()>>| {
            let answer = inbox.pid().call(|reply| reply).await;
            assert!(inbox.is_empty());
            assert_eq!(NAME.call(|reply| reply).unwrap().await, answer);
            answer
        };
        let process = NAME.spawn(Builder::new(), body).unwrap();
        assert_eq!(process.await, ITSELF);
    });
}

#[test]
fn a_process_with_another_mailbox_that_calls_itself_gets_an_error_at_once() {
    everywhere(async || {
        for overflow in [Overflow::Wait, Overflow::Reject] {
            let body = async |inbox: BoundedInbox<Reply<()>>| {
                let pid: BoundedPid<Reply<()>> = inbox.pid();
                let answer = pid.call(|reply| reply).await;
                assert_eq!(pid.room(), 1, "nothing was sent");
                answer
            };
            let bounded = Builder::new().spawn_bounded(NonZeroU32::MIN, overflow, body);
            assert_eq!(bounded.unwrap().0.await, ITSELF);
        }
        let body = async |mut inbox: PriorityInbox<Reply<()>>| {
            let answer = inbox.pid().call_urgent(|reply| reply).await;
            assert!(inbox.is_empty());
            answer
        };
        let priority = Builder::new().spawn_priority(body).unwrap();
        assert_eq!(priority.0.await, ITSELF);
    });
}

#[test]
fn a_part_of_a_fork_that_calls_the_process_that_forked_gets_an_error_at_once() {
    everywhere(async || {
        let process = process::spawn(async |inbox: Inbox<Reply<()>>| {
            let (pid, begun) = (inbox.pid(), Latch::default());
            let calls = || {
                begun.open();
                pid.call(|reply| reply).wait()
            };
            // The first half waits until the second one runs elsewhere.
            join(|| begun.clone().wait(), calls).1
        });
        assert_eq!(process.unwrap().await, ITSELF);
    });
}

#[test]
fn a_start_function_that_asks_its_own_supervisor_gets_an_error_at_once() {
    static ROOT: Name<SupervisorMessage> = Name::new("root");
    everywhere(async || {
        let child = ChildSpec::new("asks", |_| {
            let supervisor = SupervisorPid::of(ROOT.whereis().unwrap());
            let error = supervisor.children().wait().unwrap_err();
            Err::<process::Unit, StartError>(error)
        });
        let supervisor = Supervisor::new(Strategy::OneForOne).register(&ROOT);
        match supervisor.child(child).start().await.unwrap_err() {
            StartError::Failed {
                reason: ChildFault::Failed(failure),
                ..
            } => assert_eq!(failure.downcast_ref(), Some(&StartError::Itself)),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn a_unit_that_waits_for_its_own_end_crashes_at_once_and_others_may_wait_for_it() {
    everywhere(async || {
        let waits = process::spawn(async |inbox: Inbox<()>| monitor(&inbox.pid()).await.reason);
        match waits.unwrap().await.unwrap_err() {
            ExitReason::Crash(crash) => assert!(crash.message().contains("own end"), "{crash:?}"),
            other => panic!("{other}"),
        }
        let leaves = process::spawn(async |mut inbox: Inbox<Reply<Monitor>>| {
            let reply = inbox.receive().await;
            drop(reply.send(monitor(&inbox.pid())));
            process::exit(ExitReason::Shutdown)
        });
        let leaves: process::Process<_, ()> = leaves.unwrap();
        let own = leaves.pid().call(|reply| reply).await.unwrap();
        let Down { reason, .. } = own.await;
        assert_eq!(reason, ExitReason::Shutdown);
    });
}

/// A server that stops itself as others would.
struct Stops;

impl Server for Stops {
    type Info = ();

    async fn info(&mut self, (): (), scope: &mut ServerScope<Stops>) -> Step {
        scope.server().stop().await;
        Step::Receive
    }
}

#[test]
fn a_server_that_waits_until_it_has_stopped_crashes_at_once() {
    everywhere(async || {
        let server = ServerRef::start(Builder::new(), Stops).unwrap();
        let down = monitor(&server);
        server.info(());
        match down.await.reason {
            ExitReason::Crash(crash) => assert!(crash.message().contains("own end"), "{crash:?}"),
            other => panic!("{other}"),
        }
    });
}
