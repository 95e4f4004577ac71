//! Whether a second worker can help in a row of messages, channels or locks.

use std::fmt;

use super::row::Row;

/// What the units of a row can do at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowShape {
    /// At most one unit works at a time, or two that pass on every message at once: a second worker should cost
    /// nothing.
    Chain,
    /// Many units work, so a second worker should halve the time of their own work.
    Parallel,
}

impl fmt::Display for RowShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Chain => "a chain",
            Self::Parallel => "parallel",
        })
    }
}

impl Row {
    /// The shape of a row of messages, channels, selections or locks; `None` for other workloads.
    #[must_use]
    pub fn shape(&self) -> Option<RowShape> {
        let is_one = |key: &str| self.params.get(key) == Some("1");
        let is_chain = match self.workload.name {
            "ring" => is_one("tokens"),
            "channel" => is_one("senders"),
            "lock" => is_one("units"),
            // One sender, who does not wait.
            "burst-send" | "mailbox" | "ping-pong" | "call" | "call-behind-queue" | "reply"
            | "condvar" => true,
            "many-to-many" | "fan-in" | "broadcast" | "select" | "barrier" => false,
            _ => return None,
        };
        Some(match is_chain {
            true => RowShape::Chain,
            false => RowShape::Parallel,
        })
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.workload.name, self.params)?;
        match self.shape() {
            Some(shape) => write!(f, " ({shape})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Params;

    #[test]
    fn one_of_many_makes_a_chain() {
        for (workload, key, count, wanted) in [
            ("ring", "tokens", 1, Some(RowShape::Chain)),
            ("ring", "tokens", 100, Some(RowShape::Parallel)),
            ("channel", "senders", 100, Some(RowShape::Parallel)),
            ("lock", "units", 1, Some(RowShape::Chain)),
            ("spawn", "n", 1, None),
        ] {
            let row = Row::new(workload, Params::default().with(key, count));
            assert_eq!(row.shape(), wanted, "{workload} {key}={count}");
        }
        let row = Row::new("fan-in", Params::default().with("senders", 2));
        assert_eq!(row.to_string(), "fan-in senders=2 (parallel)");
    }
}
