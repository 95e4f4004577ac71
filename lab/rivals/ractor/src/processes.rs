//! `lifecycle`, `call`, `call-behind-queue` and `broadcast`: links to a supervisor, its calls, and its process groups.

use std::time::{Duration, Instant};

use common::{Processes, bad_usage, per, print_metrics, rss_bytes, total_messages};
use ractor::rpc::CallResult;
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent, pg};

use crate::gate::Gate;
use crate::start;

/// Long enough for processes that have been started to reach their receive.
const SETTLE: Duration = Duration::from_millis(50);

/// How long a caller waits, if its time is limited.
const PATIENCE: Duration = Duration::from_secs(5);

const GROUP: &str = "members";

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
        Processes::Broadcast { members, rounds } => broadcast(members, rounds).await,
    }
}

/// The message that ends a process.
struct Die;

/// A process that waits for its end.
struct Waiter;

impl Actor for Waiter {
    type Msg = Die;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Die>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(
        &self,
        me: ActorRef<Die>,
        _: Die,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        me.stop(None);
        Ok(())
    }
}

/// The order to link these processes and to end them.
struct Watch(Vec<ActorRef<Die>>);

/// A process that counts the ends of those that it has linked.
struct Watcher {
    linked: &'static Gate,
    ended: &'static Gate,
}

impl Actor for Watcher {
    type Msg = Watch;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Watch>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(
        &self,
        me: ActorRef<Watch>,
        Watch(others): Watch,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        for other in &others {
            other.link(me.get_cell());
        }
        self.linked.count();
        for other in others {
            other.cast(Die)?;
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<Watch>,
        event: SupervisionEvent,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        if let SupervisionEvent::ActorTerminated(..) = event {
            self.ended.count();
        }
        Ok(())
    }
}

async fn lifecycle(n: usize) {
    let (linked, ended) = (Gate::leak(1), Gate::leak(n));
    let watcher = start(Watcher { linked, ended }, ()).await;
    let mut others = Vec::with_capacity(n);
    for _ in 0..n {
        others.push(start(Waiter, ()).await);
    }
    tokio::time::sleep(SETTLE).await;
    let before = rss_bytes();
    let clock = Instant::now();
    watcher.cast(Watch(others)).expect("the watcher waits");
    linked.wait().await;
    let grown = rss_bytes().saturating_sub(before);
    ended.wait().await;
    print_metrics(&[
        ("ns", per(clock.elapsed(), n as f64)),
        ("bytes_per_link", grown as f64 / n as f64),
    ]);
}

/// A request: what to return.
struct Echo(u64, RpcReplyPort<u64>);

struct EchoServer;

impl Actor for EchoServer {
    type Msg = Echo;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Echo>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(
        &self,
        _: ActorRef<Echo>,
        Echo(value, reply): Echo,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        reply.send(value)?;
        Ok(())
    }
}

/// A message to a caller.
enum CallerMessage {
    /// The order to make the calls.
    Call,
    /// One that comes behind it.
    Waits,
}

struct Caller {
    server: ActorRef<Echo>,
    rounds: u64,
    timeout: Option<Duration>,
    metric: &'static str,
}

impl Actor for Caller {
    type Msg = CallerMessage;
    type State = ();
    type Arguments = ();

    async fn pre_start(
        &self,
        _: ActorRef<CallerMessage>,
        (): (),
    ) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(
        &self,
        _: ActorRef<CallerMessage>,
        message: CallerMessage,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        if let CallerMessage::Call = message {
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
        Ok(())
    }
}

impl Caller {
    async fn ask(&self, value: u64) {
        let asked = self.server.call(|reply| Echo(value, reply), self.timeout);
        match asked.await {
            Ok(CallResult::Success(answer)) => assert_eq!(answer, value),
            _ => panic!("a call failed"),
        }
    }
}

/// The caller's limit, and the name of what it prints.
type Limited = (Option<Duration>, &'static str);

async fn call(waiting: usize, rounds: u64, (timeout, metric): Limited) {
    let server = start(EchoServer, ()).await;
    let caller = Caller {
        server,
        rounds,
        timeout,
        metric,
    };
    let caller = start(caller, ()).await;
    caller.cast(CallerMessage::Call).expect("the caller waits");
    for _ in 0..waiting {
        caller.cast(CallerMessage::Waits).expect("it lives");
    }
    // The caller prints and ends the program.
    std::future::pending::<()>().await;
}

/// A member of the group.
struct Member {
    rounds: u64,
    done: &'static Gate,
}

impl Actor for Member {
    type Msg = u64;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<u64>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(
        &self,
        _: ActorRef<u64>,
        round: u64,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        if round + 1 == self.rounds {
            self.done.count();
        }
        Ok(())
    }
}

async fn broadcast(members: usize, rounds: usize) {
    let done = Gate::leak(members);
    let mut cells: Vec<ActorCell> = Vec::with_capacity(members);
    for _ in 0..members {
        let rounds = rounds as u64;
        cells.push(start(Member { rounds, done }, ()).await.get_cell());
    }
    pg::join(GROUP.to_owned(), cells);
    tokio::time::sleep(SETTLE).await;
    let clock = Instant::now();
    for round in 0..rounds as u64 {
        for member in pg::get_members(&GROUP.to_owned()) {
            member.send_message(round).expect("the members receive");
        }
        tokio::task::yield_now().await;
    }
    done.wait().await;
    print_metrics(&[(
        "ns_per_message",
        per(clock.elapsed(), total_messages(members, rounds)),
    )]);
}
