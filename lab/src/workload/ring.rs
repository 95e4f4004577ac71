//! `ring`: how cheap is a message? Tokens go round a ring of processes that know only their neighbour.
//!
//! The last process gets the first one's address by a message. A token holds the number of hops that are
//! left, including the hop that delivers it, so the process that receives 1 reports the end.

use std::time::{Duration, Instant};

use weald::process::{self, Inbox, Pid};

use super::host::{Size, alone_with_polls, not_spawned};
use super::tally::Tally;
use super::work::Work;
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

/// A message that goes round.
enum Round {
    /// Closes the ring: the address that follows the last process.
    Neighbour(Pid<Round>),
    /// A token with the number of hops left.
    Token(u64),
    /// Goes round once at the end; every process that passes it on ends.
    Stop,
}

/// The size of a ring.
#[derive(Clone, Copy)]
struct RingSize {
    n: usize,
    m: usize,
    tokens: usize,
}

/// What the processes count: their readiness, and the tokens that have arrived. And what they do at each hop.
#[derive(Clone, Copy)]
struct RingSetup {
    work: Work,
    ready: &'static Tally,
    arrived: &'static Tally,
}

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let shape = RingSize {
        n: params.count("n")?,
        m: params.count("m")?,
        tokens: params.count("tokens")?,
    };
    if shape.tokens > shape.n {
        return Err(Error::Usage(
            "tokens must be at most n: each starts at a process of its own.".into(),
        ));
    }
    let size = Size {
        processes: shape.n,
        messages: shape.n * shape.m * shape.tokens,
    };
    let work = Work::read(params)?;
    alone_with_polls(params, size, move |inbox| measure(inbox, shape, work))
}

async fn measure(mut inbox: Inbox<()>, shape: RingSize, work: Work) -> Result<Vec<Metric>, Error> {
    let shared = RingSetup {
        work,
        ready: Tally::leaked(shape.n, inbox.pid()),
        arrived: Tally::leaked(shape.tokens, inbox.pid()),
    };
    let setup = Instant::now();
    let starts = build_ring(shape, shared)?;
    inbox.receive().await;

    let hops_each = (shape.n * shape.m) as u64;
    let clock = Instant::now();
    for start in &starts {
        start.send(Round::Token(hops_each));
    }
    inbox.receive().await;
    let (hopping, whole) = (clock.elapsed(), setup.elapsed());

    starts[0].send(Round::Stop);
    Ok(metrics(hops_each * shape.tokens as u64, hopping, whole))
}

fn metrics(hops: u64, hopping: Duration, whole: Duration) -> Vec<Metric> {
    vec![
        Metric::new("ns_per_hop", hopping.as_nanos() as f64 / hops as f64),
        Metric::new("ms_with_setup", whole.as_secs_f64() * 1e3),
    ]
}

/// Spawns the ring from its last process to its first and closes it; returns where the tokens start.
fn build_ring(shape: RingSize, shared: RingSetup) -> Result<Vec<Pid<Round>>, Error> {
    let last = spawn_last(shared)?;
    let mut starts = Vec::with_capacity(shape.tokens);
    let mut first = last.clone();
    for index in (0..shape.n).rev() {
        if index + 1 < shape.n {
            first = spawn_link(first, shared)?;
        }
        if starts_a_token(index, shape) {
            starts.push(first.clone());
        }
    }
    last.send(Round::Neighbour(first));
    starts.reverse();
    Ok(starts)
}

/// Whether the process at `index` is one of those that are n/tokens apart, the first included.
fn starts_a_token(index: usize, shape: RingSize) -> bool {
    let apart = shape.n / shape.tokens;
    index.is_multiple_of(apart) && index / apart < shape.tokens
}

fn spawn_link(neighbour: Pid<Round>, shared: RingSetup) -> Result<Pid<Round>, Error> {
    let process = process::spawn(move |inbox| async move {
        shared.ready.count();
        pass_on(inbox, neighbour, shared).await;
    });
    Ok(process.map_err(|error| not_spawned(&error))?.into_pid())
}

fn spawn_last(shared: RingSetup) -> Result<Pid<Round>, Error> {
    let process = process::spawn(move |mut inbox: Inbox<Round>| async move {
        let Round::Neighbour(first) = inbox.receive().await else {
            unreachable!("no token starts before the ring is closed")
        };
        shared.ready.count();
        pass_on(inbox, first, shared).await;
    });
    Ok(process.map_err(|error| not_spawned(&error))?.into_pid())
}

/// The measured loop of every process.
async fn pass_on(mut inbox: Inbox<Round>, neighbour: Pid<Round>, shared: RingSetup) {
    loop {
        match inbox.receive().await {
            Round::Token(1) => shared.arrived.count(),
            Round::Token(left) => {
                shared.work.run();
                neighbour.send(Round::Token(left - 1));
            }
            Round::Stop => return neighbour.send(Round::Stop),
            Round::Neighbour(_) => {
                unreachable!("only the last process gets its neighbour by message")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_starts_as_tokens() {
        for (n, tokens) in [(10, 1), (10, 3), (10, 10), (1000, 7), (1, 1)] {
            let shape = RingSize { n, m: 1, tokens };
            let starts = (0..n).filter(|index| starts_a_token(*index, shape)).count();
            assert_eq!(starts, tokens, "n={n}");
        }
    }
}
