//! Processes with bounded and priority mailboxes that have a name from before they run; servers that are called by
//! name.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    num::NonZeroU32,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Wake, Waker},
};

use tools::{each_seed, on_each};
use weald_process::{
    Accept, Answer, Bounded, BoundedInbox, BoundedPid, BoundedPriorityInbox, Builder, Name,
    NameError, Overflow, Prioritized, PriorityInbox, PriorityPid, RegisterError, Reply, SendError,
    Server, ServerMessage, ServerRef, ServerScope, Step, monitor,
};

static BOUNDED: Name<Bounded<u32>> = Name::new("name");
static PRIORITY: Name<Prioritized<u32>> = Name::new("name");
static BOTH: Name<Bounded<Prioritized<u32>>> = Name::new("name");

fn everywhere(test: impl AsyncFn()) {
    each_seed(100, &test);
    on_each(|runtime| runtime.block_on(test()));
}

fn taken() -> RegisterError {
    RegisterError::Taken("name".to_owned())
}

#[test]
fn a_bounded_process_has_its_name_and_its_bound_before_it_runs() {
    everywhere(async || {
        let body = async |mut inbox: BoundedInbox<u32>| {
            let own = BoundedPid::of(BOUNDED.whereis().unwrap());
            assert_eq!(own, Some(inbox.pid()));
            inbox.receive().await
        };
        let spawn =
            || BOUNDED.spawn_bounded(Builder::new(), NonZeroU32::MIN, Overflow::Reject, body);
        let (process, pid) = spawn().unwrap();
        assert_eq!(spawn().err(), Some(taken()));
        let found = BoundedPid::of(BOUNDED.whereis().unwrap()).unwrap();
        assert_eq!(found.try_send(1), Ok(()));
        let down = monitor(&pid);
        let more = pid.try_send(2);
        assert!(more == Err(SendError::Full(2)) || more.is_ok() || more == Err(SendError::Dead(2)));
        assert_eq!(process.await, Ok(1));
        down.await;
        assert!(spawn().is_ok(), "the name is free again");
    });
}

/// Looks for the process when it is woken.
struct Looks(AtomicBool);

impl Wake for Looks {
    fn wake(self: Arc<Self>) {
        let found = BOUNDED.whereis().ok().and_then(BoundedPid::of);
        self.0.store(found.is_some(), Ordering::SeqCst);
    }
}

#[test]
fn whoever_waits_for_the_name_of_a_bounded_process_finds_its_bound() {
    everywhere(async || {
        let looks = Arc::new(Looks(AtomicBool::new(false)));
        let mut registered = BOUNDED.registered();
        let waker = Waker::from(looks.clone());
        let polled = Pin::new(&mut registered).poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        let body = async |mut inbox: BoundedInbox<u32>| inbox.receive().await;
        let (process, _pid) = BOUNDED
            .spawn_bounded(Builder::new(), NonZeroU32::MIN, Overflow::Wait, body)
            .unwrap();
        assert!(looks.0.load(Ordering::SeqCst));
        process.kill();
        monitor(&process).await;
    });
}

#[test]
fn a_priority_process_has_its_name_before_it_runs() {
    everywhere(async || {
        let body = async |mut inbox: PriorityInbox<u32>| {
            let own = PriorityPid::of(PRIORITY.whereis().unwrap());
            assert_eq!(own, inbox.pid());
            // Both are there when it looks.
            let first = inbox.receive_if(|message| *message == 2).await;
            (first, inbox.receive().await)
        };
        let (process, _pid) = PRIORITY.spawn_priority(Builder::new(), body).unwrap();
        let again = PRIORITY.spawn_priority(Builder::new(), body);
        assert_eq!(again.err(), Some(taken()));
        let found = PriorityPid::of(PRIORITY.whereis().unwrap());
        found.send(1);
        found.send_urgent(2);
        assert_eq!(process.await, Ok((2, 1)));
    });
}

#[test]
fn a_bounded_process_with_urgent_messages_has_its_name_before_it_runs() {
    everywhere(async || {
        let body = async |mut inbox: BoundedPriorityInbox<u32>| {
            let own = BoundedPid::of(BOTH.whereis().unwrap());
            assert_eq!(own, Some(inbox.pid()));
            inbox.receive_if(|message| *message == 2).await + inbox.receive().await
        };
        let spawn =
            || BOTH.spawn_bounded_priority(Builder::new(), NonZeroU32::MIN, Overflow::Reject, body);
        let (process, _pid) = spawn().unwrap();
        assert_eq!(spawn().err(), Some(taken()));
        let found = BoundedPid::of(BOTH.whereis().unwrap()).unwrap();
        assert!(found.try_send(Prioritized::usual(1)).is_ok());
        assert!(found.try_send_urgent(2).is_ok());
        assert_eq!(process.await, Ok(3));
    });
}

/// A server that counts.
struct Counter(u32);

struct Add(u32);
struct Total;

impl Server for Counter {
    type Info = ();
}

impl Accept<Add> for Counter {
    async fn accept(&mut self, Add(number): Add, _: &mut ServerScope<Counter>) -> Step {
        self.0 += number;
        Step::Receive
    }
}

impl Answer<Total> for Counter {
    type Value = u32;

    async fn answer(&mut self, _: Total, reply: Reply<u32>, _: &mut ServerScope<Counter>) -> Step {
        let _unheard = reply.send(self.0);
        Step::Receive
    }
}

static COUNTER: Name<ServerMessage<Counter>> = Name::new("counter");

#[test]
fn a_server_takes_requests_and_casts_by_its_name() {
    everywhere(async || {
        let nobody = NameError::NotRegistered("counter".to_owned());
        assert_eq!(COUNTER.request(Total).err(), Some(nobody.clone()));
        assert_eq!(COUNTER.cast(Add(1)), Err(nobody));
        let server = ServerRef::start_as(&COUNTER, Builder::new(), Counter(40)).unwrap();
        assert_eq!(COUNTER.cast(Add(2)), Ok(()));
        assert_eq!(COUNTER.request(Total).unwrap().await, Ok(42));
        server.stop().await;
    });
}
