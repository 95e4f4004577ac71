//! Formats a value for people: three significant digits, separated thousands, the unit after it.

use crate::metric::unit;
use crate::stats::Summary;

/// A value with about three significant digits.
#[must_use]
pub fn number(value: f64) -> String {
    let size = value.abs();
    if size >= 999.5 {
        grouped(value)
    } else if size >= 99.95 {
        format!("{value:.0}")
    } else if size >= 9.995 {
        format!("{value:.1}")
    } else if size == 0.0 {
        "0".to_owned()
    } else {
        format!("{value:.2}")
    }
}

/// A whole number with a comma before every third digit.
fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    if value < 0.0 {
        text.push('-');
    }
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The symbol of a metric's unit; empty for bare counts.
#[must_use]
pub fn sign(metric: &str) -> &'static str {
    match unit(metric) {
        "ns" => "ns",
        "us" => "µs",
        "ms" => "ms",
        "s" => "s",
        "bytes" => "B",
        "percent" => "%",
        _ => "",
    }
}

/// A value with its unit, as in "13.4 ns".
#[must_use]
pub fn with_unit(metric: &str, value: f64) -> String {
    format!("{} {}", number(value), sign(metric))
        .trim_end()
        .to_owned()
}

/// From smallest to largest, as in "13.1–14.0"; empty for a single run, which spans nothing.
#[must_use]
pub fn span(summary: &Summary) -> String {
    if summary.runs < 2 {
        return String::new();
    }
    format!("{}–{}", number(summary.min), number(summary.max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_kept() {
        let expected = [
            (0.0, "0"),
            (0.123, "0.12"),
            (9.876, "9.88"),
            (13.44, "13.4"),
            (99.96, "100"),
            (312.4, "312"),
            (1234.5, "1,234"),
            (1_234_567.0, "1,234,567"),
            (-1234.0, "-1,234"),
        ];
        for (value, want) in expected {
            assert_eq!(number(value), want);
        }
    }

    #[test]
    fn units_stand_behind() {
        assert_eq!(with_unit("ns_per_hop", 13.0), "13.0 ns");
        assert_eq!(with_unit("ticks", 75.0), "75.0");
    }
}
