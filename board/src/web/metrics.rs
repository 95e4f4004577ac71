//! What the board, the forest and the runtime have counted, as Prometheus reads it.

use std::fmt::{Display, Write};
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, Response, StatusCode};
use weald::Runtime;

use super::answer::fixed;
use super::app::App;
use super::client::Client;
use super::config::Storage;
use super::counts::BOUNDS;
use super::journal;
use super::signing::moderator_by_key;

/// `GET /metrics`, for this machine and for moderators, unless it is for everybody.
pub(crate) async fn metrics(
    State(app): State<App>,
    Extension(client): Extension<Client>,
    headers: HeaderMap,
) -> Response<Body> {
    let may_see = app.config.has_open_metrics
        || client.is_of_this_machine(&headers)
        || moderator_by_key(&app, &headers).is_some();
    if !may_see {
        let told = "These figures are for this machine, and for moderators with a key, unless --metrics-open is set.\n";
        return fixed(StatusCode::FORBIDDEN, "text/plain; charset=utf-8", told);
    }
    let mut text = Families(String::new());
    requests(&mut text, &app);
    boards(&mut text, &app);
    forest(&mut text, &app);
    if let Storage::Directory(directory) = &app.config.storage
        && let Ok(size) = weald::blocking(|| journal::size_of(directory))
    {
        text.gauge("board_journal_files", "Files of the journal.", size.files);
        text.gauge("board_journal_bytes", "Their bytes.", size.bytes);
    }
    runtime(&mut text, &app);
    fixed(
        StatusCode::OK,
        "text/plain; version=0.0.4; charset=utf-8",
        text.0,
    )
}

/// Families of samples, one below the other.
struct Families(String);

impl Families {
    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family((name, "gauge", help), format_args!("{name} {value}\n"));
    }

    /// What only grows while the program runs.
    fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.family((name, "counter", help), format_args!("{name} {value}\n"));
    }

    fn family(&mut self, (name, kind, help): (&str, &str, &str), rows: impl Display) {
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n{rows}");
    }
}

fn requests(text: &mut Families, app: &App) {
    let counted = app.counts.read();
    let classes = counted.by_class.iter().enumerate().skip(1);
    let rows: String = classes
        .map(|(class, count)| format!("board_answers_total{{status=\"{class}xx\"}} {count}\n"))
        .collect();
    let help = "Answers by the class of their status.";
    text.family(("board_answers_total", "counter", help), rows);
    let mut sum = 0;
    let mut rows = String::new();
    for (at, count) in counted.by_duration.iter().enumerate() {
        sum += count;
        let bound = BOUNDS
            .get(at)
            .map_or("+Inf".to_owned(), |micros| of_micros(*micros));
        let _ = writeln!(rows, "board_answer_seconds_bucket{{le=\"{bound}\"}} {sum}");
    }
    let _ = write!(
        rows,
        "board_answer_seconds_sum {}\nboard_answer_seconds_count {sum}\n",
        seconds(counted.total)
    );
    let help = "How long answers took.";
    text.family(("board_answer_seconds", "histogram", help), rows);
    let in_flight = app.in_flight.load(Ordering::Relaxed);
    let help = "Requests that are being answered.";
    text.gauge("board_requests", help, in_flight);
    let (boards, readers) = app.live.count();
    let help = "Streams of live updates.";
    text.gauge("board_live_readers", help, readers);
    let help = "Boards that somebody reads live, each with a process.";
    text.gauge("board_live_boards", help, boards);
    let help = "Exports that are being sent.";
    text.gauge("board_exports", help, app.exports.count());
    let help = "Requests that just look into the past.";
    text.gauge("board_looks", help, app.looks.count());
}

fn boards(text: &mut Families, app: &App) {
    let (boards, messages) = app.boards.count();
    text.gauge("board_boards", "Boards.", boards);
    let help = "Messages, deleted ones included.";
    text.gauge("board_messages", help, messages);
    let ready = u8::from(app.boards.takes_commits());
    text.gauge("board_ready", "Whether the board takes messages.", ready);
    let help = "Readings of what only the disk has.";
    text.counter("board_replays_total", help, app.boards.replays());
}

fn forest(text: &mut Families, app: &App) {
    let stats = app.boards.stats();
    let help = "Commits since the start.";
    text.counter("forest_commits_total", help, stats.commits);
    let help = "Commits that were refused because others had changed the same.";
    text.counter("forest_conflicts_total", help, stats.conflicts);
    let help = "Edits that were moved to a newer version.";
    text.counter("forest_rebases_total", help, stats.rebases);
    text.gauge("forest_trees", "Trees.", stats.trees);
    text.gauge("forest_versions", "Versions in memory.", stats.versions);
    let help = "Erasable values in memory.";
    text.gauge("forest_erasable_values", help, stats.blobs);
    text.gauge("forest_erasable_bytes", "Their bytes.", stats.blob_bytes);
}

fn runtime(text: &mut Families, app: &App) {
    let runtime = match &app.config.runtime {
        Some(runtime) => runtime,
        None => Runtime::default_runtime(),
    };
    let metrics = runtime.metrics();
    let gauges = [
        ("workers", "Workers.", metrics.workers),
        ("workers_asleep", "Workers without work.", metrics.sleeping),
        ("processes", "Processes.", metrics.processes),
        ("timers", "Timers.", metrics.timers),
    ];
    for (name, help, value) in gauges {
        text.gauge(&format!("weald_{name}"), help, value);
    }
    let threads = metrics.threads + metrics.blocking_threads;
    text.gauge("weald_threads", "OS threads.", threads);
    text.gauge("weald_runnable", "Jobs that could run.", metrics.runnable);
    let help = "Jobs that another unit holds up.";
    text.gauge("weald_held_up", help, metrics.held_up);
    text.counter("weald_ended_total", "Jobs that have ended.", metrics.ended);
    let help = "Workers that were taken away from a stuck job.";
    text.counter("weald_detached_total", help, metrics.detached);
    text.gauge("weald_blocking", "Blocking work.", metrics.blocking);
    let help = "Blocking work that waits for a thread.";
    text.gauge("weald_blocking_queued", help, metrics.blocking_queued);
    let help = "Messages in the longest mailbox.";
    text.gauge("weald_longest_mailbox", help, metrics.longest_mailbox);
    let oldest = seconds(metrics.oldest_message.unwrap_or_default());
    let help = "For how long the oldest message in a mailbox has waited.";
    text.gauge("weald_oldest_message_seconds", help, oldest);
    let help = "Values in the longest channel.";
    text.gauge("weald_longest_channel", help, metrics.longest_channel);
}

fn seconds(duration: Duration) -> String {
    of_micros(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}

fn of_micros(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
