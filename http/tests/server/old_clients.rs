//! A client of HTTP/1.0 takes the end of the connection for that of a body whose length was not told. So any other end
//! is a reset.

use std::{convert::Infallible, io, time::Duration};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use weald_http::RequestBody;

use super::{Client, Running, run, start};
use crate::tools::{Drops, until_yielding};

type Frames<D> = StreamBody<stream::BoxStream<'static, Result<Frame<D>, io::Error>>>;

fn body<D: Send>(frames: impl Stream<Item = D> + Send + 'static) -> Frames<D> {
    StreamBody::new(frames.map(|data| Ok(Frame::data(data))).boxed())
}

const FRAME: usize = 16 << 10;
const FRAMES: usize = 256;

fn frame() -> Bytes {
    Bytes::from_static(&[b'x'; FRAME])
}

/// Answers with a long body, and with another one that does not end. Both are counted when they are dropped.
fn long(drops: &Drops) -> impl weald_http::Serve + use<> {
    let drops = drops.clone();
    tower::service_fn(move |request: Request<RequestBody>| {
        let token = drops.token();
        let frames = stream::repeat_with(frame).take(FRAMES);
        let body = match request.uri().path() {
            "/ends" => body(frames),
            "/hangs" => body(stream::once(async { frame() }).chain(stream::pending())),
            _ => body(stream::repeat_with(frame)),
        };
        let counted = StreamBody::new(
            body.inspect(move |_frame| {
                let _kept = &token;
            })
            .boxed(),
        );
        std::future::ready(Ok::<_, Infallible>(Response::new(counted)))
    })
}

async fn ask(server: &Running, path: &str) -> Client {
    let client = Client::connect(server.address).await;
    client.send(&format!("GET {path} HTTP/1.0\r\n\r\n")).await;
    client
}

/// Everything up to the end, and what that is.
async fn all(client: &Client) -> (Vec<u8>, io::Result<()>) {
    let (mut buffer, mut all) = (vec![0; FRAME], Vec::new());
    loop {
        match client.stream.read(&mut buffer).await {
            Ok(0) => return (all, Ok(())),
            Ok(count) => all.extend_from_slice(&buffer[..count]),
            Err(error) => return (all, Err(error)),
        }
    }
}

async fn is_reset(client: &Client) {
    let (_answer, end) = all(client).await;
    let kind = end.map_err(|error| error.kind());
    assert_eq!(kind, Err(io::ErrorKind::ConnectionReset));
}

#[test]
fn a_whole_body_ends_with_the_connection() {
    run(2, async {
        let server = start(long(&Drops::default()), |server| server);
        let (answer, end) = all(&ask(&server, "/ends").await).await;
        end.unwrap();
        assert!(answer.ends_with(&frame()));
        assert!(answer.len() > FRAMES * FRAME);
        server.end().await;
    });
}

#[test]
fn a_client_that_reads_too_slowly_is_reset() {
    run(2, async {
        let drops = Drops::default();
        let server = start(long(&drops), |server| {
            server.write_timeout(Duration::from_millis(20))
        });
        let client = ask(&server, "/endless").await;
        until_yielding(|| drops.count() == 1).await;
        is_reset(&client).await;
        server.end().await;
    });
}

#[test]
fn a_client_whose_body_does_not_end_in_time_is_reset_with_the_server() {
    run(2, async {
        let server = start(long(&Drops::default()), |server| {
            server.drain_for(Duration::from_millis(20))
        });
        let client = ask(&server, "/hangs").await;
        // Its body has begun.
        client.stream.readable().await.unwrap();
        let not_stopped = server.end().await.not_stopped;
        assert_eq!(not_stopped.len(), 1, "{not_stopped:?}");
        is_reset(&client).await;
    });
}

/// Bytes that panic when hyper looks at them.
struct Breaks;

impl bytes::Buf for Breaks {
    fn remaining(&self) -> usize {
        1
    }

    fn chunk(&self) -> &[u8] {
        panic!("the bytes break")
    }

    fn advance(&mut self, _count: usize) {
        panic!("the bytes break")
    }
}

#[test]
fn a_client_whose_body_panics_within_hyper_is_reset() {
    run(2, async {
        let service = tower::service_fn(|_request: Request<RequestBody>| {
            let body = body(stream::repeat_with(|| Breaks));
            std::future::ready(Ok::<_, Infallible>(Response::new(body)))
        });
        let server = start(service, |server| server);
        is_reset(&ask(&server, "/").await).await;
        server.end().await;
    });
}
