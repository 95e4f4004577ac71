//! The measured program: one workload, once, in this operating-system process.
//!
//! The protocol that Weald and every rival obey: `PROGRAM WORKLOAD key=value...` prints one line
//! `METRIC VALUE` for each metric and nothing else, and ends with 0. An error is one sentence on
//! stderr and exit code 1, or 2 where the words on the command line are wrong.

use std::io::{self, Write};

use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::{serve, workload};

/// Runs the workload `name` with the words `key=value` that follow it. A name of [`serve`] is that of a
/// server, which another process measures and which has no metrics itself.
pub fn run(name: &str, words: &[String]) -> Result<Vec<Metric>, Error> {
    let params = Params::parse(words)?;
    if let Some(dialogue) = serve::find(name) {
        return serve::run(dialogue, &params).map(|()| Vec::new());
    }
    let workload = workload::find(name)?;
    workload.check(&params)?;
    (workload.run)(&params)
}

/// Prints what the protocol demands.
pub fn print(metrics: &[Metric], out: &mut impl Write) -> io::Result<()> {
    for metric in metrics {
        writeln!(out, "{} {}", metric.name, metric.value)?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_plain_decimals() {
        let metrics = [Metric::new("ns_per_hop", 13.25), Metric::new("ticks", 1e21)];
        let mut out = Vec::new();
        print(&metrics, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "ns_per_hop 13.25\nticks 1000000000000000000000\n");
    }

    #[test]
    fn wrong_words_are_usage_errors() {
        let words = |list: &[&str]| list.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        for (name, list) in [
            ("sprawn", &["n=1", "workers=1"][..]),
            ("spawn", &["workers=1"]),
            ("spawn", &["n=1"]),
            ("spawn", &["n=1", "workers=1", "colour=red"]),
            ("mailbox", &["k=1", "bytes=1", "payload=odd", "workers=1"]),
            (
                "select",
                &["branches=3", "messages=1", "kind=unbounded", "workers=1"],
            ),
            (
                "channel",
                &["senders=1", "messages=1", "kind=bounded", "workers=1"],
            ),
            ("footprint", &["n=1", "what=door", "workers=1"]),
            ("tree-read", &["nodes=7", "tasks=1", "workers=1"]),
            (
                "tree-write",
                &["trees=1", "nodes=156", "mode=slow", "workers=1"],
            ),
            (
                "hot-tree",
                &[
                    "writers=1",
                    "commits=1",
                    "nodes=156",
                    "kind=odd",
                    "workers=1",
                ],
            ),
            (
                "snapshot",
                &["reads=1", "nodes=156", "what=lent", "workers=1"],
            ),
        ] {
            let result = run(name, &words(list));
            assert!(
                matches!(result, Err(Error::Usage(_))),
                "{name} {list:?}: {result:?}"
            );
        }
    }
}
