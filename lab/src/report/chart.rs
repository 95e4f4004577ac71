//! What all charts share: their width, which suits a phone, and the finished chart.

/// The width of every chart in its own units; a narrow screen shows it about one to one.
pub(super) const WIDTH: f64 = 360.0;

/// A finished drawing with the text above and below it.
pub(super) struct Chart {
    pub(super) caption: String,
    pub(super) note: String,
    pub(super) svg: String,
}
