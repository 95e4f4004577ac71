//! The cost of one more item, as the slope of the line that fits several sizes best.

/// The slope of the least-squares line through points of a count and a total.
///
/// Costs that are there before the first item, and are paid once, do not enter it.
///
/// # Panics
///
/// If there are not two points with different counts.
#[must_use]
pub fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |value: fn(&(f64, f64)) -> f64| points.iter().map(value).sum::<f64>() / count;
    let (middle, level) = (mean(|point| point.0), mean(|point| point.1));
    let along = |(x, y): &(f64, f64)| (x - middle) * (y - level);
    let width: f64 = points.iter().map(|(x, _)| (x - middle).powi(2)).sum();
    assert!(width > 0.0, "a line needs two different counts");
    points.iter().map(along).sum::<f64>() / width
}

/// A least-squares line.
#[derive(Clone, Copy, Debug)]
pub struct Fit {
    /// The cost of one more item.
    pub slope: f64,
    /// The cost before the first item.
    pub intercept: f64,
    /// The square of the correlation: 1 if all points are on the line.
    pub r2: f64,
}

/// The least-squares line through points of a count and a total.
///
/// # Panics
///
/// If there are not two points with different counts.
#[must_use]
pub fn line(points: &[(f64, f64)]) -> Fit {
    let slope = slope(points);
    let count = points.len() as f64;
    let mean = |value: fn(&(f64, f64)) -> f64| points.iter().map(value).sum::<f64>() / count;
    let (middle, level) = (mean(|point| point.0), mean(|point| point.1));
    let intercept = level - slope * middle;
    let spread: f64 = points.iter().map(|(_, y)| (y - level).powi(2)).sum();
    let beside = |(x, y): &(f64, f64)| (y - intercept - slope * x).powi(2);
    let beside: f64 = points.iter().map(beside).sum();
    let r2 = match spread > 0.0 {
        true => 1.0 - beside / spread,
        false => 1.0,
    };
    Fit {
        slope,
        intercept,
        r2,
    }
}

/// The sizes at which something that grows to `n` is measured: eight steps, fewer for small `n`.
#[must_use]
pub fn sizes(n: usize) -> Vec<usize> {
    let mut sizes: Vec<usize> = (0..=8).map(|step| n * step / 8).collect();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_does_not_count() {
        let points = [(0.0, 1000.0), (10.0, 1080.0), (20.0, 1160.0)];
        assert!((slope(&points) - 8.0).abs() < 1e-9);
    }

    #[test]
    fn a_point_beside_the_line_pulls_a_little() {
        let points = [(0.0, 0.0), (1.0, 3.0), (2.0, 0.0), (3.0, 3.0)];
        assert!((slope(&points) - 0.6).abs() < 1e-9);
    }

    #[test]
    fn a_line_knows_where_it_starts_and_how_well_it_fits() {
        let exact = line(&[(0.0, 1000.0), (10.0, 1080.0), (20.0, 1160.0)]);
        assert!((exact.slope - 8.0).abs() < 1e-9 && (exact.intercept - 1000.0).abs() < 1e-9);
        assert!((exact.r2 - 1.0).abs() < 1e-9);
        let loose = line(&[(0.0, 0.0), (1.0, 3.0), (2.0, 0.0), (3.0, 3.0)]);
        assert!((loose.r2 - 0.2).abs() < 1e-9, "{loose:?}");
    }

    #[test]
    fn sizes_end_at_the_whole() {
        assert_eq!(sizes(16), [0, 2, 4, 6, 8, 10, 12, 14, 16]);
        assert_eq!(sizes(1), [0, 1]);
    }
}
