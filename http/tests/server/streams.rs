//! Bodies that an axum router produces and reads piece by piece: no body is collected or produced ahead of time.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
};

use axum::{Router, body::Body, extract::Request, http::header, response::Response, routing::post};
use bytes::Bytes;
use futures_util::{Stream, stream};
use weald_sync::channel;

use super::{Client, HELLO, run, start};
use crate::tools::{Drops, Random, until_yielding};

#[test]
fn a_body_is_echoed_as_it_arrives() {
    run(2, async {
        let echo = |request: Request| async {
            Response::new(Body::from_stream(request.into_body().into_data_stream()))
        };
        let server = start(Router::new().route("/", post(echo)), |server| server);
        let mut client = Client::connect(server.address).await;
        client
            .send("POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
            .await;
        client.until("transfer-encoding: chunked").await;
        for word in ["first", "other", "third"] {
            client.send(&format!("5\r\n{word}\r\n")).await;
            client.until(&format!("5\r\n{word}\r\n")).await;
        }
        client.send("0\r\n\r\n").await;
        client.until("0\r\n\r\n").await;
        drop(client);
        assert!(server.end().await.not_stopped.is_empty());
    });
}

#[test]
fn each_piece_is_sent_when_it_is_ready() {
    run(2, async {
        let (sender, receiver) = channel::unbounded::<&'static str>();
        let receiver = Arc::new(receiver);
        let pieces = move || {
            let receiver = receiver.clone();
            let pieces = stream::unfold(receiver, |receiver| async move {
                let piece = receiver.receive().await.ok()?;
                Some((Ok::<_, Infallible>(Bytes::from(piece)), receiver))
            });
            async { Response::new(Body::from_stream(pieces)) }
        };
        let server = start(Router::new().fallback(pieces), |server| server);
        let mut client = Client::connect(server.address).await;
        client.send(HELLO).await;
        for piece in ["one", "and", "two"] {
            sender.try_send(piece).unwrap();
            client.until(piece).await;
        }
        drop(sender);
        client.until("0\r\n\r\n").await;
        drop(client);
        server.end().await;
    });
}

/// An endless stream of pieces, which counts them until it is dropped.
fn endless(
    made: Arc<AtomicUsize>,
    drops: &Drops,
) -> impl Stream<Item = Result<Bytes, Infallible>> + use<> {
    stream::unfold(drops.token(), move |token| {
        made.fetch_add(1, Ordering::Relaxed);
        async { Some((Ok(Bytes::from(vec![b'x'; 64 << 10])), token)) }
    })
}

#[test]
fn nothing_is_produced_for_a_client_that_does_not_read() {
    run(2, async {
        let (made, drops) = (Arc::new(AtomicUsize::new(0)), Drops::default());
        let (made_there, drops_there) = (made.clone(), drops.clone());
        let pieces = move || {
            let pieces = endless(made_there.clone(), &drops_there);
            async { Response::new(Body::from_stream(pieces)) }
        };
        let server = start(Router::new().fallback(pieces), |server| server);
        let client = Client::connect(server.address).await;
        client.send(HELLO).await;
        client.stream.readable().await.unwrap();
        // The system's buffers fill up, and then no more pieces are produced.
        let mut before = 0;
        while made.swap(0, Ordering::Relaxed) > 0 || before == 0 {
            before += 1;
            weald_kernel::sleep(std::time::Duration::from_millis(50)).await;
        }
        assert_eq!(
            drops.count(),
            0,
            "the stream continues when the client reads"
        );
        drop(client);
        until_yielding(|| drops.count() == 1).await;
        assert!(server.end().await.not_stopped.is_empty());
    });
}

/// Each byte of the body tells its place, and the reader pauses again and again. The frames are of many sizes: some
/// leave together, some alone, some in pieces.
#[test]
fn frames_of_all_sizes_reach_a_reader_that_pauses() {
    const ALL: usize = 12 << 20;
    let byte = |at: usize| u8::try_from(at % 251).unwrap();
    run(2, async {
        let frames = move || {
            let mut random = Random(11);
            let mut at = 0;
            let frames = stream::poll_fn(move |cx| {
                let most = [100, 15_000, 40_000, 300_000][random.below(4)];
                let length = (1 + random.below(most)).min(ALL - at);
                if length == 0 {
                    return Poll::Ready(None);
                }
                if random.below(8) == 0 {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                let frame: Vec<u8> = (at..at + length).map(byte).collect();
                at += length;
                Poll::Ready(Some(Ok::<_, Infallible>(Bytes::from(frame))))
            });
            let length = (header::CONTENT_LENGTH, ALL.to_string());
            async { ([length], Body::from_stream(frames)) }
        };
        let server = start(Router::new().fallback(frames), |server| server);
        let mut client = Client::connect(server.address).await;
        client.send(HELLO).await;
        client.until("\r\n\r\n").await;
        let mut body = std::mem::take(&mut client.read);
        let mut buffer = vec![0; 100_000];
        while body.len() < ALL {
            if body.len() % 16 == 0 {
                weald_kernel::sleep(std::time::Duration::from_millis(1)).await;
            }
            let count = client.stream.read(&mut buffer).await.unwrap();
            assert!(count > 0, "the end came after {} bytes", body.len());
            body.extend_from_slice(&buffer[..count]);
        }
        assert_eq!(body.len(), ALL);
        let wrong = (0..ALL).find(|at| body[*at] != byte(*at));
        assert_eq!(wrong, None);
        // Nothing is left, and the connection goes on.
        client.send(&HELLO.replace("GET", "HEAD")).await;
        let head = client.until("\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        drop(client);
        assert!(server.end().await.not_stopped.is_empty());
    });
}
