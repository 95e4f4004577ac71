//! A drawing in SVG as text, and the scale that maps values to positions.
//!
//! Colours and fonts come from the page's style sheet through classes, so a drawing follows the
//! reader's light or dark mode. Every drawing has a title and a description for screen readers.

use std::fmt::{Display, Write};

/// A drawing that grows element by element.
pub(super) struct Svg {
    body: String,
}

/// A position in a drawing.
#[derive(Clone, Copy)]
pub(super) struct At(pub(super) f64, pub(super) f64);

/// Which part of a text's baseline is at a position.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start(f64, f64),
    Middle(f64, f64),
    End(f64, f64),
}

impl Svg {
    pub(super) fn new() -> Self {
        Self {
            body: String::new(),
        }
    }

    fn push(&mut self, piece: std::fmt::Arguments<'_>) {
        self.body
            .write_fmt(piece)
            .expect("a string takes all that is written");
    }

    /// A filled rectangle from its upper left corner.
    pub(super) fn rect(&mut self, class: &str, at: At, size: (f64, f64)) {
        let (At(x, y), (width, height)) = (at, size);
        self.push(format_args!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" \
             width=\"{width:.1}\" height=\"{height:.1}\"/>"
        ));
    }

    /// A straight line.
    pub(super) fn line(&mut self, class: &str, from: At, to: At) {
        let (At(x1, y1), At(x2, y2)) = (from, to);
        self.push(format_args!(
            r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#
        ));
    }

    /// A line through several points.
    pub(super) fn path(&mut self, class: &str, points: &[At]) {
        self.push(format_args!(r#"<polyline class="{class}" points=""#));
        for At(x, y) in points {
            self.push(format_args!("{x:.1},{y:.1} "));
        }
        self.push(format_args!(r#""/>"#));
    }

    /// A mark around a point; its shape tells series apart where colours do not.
    pub(super) fn mark(&mut self, class: &str, shape: usize, At(x, y): At) {
        let d = match shape % 4 {
            0 => format!("M{:.1} {y:.1}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z", x - 3.0),
            1 => format!("M{:.1} {:.1}h5v5h-5z", x - 2.5, y - 2.5),
            2 => format!("M{x:.1} {:.1}l3.5 6h-7z", y - 4.0),
            _ => format!("M{x:.1} {:.1}l4 4l-4 4l-4 -4z", y - 4.0),
        };
        self.push(format_args!(r#"<path class="{class}" d="{d}"/>"#));
    }

    /// A line of text.
    pub(super) fn text(&mut self, class: &str, anchor: Anchor, text: &str) {
        let (anchor, x, y) = match anchor {
            Anchor::Start(x, y) => ("start", x, y),
            Anchor::Middle(x, y) => ("middle", x, y),
            Anchor::End(x, y) => ("end", x, y),
        };
        let text = escape(text);
        self.push(format_args!(
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{text}</text>"#
        ));
    }

    /// The whole drawing.
    pub(super) fn finish(self, size: (f64, f64), title: &str, description: &str) -> String {
        let (width, height) = size;
        let (title, description) = (escape(title), escape(description));
        format!(
            "<svg viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
             xmlns=\"http://www.w3.org/2000/svg\"><title>{title}</title>\
             <desc>{description}</desc>{}</svg>",
            self.body
        )
    }
}

/// Escapes text for XML.
pub(super) fn escape(text: impl Display) -> String {
    let text = text.to_string();
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Maps values to positions along one axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
    from: f64,
    to: f64,
}

/// Values that differ by more than this factor do not fit on a linear axis.
const LOGARITHMIC_ABOVE: f64 = 40.0;

impl Scale {
    /// A scale for these values between two positions; logarithmic where a linear one would hide the
    /// small values, and only if all are positive.
    pub(super) fn fitting(values: &[f64], from: f64, to: f64) -> Self {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        if low > 0.0 && low.is_finite() && high / low > LOGARITHMIC_ABOVE {
            return Self::logarithmic(low, high, (from, to));
        }
        let step = nice_step(high.max(f64::MIN_POSITIVE));
        let high = (high / step).ceil().max(1.0) * step;
        Self {
            low: 0.0,
            high,
            logarithmic: false,
            from,
            to,
        }
    }

    /// A logarithmic scale between round values; `low` must be positive.
    pub(super) fn logarithmic(low: f64, high: f64, (from, to): (f64, f64)) -> Self {
        // The smallest value must not vanish at the very beginning of its axis.
        let low = round_below(low * 0.9);
        let high = round_above(high).max(low * 10.0);
        Self {
            low,
            high,
            logarithmic: true,
            from,
            to,
        }
    }

    pub(super) fn is_logarithmic(&self) -> bool {
        self.logarithmic
    }

    /// The position of a value, clamped to the axis.
    pub(super) fn place(&self, value: f64) -> f64 {
        let share = if self.logarithmic {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Round values to mark on the axis, about five of them.
    pub(super) fn ticks(&self) -> Vec<f64> {
        if self.logarithmic {
            return self.logarithmic_ticks();
        }
        let step = nice_step(self.high);
        std::iter::successors(Some(0.0), |tick| Some(tick + step))
            .take_while(|tick| *tick <= self.high * 1.001)
            .collect()
    }

    /// Round values while they are few, else powers of ten, else every second or third of those.
    fn logarithmic_ticks(&self) -> Vec<f64> {
        let inside = |tick: &f64| *tick >= self.low * 0.999 && *tick <= self.high * 1.001;
        let round: Vec<f64> =
            std::iter::successors(Some(self.low), |tick| Some(round_above(tick * 1.01)))
                .take_while(inside)
                .collect();
        if round.len() <= 7 {
            return round;
        }
        let first = 10_f64.powf((self.low * 0.999).log10().ceil());
        let decades = (self.high / first).log10();
        let stride = 10_f64.powf((decades / 5.0).ceil().max(1.0));
        std::iter::successors(Some(first), |tick| Some(tick * stride))
            .take_while(inside)
            .collect()
    }
}

/// A step of 1, 2 or 5 times a power of ten, so that about four steps reach `high`.
fn nice_step(high: f64) -> f64 {
    round_above(high / 4.0)
}

/// The next 1, 2 or 5 times a power of ten that is not below a positive value.
fn round_above(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let factor = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|f| f * power >= value * 0.999)
        .unwrap_or(10.0);
    factor * power
}

/// The next 1, 2 or 5 times a power of ten that is not above a positive value.
fn round_below(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let factor = [5.0, 2.0]
        .into_iter()
        .find(|f| f * power <= value * 1.001)
        .unwrap_or(1.0);
    factor * power
}

/// A tick's label: 5, 20k, 3M, so that it fits under a narrow axis.
pub(super) fn short(value: f64) -> String {
    let (scaled, sign) = match value {
        v if v >= 1e9 => (v / 1e9, "G"),
        v if v >= 1e6 => (v / 1e6, "M"),
        v if v >= 1e3 => (v / 1e3, "k"),
        v => (v, ""),
    };
    let text = format!("{scaled:.3}");
    format!("{}{sign}", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_values_get_a_linear_scale_from_zero() {
        let scale = Scale::fitting(&[13.0, 48.0], 0.0, 100.0);
        assert!(!scale.is_logarithmic());
        assert_eq!(scale.place(0.0), 0.0);
        assert_eq!(scale.ticks(), [0.0, 20.0, 40.0, 60.0]);
        assert!((scale.place(30.0) - 50.0).abs() < 1e-9);
    }

    #[test]
    fn far_values_get_powers_of_ten() {
        let scale = Scale::fitting(&[13.0, 4_800.0], 0.0, 300.0);
        assert!(scale.is_logarithmic());
        assert_eq!(scale.ticks(), [10.0, 100.0, 1_000.0]);
        let (begin, end) = (scale.place(10.0), scale.place(5_000.0));
        assert!(
            begin == 0.0 && (end - 300.0).abs() < 1e-9,
            "round ends: {scale:?}"
        );
        let middle = scale.place(50_000.0_f64.sqrt());
        assert!(
            (middle - 150.0).abs() < 1e-9,
            "the middle of the axis is the geometric mean"
        );
        assert_eq!(
            scale.place(1.0),
            0.0,
            "below the axis is held at its beginning"
        );
    }

    #[test]
    fn degenerate_values_still_have_an_axis() {
        for values in [&[][..], &[0.0], &[7.0], &[-3.0]] {
            let scale = Scale::fitting(values, 0.0, 10.0);
            assert!(
                scale.ticks().len() >= 2 && scale.ticks().len() < 20,
                "{values:?}"
            );
            assert!(scale.place(5.0).is_finite());
        }
    }

    #[test]
    fn a_short_logarithmic_axis_is_marked_at_round_values() {
        let near = |ticks: Vec<f64>| ticks.iter().map(|t| format!("{t:.2}")).collect::<Vec<_>>();
        let ticks = near(Scale::logarithmic(0.9, 18.0, (0.0, 1.0)).ticks());
        assert_eq!(ticks, ["0.50", "1.00", "2.00", "5.00", "10.00", "20.00"]);
    }

    #[test]
    fn labels_are_short() {
        let labels: Vec<String> = [0.0, 0.5, 20.0, 1_500.0, 2e6, 1e10].map(short).into();
        assert_eq!(labels, ["0", "0.5", "20", "1.5k", "2M", "10G"]);
    }

    #[test]
    fn texts_cannot_break_out() {
        let mut svg = Svg::new();
        svg.text("t", Anchor::Start(0.0, 0.0), "<a & \"b\">");
        let text = svg.finish((1.0, 1.0), "1 < 2", "d");
        assert!(text.contains("&lt;a &amp; &quot;b&quot;&gt;"));
        assert!(text.contains("<title>1 &lt; 2</title>"));
    }
}
