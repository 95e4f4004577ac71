//! The reports of the runtime, collected as this program's `tracing` subscriber.
//!
//! Invariants: the subscriber sees only what Weald itself reports; a report is kept before anything else is done
//! with it. There is one subscriber per program, and [`listen`] installs it on its first call.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// One report.
#[derive(Clone, Debug)]
pub struct Report {
    /// Where it comes from, as in `weald::monitor`.
    pub target: String,
    /// How grave it is.
    pub level: Level,
    /// The sentence for users.
    pub message: String,
    /// The other fields, such as `job` and `site`.
    pub fields: Vec<(&'static str, String)>,
}

impl Report {
    /// Whether the sentence or a field contains this text.
    #[must_use]
    pub fn mentions(&self, text: &str) -> bool {
        let fields = self.fields.iter().map(|(_, value)| value);
        fields
            .chain([&self.message])
            .any(|part| part.contains(text))
    }
}

/// What has been reported so far.
#[derive(Debug, Default)]
pub struct ReportLog {
    kept: Mutex<Vec<Report>>,
    block_ms: AtomicU64,
}

static REPORTS: OnceLock<ReportLog> = OnceLock::new();

/// Collects the reports of all runtimes of this program from now on. If the program has another subscriber, nothing
/// is collected.
pub fn listen() -> &'static ReportLog {
    REPORTS.get_or_init(|| {
        let _another = tracing::subscriber::set_global_default(Collector);
        ReportLog::default()
    })
}

impl ReportLog {
    /// How many reports there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.kept().len()
    }

    /// The reports after the first `skipped` ones.
    #[must_use]
    pub fn after(&self, skipped: usize) -> Vec<Report> {
        self.kept().iter().skip(skipped).cloned().collect()
    }

    /// Makes the subscriber block for this long after it has kept a report, to measure what that does to others.
    pub fn block_for(&self, length: Duration) {
        let milliseconds = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        self.block_ms.store(milliseconds, Ordering::Relaxed);
    }

    fn kept(&self) -> MutexGuard<'_, Vec<Report>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The subscriber. It has no state of its own, because the program's subscriber may not be looked at again.
struct Collector;

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target().starts_with("weald::")
    }

    fn event(&self, event: &Event<'_>) {
        let Some(reports) = REPORTS.get() else { return };
        let metadata = event.metadata();
        let mut report = Report {
            target: metadata.target().to_owned(),
            level: *metadata.level(),
            message: String::new(),
            fields: Vec::new(),
        };
        event.record(&mut report);
        reports.kept().push(report);
        block(Duration::from_millis(
            reports.block_ms.load(Ordering::Relaxed),
        ));
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[expect(
    clippy::disallowed_methods,
    reason = "it measures a subscriber that blocks its thread"
)]
fn block(length: Duration) {
    if !length.is_zero() {
        std::thread::sleep(length);
    }
}

impl Visit for Report {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        match field.name() {
            "message" => self.message = text,
            name => self.fields.push((name, text)),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.push((field.name(), value.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_runtimes_own_reports_are_kept_with_their_fields() {
        let reports = listen();
        let before = reports.count();
        tracing::warn!(target: "weald::monitor", job = "reader", "`reader` has blocked for {}", 3);
        tracing::warn!(target: "another", "not this");
        let kept: Vec<Report> = reports
            .after(before)
            .into_iter()
            .filter(|report| report.mentions("reader"))
            .collect();
        assert_eq!(kept.len(), 1, "{kept:?}");
        assert_eq!(kept[0].message, "`reader` has blocked for 3");
        assert_eq!(kept[0].fields, [("job", "reader".to_owned())]);
        assert!(!reports.after(before).iter().any(|r| r.mentions("not this")));
    }
}
