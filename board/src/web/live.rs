//! Live updates as server-sent events: the id of each is the version that it made, so a reader that comes back with
//! `Last-Event-ID` misses nothing and sees nothing twice, even after a restart.
//!
//! Each board that somebody reads live has a process below one supervisor. It follows the board, and renders each event
//! once for all readers. If the process crashes, the streams end, and the readers come back with the last id that they
//! have. The process ends when the last reader goes away, or the board stops.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode};
use http_body::Frame;
use serde::Serialize;
use weald::forest::{NodeId, Version};
use weald::http::KeepAlive;
use weald::process::{ChildSpec, Inbox, Restart};
use weald::sync::channel::Receiver;
use weald::sync::{of_future, select};

use crate::model::{BoardError, BoardName, Boards, Follow, Happened};

use super::answer::{Answer, fixed};
use super::app::App;
use super::ask::Ask;
use super::broadcast::{Broadcast, Told};
use super::followed::{Followed, ReaderPermit};
use super::problem::Problem;
use super::streams::Taken;

/// A comment after this long without an event keeps proxies from closing the stream.
const SILENCE: Duration = Duration::from_secs(15);
/// The first bytes tell the reader that the stream is there.
const BEGINNING: &[u8] = b"retry: 2000\n\n";

#[derive(Serialize)]
struct EventValue {
    version: String,
    did: &'static str,
    messages: Vec<u64>,
}

/// `GET /b/{board}/live`, and `GET /api/boards/{board}/events`
pub(crate) async fn events(ask: Arc<Ask>) -> Answer {
    let name = ask.board_name()?;
    let boards = &ask.app.boards;
    let newest = boards.newest(&name)?;
    let stream = ask.app.streams.take(ask.client.network());
    let stream = stream.map_err(|_| Problem::too_many_readers())?;
    let (last, catching) = match since(&ask)? {
        // If the version does not exist, this is an error. Events that had to be read from the disk come
        // first.
        Some(since) => {
            let _look = ask.look()?;
            let follow = boards.follow(&name, Some(since)).await?;
            let is_behind = follow.is_behind();
            (since, is_behind.then(|| Box::pin(next(follow)) as Catching))
        }
        None => (newest, None),
    };
    let permit = ask.app.live.permit(ask.app.config.most_readers);
    let permit = permit.ok_or_else(Problem::overloaded)?;
    let followed = followed(&ask.app, &name).await?;
    let events = Events {
        place: followed.broadcast.join(),
        followed,
        has_begun: false,
        last,
        catching,
        boards: boards.clone(),
        _permit: permit,
        _stream: stream,
    };
    let body = Body::new(KeepAlive::new(events, SILENCE));
    let mut response = fixed(StatusCode::OK, "text/event-stream", body);
    // A proxy must pass on each event at once.
    response
        .headers_mut()
        .insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// The version after which the reader continues.
fn since(ask: &Ask) -> Result<Option<Version>, Problem> {
    let since = ask.asked("since")?.unwrap_or_default();
    let last = match ask.headers.get("last-event-id") {
        Some(last) => Some(last.to_str().map_err(|_| {
            Problem::new(
                StatusCode::BAD_REQUEST,
                "Last-Event-ID is no version; the id of an event is one.",
            )
        })?),
        None => None,
    };
    let last = match last.filter(|last| !last.is_empty()) {
        Some(last) => last,
        None => since,
    };
    match last {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| {
            let sentence = format!("“{text}” is no version; the id of an event is one.");
            Problem::new(StatusCode::BAD_REQUEST, sentence)
        }),
    }
}

/// What the readers of a board share. The first one starts its process, and the others wait for it. If it could not
/// follow the board, one of them tries again, and so learns why.
async fn followed(app: &App, name: &BoardName) -> Result<Arc<Followed>, Problem> {
    let (followed, read) = loop {
        let (followed, read) = app.live.board(name, app.boards.newest(name)?);
        match read {
            Some(read) => break (followed, read),
            None if followed.broadcast.has_begun().await => return Ok(followed),
            None => {}
        }
    };
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let ending = Ending(followed.broadcast.clone());
    // It is followed before its streams begin: they tell what happens from then on, even that the board is deleted.
    let newest = followed.broadcast.newest();
    let follow = app.boards.follow(name, Some(newest)).await?;
    let mut parts = Some((app.boards.clone(), name.clone(), follow, read, ending));
    let id = format!("live updates of {name}, {number}");
    let teller = ChildSpec::process(id, move |_: Inbox<()>| {
        let parts = parts.take();
        async move {
            if let Some((boards, name, follow, read, ending)) = parts {
                // A stream that ends lets its reader ask again, and then learn why.
                let _ended = tell(follow, read, &ending.0, || boards.newest(&name)).await;
            }
        }
    });
    let started = app
        .readers
        .start_child(teller.restart(Restart::Temporary))
        .await;
    started.map_err(|_| Problem::overloaded())?;
    followed.broadcast.begin();
    Ok(followed)
}

/// The life of a board's process, until nobody reads any more. `newest`: an error once the board is deleted.
async fn tell(
    mut follow: Follow,
    read: Receiver<()>,
    broadcast: &Broadcast,
    newest: impl Fn() -> Result<Version, BoardError>,
) -> Result<(), BoardError> {
    loop {
        let happened = select! {
            happened = of_future(follow.next()) => happened?,
            _ = read.receive() => return Ok(()),
        };
        broadcast.tell(happened.version, event(&happened));
        // The readers of a board that a moderator has just deleted come back, and learn that.
        newest()?;
    }
}

/// Ends the streams of a board, even if its process crashes, is killed, or never begins.
struct Ending(Arc<Broadcast>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end();
    }
}

fn event(happened: &Happened) -> Bytes {
    let value = EventValue {
        version: happened.version.to_string(),
        did: happened.did,
        messages: happened.messages.iter().copied().map(NodeId::get).collect(),
    };
    let data = serde_json::to_string(&value).unwrap_or_default();
    Bytes::from(format!(
        "id: {}\nevent: change\ndata: {data}\n\n",
        happened.version
    ))
}

/// The events of one reader as a body.
struct Events {
    followed: Arc<Followed>,
    place: usize,
    has_begun: bool,
    /// The version that the reader was told last.
    last: Version,
    /// While the reader is so far behind that it follows the board on its own.
    catching: Option<Catching>,
    boards: Boards,
    _permit: ReaderPermit,
    _stream: Taken,
}

type Catching = Pin<Box<dyn Future<Output = Result<(Follow, Happened), BoardError>> + Send>>;

impl Events {
    /// From memory only: a reader that is slower than that comes back with its last id, and waits for its turn among
    /// the others that need the disk.
    fn catch_up(&self) -> Catching {
        let (boards, name) = (self.boards.clone(), self.followed.name.clone());
        let last = self.last;
        Box::pin(async move { next(boards.follow_recent(&name, last).await?).await })
    }

    fn poll_told(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let broadcast = &self.followed.broadcast;
        loop {
            if let Some(catching) = &mut self.catching {
                let caught = ready!(catching.as_mut().poll(cx));
                self.catching = None;
                let Ok((follow, happened)) = caught else {
                    return Poll::Ready(None);
                };
                self.last = happened.version;
                if !broadcast.has_all_after(self.last) {
                    self.catching = Some(Box::pin(next(follow)));
                }
                return Poll::Ready(Some(event(&happened)));
            }
            match broadcast.read(self.place, self.last, cx.waker()) {
                Told::Events(last, events) => {
                    self.last = last;
                    return Poll::Ready(Some(events));
                }
                Told::Nothing => return Poll::Pending,
                Told::Over => return Poll::Ready(None),
                Told::Gone => self.catching = Some(self.catch_up()),
            }
        }
    }
}

async fn next(mut follow: Follow) -> Result<(Follow, Happened), BoardError> {
    let happened = follow.next().await?;
    Ok((follow, happened))
}

impl http_body::Body for Events {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if !std::mem::replace(&mut self.has_begun, true) {
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(BEGINNING)))));
        }
        let told = ready!(self.poll_told(cx));
        Poll::Ready(told.map(|bytes| Ok(Frame::data(bytes))))
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.followed.broadcast.leave(self.place);
    }
}
