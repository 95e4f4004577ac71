//! `reply`: a process asks another one and waits for the answer, while many messages wait in its own inbox.
//!
//! via=mark: the answer is a message, and a mark stands behind those that came before the request. via=call: the answer
//! does not go through the inbox.

use std::time::Instant;

use weald::process::{self, Inbox, Pid, Reply};

use super::definition::Workload;
use super::host::{alone, not_spawned};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

pub(super) const WORKLOAD: Workload = Workload {
    name: "reply",
    question: "What does a request cost while many messages wait in the asker's inbox?",
    keys: &["waiting", "rounds", "via"],
    optional: &[],
    metrics: &["ns_per_round_trip"],
    explaining: &[],
    remark: "via=mark: the answer is a message, which a selective receive finds behind a mark. \
             via=call: the answer does not go through the inbox.",
    run,
};

/// A message in the asker's inbox.
enum AskerMessage {
    /// One that it does not want now.
    Waits,
    /// The answer to the request with this number.
    Answer(u64),
}

/// A request.
enum Request {
    /// Whom to send the answer, and its number.
    Message(Pid<AskerMessage>, u64),
    /// What to return.
    Call(u64, Reply<u64>),
}

/// How the answer comes.
#[derive(Clone, Copy)]
enum Via {
    Mark,
    Call,
}

fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (waiting, rounds) = (params.number("waiting")?, params.count("rounds")? as u64);
    let via = match params.text("via")? {
        "mark" => Via::Mark,
        "call" => Via::Call,
        other => {
            let sentence = format!("via={other} is neither mark nor call.");
            return Err(Error::Usage(sentence));
        }
    };
    alone(params, 2, move |inbox| measure(inbox, waiting, rounds, via))
}

async fn measure(
    mut inbox: Inbox<AskerMessage>,
    waiting: usize,
    rounds: u64,
    via: Via,
) -> Result<Vec<Metric>, Error> {
    let server = process::spawn(answer).map_err(|error| not_spawned(&error))?;
    let server = server.into_pid();
    for _ in 0..waiting {
        inbox.pid().send(AskerMessage::Waits);
    }
    // One round that is not counted: after it the inbox has taken and counted what waits.
    ask(&mut inbox, &server, 0, via).await?;
    let clock = Instant::now();
    for number in 0..rounds {
        ask(&mut inbox, &server, number, via).await?;
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
        match inbox.receive().await {
            Request::Message(asker, number) => asker.send(AskerMessage::Answer(number)),
            Request::Call(number, reply) => drop(reply.send(number)),
        }
    }
}

async fn ask(
    inbox: &mut Inbox<AskerMessage>,
    server: &Pid<Request>,
    number: u64,
    via: Via,
) -> Result<(), Error> {
    let answer = match via {
        Via::Mark => {
            let mut mark = inbox.mark();
            server.send(Request::Message(inbox.pid(), number));
            let wanted =
                |message: &AskerMessage| matches!(message, AskerMessage::Answer(n) if *n == number);
            match inbox.receive_since(&mut mark, wanted).await {
                AskerMessage::Answer(answer) => answer,
                AskerMessage::Waits => unreachable!("only an answer is wanted"),
            }
        }
        Via::Call => {
            let call = server.call(|reply| Request::Call(number, reply));
            call.await
                .map_err(|error| Error::workload(format!("A call failed: {error}.")))?
        }
    };
    match answer == number {
        true => Ok(()),
        false => Err(Error::workload(format!(
            "The answer to {number} was {answer}."
        ))),
    }
}
