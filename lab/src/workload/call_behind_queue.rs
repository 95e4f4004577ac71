//! `call-behind-queue`: what does a call cost while many messages wait in the caller's inbox?
//!
//! Two processes call the same third one in turns: one whose inbox is full, and one whose inbox is empty.

use std::time::{Duration, Instant};

use weald::process::{self, Inbox, Mark, Pid};

use super::call::{Echo, answer, ask, check};
use super::definition::Workload;
use super::host::{alone, not_spawned};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

pub(super) const WORKLOAD: Workload = Workload {
    name: "call-behind-queue",
    question: "What does a call cost while many messages wait in the caller's inbox?",
    keys: &["waiting", "rounds"],
    optional: &[],
    metrics: &["ns"],
    explaining: &["empty_queue_percent"],
    remark: "ns is per round trip.",
    run,
};

/// In how many turns the two callers make their calls.
const TURNS: u64 = 10;

/// A message to a caller.
enum CallerMessage {
    /// One that it does not want now.
    Waits,
    /// The order to make the calls of one turn, and where to send the time that they took.
    Call(Pid<Result<Duration, Error>>),
}

fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (waiting, rounds) = (params.count("waiting")?, params.count("rounds")? as u64);
    let each = rounds.div_ceil(TURNS);
    alone(params, 3, move |inbox| measure(inbox, waiting, each))
}

async fn measure(
    mut inbox: Inbox<Result<Duration, Error>>,
    waiting: usize,
    each: u64,
) -> Result<Vec<Metric>, Error> {
    let callee = process::spawn(answer).map_err(|error| not_spawned(&error))?;
    let callee = callee.into_pid();
    let caller = |waiting: usize| {
        let callee = callee.clone();
        let caller = process::spawn(move |inbox| call(inbox, callee, each));
        let caller = caller.map_err(|error| not_spawned(&error))?.into_pid();
        for _ in 0..waiting {
            caller.send(CallerMessage::Waits);
        }
        Ok::<_, Error>(caller)
    };
    let (burdened, free) = (caller(waiting)?, caller(0)?);
    let (mut behind, mut without) = (Duration::ZERO, Duration::ZERO);
    // One turn that is not counted: after it the inbox has taken and counted what waits.
    for turn in 0..=TURNS {
        for (caller, total) in [(&burdened, &mut behind), (&free, &mut without)] {
            caller.send(CallerMessage::Call(inbox.pid()));
            let elapsed = inbox.receive().await?;
            *total += if turn == 0 { Duration::ZERO } else { elapsed };
        }
    }
    for caller in [burdened, free] {
        caller.kill();
    }
    callee.kill();
    let ns = behind.as_nanos() as f64 / (TURNS * each) as f64;
    let percent = 100.0 * behind.as_secs_f64() / without.as_secs_f64();
    Ok(vec![
        Metric::new("ns", ns),
        Metric::new("empty_queue_percent", percent),
    ])
}

/// A caller. What it does not want stays in its inbox, before its orders.
async fn call(mut inbox: Inbox<CallerMessage>, callee: Pid<Echo>, each: u64) {
    let mut mark = Mark::oldest();
    let is_order = |message: &CallerMessage| matches!(message, CallerMessage::Call(_));
    loop {
        let CallerMessage::Call(main) = inbox.receive_since(&mut mark, is_order).await else {
            unreachable!("only orders are wanted")
        };
        main.send(timed(&callee, each).await);
    }
}

async fn timed(callee: &Pid<Echo>, each: u64) -> Result<Duration, Error> {
    let clock = Instant::now();
    for value in 0..each {
        check(value, ask(callee, value, None).await)?;
    }
    Ok(clock.elapsed())
}
