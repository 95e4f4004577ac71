//! `call`: how long does a request to another process take, until its answer is there?
//!
//! The calls are made in turns with the round trips of `ping-pong`, so that the two can be compared.

use std::time::{Duration, Instant};

use weald::SpawnError;
use weald::process::{
    self, Answer, Builder, CallError, Inbox, Pid, Reply, Server, ServerRef, ServerScope, Step,
};
use weald::sync::oneshot;

use super::definition::Workload;
use super::host::{alone, crashed, not_spawned};
use super::ping_pong;
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

pub(super) const WORKLOAD: Workload = Workload {
    name: "call",
    question: "How long does a request to another process take, until its answer is there?",
    keys: &["rounds", "callee", "timeout"],
    optional: &[],
    metrics: &["ns_per_round_trip"],
    explaining: &["ping_pong_percent"],
    remark: "callee=process: one that receives in a loop of its own. callee=server: one whose requests are typed, \
             as gen_server of Erlang. callee=oneshot: a process that answers through a oneshot, which comes with the \
             request. timeout=yes: the caller waits for five seconds at most.",
    run,
};

/// In how many turns calls and round trips of `ping-pong` are made.
const TURNS: u64 = 10;

/// How long a caller waits, if its time is limited.
pub(super) const TIME_LIMIT: Duration = Duration::from_secs(5);

/// A request to the answering process: what to return.
pub(super) struct Echo(pub(super) u64, pub(super) Reply<u64>);

/// What kind of process answers.
#[derive(Clone, Copy)]
enum CalleeKind {
    Process,
    Server,
    Oneshot,
}

/// How calls are made.
#[derive(Clone, Copy)]
struct Calls {
    kind: CalleeKind,
    limit: Option<Duration>,
    rounds: u64,
}

fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let rounds = params.count("rounds")? as u64;
    let kind = match params.text("callee")? {
        "process" => CalleeKind::Process,
        "server" => CalleeKind::Server,
        "oneshot" => CalleeKind::Oneshot,
        other => {
            let sentence = format!("callee={other} is neither process, server nor oneshot.");
            return Err(Error::Usage(sentence));
        }
    };
    let limit = match params.text("timeout")? {
        "yes" => Some(TIME_LIMIT),
        "no" => None,
        other => {
            return Err(Error::Usage(format!(
                "timeout={other} is neither yes nor no."
            )));
        }
    };
    if limit.is_some() && matches!(kind, CalleeKind::Oneshot) {
        return Err(Error::Usage("callee=oneshot has no time limit.".into()));
    }
    let calls = Calls {
        kind,
        limit,
        rounds: rounds.div_ceil(TURNS),
    };
    alone(params, 2, move |inbox: Inbox<()>| async move {
        drop(inbox);
        measure(calls).await
    })
}

async fn measure(calls: Calls) -> Result<Vec<Metric>, Error> {
    let (mut calling, mut playing) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..TURNS {
        let caller = process::spawn(move |inbox: Inbox<()>| async move {
            drop(inbox);
            call(calls).await
        });
        let caller = caller.map_err(|error| not_spawned(&error))?;
        calling += caller.await.map_err(|reason| crashed(&reason))??;
        playing += ping_pong::play(calls.rounds).await?;
    }
    let ns = calling.as_nanos() as f64 / (TURNS * calls.rounds) as f64;
    let percent = 100.0 * calling.as_secs_f64() / playing.as_secs_f64();
    Ok(vec![
        Metric::new("ns_per_round_trip", ns),
        Metric::new("ping_pong_percent", percent),
    ])
}

/// Makes the calls of one turn. The first one is not counted: after it, the callee runs, and is parked.
async fn call(calls: Calls) -> Result<Duration, Error> {
    let callee = Callee::spawn(calls.kind).map_err(|error| not_spawned(&error))?;
    callee.ask(0, calls.limit).await?;
    let clock = Instant::now();
    for value in 0..calls.rounds {
        callee.ask(value, calls.limit).await?;
    }
    let elapsed = clock.elapsed();
    match callee {
        Callee::Process(pid) => pid.kill(),
        Callee::Server(server) => server.pid().kill(),
        Callee::Oneshot(pid) => pid.kill(),
    }
    Ok(elapsed)
}

/// A process that answers.
enum Callee {
    Process(Pid<Echo>),
    Server(ServerRef<EchoServer>),
    Oneshot(Pid<EchoOnce>),
}

/// A request to a process that answers through a oneshot.
type EchoOnce = (u64, oneshot::Sender<u64>);

impl Callee {
    fn spawn(kind: CalleeKind) -> Result<Callee, SpawnError> {
        Ok(match kind {
            CalleeKind::Process => Callee::Process(process::spawn(answer)?.into_pid()),
            CalleeKind::Oneshot => Callee::Oneshot(process::spawn(answer_once)?.into_pid()),
            CalleeKind::Server => Callee::Server(ServerRef::start(Builder::new(), EchoServer)?),
        })
    }

    async fn ask(&self, value: u64, limit: Option<Duration>) -> Result<(), Error> {
        let answer = match (self, limit) {
            (Callee::Process(pid), _) => ask(pid, value, limit).await,
            (Callee::Server(server), Some(limit)) => {
                server.request(EchoRequest(value)).within(limit).await
            }
            (Callee::Server(server), None) => server.request(EchoRequest(value)).await,
            (Callee::Oneshot(pid), _) => {
                let (sender, mut receiver) = oneshot::channel();
                pid.send((value, sender));
                match receiver.receive().await {
                    Ok(answer) => Ok(answer),
                    Err(_) => return Err(Error::workload("An answer was dropped.")),
                }
            }
        };
        check(value, answer)
    }
}

/// Asks the process that [`answer`] is.
pub(super) async fn ask(
    callee: &Pid<Echo>,
    value: u64,
    limit: Option<Duration>,
) -> Result<u64, CallError> {
    let call = callee.call(|reply| Echo(value, reply));
    match limit {
        Some(limit) => call.within(limit).await,
        None => call.await,
    }
}

/// The answer must be what was asked for.
pub(super) fn check(value: u64, answer: Result<u64, CallError>) -> Result<(), Error> {
    match answer {
        Ok(answer) if answer == value => Ok(()),
        Ok(answer) => Err(Error::workload(format!(
            "The answer to {value} was {answer}."
        ))),
        Err(error) => Err(Error::workload(format!("A call failed: {error}."))),
    }
}

/// Returns every value, until it is killed.
pub(super) async fn answer(mut inbox: Inbox<Echo>) {
    loop {
        let Echo(value, reply) = inbox.receive().await;
        let _unheard = reply.send(value);
    }
}

/// The same through oneshots.
async fn answer_once(mut inbox: Inbox<EchoOnce>) {
    loop {
        let (value, sender) = inbox.receive().await;
        let _unheard = sender.send(value);
    }
}

/// The same as a server.
struct EchoServer;

struct EchoRequest(u64);

impl Server for EchoServer {
    type Info = ();
}

impl Answer<EchoRequest> for EchoServer {
    type Value = u64;

    async fn answer(
        &mut self,
        EchoRequest(value): EchoRequest,
        reply: Reply<u64>,
        _: &mut ServerScope<EchoServer>,
    ) -> Step {
        let _unheard = reply.send(value);
        Step::Receive
    }
}
