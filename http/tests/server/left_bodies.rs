//! Bodies that a service leaves unread: the answer says whether the connection goes on.

use std::{
    convert::Infallible,
    future::{Future, Ready, ready},
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tower_service::Service;
use weald_http::RequestBody;

use super::{Client, HELLO, run, start};

async fn leave(request: Request<RequestBody>) -> Result<Response<Full<Bytes>>, Infallible> {
    match request.uri().path() {
        "/some" => {
            let frame = request.into_body().frame().await;
            frame.unwrap().unwrap();
        }
        "/panics" => panic!("the service panics"),
        "/late" => {
            drop(request);
            weald_kernel::yield_now().await;
        }
        _ => {}
    }
    Ok(Response::new(Full::new("left.".into())))
}

const CLOSE: &str = "connection: close";

#[test]
fn an_answer_before_whose_end_the_body_has_not_arrived_says_that_it_is_the_last() {
    run(2, async {
        let server = start(tower::service_fn(leave), |server| server);
        for path in ["/", "/some", "/late", "/panics"] {
            for start in [
                "content-length: 5\r\n\r\nhe",
                "transfer-encoding: chunked\r\n\r\n2\r\nhe\r\n",
            ] {
                let mut client = Client::connect(server.address).await;
                let request = format!("POST {path} HTTP/1.1\r\nhost: x\r\n{start}");
                client.send(&request).await;
                let head = client.until("\r\n\r\n").await;
                assert!(head.contains(CLOSE), "{request:?}: {head:?}");
                client.rest().await;
            }
        }
        let mut client = Client::connect(server.address).await;
        let expects = "content-length: 5\r\nexpect: 100-continue\r\n\r\n";
        let request = format!("POST / HTTP/1.1\r\nhost: x\r\n{expects}");
        client.send(&request).await;
        let head = client.until("\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.contains(CLOSE), "{head:?}");
        drop(client);
        server.end().await;
    });
}

#[test]
fn a_connection_whose_body_has_arrived_goes_on() {
    run(2, async {
        let server = start(tower::service_fn(leave), |server| server);
        let mut client = Client::connect(server.address).await;
        for path in ["/", "/some", "/late", "/panics", "/"] {
            let rest = "content-length: 5\r\n\r\nhello";
            let request = format!("POST {path} HTTP/1.1\r\nhost: x\r\n{rest}");
            client.send(&request).await;
            let head = client.until("\r\n\r\n").await;
            assert!(!head.contains(CLOSE), "{request:?}: {head:?}");
            client.send(HELLO).await;
            client.until("HTTP/1.1 200").await;
            client.until("left.").await;
        }
        drop(client);
        assert!(server.end().await.not_stopped.is_empty());
    });
}

/// The service has not looked at it.
#[test]
fn the_answer_to_a_malformed_body_says_that_the_connection_closes() {
    run(2, async {
        let server = start(tower::service_fn(leave), |server| server);
        for path in ["/", "/some", "/late", "/panics"] {
            let client = Client::connect(server.address).await;
            let rest = "transfer-encoding: chunked\r\n\r\nzz\r\n";
            let request = format!("POST {path} HTTP/1.1\r\nhost: x\r\n{rest}");
            client.send(&request).await;
            let answer = client.rest().await;
            assert!(answer.contains(CLOSE), "{request:?}: {answer:?}");
        }
        server.end().await;
    });
}

/// Answers, and still has the request, as a time-out around a service does.
struct Keeps(#[expect(dead_code, reason = "it is only kept")] Request<RequestBody>);

impl Future for Keeps {
    type Output = Result<Response<Full<Bytes>>, Infallible>;

    fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(Ok(Response::new(Full::new("kept.".into()))))
    }
}

/// It is ready for no request, and says so late.
#[derive(Clone, Default)]
struct NeverReady {
    has_waited: bool,
}

impl Service<Request<RequestBody>> for NeverReady {
    type Response = Response<Full<Bytes>>;
    type Error = &'static str;
    type Future = Ready<Result<Response<Full<Bytes>>, &'static str>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        if std::mem::replace(&mut self.has_waited, true) {
            return Poll::Ready(Err("it is never ready"));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn call(&mut self, _request: Request<RequestBody>) -> Self::Future {
        ready(Err("it was never ready"))
    }
}

const BEGUN: &str = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhe";

#[test]
fn a_service_that_answers_before_it_drops_the_body_says_that_the_answer_is_the_last() {
    run(2, async {
        let server = start(tower::service_fn(Keeps), |server| server);
        let mut client = Client::connect(server.address).await;
        client.send(BEGUN).await;
        let head = client.until("\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head:?}");
        assert!(head.contains(CLOSE), "{head:?}");
        client.rest().await;
        server.end().await;
    });
}

#[test]
fn a_service_that_is_never_ready_for_a_body_says_that_the_answer_is_the_last() {
    run(2, async {
        let server = start(NeverReady::default(), |server| server);
        let mut client = Client::connect(server.address).await;
        client.send(BEGUN).await;
        let head = client.until("\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 500"), "{head:?}");
        assert!(head.contains(CLOSE), "{head:?}");
        client.rest().await;
        server.end().await;
    });
}

/// It has sent its last answer, and its close would be a reset for a client that sends on.
#[test]
fn a_connection_that_lingers_is_not_reset_when_the_server_ends() {
    run(2, async {
        let server = start(tower::service_fn(Keeps), |server| server);
        let mut client = Client::connect(server.address).await;
        client.send(BEGUN).await;
        client.until("\r\n\r\n").await;
        assert!(server.end().await.not_stopped.is_empty());
        for _ in 0..100 {
            client.send("l").await;
            weald_kernel::yield_now().await;
        }
    });
}
