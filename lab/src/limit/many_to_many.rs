//! `many-to-many`: processes in an array send to pseudo-random others, as many to each as in the row.

use std::time::Instant;

use super::queue::index;
use super::world::{Code, World};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::programs::xorshift::{Xorshift, shares};

#[derive(Clone, Copy)]
enum LimitMail {
    /// Start sending.
    Start,
    /// One of the counted messages.
    Value(u32),
}

/// What a process sends and receives.
struct LimitShare {
    generator: Xorshift,
    others: usize,
    messages: u32,
    missing: usize,
}

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (processes, messages) = (params.count("processes")?, params.count("messages")?);
    let mut world = World::with_room(processes);
    // The code is not known where it is called.
    let code: Code<LimitMail, LimitShare> = std::hint::black_box(exchange);
    for (process, missing) in shares(processes, messages).into_iter().enumerate() {
        let share = LimitShare {
            generator: Xorshift::of(process),
            others: processes,
            messages: index(messages),
            missing,
        };
        world.spawn_with(code, 0, share);
    }
    world.run();

    world.polls = 0;
    let clock = Instant::now();
    for process in 0..processes {
        world.send(index(process), LimitMail::Start);
    }
    world.run();
    let elapsed = clock.elapsed();

    let total = processes * messages;
    // One by one: too many here and too few there have the right sum.
    let wrong = (0..processes).find(|&process| world.own(index(process)).missing != 0);
    if let Some(process) = wrong {
        let sentence =
            format!("Process {process} did not receive as many messages as were sent to it.");
        return Err(Error::workload(sentence));
    }
    let per_message = elapsed.as_nanos() as f64 / total as f64;
    Ok(vec![
        Metric::new("ns_per_message", per_message),
        Metric::new("messages_per_poll", total as f64 / world.polls as f64),
    ])
}

fn exchange(world: &mut World<LimitMail, LimitShare>, process: u32) {
    while let Some(mail) = world.receive(process) {
        match mail {
            LimitMail::Start => send_all(world, process),
            LimitMail::Value(value) => {
                std::hint::black_box(value);
                let share = world.own(process);
                share.missing = share.missing.wrapping_sub(1);
            }
        }
    }
}

fn send_all(world: &mut World<LimitMail, LimitShare>, process: u32) {
    let share = world.own(process);
    let (mut generator, others) = (share.generator, share.others);
    for value in 0..share.messages {
        world.send(index(generator.below(others)), LimitMail::Value(value));
    }
}
