//! Quantiles of measured times.

use std::time::Duration;

/// The smallest of the sorted values that this share of them does not exceed.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a length"
)]
#[must_use]
pub fn quantile(sorted: &[Duration], share: f64) -> Option<Duration> {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// The same in milliseconds; 0 if there are no values.
#[must_use]
pub fn milliseconds(sorted: &[Duration], share: f64) -> f64 {
    quantile(sorted, share).map_or(0.0, |value| value.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_few_and_many() {
        let many: Vec<_> = (1..=1000).map(Duration::from_millis).collect();
        assert_eq!(quantile(&many, 0.999), Some(Duration::from_millis(999)));
        assert_eq!(quantile(&many, 0.5), Some(Duration::from_millis(500)));
        let few = [Duration::from_millis(1), Duration::from_millis(7)];
        assert_eq!(quantile(&few, 0.999), Some(few[1]));
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(
            [milliseconds(&few, 1.0), milliseconds(&[], 1.0)],
            [7.0, 0.0]
        );
    }
}
