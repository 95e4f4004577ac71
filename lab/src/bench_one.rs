//! The measured program: one workload, once, in this operating-system process.
//!
//! Weald and every rival obey this protocol: `PROGRAM WORKLOAD key=value...` prints one line
//! `METRIC VALUE` for each metric and nothing else, and ends with 0. An error is one sentence on
//! stderr with exit code 1, or 2 for a usage error.

use std::io::{self, Write};

use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::{limit, reports, serve, serve_board, workload};

/// Runs the workload `name` with the `key=value` arguments that follow it. If `name` is a server of [`serve`], or the
/// board's ([`serve_board`]), runs that server: another process measures it, and it has no metrics of its own. After
/// the name `limit` comes the workload whose limit program runs, see [`limit`].
pub fn run(name: &str, words: &[String]) -> Result<Vec<Metric>, Error> {
    if name == limit::NAME {
        return limit::run(words);
    }
    let params = Params::parse(words)?;
    // Stderr is for errors: what the runtime reports meanwhile is kept for the workload.
    reports::listen();
    if let Some(dialogue) = serve::find(name) {
        return serve::run(dialogue, &params).map(|()| Vec::new());
    }
    if name == serve_board::NAME {
        return serve_board::run(&params).map(|()| Vec::new());
    }
    let workload = workload::find(name)?;
    workload.check(&params)?;
    (workload.run)(&params)
}

/// Prints the metrics as the protocol demands.
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
                "hot-tree",
                &[
                    "writers=1",
                    "commits=1",
                    "nodes=156",
                    "kind=threads",
                    "retention=some",
                    "workers=1",
                ],
            ),
            (
                "fan-in",
                &["senders=1", "messages=1", "work=1us", "workers=1"],
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
