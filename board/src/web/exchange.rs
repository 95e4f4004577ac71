//! A board that leaves as lines of JSON, and one that is made of such lines.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use http_body::{Body as _, Frame};

use crate::model::{By, Departure};

use super::answer::{Answer, fixed, json};
use super::api::values::BoardValue;
use super::ask::Ask;
use super::lines;
use super::problem::Problem;
use super::streams::Taken;

/// The most bytes of one line of a board that arrives. A message with the longest text has fewer, however it is
/// written.
const MAX_LINE: usize = 128 << 10;
/// How many bytes leave at once, or a message more.
const CHUNK: usize = 32 << 10;

/// `GET /b/{board}/export`, and `GET /api/boards/{board}/export`. A moderator also gets what was deleted, and whose
/// each message is.
pub(crate) async fn export(ask: Arc<Ask>) -> Answer {
    let of = ask.client.network();
    let place = ask.app.exports.take(of);
    let place = place.map_err(Problem::too_many_exports)?;
    let board = ask.board().await?;
    let past_place = match board.is_from_disk() {
        true => {
            let place = ask.app.past_exports.take(of);
            Some(place.map_err(Problem::too_many_exports)?)
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

/// `POST /api/import`, by a moderator: it brings names and times of others. The board is read as it comes, and may be
/// as large as the disk allows.
pub(crate) async fn import(ask: Arc<Ask>, body: Body) -> Answer {
    let who = ask.must_moderate_by_key()?;
    let boards = &ask.app.boards;
    let mut lines = Lines::of(body);
    let mut reader = lines::Reader::new(ask.now);
    let first = lines.next(&reader).await?.unwrap_or_default();
    let head = reader.head(&first).map_err(wrong)?;
    let texts = (head.title.as_str(), head.about.as_str());
    let mut arrival = boards.arrival(&head.name, texts).await?;
    let mut messages = 0_u64;
    while let Some(line) = lines.next(&reader).await? {
        if let Some(message) = reader.message(&line).map_err(wrong)? {
            arrival.put(&message).await?;
            messages += 1;
        }
    }
    let by = By {
        who: &who,
        why: &format!("It came with {messages} messages"),
        token: None,
    };
    arrival.finish_by(by).await?;
    tracing::info!(who, board = %head.name, messages, "a board was imported");
    let board = boards.board(&head.name)?;
    json(StatusCode::CREATED, &BoardValue::new(&board.info()))
}

fn wrong(sentence: String) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, sentence)
}

/// The lines of a body.
struct Lines {
    body: Body,
    /// What has come last, and what of the next line came before that.
    chunk: Bytes,
    begun: Vec<u8>,
    has_ended: bool,
}

impl Lines {
    fn of(body: Body) -> Self {
        Self {
            body,
            chunk: Bytes::new(),
            begun: Vec::new(),
            has_ended: false,
        }
    }

    /// The next line; `None` at the end.
    async fn next(&mut self, reader: &lines::Reader) -> Result<Option<Vec<u8>>, Problem> {
        loop {
            if let Some(end) = self.chunk.iter().position(|byte| *byte == b'\n') {
                let rest = self.chunk.split_to(end + 1);
                self.begun.extend_from_slice(&rest[..end]);
                return Ok(Some(std::mem::take(&mut self.begun)));
            }
            self.begun
                .extend_from_slice(&std::mem::take(&mut self.chunk));
            if self.begun.len() > MAX_LINE {
                return Err(wrong(reader.too_long(MAX_LINE)));
            }
            if self.has_ended {
                let last = std::mem::take(&mut self.begun);
                return Ok((!last.is_empty()).then_some(last));
            }
            match poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx)).await {
                None => self.has_ended = true,
                Some(Ok(frame)) => self.chunk = frame.into_data().unwrap_or_default(),
                Some(Err(_)) => {
                    let sentence = "The request broke off. Nothing was imported.";
                    return Err(Problem::new(StatusCode::BAD_REQUEST, sentence));
                }
            }
        }
    }
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
