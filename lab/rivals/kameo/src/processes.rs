//! `lifecycle`, `call` and `call-behind-queue`: links of actors, and their requests.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use common::{Processes, bad_usage, per, print_metrics, rss_bytes};
use kameo::Actor;
use kameo::actor::{ActorId, ActorRef, Spawn, WeakActorRef};
use kameo::error::ActorStopReason;
use kameo::mailbox;
use kameo::message::{Context, Message};

use crate::gate::Gate;

/// Long enough for processes that have been started to reach their receive.
const SETTLE: Duration = Duration::from_millis(50);

/// How long a caller waits, if its time is limited.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) async fn run(processes: Processes) {
    match processes {
        Processes::Lifecycle { n } => lifecycle(n).await,
        Processes::Call {
            rounds,
            is_server: true,
            has_timeout,
        } => {
            let timeout = has_timeout.then_some(PATIENCE);
            call(0, rounds, (timeout, "ns_per_round_trip")).await;
        }
        Processes::Call { .. } => bad_usage("Actors are servers: give callee=server."),
        Processes::CallBehindQueue { waiting, rounds } => {
            call(waiting, rounds, (None, "ns")).await;
        }
        Processes::Broadcast { .. } => bad_usage("Actors have no groups: leave it out."),
    }
}

/// Starts a process with an unbounded mailbox and returns its address.
fn start<P: Actor>(arguments: P::Args) -> ActorRef<P> {
    P::spawn_with_mailbox(arguments, mailbox::unbounded())
}

/// The message that ends a process.
struct Die;

/// A process that waits for its end.
struct Waiter;

impl Actor for Waiter {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(waiter: Self, _: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(waiter)
    }
}

impl Message<Die> for Waiter {
    type Reply = ();

    async fn handle(&mut self, _: Die, context: &mut Context<Self, ()>) {
        context.stop();
    }
}

/// The order to link these processes and to end them.
struct Watch(Vec<ActorRef<Waiter>>);

/// A process that counts the ends of those that it has linked.
struct Watcher {
    linked: &'static Gate,
    ended: &'static Gate,
}

impl Actor for Watcher {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(watcher: Self, _: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(watcher)
    }

    async fn on_link_died(
        &mut self,
        _: WeakActorRef<Self>,
        _: ActorId,
        _: ActorStopReason,
    ) -> Result<ControlFlow<ActorStopReason>, Infallible> {
        self.ended.count();
        Ok(ControlFlow::Continue(()))
    }
}

impl Message<Watch> for Watcher {
    type Reply = ();

    async fn handle(&mut self, Watch(others): Watch, context: &mut Context<Self, ()>) {
        for other in &others {
            other.link(context.actor_ref()).await;
        }
        self.linked.count();
        for other in others {
            other.tell(Die).send().await.expect("it waits for its end");
        }
    }
}

async fn lifecycle(n: usize) {
    let (linked, ended) = (Gate::leak(1), Gate::leak(n));
    let watcher: ActorRef<Watcher> = start(Watcher { linked, ended });
    let mut others = Vec::with_capacity(n);
    for _ in 0..n {
        let other: ActorRef<Waiter> = start(Waiter);
        other.wait_for_startup().await;
        others.push(other);
    }
    tokio::time::sleep(SETTLE).await;
    let before = rss_bytes();
    let clock = Instant::now();
    let order = watcher.tell(Watch(others)).send().await;
    order.expect("the watcher waits");
    linked.wait().await;
    let grown = rss_bytes().saturating_sub(before);
    ended.wait().await;
    print_metrics(&[
        ("ns", per(clock.elapsed(), n as f64)),
        ("bytes_per_link", grown as f64 / n as f64),
    ]);
}

/// A request: what to return.
struct Echo(u64);

struct EchoServer;

impl Actor for EchoServer {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(server: Self, _: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(server)
    }
}

impl Message<Echo> for EchoServer {
    type Reply = u64;

    async fn handle(&mut self, Echo(value): Echo, _: &mut Context<Self, u64>) -> u64 {
        value
    }
}

/// The order to make the calls.
struct MakeCalls;

/// A message that comes behind it.
struct Waits;

struct Caller {
    server: ActorRef<EchoServer>,
    rounds: u64,
    timeout: Option<Duration>,
    metric: &'static str,
}

impl Actor for Caller {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(caller: Self, _: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(caller)
    }
}

impl Message<MakeCalls> for Caller {
    type Reply = ();

    async fn handle(&mut self, _: MakeCalls, _: &mut Context<Self, ()>) {
        // Until the messages that are to wait have come.
        tokio::time::sleep(SETTLE * 20).await;
        self.ask(0).await;
        let clock = Instant::now();
        for value in 0..self.rounds {
            self.ask(value).await;
        }
        let ns = per(clock.elapsed(), self.rounds as f64);
        print_metrics(&[(self.metric, ns)]);
    }
}

impl Message<Waits> for Caller {
    type Reply = ();

    async fn handle(&mut self, _: Waits, _: &mut Context<Self, ()>) {}
}

impl Caller {
    async fn ask(&self, value: u64) {
        let request = self.server.ask(Echo(value));
        let answer = match self.timeout {
            Some(timeout) => request.reply_timeout(timeout).send().await,
            None => request.send().await,
        };
        assert_eq!(answer.expect("the server answers"), value);
    }
}

/// The caller's limit, and the name of what it prints.
type Limited = (Option<Duration>, &'static str);

async fn call(waiting: usize, rounds: u64, (timeout, metric): Limited) {
    let caller: ActorRef<Caller> = start(Caller {
        server: start(EchoServer),
        rounds,
        timeout,
        metric,
    });
    let order = caller.tell(MakeCalls).send().await;
    order.expect("the caller waits");
    for _ in 0..waiting {
        caller.tell(Waits).send().await.expect("it lives");
    }
    // The caller prints and ends the program.
    std::future::pending::<()>().await;
}
