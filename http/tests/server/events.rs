//! Idle streams of server-sent events are kept alive.

use std::{convert::Infallible, time::Duration};

use axum::{
    Router,
    body::Body,
    response::{IntoResponse, Response, Sse, sse::Event},
    routing::get,
};
use futures_util::stream;
use weald_http::KeepAlive;

use super::{Client, run, start};

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
