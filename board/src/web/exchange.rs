//! A board that leaves as lines of JSON, and one that is made of such lines.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use http_body::Frame;

use crate::model::Departure;

use super::answer::{Answer, fixed, json};
use super::api::values::BoardValue;
use super::ask::Ask;
use super::lines;
use super::problem::Problem;
use super::streams::Taken;

/// The most bytes of a board that arrives.
pub(crate) const MAX_IMPORT: usize = 64 << 20;
/// How many bytes leave at once, or a message more.
const CHUNK: usize = 32 << 10;

/// `GET /b/{board}/export`, and `GET /api/boards/{board}/export`. A moderator also gets what was deleted, and whose
/// each message is.
pub(crate) async fn export(ask: Arc<Ask>) -> Answer {
    let of = ask.client.network();
    let place = ask.app.exports.take(of);
    let place = place.ok_or_else(Problem::too_many_exports)?;
    let board = ask.board().await?;
    let past_place = match board.is_from_disk() {
        true => {
            let place = ask.app.past_exports.take(of);
            Some(place.ok_or_else(Problem::too_many_exports)?)
        }
        false => None,
    };
    let is_moderator = ask.is_moderator();
    let disposition = format!("attachment; filename=\"{}.jsonl\"", board.name());
    let leaving = Leaving {
        head: Some(lines::head(&board)),
        messages: board.leave(is_moderator),
        _places: (place, past_place),
    };
    let mut response = fixed(StatusCode::OK, "application/jsonl", Body::new(leaving));
    if let Ok(value) = HeaderValue::from_str(&disposition) {
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
    Ok(response)
}

/// `POST /api/import`, by a moderator: it brings names and times of others.
pub(crate) async fn import(ask: Arc<Ask>) -> Answer {
    let who = ask.must_moderate_by_key()?;
    let arriving = lines::read(&ask.body, ask.now).map_err(|sentence| {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        Problem::new(status, sentence)
    })?;
    let texts = (arriving.title.as_str(), arriving.about.as_str());
    let boards = &ask.app.boards;
    boards
        .arrive(&arriving.name, texts, &arriving.messages)
        .await?;
    tracing::info!(who, board = %arriving.name, messages = arriving.messages.len(), "a board was imported");
    let board = boards.board(&arriving.name)?;
    json(StatusCode::CREATED, &BoardValue::new(&board.info()))
}

/// A board as a body, made as it is sent. However slowly it is read, it keeps its places: it keeps a version of the
/// board in memory, or even all boards of an earlier moment.
struct Leaving {
    head: Option<Vec<u8>>,
    messages: Departure,
    _places: (Taken, Option<Taken>),
}

impl http_body::Body for Leaving {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let mut bytes = self.head.take().unwrap_or_default();
        while bytes.len() < CHUNK
            && let Some(message) = self.messages.next()
        {
            bytes.extend(lines::message(&message));
        }
        Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(Bytes::from(bytes)))))
    }
}
