//! `call` and `broadcast`: a request is a message with a oneshot channel for its answer; a group is a broadcast channel.

use std::time::{Duration, Instant};

use common::{Processes, bad_usage, per, print_metrics, total_messages};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{broadcast, oneshot};
use tokio::time::timeout;

use crate::gate::Gate;

/// Long enough for a process that has counted itself started to reach its receive.
const SETTLE: Duration = Duration::from_millis(50);

/// How long a caller waits, if its time is limited.
const PATIENCE: Duration = Duration::from_secs(5);

/// What to return, and where.
type Request = (u64, oneshot::Sender<u64>);

pub(crate) async fn run(processes: Processes) {
    match processes {
        Processes::Call {
            rounds,
            is_server: false,
            has_timeout,
        } => call(rounds, has_timeout).await,
        Processes::Call { .. } => bad_usage("Tokio has no servers: give callee=process."),
        Processes::Broadcast { members, rounds } => broadcast(members, rounds).await,
        Processes::Lifecycle { .. } => bad_usage("Tasks have no links: leave it out."),
        Processes::CallBehindQueue { .. } => {
            bad_usage("A task has no mailbox of its own: leave it out.")
        }
    }
}

async fn call(rounds: u64, has_timeout: bool) {
    let (callee, mailbox) = unbounded_channel();
    tokio::spawn(answer(mailbox));
    ask(&callee, 0, has_timeout).await;
    let clock = Instant::now();
    for value in 0..rounds {
        ask(&callee, value, has_timeout).await;
    }
    print_metrics(&[("ns_per_round_trip", per(clock.elapsed(), rounds as f64))]);
}

async fn answer(mut mailbox: UnboundedReceiver<Request>) {
    while let Some((value, reply)) = mailbox.recv().await {
        reply.send(value).expect("the caller waits");
    }
}

async fn ask(callee: &UnboundedSender<Request>, value: u64, has_timeout: bool) {
    let (reply, answer) = oneshot::channel();
    callee.send((value, reply)).expect("the callee receives");
    let answer = if has_timeout {
        let answer = timeout(PATIENCE, answer).await;
        answer.expect("the callee answers in time")
    } else {
        answer.await
    };
    assert_eq!(answer.expect("the callee answers"), value);
}

async fn broadcast(members: usize, rounds: usize) {
    let (started, done) = (Gate::leak(members), Gate::leak(members));
    let (sender, _) = broadcast::channel(rounds);
    for _ in 0..members {
        let mut member = sender.subscribe();
        tokio::spawn(async move {
            started.count();
            for round in 0..rounds as u64 {
                assert_eq!(member.recv().await.expect("there is room for all"), round);
            }
            done.count();
        });
    }
    started.wait().await;
    tokio::time::sleep(SETTLE).await;
    let clock = Instant::now();
    for round in 0..rounds as u64 {
        sender.send(round).expect("the members receive");
        tokio::task::yield_now().await;
    }
    done.wait().await;
    print_metrics(&[(
        "ns_per_message",
        per(clock.elapsed(), total_messages(members, rounds)),
    )]);
}
