//! `ping-pong`: two processes in an array send a number to and fro.

use std::time::Instant;

use super::world::{Code, World};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

const ANSWERS: u32 = 0;
const ASKS: u32 = 1;

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let rounds = params.count("rounds")?;
    let mut world = World::with_room(2);
    // The code is not known where it is called.
    let (answers, asks): (Code<u64>, Code<u64>) = std::hint::black_box((answer, ask));
    world.spawn(answers, 0);
    world.spawn(asks, 0);
    world.run();

    world.polls = 0;
    let clock = Instant::now();
    world.send(ANSWERS, rounds as u64);
    world.run();
    let elapsed = clock.elapsed();

    if (world.ended, world.polls) != (1, 2 * rounds) {
        let sentence = format!("{} runs in place of {}.", world.polls, 2 * rounds);
        return Err(Error::workload(sentence));
    }
    let ns = elapsed.as_nanos() as f64 / rounds as f64;
    Ok(vec![Metric::new("ns_per_round_trip", ns)])
}

/// Sends every value back.
fn answer(world: &mut World<u64>, process: u32) {
    while let Some(value) = world.receive(process) {
        world.send(ASKS, value);
    }
}

/// Sends the next value, as long as there is one.
fn ask(world: &mut World<u64>, process: u32) {
    while let Some(left) = world.receive(process) {
        match left {
            1 => world.ended += 1,
            _ => world.send(ANSWERS, left - 1),
        }
    }
}
