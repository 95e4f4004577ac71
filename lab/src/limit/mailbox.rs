//! `mailbox`: a queue in one array, which one thread fills and empties.

use std::collections::VecDeque;
use std::time::Instant;

use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::workload::mailbox::{Message, Payload, check};
use crate::workload::memory::{growth_per, resident};

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (k, payload) = (params.count("k")?, Payload::read(params)?);
    match payload {
        Payload::Shared(text) => measure(k, || text),
        Payload::Fresh(text) => measure(k, || Box::<str>::from(text)),
    }
}

fn measure<T: AsRef<str>>(k: usize, text: impl Fn() -> T) -> Result<Vec<Metric>, Error> {
    let length = text().as_ref().len();
    let mut queue = VecDeque::new();
    let before = resident()?;

    let clock = Instant::now();
    for index in 0..k as u64 {
        queue.push_back(Message::new(text(), index));
    }
    let sending = clock.elapsed();

    let bytes = growth_per(before, resident()?, k);

    let clock = Instant::now();
    for index in 0..k as u64 {
        let message = std::hint::black_box(&mut queue).pop_front();
        let message = message.ok_or_else(|| Error::workload("A message was lost."))?;
        check(&message, index, length)?;
    }
    let receiving = clock.elapsed();

    Ok(vec![
        Metric::new("ns_per_send", sending.as_nanos() as f64 / k as f64),
        Metric::new("ns_per_receive", receiving.as_nanos() as f64 / k as f64),
        Metric::new("bytes_per_message", bytes),
    ])
}
