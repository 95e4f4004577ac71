//! Idle streams of server-sent events are kept alive, and readers that do not read stop nobody.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    response::{IntoResponse, Response, Sse, sse::Event},
    routing::get,
};
use futures_util::stream;
use weald_http::{KeepAlive, MinRate};

use super::{Client, HELLO, run, start};
use crate::tools::until_yielding;

async fn events() -> Response {
    let events = stream::unfold(0, |number| async move {
        match number {
            0 => Some((Ok::<_, Infallible>(Event::default().data("first")), 1)),
            _ => std::future::pending().await,
        }
    });
    Sse::new(events)
        .into_response()
        .map(|body| Body::new(KeepAlive::new(body, Duration::from_millis(20))))
}

#[test]
fn comments_are_sent_while_there_are_no_events() {
    run(2, async {
        let router = Router::new().route("/events", get(events));
        let server = start(router, |server| server.drain_for(Duration::from_millis(10)));
        let mut client = Client::connect(server.address).await;
        client.send("GET /events HTTP/1.1\r\nhost: x\r\n\r\n").await;
        client.until("data: first").await;
        for _ in 0..3 {
            client.until(":\n\n").await;
        }
        assert_eq!(
            server.end().await.not_stopped.len(),
            1,
            "a stream without an end is stopped"
        );
    });
}

/// On one worker, which the streams share with everybody else: they never run dry.
#[test]
fn readers_that_do_not_read_stop_nobody_and_miss_nothing() {
    const READERS: usize = 8;
    const FOREVER: Duration = Duration::from_secs(1_000_000);
    run(1, async {
        let made = Arc::new(AtomicUsize::new(0));
        let counted = made.clone();
        let endless = move || {
            let counted = counted.clone();
            let events = stream::unfold(0, move |number| {
                counted.fetch_add(1, Ordering::Relaxed);
                let text = format!("{number} {}", "x".repeat(4 << 10));
                std::future::ready(Some((
                    Ok::<_, Infallible>(Event::default().data(text)),
                    number + 1,
                )))
            });
            async { Sse::new(events) }
        };
        let router = Router::new()
            .route("/events", get(endless))
            .route("/", get(async || "hello."));
        let server = start(router, |server| {
            let server = server.min_write_rate(MinRate::new(0, FOREVER));
            server
                .write_timeout(FOREVER)
                .drain_for(Duration::from_millis(10))
        });
        let mut readers = Vec::new();
        for _ in 0..READERS {
            let reader = Client::connect(server.address).await;
            reader.send("GET /events HTTP/1.1\r\nhost: x\r\n\r\n").await;
            readers.push(reader);
        }
        until_yielding(|| made.load(Ordering::Relaxed) >= 10 * READERS).await;
        let mut other = Client::connect(server.address).await;
        for _ in 0..100 {
            other.send(HELLO).await;
            other.until("hello.").await;
        }
        for reader in &mut readers {
            for number in 0..50 {
                reader.until(&format!("data: {number} ")).await;
            }
        }
        let not_stopped = server.end().await.not_stopped;
        assert_eq!(not_stopped.len(), READERS, "{not_stopped:?}");
    });
}
