//! `mailbox`: what does a queued message cost? One process sends itself k messages, then receives
//! all of them.
//!
//! A message is a text, two integers and a float. `shared`: the text is one static string.
//! `fresh`: every message owns a copy, allocated when it is sent and freed when it is received.

use std::time::Instant;

use weald::process::Inbox;

use super::host::alone;
use super::memory::{growth_per, resident};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

/// The letters of the texts.
const LETTERS: &str = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// One queued message.
pub(crate) struct Message<T> {
    text: T,
    index: u64,
    constant: u64,
    ratio: f64,
}

impl<T> Message<T> {
    /// The message with this number.
    pub(crate) fn new(text: T, index: u64) -> Self {
        Self {
            text,
            index,
            constant: 9_999_999,
            ratio: 999_999.99,
        }
    }
}

/// The text of all messages: shared, or copied for each.
#[derive(Clone, Copy)]
pub(crate) enum Payload {
    Shared(&'static str),
    Fresh(&'static str),
}

impl Payload {
    /// What the keys `bytes` and `payload` say.
    pub(crate) fn read(params: &Params) -> Result<Self, Error> {
        let bytes = params.count("bytes")?;
        let letters = LETTERS.chars().cycle().take(bytes);
        let text = letters.collect::<String>().leak();
        match params.text("payload")? {
            "shared" => Ok(Self::Shared(text)),
            "fresh" => Ok(Self::Fresh(text)),
            other => Err(Error::Usage(format!(
                "payload={other} is neither shared nor fresh."
            ))),
        }
    }
}

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let k = params.count("k")?;
    match Payload::read(params)? {
        Payload::Shared(text) => alone(params, 1, move |inbox| measure(inbox, k, move || text)),
        Payload::Fresh(text) => alone(params, 1, move |inbox| {
            measure(inbox, k, move || Box::<str>::from(text))
        }),
    }
}

async fn measure<T, F>(
    mut inbox: Inbox<Message<T>>,
    k: usize,
    text: F,
) -> Result<Vec<Metric>, Error>
where
    T: AsRef<str> + Send + 'static,
    F: Fn() -> T + Send + 'static,
{
    let myself = inbox.pid();
    let length = text().as_ref().len();
    let before = resident()?;

    let clock = Instant::now();
    for index in 0..k as u64 {
        myself.send(Message::new(text(), index));
    }
    let sending = clock.elapsed();

    let bytes = growth_per(before, resident()?, k);

    let clock = Instant::now();
    for index in 0..k as u64 {
        let message = inbox.receive().await;
        check(&message, index, length)?;
    }
    let receiving = clock.elapsed();

    Ok(vec![
        Metric::new("ns_per_send", sending.as_nanos() as f64 / k as f64),
        Metric::new("ns_per_receive", receiving.as_nanos() as f64 / k as f64),
        Metric::new("bytes_per_message", bytes),
    ])
}

/// Reads every field, so that none can be optimised away, and checks the order on the way.
pub(crate) fn check<T: AsRef<str>>(
    message: &Message<T>,
    index: u64,
    length: usize,
) -> Result<(), Error> {
    let intact = message.index == index
        && message.constant == 9_999_999
        && message.ratio > 0.0
        && message.text.as_ref().len() == length;
    if intact {
        return Ok(());
    }
    Err(Error::workload(format!(
        "Message {index} came out of order or damaged."
    )))
}
