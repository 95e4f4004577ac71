//! Judges the output of the quick benchmark: every workload is there, with plausible numbers.
//!
//! It is a smoke test: it shows that the measurements run, not how fast.

use serde_json::Value;

const WORKLOADS: [&str; 38] = [
    "spawn",
    "ring",
    "mailbox",
    "many-to-many",
    "fan-in",
    "ping-pong",
    "lifecycle",
    "call",
    "call-behind-queue",
    "reply",
    "broadcast",
    "stall",
    "handoff",
    "trim",
    "channel",
    "select",
    "lock",
    "condvar",
    "barrier",
    "footprint",
    "quicksort",
    "fib",
    "nqueens",
    "tree-search",
    "thread",
    "tree-read",
    "tree-write",
    "hot-tree",
    "append",
    "snapshot",
    "index",
    "callbacks",
    "timers",
    "echo",
    "hello",
    "idle-connections",
    "stall-requests",
    "board",
];

/// Judges the output of `weald bench --json`, one measurement per line.
pub fn judge(output: &str) -> Result<(), String> {
    let mut workloads = Vec::new();
    for line in output.lines().filter(|line| !line.trim().is_empty()) {
        let workload = measurement(line).map_err(|why| format!("{why} The line is: {line}"))?;
        workloads.push(workload);
    }
    let mut missing = WORKLOADS.to_vec();
    missing.retain(|name| !workloads.iter().any(|workload| workload == name));
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!(
        "The benchmark measured nothing for {}.",
        missing.join(", ")
    ))
}

/// The workload of one measurement, if its median is plausible.
fn measurement(line: &str) -> Result<String, String> {
    let value: Value = serde_json::from_str(line)
        .map_err(|error| format!("A line of the benchmark is not JSON: {error}."))?;
    let text = |name: &str| match value.get(name).and_then(Value::as_str) {
        Some(text) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err(format!("A measurement has no text `{name}`.")),
    };
    let (workload, metric) = (text("workload")?, text("metric")?);
    text("system")?;
    let median = value.get("median").and_then(Value::as_f64);
    let median = median.ok_or("A measurement has no number `median`.")?;
    let is_one_of = |names: &[&str]| names.iter().any(|start| metric.starts_with(start));
    // Nothing was late, kept or tried again, or the memory was already resident.
    let may_be_zero = is_one_of(&[
        "lateness",
        "growth_kept",
        "grown_bytes",
        "bytes_per",
        "retries_per",
        "errors",
        "r2",
        // A foreign waker is named by what fired it; on a busy machine a burst may keep no tick.
        "named_percent",
        "ticks",
    ]);
    // These are derived from two times, or from a line through points, each with its noise.
    let may_be_negative = is_one_of(&["parallel_percent", "intercept_bytes", "ns_per_fork"]);
    let can_be = median > 0.0 || may_be_zero && median == 0.0 || may_be_negative;
    if median.is_finite() && can_be {
        return Ok(workload);
    }
    Err(format!(
        "The median of `{metric}` is {median}, which is not plausible."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(workload: &str, metric: &str, median: &str) -> String {
        format!(
            r#"{{"workload":"{workload}","system":"weald","metric":"{metric}","median":{median}}}"#
        )
    }

    fn sound() -> Vec<String> {
        WORKLOADS
            .map(|workload| line(workload, "ns_per_hop", "13.5"))
            .to_vec()
    }

    #[test]
    fn every_workload_with_a_positive_median_passes() {
        assert_eq!(judge(&sound().join("\n")), Ok(()));
    }

    #[test]
    fn only_lateness_and_memory_may_be_zero() {
        let with = |metric, median| {
            judge(
                &[sound(), vec![line("stall", metric, median)]]
                    .concat()
                    .join("\n"),
            )
        };
        for metric in [
            "lateness_worst_ms",
            "growth_kept_percent",
            "named_percent",
            "grown_bytes",
            "bytes_per_process",
        ] {
            assert_eq!(with(metric, "0"), Ok(()), "{metric}");
        }
        assert!(with("lateness_worst_ms", "-1").is_err());
        assert_eq!(with("ns_per_fork", "-1"), Ok(()));
        for median in ["0", "0.0", "-2.5", "null", "\"1\"", "1e999"] {
            assert!(with("ns_per_hop", median).is_err(), "{median}");
        }
    }

    #[test]
    fn each_workload_that_is_missing_is_named() {
        for (at, name) in WORKLOADS.iter().enumerate() {
            let mut lines = sound();
            lines.remove(at);
            let judged = judge(&lines.join("\n"));
            assert!(
                judged.is_err_and(|sentence| sentence.contains(name)),
                "{name}"
            );
        }
        assert!(judge("").is_err());
    }

    #[test]
    fn a_line_that_is_not_a_measurement_is_an_error() {
        for bad in [
            "spawn 12",
            "[]",
            "{}",
            r#"{"workload":"ring","metric":"x","median":1}"#,
        ] {
            assert!(
                judge(&[sound(), vec![bad.to_owned()]].concat().join("\n")).is_err(),
                "{bad}"
            );
        }
    }
}
