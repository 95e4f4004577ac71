//! `spawn`: processes in an array start, wait for a message, and end.
//!
//! They run after as many spawns, or sends, as those of Weald do. A process has as much memory of its own as a parked
//! one of Weald, about, and its spawn writes all of it: fresh memory costs more than all else here.

use std::time::Instant;

use super::queue::index;
use super::world::{Code, World};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::workload::memory::{growth_per, resident};
use crate::workload::spawn::GIVE_WAY_EVERY;

/// What a process owns: with the rest 96 bytes.
type Own = [u64; 9];

/// The words of a process.
const NEW: u32 = 0;
const WAITING: u32 = 1;
const ENDED: u32 = 2;

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let n = params.count("n")?;
    let mut world = World::with_room(n);
    // The code is not known where it is called.
    let code: Code<(), Own> = std::hint::black_box(live);
    let before = resident()?;

    let clock = Instant::now();
    for count in 1..=n {
        world.spawn(code, NEW);
        if count.is_multiple_of(GIVE_WAY_EVERY) {
            world.run();
        }
    }
    world.run();
    let spawning = clock.elapsed();

    let bytes = growth_per(before, resident()?, n);

    let clock = Instant::now();
    for process in 0..n {
        world.send(index(process), ());
        if (process + 1).is_multiple_of(GIVE_WAY_EVERY) {
            world.run();
        }
    }
    world.run();
    let teardown = clock.elapsed();

    if (world.started, world.ended) != (n, n) {
        let (started, ended) = (world.started, world.ended);
        let sentence = format!("Of {n} processes, {started} started and {ended} ended.");
        return Err(Error::workload(sentence));
    }
    Ok(vec![
        Metric::new("ns_per_spawn", spawning.as_nanos() as f64 / n as f64),
        Metric::new("ns_per_teardown", teardown.as_nanos() as f64 / n as f64),
        Metric::new("bytes_per_process", bytes),
    ])
}

/// Counts itself, waits for a message, and counts itself again.
fn live(world: &mut World<(), Own>, process: u32) {
    let word = world.word(process);
    if *word == NEW {
        *word = WAITING;
        world.started += 1;
    }
    if world.receive(process).is_some() {
        *world.word(process) = ENDED;
        world.ended += 1;
    }
}
