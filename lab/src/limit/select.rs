//! `select`: senders and a receiver on one thread, with an array between each sender and the receiver.
//!
//! Unit 0 is the receiver. Sender `i` sends to channel `i - 1`. The receiver looks at the channel behind the one
//! that it has received from first.

use std::collections::VecDeque;
use std::time::Instant;

use super::queue::{Linked, NONE, Queue, index};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::workload::kind::Kind;

const RECEIVER: u32 = 0;

/// A sender with its channel, or the receiver.
struct SelectEnd {
    next: u32,
    messages: VecDeque<u64>,
    /// The value that it sends next.
    value: u64,
    waits: bool,
}

impl Linked for SelectEnd {
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

struct Choice {
    units: Vec<SelectEnd>,
    runs: Queue,
    capacity: usize,
    /// How many values each sender sends.
    each: u64,
    received: usize,
    sum: u64,
}

pub(super) fn takes(params: &Params) -> bool {
    params.get("kind") != Some("rendezvous")
}

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (branches, each) = (params.count("branches")?, params.count("messages")?);
    let capacity = match Kind::read(params)? {
        Kind::Bounded(capacity) => capacity,
        Kind::Unbounded | Kind::Rendezvous => usize::MAX,
    };
    let unit = |_| SelectEnd {
        next: NONE,
        messages: VecDeque::new(),
        value: 0,
        waits: false,
    };
    let mut choice = Choice {
        units: (0..=branches).map(unit).collect(),
        runs: Queue::EMPTY,
        capacity,
        each: each as u64,
        received: 0,
        sum: 0,
    };
    let clock = Instant::now();
    for unit in 0..=branches {
        choice.runs.push(&mut choice.units, index(unit));
    }
    while let Some(unit) = choice.runs.pop(&mut choice.units) {
        match unit {
            RECEIVER => choice.receive(),
            sender => choice.send(sender),
        }
    }
    let elapsed = clock.elapsed();
    let (total, each) = (branches * each, each as u64);
    if choice.received != total || choice.sum != branches as u64 * (each * (each - 1) / 2) {
        let received = choice.received;
        let sentence = format!("{received} of {total} messages arrived, or others than were sent.");
        return Err(Error::workload(sentence));
    }
    let per_message = elapsed.as_nanos() as f64 / total as f64;
    Ok(vec![Metric::new("ns_per_message", per_message)])
}

impl Choice {
    /// Receives until no channel has a message.
    fn receive(&mut self) {
        let branches = self.units.len() - 1;
        let (mut channel, mut empty) = (0, 0);
        while empty < branches {
            let from = &mut self.units[channel + 1];
            match from.messages.pop_front() {
                None => empty += 1,
                Some(value) => {
                    empty = 0;
                    self.received += 1;
                    self.sum += std::hint::black_box(value);
                    if std::mem::take(&mut from.waits) {
                        self.runs.push(&mut self.units, index(channel + 1));
                    }
                }
            }
            channel = if channel + 1 == branches {
                0
            } else {
                channel + 1
            };
        }
        self.units[RECEIVER as usize].waits = true;
    }

    /// Sends until there is no room or nothing left to send.
    fn send(&mut self, sender: u32) {
        loop {
            let own = &mut self.units[sender as usize];
            if own.value == self.each {
                return;
            }
            if own.messages.len() == self.capacity {
                own.waits = true;
                return;
            }
            own.messages.push_back(own.value);
            own.value += 1;
            if std::mem::take(&mut self.units[RECEIVER as usize].waits) {
                self.runs.push(&mut self.units, RECEIVER);
            }
        }
    }
}
