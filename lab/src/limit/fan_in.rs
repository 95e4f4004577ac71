//! `fan-in`: processes in an array send to one of them.
//!
//! The receiver runs as soon as its first message is there and the sender's turn has ended, as Weald's does: else all
//! messages would be queued at once.

use std::time::Instant;

use super::queue::index;
use super::world::{Code, World};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

const RECEIVER: u32 = 0;

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (senders, messages) = (params.count("senders")?, params.count("messages")?);
    let mut world = World::with_room(senders + 1);
    // The code is not known where it is called.
    let (receives, sends): (Code<u32>, Code<u32>) = std::hint::black_box((receive, send));
    world.spawn(receives, 0);
    for _ in 0..senders {
        world.spawn(sends, index(messages));
    }
    world.run();

    world.polls = 0;
    let clock = Instant::now();
    for sender in 1..=senders {
        world.send(index(sender), 0);
    }
    world.run();
    let elapsed = clock.elapsed();

    let total = senders * messages;
    if world.ended != total {
        let sentence = format!("{} of {total} messages arrived.", world.ended);
        return Err(Error::workload(sentence));
    }
    let per_message = elapsed.as_nanos() as f64 / total as f64;
    Ok(vec![
        Metric::new("ns_per_message", per_message),
        Metric::new("messages_per_poll", total as f64 / world.polls as f64),
    ])
}

fn receive(world: &mut World<u32>, process: u32) {
    while let Some(value) = world.receive(process) {
        std::hint::black_box(value);
        world.ended += 1;
    }
}

/// Once it is started, sends all its messages.
fn send(world: &mut World<u32>, process: u32) {
    while world.receive(process).is_some() {
        for value in 0..*world.word(process) {
            world.send_first(RECEIVER, value);
        }
    }
}
