//! `call`: a process in an array asks another one, which writes the answer into the asker's own memory and wakes it.
//!
//! It is the same for all kinds of callees. There is no program for a time limit, which is a promise.

use std::time::Instant;

use super::world::{Code, World};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

const ANSWERS: u32 = 0;
const ASKS: u32 = 1;

/// A value, and the process that asks for it.
type LimitRequest = (u64, u32);

/// The answer that a process waits for, and what it has left to ask.
#[derive(Default)]
struct Asker {
    answer: Option<u64>,
    left: u64,
}

pub(super) fn takes(params: &Params) -> bool {
    params.get("timeout") == Some("no")
}

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let rounds = params.count("rounds")?;
    let mut world = World::with_room(2);
    // The code is not known where it is called.
    let (answers, asks): (Code<LimitRequest, Asker>, Code<LimitRequest, Asker>) =
        std::hint::black_box((answer, ask));
    world.spawn(answers, 0);
    world.spawn(asks, 0);
    world.run();

    world.polls = 0;
    world.own(ASKS).left = rounds as u64;
    let clock = Instant::now();
    world.send(ANSWERS, (rounds as u64, ASKS));
    world.run();
    let elapsed = clock.elapsed();

    if (world.ended, world.polls) != (1, 2 * rounds) {
        let sentence = format!("{} runs in place of {}.", world.polls, 2 * rounds);
        return Err(Error::workload(sentence));
    }
    let ns = elapsed.as_nanos() as f64 / rounds as f64;
    Ok(vec![Metric::new("ns_per_round_trip", ns)])
}

/// Answers every request with its value.
fn answer(world: &mut World<LimitRequest, Asker>, process: u32) {
    while let Some((value, asker)) = world.receive(process) {
        world.own(asker).answer = Some(value);
        world.wake(asker);
    }
}

/// Takes the answer, and asks again until all has been asked.
fn ask(world: &mut World<LimitRequest, Asker>, process: u32) {
    if let Some(value) = world.own(process).answer.take() {
        let own = world.own(process);
        if value != own.left {
            return;
        }
        own.left -= 1;
        match own.left {
            0 => world.ended += 1,
            left => world.send(ANSWERS, (left, process)),
        }
    }
    world.park(process);
}
