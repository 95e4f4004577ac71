//! `board`: what does a bulletin board cost, read and written through HTTP?
//!
//! This process is the visitors. The server is this same program, called with another name.

use std::time::Duration;

use super::definition::Workload;
use super::durable::Place;
use super::forking::metrics;
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::programs::board::{Ask, BoardLoad};

pub(super) const WORKLOAD: Workload = Workload {
    name: "board",
    question: "What does a bulletin board cost, read and written through HTTP?",
    keys: &["connections", "requests", "op"],
    optional: &[
        "durability",
        "dir",
        "messages",
        "readers",
        "kept",
        "seconds",
    ],
    metrics: &["cpu_s_per_million", "requests_per_s", "p99_us", "errors"],
    explaining: &[
        "hello_ratio",
        "buffered_ratio",
        "p50_us",
        "p999_us",
        "rss_bytes",
        "bytes_per_answer",
        "p99_ratio",
        "writes_per_s",
        "large_ratio",
        "older_ratio",
        "disk_ratio",
        "disk_first_ms",
        "delivered_ms",
        "delivered_worst_ms",
        "bytes_per_reader",
    ],
    remark: "op=read: a board of ten messages as JSON; op=page: the same as a page, made anew for each request; op=write: a \
             new topic; op=search: the one message of a thousand that has a word. kept=yes: the JSON of a board is kept \
             until the board changes. hello_ratio compares with the server's own empty handler, measured in turns. cpu_s_per_million \
             is the server's own; the visitors are another process. If there are more processors than the server has workers, \
             the server is bound to as many as it has workers, and the visitors to the others, where they look for answers before \
             they sleep; else both share all. seconds: no further slice of the requests begins after that. durability=none: in memory, as all rivals are; dir=… is the directory. op=durable: durable writes, in turns with buffered ones. op=hot: reads of one board at 1,000 per second beside 10,000 \
             writes per second to another; requests is the number of reads. op=listen: so many readers of a board's \
             live events, and a message again and again. op=large: pages of a board with so many messages, beside those \
             of a small one; of its newest version, of an older one, and of one that only the disk has.",
    run,
};

fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let op = params.text("op")?;
    let durability = params.get("durability").unwrap_or("none");
    let has_place = durability != "none" || op == "durable";
    let place = has_place.then(|| Place::new(params)).transpose()?;
    let mut words = vec![format!("durability={durability}")];
    words.extend(params.get("kept").map(|kept| format!("kept={kept}")));
    words.extend(
        place
            .iter()
            .map(|it| format!("dir={}", it.path().display())),
    );
    let seconds = params.get("seconds").map(|_| params.count("seconds"));
    let seconds = seconds.transpose()?;
    let load = BoardLoad {
        server: super::network::this_program()?,
        words,
        workers: super::definition::workers(params)?,
        connections: params.count("connections")?,
        requests: params.count("requests")?,
        limit: seconds.map(|seconds| Duration::from_secs(seconds as u64)),
    };
    metrics(match (op, &place) {
        ("hot", _) => load.beside_hot(),
        ("listen", _) => load.listened(params.count("readers")?),
        ("large", _) => load.large(params.count("messages")?),
        ("durable", Some(place)) => load.durable(place.path()),
        _ => {
            let ask = Ask::parse(op).ok_or_else(|| {
                let sentence = format!(
                    "op={op} is neither read, page, write, search, durable, hot, listen nor large."
                );
                Error::Usage(sentence)
            })?;
            load.busy(ask)
        }
    })
}
