//! The questions of the people who run the board: is it alive, is it ready, what has it counted.

use std::fmt::Write;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};

use super::answer::fixed;
use super::app::App;
use super::counts::BOUNDS;

const TEXT: &str = "text/plain; charset=utf-8";

/// `GET /healthz`: the program answers.
pub(crate) async fn healthy() -> Response<Body> {
    alive()
}

/// The same before there is anything else to answer.
pub(crate) fn alive() -> Response<Body> {
    fixed(StatusCode::OK, TEXT, "alive\n")
}

/// `GET /readyz`: the board takes messages.
pub(crate) async fn ready(State(app): State<App>) -> Response<Body> {
    match app.boards.would_take_commits().await {
        true => fixed(StatusCode::OK, TEXT, "ready\n"),
        false => fixed(
            StatusCode::SERVICE_UNAVAILABLE,
            TEXT,
            "read-only: the disk is full, or the journal has failed\n",
        ),
    }
}

/// `GET /metrics`, as Prometheus reads it.
pub(crate) async fn metrics(State(app): State<App>) -> Response<Body> {
    let counted = app.counts.read();
    let mut text = String::new();
    let mut head = |name: &str, kind: &str, help: &str, rows: &str| {
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{rows}");
    };
    let classes = counted.by_class.iter().enumerate().skip(1);
    let rows: String = classes
        .map(|(class, count)| format!("board_answers_total{{status=\"{class}xx\"}} {count}\n"))
        .collect();
    head(
        "board_answers_total",
        "counter",
        "Answers by the class of their status.",
        &rows,
    );
    let mut sum = 0;
    let mut rows = String::new();
    for (at, count) in counted.by_duration.iter().enumerate() {
        sum += count;
        let bound = BOUNDS
            .get(at)
            .map_or("+Inf".to_owned(), |micros| seconds(*micros));
        let _ = writeln!(rows, "board_answer_seconds_bucket{{le=\"{bound}\"}} {sum}");
    }
    let _ = write!(
        rows,
        "board_answer_seconds_sum {}\nboard_answer_seconds_count {sum}\n",
        counted.total.as_secs_f64()
    );
    head(
        "board_answer_seconds",
        "histogram",
        "How long answers took.",
        &rows,
    );
    let in_flight = app.in_flight.load(std::sync::atomic::Ordering::Relaxed);
    head(
        "board_requests",
        "gauge",
        "Requests that are being answered.",
        &format!("board_requests {in_flight}\n"),
    );
    let boards = app.boards.list();
    let messages: u64 = boards.iter().map(|board| board.messages).sum();
    head(
        "board_boards",
        "gauge",
        "Boards.",
        &format!("board_boards {}\n", boards.len()),
    );
    head(
        "board_messages",
        "gauge",
        "Messages, deleted ones included.",
        &format!("board_messages {messages}\n"),
    );
    let ready = u8::from(app.boards.takes_commits());
    head(
        "board_ready",
        "gauge",
        "Whether the board takes messages.",
        &format!("board_ready {ready}\n"),
    );
    fixed(
        StatusCode::OK,
        "text/plain; version=0.0.4; charset=utf-8",
        text,
    )
}

fn seconds(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
