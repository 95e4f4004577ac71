//! Servers: requests, casts, infos, what follows a step, exits, and deadlines that pass on by themselves.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tools::{each_seed, on_each};
use weald_kernel::{Wait, now, sleep};
use weald_process::{
    self as process, Accept, Answer, Builder, CallError, ChildSpec, Exit, ExitReason, Inbox, Reply,
    Server, ServerRef, ServerScope, Step, Strategy, Supervisor, monitor,
};

const MS: Duration = Duration::from_millis(1);

fn everywhere(test: impl AsyncFn()) {
    each_seed(100, &test);
    on_each(|runtime| runtime.block_on(test()));
}

/// A server that notes its steps.
#[derive(Clone, Default)]
struct Notes {
    seen: Arc<Mutex<Vec<String>>>,
    number: u32,
}

impl Notes {
    fn note(&self, what: impl ToString) {
        self.seen.lock().unwrap().push(what.to_string());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}

struct Get;
struct Crash;
struct AskItself;
struct Set(u32, Step);

impl Server for Notes {
    type Info = &'static str;

    async fn begin(&mut self, _: &mut ServerScope<Notes>) -> Step {
        self.note("begin");
        Step::Receive
    }

    async fn proceed(&mut self, _: &mut ServerScope<Notes>) -> Step {
        self.note("proceed");
        Step::Receive
    }

    async fn timed_out(&mut self, _: &mut ServerScope<Notes>) -> Step {
        self.note("timed out");
        Step::Receive
    }

    async fn info(&mut self, info: &'static str, scope: &mut ServerScope<Notes>) -> Step {
        self.note(info);
        if info == "later" {
            scope.info_after(MS, "now").detach();
        }
        Step::Receive
    }

    async fn exit(&mut self, exit: Exit, _: &mut ServerScope<Notes>) -> Step {
        self.note("exit");
        Step::Stop(exit.reason)
    }

    async fn end(&mut self, reason: &ExitReason) {
        self.note(format!("end {reason:?}"));
    }
}

impl Answer<Get> for Notes {
    type Value = u32;

    async fn answer(&mut self, _: Get, reply: Reply<u32>, _: &mut ServerScope<Notes>) -> Step {
        let _unheard = reply.send(self.number);
        Step::Receive
    }
}

impl Answer<Crash> for Notes {
    type Value = ();

    async fn answer(&mut self, _: Crash, _reply: Reply<()>, _: &mut ServerScope<Notes>) -> Step {
        panic!("on purpose")
    }
}

impl Answer<AskItself> for Notes {
    type Value = Result<u32, CallError>;

    async fn answer(
        &mut self,
        _: AskItself,
        reply: Reply<Result<u32, CallError>>,
        scope: &mut ServerScope<Notes>,
    ) -> Step {
        let _unheard = reply.send(scope.server().request(Get).await);
        Step::Receive
    }
}

impl Accept<Set> for Notes {
    async fn accept(&mut self, Set(number, step): Set, _: &mut ServerScope<Notes>) -> Step {
        self.number = number;
        step
    }
}

fn start() -> (Notes, ServerRef<Notes>) {
    let notes = Notes::default();
    let server = ServerRef::start(Builder::new(), notes.clone());
    (notes, server.unwrap())
}

#[test]
fn requests_and_casts_are_taken_in_their_order_and_the_state_is_read_in_its_turn() {
    everywhere(async || {
        let (notes, server) = start();
        for n in 1..5 {
            server.cast(Set(n, Step::Receive));
            assert_eq!(server.request(Get).await, Ok(n));
            assert_eq!(server.state(|notes| notes.number).await, Ok(n));
        }
        server.stop().await;
        assert_eq!(notes.take(), ["begin", "end Normal"]);
        let gone = CallError::Died(ExitReason::NoProcess);
        assert_eq!(server.request(Get).await, Err(gone));
    });
}

#[test]
fn a_server_continues_before_it_takes_the_next_message() {
    everywhere(async || {
        let (notes, server) = start();
        server.cast(Set(1, Step::Continue));
        server.info("after");
        server.request(Get).await.unwrap();
        assert_eq!(notes.take(), ["begin", "proceed", "after"]);
        server.stop().await;
    });
}

#[test]
fn a_server_times_out_unless_a_message_comes_and_to_read_its_state_is_none() {
    each_seed(100, async || {
        let (notes, server) = start();
        server.cast(Set(1, Step::ReceiveWithin(10 * MS)));
        sleep(6 * MS).await;
        assert_eq!(server.state(|notes| notes.number).await, Ok(1));
        sleep(6 * MS).await;
        assert_eq!(notes.take(), ["begin", "timed out"]);
        server.cast(Set(1, Step::ReceiveWithin(10 * MS)));
        sleep(6 * MS).await;
        server.info("later");
        sleep(20 * MS).await;
        assert_eq!(notes.take(), ["later", "now"]);
        server.stop().await;
    });
}

/// What a reader has read.
struct PanicsAtDrop;

impl Drop for PanicsAtDrop {
    fn drop(&mut self) {
        panic!("on purpose")
    }
}

#[test]
fn what_a_reader_has_read_and_does_not_want_any_longer_harms_no_server() {
    each_seed(100, async || {
        let (_, server) = start();
        let mut read = Box::pin(server.state(|_| PanicsAtDrop));
        assert!(futures_util::poll!(&mut read).is_pending());
        drop(read);
        assert_eq!(server.request(Get).await, Ok(0));
        server.stop().await;
    });
}

#[test]
fn a_server_that_calls_itself_gets_an_error_at_once() {
    everywhere(async || {
        let (_, server) = start();
        let answer = server.request(AskItself).await;
        assert_eq!(answer, Ok(Err(CallError::Itself)));
        server.stop().await;
    });
}

/// A server whose state asks the server in its destructor, and notes the answer.
#[derive(Default)]
struct Selfish(Option<ServerRef<Selfish>>, Arc<Mutex<Vec<CallError>>>);

impl Server for Selfish {
    type Info = Step;

    async fn begin(&mut self, scope: &mut ServerScope<Selfish>) -> Step {
        self.0 = Some(scope.server());
        Step::Receive
    }

    async fn info(&mut self, step: Step, _: &mut ServerScope<Selfish>) -> Step {
        if let Step::ReceiveWithin(_) = step {
            panic!("on purpose");
        }
        step
    }
}

impl Drop for Selfish {
    fn drop(&mut self) {
        let answer = self.0.take().unwrap().state(|_| ()).wait();
        self.1.lock().unwrap().extend(answer.err());
    }
}

#[test]
fn a_state_that_asks_its_own_server_in_its_destructor_gets_an_error_at_once() {
    let end = async |step: Option<Step>| {
        let notes = Arc::default();
        let server = Selfish(None, Arc::clone(&notes));
        let server = ServerRef::start(Builder::new(), server).unwrap();
        server.state(|_| ()).await.unwrap();
        let down = monitor(&server);
        match step {
            Some(step) => server.info(step),
            None => server.pid().kill(),
        }
        let reason = down.await.reason;
        assert_eq!(*notes.lock().unwrap(), [CallError::Itself]);
        reason
    };
    everywhere(async || {
        for reason in [ExitReason::Normal, ExitReason::Shutdown] {
            assert_eq!(end(Some(Step::Stop(reason.clone()))).await, reason);
        }
        assert_eq!(end(None).await, ExitReason::Killed);
        let crash = end(Some(Step::ReceiveWithin(MS))).await;
        assert!(matches!(crash, ExitReason::Crash(_)));
    });
}

#[test]
fn a_state_that_cannot_be_read_fails_the_call_and_nothing_else() {
    everywhere(async || {
        let (_, server) = start();
        let broken = server.state(|_| -> u32 { panic!("on purpose") }).await;
        assert_eq!(broken, Err(CallError::NoReply));
        assert_eq!(server.request(Get).await, Ok(0));
        server.stop().await;
    });
}

#[test]
fn the_end_is_called_for_every_reason_except_a_panic_and_a_kill() {
    everywhere(async || {
        let custom = ExitReason::custom(7);
        let (notes, server) = start();
        let down = monitor(&server);
        server.cast(Set(0, Step::Stop(custom.clone())));
        assert_eq!(down.await.reason, custom);
        assert_eq!(notes.take(), ["begin", "end Custom(7)"]);

        let (notes, server) = start();
        let failed = server.request(Crash).await;
        assert!(matches!(failed, Err(CallError::Died(ExitReason::Crash(_)))));
        assert_eq!(notes.take(), ["begin"]);

        let (notes, server) = start();
        server.request(Get).await.unwrap();
        let down = monitor(&server);
        server.pid().exit(&ExitReason::Shutdown);
        assert_eq!(down.await.reason, ExitReason::Shutdown);
        assert_eq!(notes.take(), ["begin", "exit", "end Shutdown"]);
    });
}

fn named(notes: &Notes) -> ChildSpec {
    let notes = notes.clone();
    ChildSpec::server("notes", move || notes.clone())
}

#[test]
fn a_server_is_a_child_that_is_ready_when_it_has_begun() {
    everywhere(async || {
        let notes = Notes::default();
        let supervisor = Supervisor::new(Strategy::OneForOne).child(named(&notes));
        let supervisor = supervisor.start().await.unwrap();
        assert_eq!(notes.take(), ["begin"]);
        supervisor.stop().await;
        assert_eq!(notes.take(), ["exit", "end Shutdown"]);
    });
}

/// Asks another server for the sake of each request.
struct Front(ServerRef<Silent>);
struct Silent(Vec<Reply<()>>);

impl Server for Front {
    type Info = ();
}

impl Server for Silent {
    type Info = ();
}

impl Answer<Get> for Silent {
    type Value = ();

    async fn answer(&mut self, _: Get, reply: Reply<()>, _: &mut ServerScope<Silent>) -> Step {
        self.0.push(reply);
        Step::Receive
    }
}

impl Answer<Get> for Front {
    type Value = CallError;

    async fn answer(
        &mut self,
        _: Get,
        reply: Reply<CallError>,
        _: &mut ServerScope<Front>,
    ) -> Step {
        let error = self.0.request(Get).await.unwrap_err();
        let _unheard = reply.send(error);
        Step::Receive
    }
}

#[test]
fn a_deadline_passes_on_to_nested_calls_by_itself_and_ends_with_its_request() {
    each_seed(100, async || {
        let silent = ServerRef::start(Builder::new(), Silent(Vec::new())).unwrap();
        let front = ServerRef::start(Builder::new(), Front(silent.clone())).unwrap();
        let begin = now();
        let failed = front.request(Get).within(10 * MS).await;
        assert!(matches!(
            failed,
            Err(CallError::TimedOut) | Ok(CallError::TimedOut)
        ));
        // The front serves again: its own call had the deadline, too.
        front.state(|_| ()).await.unwrap();
        assert!(now() - begin <= 20 * MS);
        // A request without a deadline waits as long as it takes.
        let endless = front.request(Get);
        let late = weald_kernel::timeout(50 * MS, endless).await;
        assert!(late.is_err());
        silent.pid().kill();
        front.state(|_| ()).await.unwrap();
        front.stop().await;
    });
}

#[test]
fn a_timer_dies_with_its_process_and_a_cancel_says_what_remained() {
    each_seed(100, async || {
        let receiver = process::spawn(async |mut inbox: Inbox<u32>| {
            let first = inbox.receive().await;
            (first, inbox.receive().after(100 * MS).await.ok())
        })
        .unwrap();
        let pid = receiver.pid().clone();
        let sender = process::spawn(async move |inbox: Inbox<()>| {
            pid.send_after(5 * MS, 1).detach();
            let cancelled = pid.send_after(8 * MS, 2);
            let dies = pid.send_after(20 * MS, 3);
            sleep(5 * MS).await;
            assert!(
                cancelled
                    .cancel()
                    .is_some_and(|left| left > MS && left <= 3 * MS)
            );
            assert_eq!(cancelled.cancel(), None);
            assert!(dies.remaining().is_some());
            sleep(5 * MS).await;
            drop(inbox);
        });
        sender.unwrap().await.unwrap();
        assert_eq!(receiver.await, Ok((1, None)));
    });
}
