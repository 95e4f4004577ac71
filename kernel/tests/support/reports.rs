//! Collects what the kernel reports through `tracing`, for the whole test program.
//!
//! A thread of its own reports, so a report comes at some time after what it is about: wait until it
//! is there, and call [`flushed`] before you claim that there is none.

use std::sync::{Mutex, Once, PoisonError};

/// An event that the kernel reported.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "each test file uses only some of it")]
pub(crate) struct Report {
    pub(crate) level: tracing::Level,
    pub(crate) target: String,
    /// The message and all fields.
    pub(crate) text: String,
}

static REPORTS: Mutex<Vec<Report>> = Mutex::new(Vec::new());

struct Collector;

impl tracing::Subscriber for Collector {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct Text(String);
        impl tracing::field::Visit for Text {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                self.0 += &format!("{}={value:?} ", field.name());
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        let report = Report {
            level: *event.metadata().level(),
            target: event.metadata().target().to_owned(),
            text: text.0,
        };
        REPORTS
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(report);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

/// Starts to collect the reports of the whole program. Later calls do nothing.
pub(crate) fn collect_reports() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Collector).unwrap());
}

/// Waits for the reports that were made before the call. Two tenths of a second at most, as every flush.
#[allow(dead_code, reason = "each test file uses only some of it")]
pub(crate) fn flushed() {
    drop(weald_kernel::Runtime::test(0));
}

/// The collected reports with this target whose text contains `part`.
pub(crate) fn reports(target: &str, part: &str) -> Vec<Report> {
    let reports = REPORTS.lock().unwrap_or_else(PoisonError::into_inner);
    let wanted = |report: &&Report| report.target == target && report.text.contains(part);
    reports.iter().filter(wanted).cloned().collect()
}
