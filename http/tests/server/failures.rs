//! A service that fails, or cannot be cloned: its client gets a 500, and its connection goes on.

use std::{
    convert::Infallible,
    future::Ready,
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tower_service::Service;
use weald_http::RequestBody;

use super::{Client, HELLO, run, start};

type Answer<E> = Result<Response<Full<Bytes>>, E>;

#[test]
fn an_error_of_the_service_is_answered_and_the_connection_goes_on() {
    run(2, async {
        let service = tower::service_fn(|request: Request<RequestBody>| async move {
            match request.uri().path() {
                "/" => Ok(Response::new(Full::new(Bytes::from("well.")))),
                "/late" => {
                    weald_kernel::yield_now().await;
                    Err(io::Error::other("too late"))
                }
                _ => Err(io::Error::other("no such thing")),
            }
        });
        let server = start(service, |server| server);
        let mut client = Client::connect(server.address).await;
        for path in ["/fails", "/late"] {
            client
                .send(&HELLO.replace(" / ", &format!(" {path} ")))
                .await;
            let head = client.until("\r\n\r\n").await;
            assert!(head.starts_with("HTTP/1.1 500"), "{head}");
            assert!(!head.contains("connection: close"), "{head}");
            client.send(HELLO).await;
            client.until("well.").await;
        }
        drop(client);
        assert!(server.end().await.not_stopped.is_empty());
    });
}

/// Otherwise the client would take the start of the next response for the rest of this one.
#[test]
fn a_response_whose_body_has_another_length_than_it_says_is_a_500() {
    run(2, async {
        let service = tower::service_fn(|request: Request<RequestBody>| {
            let (length, body) = match request.uri().path() {
                "/short" => ("9", "four"),
                "/long" => ("2", "four"),
                "/no-number" => ("four", "four"),
                "/sign" => ("+4", "four"),
                "/none" => ("4", ""),
                _ => ("5", "well."),
            };
            let response = Response::builder().header("content-length", length);
            std::future::ready(response.body(Full::new(Bytes::from(body))))
        });
        let server = start(service, |server| server);
        let mut client = Client::connect(server.address).await;
        for path in ["/short", "/long", "/no-number", "/sign", "/none"] {
            client
                .send(&HELLO.replace(" / ", &format!(" {path} ")))
                .await;
            let head = client.until("\r\n\r\n").await;
            assert!(head.starts_with("HTTP/1.1 500"), "{path}: {head}");
            client.send(HELLO).await;
            assert!(client.until("well.").await.starts_with("HTTP/1.1 200"));
        }
        // The answer to HEAD tells the length of a body that is not sent.
        client.send(&HELLO.replace("GET /", "HEAD /none")).await;
        let head = client.until("\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.contains("content-length: 4"), "{head}");
        drop(client);
        server.end().await;
    });
}

/// Is never ready, for one of two reasons.
#[derive(Clone)]
struct Unready(bool);

impl Service<Request<RequestBody>> for Unready {
    type Response = Response<Full<Bytes>>;
    type Error = io::Error;
    type Future = Ready<Answer<io::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if std::mem::replace(&mut self.0, false) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Err(io::Error::other("out of order")))
    }

    fn call(&mut self, _request: Request<RequestBody>) -> Self::Future {
        unreachable!("it is never ready")
    }
}

#[test]
fn a_service_that_is_never_ready_is_answered() {
    run(2, async {
        for is_late in [false, true] {
            let server = start(Unready(is_late), |server| server);
            let mut client = Client::connect(server.address).await;
            for _ in 0..2 {
                client.send(HELLO).await;
                let head = client.until("\r\n\r\n").await;
                assert!(head.starts_with("HTTP/1.1 500"), "{head}");
            }
            drop(client);
            server.end().await;
        }
    });
}

/// The service passes the error of a body on.
#[test]
fn a_malformed_body_is_the_clients_fault() {
    run(2, async {
        let service = tower::service_fn(|request: Request<RequestBody>| async {
            let body = request.into_body().collect().await?.to_bytes();
            Answer::<hyper::Error>::Ok(Response::new(Full::new(body)))
        });
        let server = start(service, |server| server);
        let client = Client::connect(server.address).await;
        let head = "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
        client.send(&format!("{head}5\r\nhello\r\nzz\r\n")).await;
        let answer = client.rest().await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
        server.end().await;
    });
}

/// Panics each time that it is cloned in vain.
struct Uncloneable {
    clones: Arc<AtomicUsize>,
    panics: fn(usize) -> bool,
}

impl Clone for Uncloneable {
    fn clone(&self) -> Uncloneable {
        let clone = self.clones.fetch_add(1, Ordering::SeqCst);
        assert!(!(self.panics)(clone), "the service cannot be cloned");
        Uncloneable {
            clones: self.clones.clone(),
            panics: self.panics,
        }
    }
}

impl Service<Request<RequestBody>> for Uncloneable {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Answer<Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: Request<RequestBody>) -> Self::Future {
        std::future::ready(Ok(Response::new(Full::new("alive.".into()))))
    }
}

/// The first clone is the connection's, and the next ones are those of its requests.
#[test]
fn a_panic_of_the_clone_for_a_request_is_answered() {
    run(2, async {
        let service = Uncloneable {
            clones: Arc::default(),
            panics: |clone| clone == 1,
        };
        let server = start(service, |server| server);
        let mut client = Client::connect(server.address).await;
        client.send(HELLO).await;
        let head = client.until("\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 500"), "{head}");
        client.send(HELLO).await;
        client.until("alive.").await;
        drop(client);
        server.end().await;
    });
}

#[test]
fn a_panic_of_the_clone_for_a_connection_ends_only_that_connection() {
    run(2, async {
        let service = Uncloneable {
            clones: Arc::default(),
            panics: |clone| clone == 0,
        };
        let server = start(service, |server| server);
        let client = Client::connect(server.address).await;
        client.send(HELLO).await;
        let answer = client.rest().await;
        assert!(answer.starts_with("HTTP/1.1 500"), "{answer}");
        let mut client = Client::connect(server.address).await;
        client.send(HELLO).await;
        client.until("alive.").await;
        drop(client);
        server.end().await;
    });
}
