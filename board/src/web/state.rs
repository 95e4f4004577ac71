//! The questions of the people who run the board: is it alive, is it ready.

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};

use super::answer::fixed;
use super::app::App;

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
            "read-only: the disk is full, the system refuses a file, or the journal has failed\n",
        ),
    }
}
