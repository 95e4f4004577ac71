//! `call` and `broadcast` on tokio: a request is a message with a oneshot channel for its answer; a group is a
//! broadcast channel.

use std::time::{Duration, Instant};

use common::{Call, per, print_metrics};
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::time::timeout;

use crate::system::{Gate, SETTLE, System};
use crate::systems::Tokio;

/// How long a caller waits, if its time is limited.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// What to return, and where.
type Request = (u64, oneshot::Sender<u64>);

/// Runs the workload if it is one of these.
pub(crate) async fn run(call: &Call) {
    match call.workload.as_str() {
        "call" => {
            // There are no servers, and an answer comes through a oneshot in any case.
            call.word("callee", &[("process", ()), ("oneshot", ())]);
            requests(call.number("rounds", 1), call.is_yes("timeout")).await;
        }
        "broadcast" => messages_to_all(call.count("members"), call.count("rounds")).await,
        _ => {}
    }
}

async fn requests(rounds: u64, has_timeout: bool) {
    let (callee, mut mailbox) = mpsc::unbounded_channel::<Request>();
    tokio::spawn(async move {
        while let Some((value, reply)) = mailbox.recv().await {
            reply.send(value).expect("the caller waits");
        }
    });
    ask(&callee, 0, has_timeout).await;
    let clock = Instant::now();
    for value in 0..rounds {
        ask(&callee, value, has_timeout).await;
    }
    print_metrics(&[("ns_per_round_trip", per(clock.elapsed(), rounds as f64))]);
}

async fn ask(callee: &mpsc::UnboundedSender<Request>, value: u64, has_timeout: bool) {
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

async fn messages_to_all(members: usize, rounds: usize) {
    let (mut started, mut done) = (Gate::<Tokio>::new(members), Gate::<Tokio>::new(members));
    let (sender, _) = broadcast::channel(rounds);
    for _ in 0..members {
        let (started, done) = (started.counter, done.counter);
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
    Tokio::pause(SETTLE).await;
    let clock = Instant::now();
    for round in 0..rounds as u64 {
        sender.send(round).expect("the members receive");
        tokio::task::yield_now().await;
    }
    done.wait().await;
    let total = (members * rounds) as f64;
    print_metrics(&[("ns_per_message", per(clock.elapsed(), total))]);
}
