//! Servers with a bounded mailbox or with urgent messages: what meets a full mailbox, and what passes it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/signals.rs"]
mod signals;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    num::NonZeroU32,
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{FutureExt, future::join_all};
use signals::{custom, everywhere};
use tools::{Latch, each_seed};
use weald_kernel::{now, sleep, yield_now};
use weald_process::{
    self as process, Accept, Answer, BoundedServerRef, Builder, CallError, Down, ExitReason, Inbox,
    MailboxKind, Overflow, Overflowed, Reply, SendError, Server, ServerRef, ServerScope, Step,
    monitor,
};

const MS: Duration = Duration::from_millis(1);

/// A server that takes nothing before its latch opens, and notes what it takes.
#[derive(Clone, Default)]
struct Notes {
    latch: Latch,
    seen: Arc<Mutex<Vec<u32>>>,
}

#[derive(Debug, PartialEq)]
struct Add(u32);
struct Count;
#[derive(Debug)]
struct Crash;
/// Watches this process, and is told of its end by info 100.
#[derive(Debug)]
struct Watch(process::Pid<()>);

impl Notes {
    fn note(&self, number: u32) -> Step {
        self.seen.lock().unwrap().push(number);
        Step::Receive
    }

    fn take(&self) -> Vec<u32> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}

impl Server for Notes {
    type Info = u32;

    async fn begin(&mut self, scope: &mut ServerScope<Notes>) -> Step {
        scope.info_after(Duration::ZERO, 50).detach();
        self.latch.clone().await;
        Step::Receive
    }

    async fn info(&mut self, info: u32, _: &mut ServerScope<Notes>) -> Step {
        self.note(info)
    }
}

impl Accept<Add> for Notes {
    async fn accept(&mut self, Add(number): Add, _: &mut ServerScope<Notes>) -> Step {
        self.note(number)
    }
}

impl Accept<Watch> for Notes {
    async fn accept(&mut self, Watch(pid): Watch, scope: &mut ServerScope<Notes>) -> Step {
        scope.monitor(&pid, |_: Down| 100);
        Step::Receive
    }
}

impl Answer<Count> for Notes {
    type Value = usize;

    async fn answer(&mut self, _: Count, reply: Reply<usize>, _: &mut ServerScope<Notes>) -> Step {
        let _unheard = reply.send(self.seen.lock().unwrap().len());
        Step::Receive
    }
}

impl Answer<Crash> for Notes {
    type Value = ();

    async fn answer(&mut self, _: Crash, _reply: Reply<()>, _: &mut ServerScope<Notes>) -> Step {
        panic!("on purpose")
    }
}

fn room(capacity: u32) -> NonZeroU32 {
    NonZeroU32::new(capacity).unwrap()
}

fn start(kind: MailboxKind) -> (Notes, BoundedServerRef<Notes>) {
    let notes = Notes::default();
    let server = BoundedServerRef::start(Builder::new(), kind, notes.clone());
    (notes, server.unwrap())
}

/// What was noted without the message of the timer, which comes at any time.
fn without_timer(seen: Vec<u32>) -> Vec<u32> {
    seen.into_iter().filter(|number| *number != 50).collect()
}

#[test]
fn casts_requests_and_infos_wait_for_room_in_the_order_in_which_they_came() {
    everywhere(async || {
        let (notes, server) = start(MailboxKind::bounded(room(2), Overflow::Wait));
        assert_eq!((server.pid().capacity(), server.pid().room()), (2, 2));
        server.cast(Add(1)).await.unwrap();
        server.try_cast(Add(2)).unwrap();
        assert_eq!(server.try_cast(Add(3)), Err(SendError::Full(Add(3))));
        assert_eq!(server.try_info(3), Err(SendError::Full(3)));
        let mut cast = pin!(server.cast(Add(4)));
        let mut info = pin!(server.info(5));
        let mut state = pin!(server.state(|notes| notes.seen.clone()));
        let mut count = pin!(server.request(Count).into_future());
        let mut dropped = Box::pin(server.cast(Add(6)));
        assert!(cast.as_mut().now_or_never().is_none());
        assert!(info.as_mut().now_or_never().is_none());
        assert!(state.as_mut().now_or_never().is_none());
        assert!(count.as_mut().now_or_never().is_none());
        assert!((&mut dropped).now_or_never().is_none());
        drop(dropped);
        notes.latch.open();
        let (cast, info, state, count) = futures_util::join!(cast, info, state, count);
        assert_eq!((cast, info), (Ok(()), Ok(())));
        assert!(Arc::ptr_eq(&state.unwrap(), &notes.seen));
        server.stop().await;
        let seen = notes.take();
        assert!(count == Ok(4) || count == Ok(5), "{count:?}: {seen:?}");
        assert_eq!(without_timer(seen), [1, 2, 4, 5]);
    });
}

#[test]
fn what_finds_no_room_is_refused_and_notices_and_the_order_to_stop_need_none() {
    everywhere(async || {
        let (notes, server) = start(MailboxKind::bounded(room(2), Overflow::Reject));
        let watched = process::spawn(async |mut inbox: Inbox<()>| inbox.receive().await).unwrap();
        server.cast(Watch(watched.pid().clone())).await.unwrap();
        server.cast(Add(1)).await.unwrap();
        assert_eq!(server.cast(Add(2)).await, Err(SendError::Full(Add(2))));
        assert_eq!(server.info(2).await, Err(SendError::Full(2)));
        assert_eq!(server.request(Count).await, Err(CallError::Full));
        // To look at it takes no room.
        let mut state =
            pin!(server.state(|notes| without_timer(notes.seen.lock().unwrap().clone())));
        assert!(state.as_mut().now_or_never().is_none());
        // As bounded mailboxes of all processes: without room of their own, urgent ones are as the others.
        let urgent = server.try_cast_urgent(Add(2));
        assert_eq!(urgent, Err(SendError::Full(Add(2))));
        notes.latch.open();
        assert_eq!(state.await, Ok(vec![1]));
        // Once it is known that the monitor is there.
        while server.request(Count).await.is_err() {
            yield_now().await;
        }
        watched.pid().send(());
        watched.await.unwrap();
        for notice in [100, 50] {
            while !notes.seen.lock().unwrap().contains(&notice) {
                sleep(MS).await;
            }
        }
        server.stop().await;
        assert_eq!(without_timer(notes.take()), [1, 100]);
        assert_eq!(server.try_cast(Add(3)), Err(SendError::Dead(Add(3))));
        assert_eq!(server.cast(Add(3)).await, Err(SendError::Dead(Add(3))));
        assert_eq!(server.try_info(3), Err(SendError::Dead(3)));
        let gone = CallError::Died(ExitReason::NoProcess);
        assert_eq!(server.request(Count).await, Err(gone));
    });
}

#[test]
fn a_full_server_stops_and_gets_its_exit_signals() {
    everywhere(async || {
        for stops in [false, true] {
            let (notes, server) = start(MailboxKind::bounded(room(1), Overflow::Reject));
            server.try_cast(Add(1)).unwrap();
            let down = monitor(&server);
            notes.latch.open();
            if stops {
                server.stop().await;
                assert_eq!(down.await.reason, ExitReason::Normal);
            } else {
                server.pid().exit(&custom());
                assert_eq!(down.await.reason, custom());
            }
            // The signal came behind the cast.
            assert_eq!(without_timer(notes.take()), [1]);
        }
    });
}

#[test]
fn a_message_that_is_too_many_ends_the_server() {
    everywhere(async || {
        for calls in [false, true] {
            let (notes, server) = start(MailboxKind::bounded(room(1), Overflow::Crash));
            let down = monitor(&server);
            server.try_cast(Add(1)).unwrap();
            // A server that has not come to its first wait might take the message before it ends.
            while notes.latch.waiters() == 0 {
                yield_now().await;
            }
            if calls {
                assert_eq!(server.request(Count).await, Err(CallError::Full));
            } else {
                assert_eq!(server.cast(Add(2)).await, Err(SendError::Full(Add(2))));
            }
            notes.latch.open();
            let ExitReason::Custom(reason) = down.await.reason else {
                panic!("it has another reason");
            };
            let overflowed: &Overflowed = reason.downcast_ref().unwrap();
            assert_eq!(overflowed.capacity, 1);
            assert_eq!(without_timer(notes.take()), []);
        }
    });
}

#[test]
fn those_that_wait_for_room_learn_how_the_server_ended() {
    everywhere(async || {
        for crashes in [false, true] {
            let (notes, server) = start(MailboxKind::bounded(room(1), Overflow::Wait));
            let mut crash = pin!(server.request(Crash).into_future());
            assert!(crash.as_mut().now_or_never().is_none());
            let calls = (0..3).map(|_| server.request(Count).into_future());
            let mut calls = pin!(join_all(calls));
            let mut cast = pin!(server.cast(Add(1)));
            assert!(calls.as_mut().now_or_never().is_none());
            assert!(cast.as_mut().now_or_never().is_none());
            match crashes {
                true => notes.latch.open(),
                false => server.pid().kill(),
            }
            let (crash, calls, cast) = futures_util::join!(crash, calls, cast);
            let CallError::Died(reason) = crash.unwrap_err() else {
                panic!("it did not die");
            };
            match crashes {
                true => assert!(matches!(&reason, ExitReason::Crash(_)), "{reason:?}"),
                false => assert_eq!(reason, ExitReason::Killed),
            }
            // One may have got the room of the request that crashed the server.
            for call in calls {
                assert_eq!(call, Err(CallError::Died(reason.clone())));
            }
            assert!(cast.is_ok() || cast == Err(SendError::Dead(Add(1))));
            assert_eq!(without_timer(notes.take()), []);
        }
    });
}

#[test]
fn urgent_requests_and_exit_signals_pass_those_that_wait_and_have_room_of_their_own() {
    everywhere(async || {
        let kind = MailboxKind::bounded_priority(room(1), Overflow::Reject);
        let (notes, server) = start(kind);
        server.try_cast(Add(1)).unwrap();
        assert_eq!(server.try_cast(Add(2)), Err(SendError::Full(Add(2))));
        let mut count = pin!(server.request_urgent(Count).into_future());
        assert!(count.as_mut().now_or_never().is_none());
        let urgent = server.cast_urgent(Add(3)).await;
        assert_eq!(urgent, Err(SendError::Full(Add(3))));
        assert_eq!(server.request_urgent(Count).await, Err(CallError::Full));
        assert_eq!(
            (server.pid().room(), server.pid().room_for_urgent()),
            (0, 0)
        );
        server.pid().exit(&custom());
        let down = monitor(&server);
        let mut state = pin!(server.state(|notes| notes.seen.lock().unwrap().len()));
        assert!(state.as_mut().now_or_never().is_none());
        notes.latch.open();
        assert_eq!(count.await, Ok(0));
        // It came behind the exit signal, which is urgent, too.
        assert_eq!(state.await, Err(CallError::Died(custom())));
        assert_eq!(down.await.reason, custom());
        assert_eq!(without_timer(notes.take()), []);
    });
}

#[test]
fn a_server_with_priority_alone_has_no_bound() {
    everywhere(async || {
        let (notes, server) = start(MailboxKind::priority());
        for number in 0..1000 {
            server.try_cast(Add(number)).unwrap();
        }
        server.try_cast_urgent(Add(2000)).unwrap();
        server.cast_urgent(Add(3000)).await.unwrap();
        notes.latch.open();
        server.stop().await;
        let seen: Vec<u32> = without_timer(notes.take());
        assert_eq!(seen[..3], [2000, 3000, 0]);
        // Without the number that the timer's message has, too.
        assert_eq!(seen.len(), 1001);
    });
}

#[test]
fn a_linked_server_ends_with_its_parent_however_full_it_is() {
    everywhere(async || {
        let notes = Notes::default();
        let server = notes.clone();
        let parent = process::spawn(async move |mut inbox: Inbox<()>| {
            let kind = MailboxKind::bounded(room(1), Overflow::Reject);
            let server = BoundedServerRef::start(Builder::new().link(), kind, server).unwrap();
            server.try_cast(Add(1)).unwrap();
            inbox.receive().await;
            server
        });
        let parent = parent.unwrap();
        parent.pid().send(());
        let server = parent.await.unwrap();
        let down = monitor(&server);
        notes.latch.open();
        let reason = down.await.reason;
        assert!(reason == ExitReason::Normal || reason == ExitReason::NoProcess);
    });
}

/// A server that asks one behind it, for which it waits.
struct Front(BoundedServerRef<Notes>, Arc<Mutex<Vec<Duration>>>);

impl Server for Front {
    type Info = ();
}

impl Answer<Count> for Front {
    type Value = Result<usize, CallError>;

    async fn answer(
        &mut self,
        _: Count,
        reply: Reply<Self::Value>,
        _: &mut ServerScope<Front>,
    ) -> Step {
        let begin = now();
        let answer = self.0.request(Count).await;
        self.1.lock().unwrap().push(now() - begin);
        let _unheard = reply.send(answer);
        Step::Receive
    }
}

#[test]
fn a_deadline_covers_the_wait_for_room_and_passes_on() {
    each_seed(100, async || {
        let kind = MailboxKind::bounded(room(1), Overflow::Wait);
        let (notes, behind) = start(kind);
        behind.try_cast(Add(1)).unwrap();
        let took = Arc::default();
        let front = Front(behind.clone(), Arc::clone(&took));
        let front = BoundedServerRef::start(Builder::new(), kind, front).unwrap();
        let begin = now();
        let late = behind.request(Count).within(10 * MS).await;
        assert_eq!((late, now() - begin), (Err(CallError::TimedOut), 10 * MS));
        // It waits for room behind the server that it asks, as long as its caller waits.
        let late = front.request(Count).within(20 * MS).await;
        let late = late.unwrap_or_else(Err);
        assert_eq!((late, now() - begin), (Err(CallError::TimedOut), 30 * MS));
        sleep(MS).await;
        assert_eq!(*took.lock().unwrap(), [20 * MS]);
        notes.latch.open();
        assert!(matches!(front.request(Count).await, Ok(Ok(1 | 2))));
        // What was given up in time was never sent.
        assert_eq!(without_timer(notes.take()), [1]);
        front.stop().await;
        behind.stop().await;
    });
}

/// A server that takes its own address.
struct Itself(Option<BoundedServerRef<Itself>>);

impl Server for Itself {
    type Info = ();
}

impl Answer<Count> for Itself {
    type Value = Result<usize, CallError>;

    async fn answer(
        &mut self,
        _: Count,
        reply: Reply<Self::Value>,
        scope: &mut ServerScope<Itself>,
    ) -> Step {
        self.0 = scope.bounded_server();
        let answer = match &self.0 {
            Some(own) => own.request(Count).await.map(|_| 0),
            None => Ok(1),
        };
        let _unheard = reply.send(answer);
        Step::Receive
    }
}

impl Accept<Crash> for Itself {
    async fn accept(&mut self, _: Crash, scope: &mut ServerScope<Itself>) -> Step {
        let _plain = scope.server();
        Step::Receive
    }
}

#[test]
fn a_server_has_the_address_of_its_kind_and_does_not_wait_for_itself() {
    everywhere(async || {
        let kind = MailboxKind::bounded(room(1), Overflow::Wait);
        let server = BoundedServerRef::start(Builder::new(), kind, Itself(None)).unwrap();
        let answer = server.request(Count).await;
        assert_eq!(answer, Ok(Err(CallError::Itself)));
        let plain = ServerRef::start(Builder::new(), Itself(None)).unwrap();
        assert_eq!(plain.request(Count).await, Ok(Ok(1)));
        plain.cast(Crash);
        assert_eq!(plain.request(Count).await, Ok(Ok(1)));
        plain.stop().await;
        let down = monitor(&server);
        server.cast(Crash).await.unwrap();
        let ExitReason::Crash(crash) = down.await.reason else {
            panic!("it has no plain address");
        };
        assert!(crash.message().contains("bounded address"), "{crash:?}");
    });
}
