//! Calls under kills: one process of a protocol is killed, in each run at another wait. Everyone who called is answered
//! or told, and nobody hangs: the test runtime panics when nothing can run any longer.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{pin::Pin, time::Duration};

use tools::watch;
use weald_kernel::{Kills, Seeds, sleep, yield_now};
use weald_process::{
    self as process, Answer, Builder, CallError, ExitReason, Inbox, Pid, Reply, Server, ServerRef,
    ServerScope, Step, monitor,
};

const MS: Duration = Duration::from_millis(1);
const CALLERS: u32 = 3;
const ROUNDS: u32 = 3;

type Answered = Result<u32, CallError>;

/// What the callers ask. The number comes back doubled.
enum Request {
    /// Answered after a wait, with the help of the server behind.
    Now(u32, Reply<Answered>),
    /// Kept until the next request.
    Later(u32, Reply<Answered>),
    Stop,
}

/// The server behind.
struct Doubler;
struct Double(u32);

impl Server for Doubler {
    type Info = ();
}

impl Answer<Double> for Doubler {
    type Value = u32;

    async fn answer(
        &mut self,
        Double(n): Double,
        reply: Reply<u32>,
        _: &mut ServerScope<Doubler>,
    ) -> Step {
        sleep(MS).await;
        let _unheard = reply.send(2 * n);
        Step::Receive
    }
}

/// The callee: answers by calls of its own, and keeps some replies meanwhile.
async fn serve(mut inbox: Inbox<Request>, behind: ServerRef<Doubler>) {
    let mut kept = Vec::new();
    loop {
        match inbox.receive().await {
            Request::Now(n, reply) => {
                yield_now().await;
                let answer = behind.request(Double(n)).await;
                let _unheard = reply.send(answer);
            }
            Request::Later(n, reply) => {
                kept.push((n, reply));
                sleep(MS).await;
            }
            Request::Stop => return,
        }
        // One stays, so that its caller waits for what another one asks, or for the end.
        while kept.len() > 1 {
            let (n, reply): (u32, Reply<Answered>) = kept.remove(0);
            let answer = behind.request(Double(n)).await;
            let _unheard = reply.send(answer);
        }
    }
}

/// What became of a caller's calls.
type Outcomes = Vec<(u32, Result<Answered, CallError>)>;

async fn call(callee: Pid<Request>, number: u32) -> Outcomes {
    let mut outcomes = Vec::new();
    for round in 0..ROUNDS {
        let n = 10 * number + round;
        let outcome = match (number + round) % 3 {
            0 => callee.call(|reply| Request::Now(n, reply)).await,
            // Perhaps no request comes after it, hence a deadline.
            1 => {
                callee
                    .call(|reply| Request::Later(n, reply))
                    .within(50 * MS)
                    .await
            }
            _ => {
                callee
                    .call(|reply| Request::Now(n, reply))
                    .within(1_000 * MS)
                    .await
            }
        };
        outcomes.push((n, outcome));
    }
    outcomes
}

/// Whom a run kills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Callee,
    Caller,
    Behind,
}

/// Runs the protocol once.
async fn run(victim: Victim, kills: Option<Kills>) {
    let of = |unit| kills.clone().filter(|_| unit == victim);
    let behind = ServerRef::start(Builder::new(), Doubler).unwrap();
    let server = behind.clone();
    let callee = process::spawn(|inbox| covered(of(Victim::Callee), serve(inbox, server)));
    let callee = callee.unwrap().into_pid();
    let callers: Vec<_> = (0..CALLERS)
        .map(|number| {
            let kills = of(Victim::Caller).filter(|_| number == 0);
            let body = call(callee.clone(), number);
            process::spawn(|_: Inbox<()>| covered(kills, body)).unwrap()
        })
        .collect();
    if let Some(kills) = of(Victim::Behind) {
        kills.target(behind.pid());
    }
    let mut ends = Vec::new();
    for caller in callers {
        ends.push(caller.await);
    }
    let was_killed = kills.is_some_and(|kills| kills.has_killed());
    for (number, end) in ends.into_iter().enumerate() {
        match end {
            Ok(outcomes) => check(&outcomes, victim, was_killed),
            Err(reason) => {
                assert_eq!((number, victim), (0, Victim::Caller));
                assert_eq!(reason, ExitReason::Killed);
            }
        }
    }
    // The callee continues if it was not killed itself, even if others were.
    let down = monitor(&callee);
    callee.send(Request::Stop);
    let reason = down.await.reason;
    if victim != Victim::Callee || !was_killed {
        assert_eq!(reason, ExitReason::Normal);
    } else {
        assert!(
            matches!(reason, ExitReason::Killed | ExitReason::NoProcess),
            "{reason:?}"
        );
    }
    behind.stop().await;
}

/// The body of a process, which may be killed at its waits.
fn covered<T>(
    kills: Option<Kills>,
    body: impl Future<Output = T> + Send + 'static,
) -> Pin<Box<dyn Future<Output = T> + Send>> {
    match kills {
        Some(kills) => Box::pin(kills.cover(body)),
        None => Box::pin(body),
    }
}

/// Each call was answered rightly, or its caller was told what is true.
fn check(outcomes: &Outcomes, victim: Victim, was_killed: bool) {
    assert_eq!(outcomes.len(), usize::try_from(ROUNDS).unwrap());
    let mut is_dead = false;
    for (n, outcome) in outcomes {
        match outcome {
            Ok(Ok(double)) => assert!(!is_dead && *double == 2 * n, "{outcomes:?}"),
            // Of those that are kept, the last one of all waits in vain.
            Err(CallError::TimedOut) => assert!(!is_dead, "{outcomes:?}"),
            Ok(Err(CallError::Died(ExitReason::Killed | ExitReason::NoProcess))) => {
                assert!(victim == Victim::Behind && was_killed, "{outcomes:?}");
            }
            Err(CallError::Died(reason)) => {
                assert!(victim == Victim::Callee && was_killed, "{outcomes:?}");
                // The first learns how it died, the others may find nobody.
                let told = matches!(reason, ExitReason::Killed | ExitReason::NoProcess);
                assert!(told, "{outcomes:?}");
                is_dead = true;
            }
            Ok(Err(_)) | Err(_) => panic!("{outcomes:?}"),
        }
    }
}

/// Kills the victim at all of its waits. Returns how many kills there were.
fn at_every_wait(victim: Victim) -> usize {
    let watch = watch();
    Seeds::new(4).kill_at_every_wait(async |kills| {
        watch.again();
        run(victim, Some(kills)).await;
    })
}

#[test]
fn a_callee_that_is_killed_at_any_wait_leaves_no_caller_without_an_answer() {
    let kills = at_every_wait(Victim::Callee);
    assert!(
        kills > 2 * usize::try_from(CALLERS * ROUNDS).unwrap(),
        "{kills}"
    );
}

#[test]
fn a_caller_that_is_killed_at_any_wait_keeps_no_other_from_its_answer() {
    let kills = at_every_wait(Victim::Caller);
    assert!(kills >= 2 * usize::try_from(ROUNDS).unwrap(), "{kills}");
}

#[test]
fn a_server_behind_that_is_killed_at_any_moment_fails_the_calls_that_need_it() {
    let moments = at_every_wait(Victim::Behind);
    assert!(moments > 1, "{moments}");
}

#[test]
fn without_a_kill_all_are_answered() {
    Seeds::new(50).run(async |_| run(Victim::Callee, None).await);
}
