//! How busy the machine is with other work, because a busy machine explains odd figures.

/// The processor time that the machine has used since it was started, in ticks of the system's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessorTime {
    /// The time of all processors together, idle time included.
    all: u64,
    /// The part in which something ran, or would have run if the host had not withheld the processor.
    busy: u64,
    /// The part that this program and its ended children used.
    own: u64,
}

/// From this share of other work on, figures are worse than the machine's.
pub const BUSY_PERCENT: f64 = 10.0;

impl ProcessorTime {
    /// What has been used up to now; `None` where `/proc` does not say.
    #[must_use]
    pub fn now() -> Option<Self> {
        let read = |path: &str| std::fs::read_to_string(path).ok();
        Self::parse(&read("/proc/stat")?, &read("/proc/self/stat")?)
    }

    fn parse(machine: &str, own: &str) -> Option<Self> {
        let line = machine.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = line
            .split_whitespace()
            .map_while(|word| word.parse().ok())
            .collect();
        // user, nice, system, idle, iowait, irq, softirq, steal; what follows is counted in user, too.
        let ticks = ticks.get(..8)?;
        let all: u64 = ticks.iter().sum();
        // The name of the program, in parentheses, may hold spaces.
        let (_, own) = own.rsplit_once(") ")?;
        let own = own.split(' ').skip(11).take(4).map(str::parse::<u64>);
        Some(Self {
            all,
            busy: all - ticks[3] - ticks[4],
            own: own.sum::<Result<u64, _>>().ok()?,
        })
    }

    /// The share of the machine's processor time that others have used since `earlier`, in percent.
    #[must_use]
    pub fn others_since(&self, earlier: &Self) -> f64 {
        let all = self.all.saturating_sub(earlier.all).max(1);
        let own = self.own.saturating_sub(earlier.own);
        let others = self.busy.saturating_sub(earlier.busy).saturating_sub(own);
        100.0 * others as f64 / all as f64
    }
}

/// The sentence for a machine on which other work takes this share; `None` if the share is small.
#[must_use]
pub fn sentence(others_percent: f64) -> Option<String> {
    (others_percent >= BUSY_PERCENT).then(|| {
        format!(
            "The machine is busy: other work takes {others_percent:.0} % of its processor time. Figures are worse \
             than an idle machine's."
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "17 (a (b) c) S 1 17 17 0 -1 4194560 100 0 0 0 10 20 30 40 20 0 1 0 9";

    #[test]
    fn others_are_what_is_busy_and_not_own() {
        let at = |machine: &str| ProcessorTime::parse(machine, OWN).unwrap();
        let earlier = at("cpu  100 0 100 1000 50 0 0 0 7 7\ncpu0 1 1\n");
        assert_eq!(earlier.own, 100);
        let later = at("cpu  150 0 120 1100 50 0 0 30 7 7\n");
        assert_eq!(later.others_since(&earlier), 50.0);
        let own = ProcessorTime { own: 150, ..later };
        assert_eq!(own.others_since(&earlier), 25.0);
        assert_eq!(earlier.others_since(&later), 0.0);
    }

    #[test]
    fn a_busy_machine_is_told() {
        assert_eq!(sentence(3.0), None);
        assert!(sentence(43.2).unwrap().contains("43 %"));
    }

    #[test]
    fn this_machine_tells() {
        assert!(ProcessorTime::now().is_some());
        assert_eq!(ProcessorTime::parse("", OWN), None);
    }
}
