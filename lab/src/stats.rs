//! Median, smallest and largest of several runs, and the ratio between two systems.

use crate::metric::Better;

/// The summary of several runs of one metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The middle value; for an even number of values, the mean of the two in the middle.
    pub median: f64,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// How many runs there were.
    pub runs: usize,
}

impl Summary {
    /// Summarises at least one finite value.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let half = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[half]
        } else {
            f64::midpoint(sorted[half - 1], sorted[half])
        };
        Some(Self {
            median,
            min,
            max,
            runs: sorted.len(),
        })
    }

    /// Whether the two ranges from smallest to largest touch.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.min <= other.max && other.min <= self.max
    }

    /// Whether this median is the better one.
    #[must_use]
    pub fn beats(&self, other: &Self, better: Better) -> bool {
        match better {
            Better::Lower => self.median < other.median,
            Better::Higher => self.median > other.median,
        }
    }
}

/// Medians closer to each other than this share cannot be told apart by wall clocks.
const TOO_CLOSE: f64 = 0.02;

/// What can be concluded from two medians.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Ours is ahead.
    Better,
    /// The other one is ahead.
    Worse,
    /// The ranges touch or the medians are too close: more runs could reverse the order.
    Undecided,
}

/// The ratio of two medians.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// How many times better; below 1 it is worse.
    pub times_better: f64,
    /// What can be concluded from it.
    pub verdict: Verdict,
}

impl Ratio {
    /// Compares two medians; `None` where a zero makes the ratio meaningless.
    #[must_use]
    pub fn of(ours: &Summary, theirs: &Summary, better: Better) -> Option<Self> {
        if ours.median <= 0.0 || theirs.median <= 0.0 {
            return None;
        }
        let times_better = match better {
            Better::Lower => theirs.median / ours.median,
            Better::Higher => ours.median / theirs.median,
        };
        let verdict = if ours.overlaps(theirs) || (times_better - 1.0).abs() < TOO_CLOSE {
            Verdict::Undecided
        } else if times_better < 1.0 {
            Verdict::Worse
        } else {
            Verdict::Better
        };
        Some(Self {
            times_better,
            verdict,
        })
    }

    /// As in "3.20x better", "1.40x WORSE" or "1.05x better, undecided".
    #[must_use]
    pub fn words(&self) -> String {
        let (times, way) = if self.times_better < 1.0 {
            (1.0 / self.times_better, "worse")
        } else {
            (self.times_better, "better")
        };
        let times = if times >= 100.0 {
            format!("{times:.0}")
        } else {
            format!("{times:.2}")
        };
        match self.verdict {
            Verdict::Better => format!("{times}x better"),
            Verdict::Worse => format!("{times}x WORSE"),
            Verdict::Undecided => format!("{times}x {way}, undecided"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(values: &[f64]) -> Summary {
        Summary::of(values).unwrap()
    }

    #[test]
    fn median_of_odd_and_even_counts() {
        assert_eq!(summary(&[3.0, 1.0, 2.0]).median, 2.0);
        assert_eq!(summary(&[4.0, 1.0, 2.0, 3.0]).median, 2.5);
        assert_eq!(
            summary(&[7.0]),
            Summary {
                median: 7.0,
                min: 7.0,
                max: 7.0,
                runs: 1
            }
        );
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn smallest_and_largest_are_kept() {
        let s = summary(&[5.0, 9.0, 1.0]);
        assert_eq!((s.min, s.max, s.runs), (1.0, 9.0, 3));
    }

    #[test]
    fn ratio_knows_the_direction() {
        let (low, high) = (summary(&[10.0]), summary(&[40.0]));
        let cost = Ratio::of(&low, &high, Better::Lower).unwrap();
        assert_eq!(cost.times_better, 4.0);
        assert_eq!(cost.verdict, Verdict::Better);
        let gain = Ratio::of(&low, &high, Better::Higher).unwrap();
        assert_eq!(gain.verdict, Verdict::Worse);
        assert_eq!(gain.words(), "4.00x WORSE");
    }

    #[test]
    fn touching_spans_and_close_medians_decide_nothing() {
        let (a, b) = (summary(&[1.0, 2.0, 5.0]), summary(&[4.0, 4.0, 4.0]));
        let ratio = Ratio::of(&a, &b, Better::Lower).unwrap();
        assert_eq!(ratio.words(), "2.00x better, undecided");
        let close = Ratio::of(&summary(&[100.0]), &summary(&[99.0]), Better::Lower).unwrap();
        assert_eq!(close.words(), "1.01x worse, undecided");
    }

    #[test]
    fn zero_gives_no_ratio() {
        assert_eq!(
            Ratio::of(&summary(&[0.0]), &summary(&[1.0]), Better::Lower),
            None
        );
    }
}
