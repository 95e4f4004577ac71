//! A service that fails, or cannot be cloned: its client gets a 500, and its connection goes on.

use std::{
    convert::Infallible,
    future::Ready,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::stream::{self, Iter};
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full, StreamBody};
use tower_service::Service;
use weald_http::RequestBody;

use super::{Client, HELLO, run, start};
use crate::reports::{collect_reports, flushed, reports};

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
        for path in ["/none", "/short"] {
            let request = HELLO.replace("GET / ", &format!("HEAD {path} "));
            client.send(&request).await;
            let head = client.until("\r\n\r\n").await;
            assert!(head.starts_with("HTTP/1.1 200"), "{path}: {head}");
            let length = if path == "/none" { "4" } else { "9" };
            let told = format!("content-length: {length}");
            assert!(head.contains(&told), "{path}: {head}");
        }
        client.send(&HELLO.replace("GET / ", "HEAD /sign ")).await;
        let head = client.until("\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 500"), "{head}");
        drop(client);
        server.end().await;
    });
}

type Frames = StreamBody<Iter<std::vec::IntoIter<io::Result<Frame<Bytes>>>>>;

/// A body whose length hyper does not know.
fn frames(frames: &[&'static str]) -> Frames {
    let frames = frames.iter().map(|text| match *text {
        "error" => Err(io::Error::other("the disk is gone")),
        text => Ok(Frame::data(Bytes::from(text))),
    });
    StreamBody::new(stream::iter(frames.collect::<Vec<_>>()))
}

/// Hyper would close the connection without an answer.
#[test]
fn a_head_that_hyper_would_not_send_is_a_500() {
    const BAD: &[(&str, &[(&str, &str)])] = &[
        ("/no-number", &[("content-length", "four")]),
        ("/sign", &[("content-length", "+4")]),
        ("/two", &[("content-length", "4"), ("content-length", "5")]),
        (
            "/both",
            &[("content-length", "4"), ("transfer-encoding", "chunked")],
        ),
        ("/100", &[]),
        ("/199", &[]),
    ];
    run(2, async {
        collect_reports();
        let service = tower::service_fn(|request: Request<RequestBody>| {
            let path = request.uri().path();
            let status = path[1..].parse::<u16>().unwrap_or(200);
            let mut response = Response::builder().status(status);
            let bad = BAD.iter().find(|(bad, _)| *bad == path);
            for (name, value) in bad.map_or(&[][..], |(_, headers)| headers) {
                response = response.header(*name, *value);
            }
            std::future::ready(response.body(frames(&["well."])))
        });
        let server = start(service, |server| server);
        let mut client = Client::connect(server.address).await;
        let peer = client.stream.local_addr().unwrap();
        for (path, _) in BAD {
            client
                .send(&HELLO.replace(" / ", &format!(" {path} ")))
                .await;
            let head = client.until("\r\n\r\n").await;
            assert!(head.starts_with("HTTP/1.1 500"), "{path}: {head}");
            client.send(HELLO).await;
            let answer = client.until("0\r\n\r\n").await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
            flushed();
            let told = reports("weald::service", &format!("`GET {path} from {peer}`"));
            assert_eq!(told.len(), 1, "{path}: {told:?}");
        }
        drop(client);
        server.end().await;
    });
}

/// The service gives a body where none is sent, and a version that HTTP/1.1 cannot write.
#[test]
fn what_is_not_sent_does_not_end_the_connection() {
    run(2, async {
        collect_reports();
        let service = tower::service_fn(|request: Request<RequestBody>| {
            let status = request.uri().path()[1..].parse::<u16>().unwrap_or(200);
            let response = Response::builder()
                .version(http::Version::HTTP_3)
                .status(status);
            let response = match status {
                204 | 205 | 304 => response.header("content-length", "5"),
                _ => response,
            };
            let body = match request.uri().path() {
                "/empty" => "",
                _ => "well",
            };
            std::future::ready(response.body(Full::new(Bytes::from(body))))
        });
        let server = start(service, |server| server);
        let mut client = Client::connect(server.address).await;
        let peer = client.stream.local_addr().unwrap();
        let told = |request: &str| {
            flushed();
            reports("weald::service", &format!("`{request} from {peer}`"))
        };
        // The first may have a body in the answer to GET, whose length is not known; the second never has.
        for path in ["/empty", "/204", "/205"] {
            let request = HELLO.replace("GET / ", &format!("HEAD {path} "));
            client.send(&request).await;
            let head = client.until("\r\n\r\n").await;
            assert!(!head.contains("content-length"), "{path}: {head}");
            assert_eq!(told(&format!("HEAD {path}")).len(), 0);
        }
        for path in ["/204", "/205", "/304"] {
            client
                .send(&HELLO.replace(" / ", &format!(" {path} ")))
                .await;
            let head = client.until("\r\n\r\n").await;
            assert!(
                head.starts_with(&format!("HTTP/1.1 {}", &path[1..])),
                "{head}"
            );
            assert!(path != "/204" || !head.contains("content-length"), "{head}");
            assert!(
                path != "/205" || head.contains("content-length: 0"),
                "{head}"
            );
            let told = told(&format!("GET {path}"));
            assert_eq!(told.len(), 1, "{path}: {told:?}");
            assert!(told[0].text.contains("left out"), "{path}: {told:?}");
        }
        client.send(&HELLO.replace("GET", "HEAD")).await;
        let head = client.until("\r\n\r\n").await;
        assert!(head.contains("content-length: 4"), "{head}");
        client.send(HELLO).await;
        let head = client.until("well").await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        drop(client);
        server.end().await;
    });
}

/// A client must not take it for a whole one.
#[test]
fn a_body_that_is_not_what_its_head_says_ends_the_connection_and_is_reported() {
    const BAD: &[(&str, &[&str])] = &[
        ("/short", &["four"]),
        ("/long", &["four", "twelve letters"]),
        ("/breaks", &["four", "error"]),
    ];
    run(2, async {
        collect_reports();
        let service = tower::service_fn(|request: Request<RequestBody>| {
            let bad = BAD.iter().find(|(bad, _)| *bad == request.uri().path());
            let body = frames(bad.map_or(&["well", "well."], |(_, body)| *body));
            let response = Response::builder().header("content-length", "9");
            std::future::ready(response.body(body))
        });
        let server = start(service, |server| server);
        for (path, _) in BAD {
            let client = Client::connect(server.address).await;
            let peer = client.stream.local_addr().unwrap();
            client
                .send(&HELLO.replace(" / ", &format!(" {path} ")))
                .await;
            let answer = client.rest().await;
            let body = answer.split("\r\n\r\n").nth(1).unwrap_or_default();
            assert!(body.len() < 9, "{path}: {answer}");
            flushed();
            let told = reports("weald::service", &format!("`GET {path} from {peer}`"));
            assert_eq!(told.len(), 1, "{path}: {told:?}");
        }
        let mut client = Client::connect(server.address).await;
        for _ in 0..2 {
            client.send(HELLO).await;
            client.until("wellwell.").await;
        }
        drop(client);
        server.end().await;
    });
}

/// One frame, after which it says that it has ended.
struct Single(Option<&'static str>);

impl Body for Single {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let text = self.0.take();
        Poll::Ready(text.map(|text| Ok(Frame::data(Bytes::from(text)))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }
}

#[test]
fn a_short_body_that_says_its_end_is_reported() {
    run(2, async {
        collect_reports();
        let service = tower::service_fn(|request: Request<RequestBody>| {
            let response = Response::builder().header("content-length", "9");
            let has_some = request.uri().path() == "/single";
            std::future::ready(response.body(Single(has_some.then_some("four"))))
        });
        let server = start(service, |server| server);
        let mut none = Client::connect(server.address).await;
        none.send(HELLO).await;
        let head = none.until("\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 500"), "{head}");
        let client = Client::connect(server.address).await;
        let peer = client.stream.local_addr().unwrap();
        client.send(&HELLO.replace(" / ", " /single ")).await;
        let answer = client.rest().await;
        let body = answer.split("\r\n\r\n").nth(1).unwrap_or_default();
        assert!(body.len() < 9, "{answer}");
        flushed();
        let told = reports("weald::service", &format!("`GET /single from {peer}`"));
        assert_eq!(told.len(), 1, "{told:?}");
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

/// The service passes the error of a body on, or answers by itself.
#[test]
fn a_malformed_body_is_the_clients_fault() {
    run(2, async {
        let service = tower::service_fn(|request: Request<RequestBody>| async {
            let answers = request.uri().path() == "/answers";
            let body = match request.into_body().collect().await {
                Err(_) if answers => Bytes::from("malformed"),
                read => read?.to_bytes(),
            };
            Answer::<hyper::Error>::Ok(Response::new(Full::new(body)))
        });
        let server = start(service, |server| server);
        for (path, status) in [("/", 400), ("/answers", 200)] {
            let client = Client::connect(server.address).await;
            let head =
                format!("POST {path} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
            client.send(&format!("{head}5\r\nhello\r\nzz\r\n")).await;
            let answer = client.rest().await;
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status}")),
                "{answer}"
            );
            assert!(answer.contains("connection: close"), "{answer}");
        }
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

/// The first clone is the connection's, the second is for later connections, and the next ones are those of its
/// requests.
#[test]
fn a_panic_of_the_clone_for_a_request_is_answered() {
    run(2, async {
        let service = Uncloneable {
            clones: Arc::default(),
            panics: |clone| clone == 2,
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
