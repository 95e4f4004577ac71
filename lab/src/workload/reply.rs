//! `reply`: a process asks another one and waits for the answer, which is a message, while many others wait in its
//! inbox.
//!
//! A mark stands behind those that came before the request. (In `call-behind-queue` the answer does not go through the
//! inbox.)

use std::time::Instant;

use weald::process::{self, Inbox, Pid};

use super::definition::Workload;
use super::host::{alone, not_spawned};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

pub(super) const WORKLOAD: Workload = Workload {
    name: "reply",
    question: "What does it cost to find an answer among many messages?",
    keys: &["waiting", "rounds"],
    optional: &[],
    metrics: &["ns_per_round_trip"],
    explaining: &[],
    remark: "The answer is a message, which a selective receive finds behind a mark.",
    run,
};

/// A message in the asker's inbox.
enum AskerMessage {
    /// One that it does not want now.
    Waits,
    /// The answer to the request with this number.
    Answer(u64),
}

/// A request: whom to send the answer, and its number.
struct Request(Pid<AskerMessage>, u64);

fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (waiting, rounds) = (params.number("waiting")?, params.count("rounds")? as u64);
    alone(params, 2, move |inbox| measure(inbox, waiting, rounds))
}

async fn measure(
    mut inbox: Inbox<AskerMessage>,
    waiting: usize,
    rounds: u64,
) -> Result<Vec<Metric>, Error> {
    let server = process::spawn(answer).map_err(|error| not_spawned(&error))?;
    let server = server.into_pid();
    for _ in 0..waiting {
        inbox.pid().send(AskerMessage::Waits);
    }
    // One round that is not counted: after it the inbox has taken and counted what waits.
    ask(&mut inbox, &server, 0).await?;
    let clock = Instant::now();
    for number in 0..rounds {
        ask(&mut inbox, &server, number).await?;
    }
    let elapsed = clock.elapsed();
    if inbox.len() != waiting {
        return Err(Error::workload("Messages that waited were lost."));
    }
    server.kill();
    let ns = elapsed.as_nanos() as f64 / rounds as f64;
    Ok(vec![Metric::new("ns_per_round_trip", ns)])
}

async fn answer(mut inbox: Inbox<Request>) {
    loop {
        let Request(asker, number) = inbox.receive().await;
        asker.send(AskerMessage::Answer(number));
    }
}

async fn ask(
    inbox: &mut Inbox<AskerMessage>,
    server: &Pid<Request>,
    number: u64,
) -> Result<(), Error> {
    let mut mark = inbox.mark();
    server.send(Request(inbox.pid(), number));
    let wanted =
        |message: &AskerMessage| matches!(message, AskerMessage::Answer(n) if *n == number);
    match inbox.receive_since(&mut mark, wanted).await {
        AskerMessage::Answer(answer) if answer == number => Ok(()),
        AskerMessage::Answer(answer) => Err(Error::workload(format!(
            "The answer to {number} was {answer}."
        ))),
        AskerMessage::Waits => unreachable!("only an answer is wanted"),
    }
}
