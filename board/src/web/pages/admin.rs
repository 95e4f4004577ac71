//! The page that shows the state of the runtime and of the forest. Only moderators see it. A browser with scripts
//! fetches it again every two seconds, while somebody looks at it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use askama::Template;
use axum::http::StatusCode;
use weald::forest::Version;
use weald::{Metrics, Runtime};

use crate::text::moment::Stamp;

use super::super::answer::{Answer, page};
use super::super::ask::Ask;
use super::super::config::Storage;
use super::super::journal;
use super::super::views::Frame;

/// After how many seconds it is fetched again.
const EVERY: u32 = 2;
/// How many rows of one kind are shown.
const ROWS: usize = 10;

#[derive(Template)]
#[template(path = "admin.html")]
struct AdminPage {
    frame: Frame,
    is_ready: bool,
    age: String,
    /// Tables of a name and a value each.
    tables: Vec<Table>,
    /// Lists of sentences; an empty one is told as such.
    lists: Vec<List>,
    boards: Vec<BoardRow>,
}

struct Table {
    title: &'static str,
    rows: Vec<(&'static str, String)>,
}

struct List {
    title: &'static str,
    /// What the rows stand below.
    top: Option<String>,
    none: &'static str,
    rows: Vec<String>,
    unshown: usize,
}

struct BoardRow {
    name: String,
    title: String,
    version: Version,
    messages: u64,
    changed: Stamp,
}

/// `GET /admin`
pub(crate) async fn show(ask: Arc<Ask>) -> Answer {
    ask.must_moderate()?;
    let runtime = match &ask.app.config.runtime {
        Some(runtime) => runtime,
        None => Runtime::default_runtime(),
    };
    let metrics = runtime.metrics();
    // The longest one is first: so the columns have about the same length.
    let mut tables = vec![jobs(&metrics), requests(&ask), forest(&ask)];
    tables.extend(journal_of(&ask).await);
    let mut lists = vec![supervised(&ask).await];
    lists.extend(waiting(runtime));
    let boards = ask.app.boards.list().into_iter().map(|board| BoardRow {
        name: board.name.to_string(),
        title: board.title,
        version: board.version,
        messages: board.messages,
        changed: Stamp::of_version(board.changed, ask.now),
    });
    let template = AdminPage {
        frame: Frame {
            every: Some(EVERY),
            ..Frame::new(&ask, "What goes on inside")
        },
        is_ready: ask.app.boards.takes_commits(),
        age: duration(ask.app.age()),
        tables,
        lists,
        boards: boards.take(ROWS * 5).collect(),
    };
    page(&ask, StatusCode::OK, &template)
}

fn requests(ask: &Ask) -> Table {
    let counted = ask.app.counts.read();
    let [_, _, fine, moved, refused, failed] = counted.by_class;
    let total: u64 = counted.by_duration.iter().sum();
    let mean = u32::try_from(total).map_or(Duration::ZERO, |total| {
        counted.total.checked_div(total).unwrap_or_default()
    });
    Table {
        title: "Requests",
        rows: vec![
            (
                "Being answered",
                count(ask.app.in_flight.load(Ordering::Relaxed)),
            ),
            ("Answered: fine", count(fine)),
            ("Answered: elsewhere, or not changed", count(moved)),
            ("Answered: refused", count(refused)),
            ("Answered: failed, or shed", count(failed)),
            ("An answer took on average", duration(mean)),
        ],
    }
}

fn jobs(metrics: &Metrics) -> Table {
    let workers = format!("{} of {} asleep", metrics.sleeping, metrics.workers);
    let oldest = metrics
        .oldest_message
        .map_or("none waits".to_owned(), duration);
    let blocking = format!("{}, and {} wait", metrics.blocking, metrics.blocking_queued);
    Table {
        title: "Runtime",
        rows: vec![
            ("Workers", workers),
            (
                "OS threads",
                count(metrics.threads + metrics.blocking_threads),
            ),
            ("Processes", count(metrics.processes)),
            ("Jobs that could run", count(metrics.runnable)),
            ("Jobs that have ended", count(metrics.ended)),
            ("Jobs held up by another one", count(metrics.held_up)),
            (
                "Workers taken away from a stuck job",
                count(metrics.detached),
            ),
            ("Blocking work that runs", blocking),
            ("Timers", count(metrics.timers)),
            ("Longest mailbox", count(metrics.longest_mailbox)),
            ("Oldest message in a mailbox", oldest),
            ("Longest channel", count(metrics.longest_channel)),
        ],
    }
}

fn forest(ask: &Ask) -> Table {
    let stats = ask.app.boards.stats();
    Table {
        title: "Forest",
        rows: vec![
            ("Commits since the start", count(stats.commits)),
            ("Conflicts", count(stats.conflicts)),
            ("Edits moved to a newer version", count(stats.rebases)),
            ("Trees", count(stats.trees)),
            ("Versions in memory", count(stats.versions)),
            ("Erasable texts in memory", count(stats.blobs)),
            ("Their bytes", bytes(stats.blob_bytes)),
        ],
    }
}

/// The files of the journal, if the board is in a directory.
async fn journal_of(ask: &Ask) -> Option<Table> {
    let Storage::Directory(directory) = &ask.app.config.storage else {
        return None;
    };
    let size = weald::blocking(|| journal::size_of(directory)).ok()?;
    let state = match ask.app.boards.takes_commits() {
        true => "takes commits",
        false => "full, or has failed",
    };
    Some(Table {
        title: "Journal",
        rows: vec![
            ("State", state.to_owned()),
            ("Files", count(size.files)),
            ("Bytes", bytes(size.bytes)),
            ("Readings of the past", count(ask.app.boards.replays())),
        ],
    })
}

async fn supervised(ask: &Ask) -> List {
    let children = ask.app.readers.children().await.unwrap_or_default();
    let (_, readers) = ask.app.live.count();
    let top = format!(
        "Supervisor of the live updates: {} processes, {readers} readers",
        children.len()
    );
    let below = children
        .iter()
        .map(|child| match (&child.unit, child.is_restarting) {
            (Some(_), _) => format!("{} runs", child.id),
            (None, true) => format!("{} is being started again", child.id),
            (None, false) => format!("{} has ended", child.id),
        });
    List {
        top: Some(top),
        ..list(
            "Supervision tree",
            "Nobody follows a board, so it has no process.",
            below,
        )
    }
}

fn waiting(runtime: &Runtime) -> [List; 3] {
    let long = runtime.long_mailboxes();
    let long = long.iter().map(|it| {
        format!(
            "{}: {} messages, for {}",
            it.job,
            it.messages,
            duration(it.since)
        )
    });
    let unread = runtime.unread_mailboxes();
    let unread = unread.iter().map(|it| {
        format!(
            "{}: the oldest message waits for {}",
            it.job,
            duration(it.waited)
        )
    });
    let channels = runtime.long_channels();
    let channels = channels
        .iter()
        .map(|channel| format!("A channel: {channel}"));
    let waits = runtime.waits();
    let cycles = waits.cycles.iter().map(|cycle| {
        let jobs = cycle.iter().filter_map(|at| waits.jobs.get(*at));
        let jobs: Vec<_> = jobs.map(|it| it.job.to_string()).collect();
        format!("They wait for each other: {}", jobs.join(", "))
    });
    let held_up = waits.held_up.iter().map(ToString::to_string);
    let pending = waits.pending_kills.iter().map(ToString::to_string);
    let stuck: Vec<_> = cycles.chain(held_up).chain(pending).collect();
    [
        list(
            "Long mailboxes and channels",
            "None is long.",
            long.chain(channels),
        ),
        list(
            "Mailboxes that nobody reads",
            "All messages were taken.",
            unread,
        ),
        list("Stuck units", "None is stuck.", stuck.into_iter()),
    ]
}

fn list(title: &'static str, none: &'static str, rows: impl Iterator<Item = String>) -> List {
    let mut rows: Vec<_> = rows.collect();
    let unshown = rows.len().saturating_sub(ROWS);
    rows.truncate(ROWS);
    List {
        title,
        top: None,
        none,
        rows,
        unshown,
    }
}

/// A number with a thin space between the thousands.
fn count(number: impl TryInto<u64>) -> String {
    let digits = number.try_into().unwrap_or(u64::MAX).to_string();
    let mut text = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

fn bytes(number: u64) -> String {
    match number {
        0..10_000 => format!("{} B", count(number)),
        10_000..10_000_000 => format!("{} kB", count(number / 1_000)),
        _ => format!("{} MB", count(number / 1_000_000)),
    }
}

fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 if duration < Duration::from_millis(1) => format!("{} µs", duration.as_micros()),
        0 => format!("{} ms", duration.as_millis()),
        1..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_can_be_read() {
        assert_eq!(count(0_u64), "0");
        assert_eq!(count(1_234_567_usize), "1\u{202f}234\u{202f}567");
        assert_eq!(bytes(12_345_678), "12 MB");
        let told = [0, 1, 90, 7_199, 7_200, 200_000].map(|it| duration(Duration::from_secs(it)));
        assert_eq!(told, ["0 µs", "1 s", "90 s", "119 min", "2 h", "2 days"]);
    }
}
