//! Live updates as server-sent events: the id of each is the version that it made, so a reader that comes back with
//! `Last-Event-ID` misses nothing and sees nothing twice, also after a restart.
//!
//! Each reader is a process of its own below one supervisor. If it crashes, its stream ends, and the reader comes back; if
//! the reader goes away, or the board stops, it ends.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode};
use http_body::Frame;
use serde::Serialize;
use weald::forest::{NodeId, Version};
use weald::http::KeepAlive;
use weald::process::{ChildSpec, Inbox, Restart};
use weald::sync::channel::{Receiver, Sender, bounded};
use weald::sync::{of_future, select};

use crate::model::{Follow, Happened};

use super::answer::{Answer, fixed};
use super::ask::Ask;
use super::problem::Problem;

/// How many events may wait for a slow reader in memory; the others wait where they are kept.
const WAITING: usize = 16;
/// A comment after so long without an event keeps proxies from closing the stream.
const SILENCE: Duration = Duration::from_secs(15);

#[derive(Serialize)]
struct EventValue {
    version: String,
    did: &'static str,
    messages: Vec<u64>,
}

/// `GET /b/{board}/live`, and `GET /api/boards/{board}/events`
pub(crate) async fn events(ask: Arc<Ask>) -> Answer {
    let name = ask.board_name()?;
    let follow = ask.app.boards.follow(&name, since(&ask)?).await?;
    let (sender, receiver) = bounded(WAITING);
    // A reader that goes away drops this end.
    let (alive, gone) = bounded(1);
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let id = format!(
        "reader {} of {name}",
        NUMBER.fetch_add(1, Ordering::Relaxed)
    );
    let mut parts = Some((follow, sender, gone));
    let reader = ChildSpec::process(id, move |_: Inbox<()>| {
        let parts = parts.take();
        async move {
            if let Some((follow, sender, gone)) = parts {
                tell(follow, sender, gone).await;
            }
        }
    });
    let started = ask
        .app
        .readers
        .start_child(reader.restart(Restart::Temporary))
        .await;
    started.map_err(|_| Problem::overloaded())?;
    let events = Events {
        receiver: Arc::new(receiver),
        next: None,
        _alive: alive,
    };
    let body = Body::new(KeepAlive::new(events, SILENCE));
    let mut response = fixed(StatusCode::OK, "text/event-stream", body);
    // A proxy must pass on each event at once.
    response
        .headers_mut()
        .insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// The version after which the reader goes on.
fn since(ask: &Ask) -> Result<Option<Version>, Problem> {
    let last = ask
        .headers
        .get("last-event-id")
        .and_then(|last| last.to_str().ok());
    match last
        .filter(|last| !last.is_empty())
        .unwrap_or(ask.query.text("since"))
    {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| {
            let sentence = format!("“{text}” is no version; the id of an event is one.");
            Problem::new(StatusCode::BAD_REQUEST, sentence)
        }),
    }
}

/// The life of a reader's process.
async fn tell(mut follow: Follow, sender: Sender<Bytes>, gone: Receiver<()>) {
    // The first bytes tell the reader that the stream is there.
    if sender
        .send(Bytes::from_static(b"retry: 2000\n\n"))
        .await
        .is_err()
    {
        return;
    }
    loop {
        let happened = select! {
            happened = of_future(follow.next()) => happened,
            _ = gone.receive() => return,
        };
        // The end of the stream lets the reader ask again, and then learn why.
        let Ok(happened) = happened else { return };
        if sender.send(event(&happened)).await.is_err() {
            return;
        }
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
    receiver: Arc<Receiver<Bytes>>,
    next: Option<Pin<Box<dyn Future<Output = Option<Bytes>> + Send>>>,
    _alive: Sender<()>,
}

impl http_body::Body for Events {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let receiver = Arc::clone(&self.receiver);
        let next = self
            .next
            .get_or_insert_with(|| Box::pin(async move { receiver.receive().await.ok() }));
        let received = std::task::ready!(next.as_mut().poll(cx));
        self.next = None;
        Poll::Ready(received.map(|bytes| Ok(Frame::data(bytes))))
    }
}
