//! One measured value and its name; unit and direction follow from the name, so they are not kept.

/// A measured value under the name that WORKLOADS fixed for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// The name, as in `ns_per_spawn`.
    pub name: String,
    /// The value in the unit that the name implies.
    pub value: f64,
}

impl Metric {
    /// A value under its name.
    pub fn new(name: &str, value: f64) -> Self {
        Self {
            name: name.to_owned(),
            value,
        }
    }
}

/// Which of two values of a metric is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Costs: times, bytes.
    Lower,
    /// Yields: ticks that came.
    Higher,
}

/// The unit of a metric, read off its name.
#[must_use]
pub fn unit(name: &str) -> &'static str {
    if name.starts_with("ns_") || name == "ns" {
        "ns"
    } else if name.starts_with("ms_") || name.ends_with("_ms") || name == "ms" {
        "ms"
    } else if name.starts_with("bytes_") || name.ends_with("_bytes") {
        "bytes"
    } else if name.ends_with("_percent") {
        "percent"
    } else {
        "count"
    }
}

/// The direction of a metric, read off its name.
#[must_use]
pub fn better(name: &str) -> Better {
    match name {
        "ticks" | "ticks_percent" => Better::Higher,
        _ => Better::Lower,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_follow_from_names() {
        let expected = [
            ("ns_per_spawn", "ns"),
            ("bytes_per_process", "bytes"),
            ("ms_with_setup", "ms"),
            ("lateness_worst_ms", "ms"),
            ("ticks_percent", "percent"),
            ("growth_kept_percent", "percent"),
            ("ticks", "count"),
        ];
        for (name, want) in expected {
            assert_eq!(unit(name), want, "{name}");
        }
    }

    #[test]
    fn only_ticks_are_better_when_higher() {
        assert_eq!(better("ticks_percent"), Better::Higher);
        assert_eq!(better("growth_kept_percent"), Better::Lower);
        assert_eq!(better("ns_per_hop"), Better::Lower);
    }
}
