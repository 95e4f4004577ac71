//! Where reports go: to a `tracing` subscriber, or else to stderr, one line each. Only for the reporting thread.

use std::{
    env,
    io::{self, IsTerminal, Write},
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Once,
};

use tracing::dispatcher;

use crate::report::{
    data::{Details, LeftOut, Report, ReportKind, ReportOrigin},
    subscriber::Audience,
};

const MONITOR: &str = "weald::monitor";
const BLOCKING: &str = "weald::blocking";
const MAILBOX: &str = "weald::mailbox";
const CHANNEL: &str = "weald::channel";
const STACK: &str = "weald::stack";
const PANIC: &str = "weald::panic";
const SHUTDOWN: &str = "weald::shutdown";
const WAITS: &str = "weald::waits";
const SUPERVISOR: &str = "weald::supervisor";
const SERVICE: &str = "weald::service";

/// Writes a report out. A report that is only information goes to subscribers only.
pub(super) fn report(report: Report) {
    let details = (report.details)();
    let line = Line {
        text: &details.text,
        is_warning: report.kind.is_warning(),
        is_information: matches!(report.kind, ReportKind::PanicHookRuns),
    };
    line.put_out(&report.audience, || {
        report_to_tracing(&report.kind, &report.origin, &details);
    });
}

/// Writes out the count of reports that were left out, unless it is zero.
pub(super) fn left_out(left_out: LeftOut) {
    if left_out.count == 0 {
        return;
    }
    let line = Line {
        text: &left_out.to_string(),
        is_warning: left_out.kind.is_warning(),
        is_information: matches!(left_out.kind, ReportKind::PanicHookRuns),
    };
    line.put_out(&left_out.audience, || count_to_tracing(&left_out));
}

fn report_to_tracing(kind: &ReportKind, site: &ReportOrigin, details: &Details) {
    let Details {
        job,
        type_name,
        text,
    } = details;
    match kind {
        ReportKind::Stuck { stuck_ms } => {
            tracing::warn!(target: MONITOR, job, %site, type_name, stuck_ms, "{text}");
        }
        ReportKind::HoldsUp { held_ms } | ReportKind::HoldsThread { held_ms } => {
            tracing::warn!(target: MONITOR, job, %site, type_name, held_ms, "{text}");
        }
        ReportKind::PendingKill { pending_ms } => {
            tracing::warn!(target: MONITOR, job, %site, type_name, pending_ms, "{text}");
        }
        ReportKind::NoFreeThread { bound, queued } => {
            tracing::error!(target: BLOCKING, bound, queued, "{text}");
        }
        ReportKind::OperationsHoldThreads { bound, queued } => {
            tracing::error!(target: BLOCKING, bound, queued, "{text}");
        }
        ReportKind::HeldOperation { held_ms } => {
            tracing::warn!(target: BLOCKING, job, %site, held_ms, "{text}");
        }
        ReportKind::NoBlockingThread => tracing::error!(target: BLOCKING, "{text}"),
        ReportKind::JustBelow | ReportKind::LongPanicHook | ReportKind::HoldsPinnedJobs => {
            tracing::warn!(target: MONITOR, job, %site, type_name, "{text}");
        }
        ReportKind::PanicHookRuns => tracing::info!(target: MONITOR, job, %site, "{text}"),
        ReportKind::LongMailbox { messages } => {
            tracing::warn!(target: MAILBOX, job, %site, messages, "{text}");
        }
        ReportKind::LongChannel { values } => {
            tracing::warn!(target: CHANNEL, %site, values, "{text}");
        }
        ReportKind::NoSpareThread { bound } => tracing::error!(target: MONITOR, bound, "{text}"),
        ReportKind::NoThread | ReportKind::MonitorPanicked => {
            tracing::error!(target: MONITOR, "{text}");
        }
        ReportKind::NoStack => tracing::error!(target: STACK, "{text}"),
        ReportKind::UnobservedPanic
        | ReportKind::WatchedPanic
        | ReportKind::CaughtPanic
        | ReportKind::WakerPanicked => {
            tracing::error!(target: PANIC, job, %site, type_name, "{text}");
        }
        ReportKind::PanicMessage => tracing::error!(target: PANIC, "{text}"),
        ReportKind::CallbackPanicked => tracing::error!(target: PANIC, callback = %site, "{text}"),
        ReportKind::Stranded | ReportKind::NotStopped => {
            tracing::error!(target: SHUTDOWN, "{text}");
        }
        ReportKind::Cycle => tracing::error!(target: WAITS, "{text}"),
        ReportKind::GivenUp => {
            tracing::error!(target: SUPERVISOR, job, %site, "{text}");
        }
        ReportKind::Failure => tracing::warn!(target: SERVICE, job, %site, "{text}"),
    }
}

fn count_to_tracing(left_out: &LeftOut) {
    let (count, origin) = (left_out.count, &left_out.origin);
    match left_out.kind {
        ReportKind::LongMailbox { .. } => {
            tracing::warn!(target: MAILBOX, left_out = count, %origin, "{left_out}");
        }
        ReportKind::LongChannel { .. } => {
            tracing::warn!(target: CHANNEL, left_out = count, %origin, "{left_out}");
        }
        ReportKind::HeldOperation { .. } => {
            tracing::warn!(target: BLOCKING, left_out = count, %origin, "{left_out}");
        }
        ReportKind::NoFreeThread { .. }
        | ReportKind::OperationsHoldThreads { .. }
        | ReportKind::NoBlockingThread => {
            tracing::error!(target: BLOCKING, left_out = count, %origin, "{left_out}");
        }
        ReportKind::Stuck { .. }
        | ReportKind::HoldsUp { .. }
        | ReportKind::PendingKill { .. }
        | ReportKind::JustBelow
        | ReportKind::PanicHookRuns
        | ReportKind::LongPanicHook
        | ReportKind::HoldsThread { .. }
        | ReportKind::HoldsPinnedJobs => {
            tracing::warn!(target: MONITOR, left_out = count, %origin, "{left_out}");
        }
        ReportKind::NoSpareThread { .. } | ReportKind::NoThread | ReportKind::MonitorPanicked => {
            tracing::error!(target: MONITOR, left_out = count, %origin, "{left_out}");
        }
        ReportKind::NoStack => {
            tracing::error!(target: STACK, left_out = count, %origin, "{left_out}");
        }
        ReportKind::UnobservedPanic
        | ReportKind::WatchedPanic
        | ReportKind::CaughtPanic
        | ReportKind::PanicMessage
        | ReportKind::CallbackPanicked
        | ReportKind::WakerPanicked => {
            tracing::error!(target: PANIC, left_out = count, %origin, "{left_out}");
        }
        ReportKind::Stranded | ReportKind::NotStopped => {
            tracing::error!(target: SHUTDOWN, left_out = count, %origin, "{left_out}");
        }
        ReportKind::Cycle => {
            tracing::error!(target: WAITS, left_out = count, %origin, "{left_out}");
        }
        ReportKind::GivenUp => {
            tracing::error!(target: SUPERVISOR, left_out = count, %origin, "{left_out}");
        }
        ReportKind::Failure => {
            tracing::warn!(target: SERVICE, left_out = count, %origin, "{left_out}");
        }
    }
}

/// How a line on stderr looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Plain,
    /// With colours around the prefix.
    Coloured,
}

/// A report as a line of text.
struct Line<'a> {
    text: &'a str,
    is_warning: bool,
    is_information: bool,
}

impl Line<'_> {
    /// Calls `to_tracing` with the subscriber of `audience`. If there is none, writes to stderr.
    fn put_out(&self, audience: &Audience, to_tracing: impl Fn()) {
        let sent = catch_unwind(AssertUnwindSafe(|| match audience.subscriber() {
            Some(subscriber) => {
                dispatcher::with_default(&subscriber, &to_tracing);
                true
            }
            // Called without a subscriber too, because `tracing` may pass it to `log`.
            None => {
                to_tracing();
                false
            }
        }));
        match sent {
            Ok(false) if !self.is_information => self.print(),
            Ok(_) => {}
            Err(payload) => {
                // The payload's destructor could panic again.
                mem::forget(payload);
                self.report_broken_subscriber();
            }
        }
    }

    /// Says that the subscriber panicked, once: otherwise a subscriber that always panics would fill stderr.
    fn report_broken_subscriber(&self) {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let text = &format!(
                "the tracing subscriber panicked at a report, which is lost, as further ones may be: {}",
                self.text
            );
            let line = Line { text, ..*self };
            line.print();
        });
    }

    fn print(&self) {
        let mut stderr = io::stderr().lock();
        let is_plain = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let line = match stderr.is_terminal() && !is_plain {
            true => self.styled(Style::Coloured),
            false => self.styled(Style::Plain),
        };
        // There is nowhere left to say that stderr is closed.
        let _unheard = stderr.write_all(line.as_bytes());
    }

    fn styled(&self, style: Style) -> String {
        let (begin, end) = match (style, self.is_warning) {
            (Style::Plain, _) => ("", ""),
            (Style::Coloured, true) => ("\x1b[1;33m", "\x1b[0m"),
            (Style::Coloured, false) => ("\x1b[1;31m", "\x1b[0m"),
        };
        let mut line = format!("{begin}weald:{end} ");
        for c in self.text.chars() {
            match c.is_control() {
                true => line.extend(c.escape_default()),
                false => line.push(c),
            }
        }
        line.push('\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_one_line_whatever_its_text_contains() {
        let line = Line {
            text: "left: `1`\n right: \u{1b}[2J … ö",
            is_warning: false,
            is_information: false,
        };
        assert_eq!(
            line.styled(Style::Plain),
            "weald: left: `1`\\n right: \\u{1b}[2J … ö\n"
        );
    }

    #[test]
    fn colours_are_around_the_prefix_only() {
        let line = Line {
            text: "text",
            is_warning: true,
            is_information: false,
        };
        assert_eq!(
            line.styled(Style::Coloured),
            "\x1b[1;33mweald:\x1b[0m text\n"
        );
        let line = Line {
            is_warning: false,
            is_information: false,
            ..line
        };
        assert_eq!(
            line.styled(Style::Coloured),
            "\x1b[1;31mweald:\x1b[0m text\n"
        );
    }
}
