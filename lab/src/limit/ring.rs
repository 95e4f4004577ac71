//! `ring`: processes in an array pass tokens on to their neighbour.

use std::time::Instant;

use super::queue::index;
use super::world::{Code, World};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (n, m, tokens) = (
        params.count("n")?,
        params.count("m")?,
        params.count("tokens")?,
    );
    if tokens > n {
        return Err(Error::Usage("tokens must be at most n.".into()));
    }
    let setup = Instant::now();
    let mut world = World::with_room(n);
    // The code is not known where it is called.
    let code: Code<u64> = std::hint::black_box(pass_on);
    for process in 0..n {
        world.spawn(code, index((process + 1) % n));
    }
    world.run();

    let hops = n * m;
    world.polls = 0;
    let clock = Instant::now();
    for token in 0..tokens {
        world.send(index(token * (n / tokens)), hops as u64);
    }
    world.run();
    let (hopping, whole) = (clock.elapsed(), setup.elapsed());

    if world.ended != tokens {
        let sentence = format!("{} of {tokens} tokens arrived.", world.ended);
        return Err(Error::workload(sentence));
    }
    let hops = (hops * tokens) as f64;
    Ok(vec![
        Metric::new("ns_per_hop", hopping.as_nanos() as f64 / hops),
        Metric::new("ms_with_setup", whole.as_secs_f64() * 1e3),
        Metric::new("messages_per_poll", hops / world.polls as f64),
    ])
}

fn pass_on(world: &mut World<u64>, process: u32) {
    while let Some(left) = world.receive(process) {
        match left {
            1 => world.ended += 1,
            _ => {
                let neighbour = *world.word(process);
                world.send(neighbour, left - 1);
            }
        }
    }
}
