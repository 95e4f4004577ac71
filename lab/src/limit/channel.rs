//! `channel`: senders and a receiver on one thread, with an array between them.
//!
//! Unit 0 is the receiver, the others are the senders. A unit that cannot continue is in the queue of the thing that it
//! waits for; any other unit is in the queue of those that run.

use std::collections::VecDeque;
use std::time::Instant;

use super::queue::{Linked, NONE, Queue, index};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::workload::kind::Kind;

const RECEIVER: u32 = 0;

/// A sender, or the receiver.
struct Endpoint {
    next: u32,
    /// The value that it sends next.
    value: u64,
}

impl Linked for Endpoint {
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

struct Channel {
    units: Vec<Endpoint>,
    runs: Queue,
    /// The messages, with their senders.
    messages: VecDeque<(u64, u32)>,
    capacity: usize,
    is_rendezvous: bool,
    senders_wait: Queue,
    receiver_waits: bool,
    /// How many values each sender sends.
    each: u64,
    received: usize,
    sum: u64,
}

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (senders, each) = (params.count("senders")?, params.count("messages")?);
    let (capacity, is_rendezvous) = match Kind::read(params)? {
        Kind::Bounded(capacity) => (capacity, false),
        Kind::Unbounded => (usize::MAX, false),
        Kind::Rendezvous => (usize::MAX, true),
    };
    let unit = |_| Endpoint {
        next: NONE,
        value: 0,
    };
    let mut channel = Channel {
        units: (0..=senders).map(unit).collect(),
        runs: Queue::EMPTY,
        messages: VecDeque::new(),
        capacity,
        is_rendezvous,
        senders_wait: Queue::EMPTY,
        receiver_waits: false,
        each: each as u64,
        received: 0,
        sum: 0,
    };
    let clock = Instant::now();
    for unit in 0..=senders {
        channel.runs.push(&mut channel.units, index(unit));
    }
    while let Some(unit) = channel.runs.pop(&mut channel.units) {
        match unit {
            RECEIVER => channel.receive(),
            sender => channel.send(sender),
        }
    }
    let elapsed = clock.elapsed();
    let (total, each) = (senders * each, each as u64);
    if channel.received != total || channel.sum != senders as u64 * (each * (each - 1) / 2) {
        let received = channel.received;
        let sentence = format!("{received} of {total} messages arrived, or others than were sent.");
        return Err(Error::workload(sentence));
    }
    let per_message = elapsed.as_nanos() as f64 / total as f64;
    Ok(vec![Metric::new("ns_per_message", per_message)])
}

impl Channel {
    /// Receives until there is no message.
    fn receive(&mut self) {
        while let Some((value, sender)) = self.messages.pop_front() {
            self.received += 1;
            self.sum += std::hint::black_box(value);
            let freed = match self.is_rendezvous {
                true => Some(sender),
                false => self.senders_wait.pop(&mut self.units),
            };
            if let Some(sender) = freed {
                self.runs.push(&mut self.units, sender);
            }
        }
        self.receiver_waits = true;
    }

    /// Sends until there is no room or nothing left to send; without a buffer, one value.
    fn send(&mut self, sender: u32) {
        loop {
            let value = self.units[sender as usize].value;
            if value == self.each {
                return;
            }
            if self.messages.len() == self.capacity {
                self.senders_wait.push(&mut self.units, sender);
                return;
            }
            self.units[sender as usize].value = value + 1;
            self.messages.push_back((value, sender));
            if std::mem::take(&mut self.receiver_waits) {
                self.runs.push(&mut self.units, RECEIVER);
            }
            if self.is_rendezvous {
                return;
            }
        }
    }
}
