//! Calls under kills: in run k of a protocol one of its processes is killed at its k-th wait, until a run has no k-th wait.
//! Everyone who called is answered or told, and nobody hangs: the test runtime panics when nothing can run any longer.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use tools::watch;
use weald_kernel::{Runtime, sleep, spawn, yield_now};
use weald_process::{
    self as process, Answer, Builder, CallError, ExitReason, Inbox, Pid, Reply, Server, ServerRef,
    ServerScope, Step, Unit, monitor,
};

const MS: Duration = Duration::from_millis(1);
const CALLERS: u32 = 3;
const ROUNDS: u32 = 3;
/// A protocol with more waits than this one does not come to its end.
const ENDLESS: usize = 1_000;

/// When a process is killed.
#[derive(Clone, Copy, Debug)]
enum Kill {
    Never,
    /// At this wait, by itself: it does not get beyond it.
    At(usize),
    /// By another job that is spawned at this wait, and so at a moment after it.
    After(usize),
}

/// The body of a process that is killed at one of its waits.
struct Killed<F> {
    body: Pin<Box<F>>,
    kill: Kill,
    waits: usize,
    /// Whether it came to that wait.
    was_killed: Arc<AtomicBool>,
}

fn killed<F: Future>(body: F, kill: Kill, was_killed: &Arc<AtomicBool>) -> Killed<F> {
    Killed {
        body: Box::pin(body),
        kill,
        waits: 0,
        was_killed: was_killed.clone(),
    }
}

impl<F: Future> Future for Killed<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let polled = self.body.as_mut().poll(cx);
        if polled.is_ready() {
            return polled;
        }
        let unit = Unit::current().unwrap();
        match self.kill {
            Kill::At(wait) if wait == self.waits => unit.kill(),
            Kill::After(wait) if wait == self.waits => drop(spawn(async move { unit.kill() })),
            _ => {
                self.waits += 1;
                return Poll::Pending;
            }
        }
        self.waits += 1;
        self.was_killed.store(true, Ordering::SeqCst);
        Poll::Pending
    }
}

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

async fn call(callee: Pid<Request>, number: u32, told: Arc<AtomicUsize>) -> Outcomes {
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
        told.fetch_add(1, Ordering::SeqCst);
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

/// Runs the protocol once. False if the victim did not have that wait.
async fn run(victim: Victim, kill: Kill) -> bool {
    let was_killed = Arc::new(AtomicBool::new(false));
    let of = |who| if who == victim { kill } else { Kill::Never };
    let behind = ServerRef::start(Builder::new(), Doubler).unwrap();
    let (server, flag) = (behind.clone(), was_killed.clone());
    let callee =
        process::spawn(move |inbox| killed(serve(inbox, server), of(Victim::Callee), &flag));
    let callee = callee.unwrap().into_pid();
    let told = Arc::new(AtomicUsize::new(0));
    let callers: Vec<_> = (0..CALLERS)
        .map(|number| {
            let kill = if number == 0 {
                of(Victim::Caller)
            } else {
                Kill::Never
            };
            let body = call(callee.clone(), number, told.clone());
            process::spawn(|_: Inbox<()>| killed(body, kill, &was_killed)).unwrap()
        })
        .collect();
    if let (Victim::Behind, Kill::At(turns) | Kill::After(turns)) = (victim, kill) {
        // A server's waits are its own: it is killed after so many turns of others.
        for _ in 0..turns {
            yield_now().await;
            // Time passes only when nothing can run.
            if turns % 2 == 0 {
                sleep(MS / 4).await;
            }
        }
        let all = usize::try_from(CALLERS * ROUNDS).unwrap();
        was_killed.store(told.load(Ordering::SeqCst) < all, Ordering::SeqCst);
        behind.pid().kill();
    }
    let mut ends = Vec::new();
    for caller in callers {
        ends.push(caller.await);
    }
    let was_killed = was_killed.load(Ordering::SeqCst);
    for (number, end) in ends.into_iter().enumerate() {
        match end {
            Ok(outcomes) => check(&outcomes, victim, was_killed),
            Err(reason) => {
                assert_eq!((number, victim), (0, Victim::Caller));
                assert_eq!(reason, ExitReason::Killed);
            }
        }
    }
    // The callee goes on if it was not killed itself, whoever else was.
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
    was_killed
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

/// All waits of the victim, each with both kinds of kills and some seeds. Returns how many there are.
fn at_every_wait(victim: Victim) -> usize {
    let _watch = watch();
    let mut waits = 0;
    for seed in 0..8 {
        for kind in [Kill::At as fn(usize) -> Kill, Kill::After] {
            let run = |wait| Runtime::test(seed).block_on(run(victim, kind(wait)));
            let last = (0..ENDLESS).find(|wait| !run(*wait));
            waits = waits.max(last.expect("the protocol comes to its end"));
        }
    }
    waits
}

#[test]
fn a_callee_that_is_killed_at_any_wait_leaves_no_caller_without_an_answer() {
    let waits = at_every_wait(Victim::Callee);
    assert!(
        waits > usize::try_from(CALLERS * ROUNDS).unwrap(),
        "{waits}"
    );
}

#[test]
fn a_caller_that_is_killed_at_any_wait_keeps_no_other_from_its_answer() {
    let waits = at_every_wait(Victim::Caller);
    assert!(waits >= usize::try_from(ROUNDS).unwrap(), "{waits}");
}

#[test]
fn a_server_behind_that_is_killed_at_any_moment_fails_the_calls_that_need_it() {
    let moments = at_every_wait(Victim::Behind);
    assert!(moments > 1, "{moments}");
}

#[test]
fn without_a_kill_all_are_answered() {
    for seed in 0..50 {
        let killed = Runtime::test(seed).block_on(run(Victim::Callee, Kill::Never));
        assert!(!killed);
    }
}
