//! A service that panics: its client gets a 500, its connection goes on, and no other connection notices.

use std::{
    any::type_name_of_val,
    convert::Infallible,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use weald_http::RequestBody;
use weald_kernel::Wait;

use super::{Client, HELLO, run, start};
use crate::{
    reports::{collect_reports, flushed, reports},
    tools::{Drops, until_yielding},
};

type Answer = Result<Response<Full<Bytes>>, Infallible>;

async fn fragile(request: Request<RequestBody>) -> Answer {
    let path = request.uri().path().to_owned();
    assert_ne!(path, "/panic", "the request asks for a panic");
    if path == "/late" {
        weald_kernel::yield_now().await;
        panic!("late");
    }
    Ok(Response::new(Full::new("alive.".into())))
}

#[test]
fn a_panic_is_answered_and_the_connection_goes_on() {
    run(2, async {
        let server = start(tower::service_fn(fragile), |server| server);
        let mut client = Client::connect(server.address).await;
        for path in ["/panic", "/late", "/panic"] {
            client
                .send(&HELLO.replace(" / ", &format!(" {path} ")))
                .await;
            let head = client.until("\r\n\r\n").await;
            assert!(head.starts_with("HTTP/1.1 500"), "{head}");
            assert!(!head.contains("connection: close"), "{head}");
            client.send(HELLO).await;
            client.until("alive.").await;
        }
        drop(client);
        assert!(server.end().await.not_stopped.is_empty());
    });
}

/// Panics when it is called, before there is a future.
#[test]
fn a_panic_in_the_call_is_answered_too() {
    run(2, async {
        let calls = Arc::new(AtomicUsize::new(0));
        let service = tower::service_fn(move |_request: Request<RequestBody>| {
            let call = calls.fetch_add(1, Ordering::SeqCst);
            assert_ne!(call, 0, "the first call panics");
            std::future::ready(Answer::Ok(Response::new(Full::new("alive.".into()))))
        });
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

/// A body whose second frame panics.
struct Breaks(bool);

impl http_body::Body for Breaks {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        assert!(!std::mem::replace(&mut self.0, true), "the body breaks");
        Poll::Ready(Some(Ok(Frame::data("first.".into()))))
    }
}

#[test]
fn a_panic_of_a_body_ends_its_response_and_is_named_with_its_request() {
    run(2, async {
        collect_reports();
        let service = tower::service_fn(|_request: Request<RequestBody>| async {
            let body: UnsyncBoxBody<Bytes, Infallible> = Breaks(false).boxed_unsync();
            Ok::<_, Infallible>(Response::new(body))
        });
        let server = start(service, |server| server);
        let client = Client::connect(server.address).await;
        client.send(&HELLO.replace(" / ", " /breaks ")).await;
        let answer = client.rest().await;
        assert!(
            !answer.ends_with("0\r\n\r\n"),
            "it looks complete: {answer}"
        );
        flushed();
        let told = reports("weald::panic", "GET /breaks from 127.0.0.1:");
        assert_eq!(told.len(), 1, "{told:?}");
        server.end().await;
    });
}

/// Panics when it is dropped.
struct Falls;

impl Drop for Falls {
    fn drop(&mut self) {
        panic!("the destructor falls");
    }
}

/// A body of one frame that panics somewhere else than there.
struct Trap {
    place: String,
    frame: Option<Bytes>,
}

impl http_body::Body for Trap {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.frame.take().map(|frame| Ok(Frame::data(frame))))
    }

    fn size_hint(&self) -> SizeHint {
        assert_ne!(self.place, "/hint", "the length is a trap");
        SizeHint::default()
    }

    fn is_end_stream(&self) -> bool {
        assert_ne!(self.place, "/end", "the end is a trap");
        self.frame.is_none() && self.place == "/drop-early"
    }
}

impl Drop for Trap {
    fn drop(&mut self) {
        assert!(!self.place.starts_with("/drop"), "the drop is a trap");
    }
}

/// Hyper asks a body and drops it where a panic would end the connection.
#[test]
fn a_panic_of_a_body_beside_its_frames_leaves_the_connection() {
    run(2, async {
        collect_reports();
        let service = tower::service_fn(|request: Request<RequestBody>| async move {
            let place = request.uri().path().to_owned();
            let frame = Some("alive.".into());
            Ok::<_, Infallible>(Response::new(Trap { place, frame }))
        });
        let server = start(service, |server| server);
        let mut client = Client::connect(server.address).await;
        for (place, status) in [
            ("/hint", 500),
            ("/end", 500),
            ("/drop", 200),
            ("/drop-early", 200),
        ] {
            client
                .send(&HELLO.replace(" / ", &format!(" {place} ")))
                .await;
            let head = client.until("\r\n\r\n").await;
            let wanted = format!("HTTP/1.1 {status}");
            assert!(head.starts_with(&wanted), "{place}: {head}");
            if status == 200 {
                client.until("alive.\r\n0\r\n\r\n").await;
            }
            client.send(HELLO).await;
            client.until("alive.\r\n0\r\n\r\n").await;
            flushed();
            let told = reports("weald::panic", &format!("GET {place} from 127.0.0.1:"));
            assert_eq!(told.len(), 1, "{place}: {told:?}");
        }
        drop(client);
        server.end().await;
    });
}

/// An error that panics when it is dropped.
#[derive(Debug)]
struct FallingError;

impl std::fmt::Display for FallingError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("it falls")
    }
}

impl std::error::Error for FallingError {}

impl Drop for FallingError {
    fn drop(&mut self) {
        panic!("the error falls");
    }
}

/// What was reported of panics of connections from `peer` to a service of this type. Another test may have had a client
/// at the same port before.
fn told_of(service_type: &str, peer: SocketAddr) -> Vec<String> {
    let told = reports("weald::panic", &format!("from {peer}")).into_iter();
    let texts = told.map(|report| report.text);
    texts.filter(|text| text.contains(service_type)).collect()
}

/// The requests arrive together, so the first answer is held until the second has failed.
#[test]
fn a_panic_of_a_bodys_error_is_named_with_its_request_and_takes_no_earlier_answer_with_it() {
    run(2, async {
        collect_reports();
        let service = tower::service_fn(|request: Request<RequestBody>| {
            let fails = request.uri().path() == "/fails";
            let frames = match fails {
                true => vec![Ok(Frame::data(Bytes::from("first"))), Err(FallingError)],
                false => vec![Ok(Frame::data(Bytes::from("alive.")))],
            };
            let body = StreamBody::new(futures_util::stream::iter(frames));
            std::future::ready(Ok::<_, Infallible>(Response::new(body)))
        });
        let service_type = type_name_of_val(&service);
        let server = start(service, |server| server);
        let mut client = Client::connect(server.address).await;
        let peer = client.stream.local_addr().unwrap();
        let together = format!("{HELLO}{}", HELLO.replace(" / ", " /fails "));
        // Bytes that nobody reads would make the end a reset.
        client.send(&(together + &"x".repeat(1 << 20))).await;
        client.until("alive.").await;
        while client.more().await {}
        assert_eq!(client.stream.read(&mut [0]).await.unwrap(), 0, "no reset");
        drop(client);
        flushed();
        let texts = told_of(service_type, peer);
        assert_eq!(texts.len(), 1, "{texts:?}");
        assert!(texts[0].contains("GET /fails from"), "{texts:?}");
        server.end().await;
    });
}

/// The future of the service is dropped because its client is gone.
#[test]
fn a_panic_of_a_dropped_future_is_named_with_its_request() {
    run(2, async {
        collect_reports();
        let (begins, begun) = weald_sync::channel::unbounded();
        let service = tower::service_fn(move |_request: Request<RequestBody>| {
            let begins = begins.clone();
            async move {
                let _falls = Falls;
                begins.try_send(()).unwrap();
                std::future::pending::<Answer>().await
            }
        });
        let server = start(service, |server| server);
        let client = Client::connect(server.address).await;
        client.send(&HELLO.replace(" / ", " /falls ")).await;
        begun.receive().await.unwrap();
        drop(client);
        server.end().await;
        flushed();
        let told = reports("weald::panic", "GET /falls from 127.0.0.1:");
        assert_eq!(told.len(), 1, "{told:?}");
    });
}

/// The panic in which a cancelled job leaves a wait with its stack is no panic of the service.
#[test]
fn a_service_that_is_stopped_in_a_wait_does_not_panic() {
    run(2, async {
        collect_reports();
        let drops = Drops::default();
        let counted = drops.clone();
        let (waits, mut waiting) = weald_sync::oneshot::channel();
        let waits = Arc::new(std::sync::Mutex::new(Some(waits)));
        let service = tower::service_fn(move |_request: Request<RequestBody>| {
            let (token, waits) = (counted.token(), waits.clone());
            async move {
                let _token = token;
                let waits = waits.lock().unwrap().take();
                waits.into_iter().for_each(|waits| _ = waits.send(()));
                std::future::pending::<()>().wait();
                Answer::Ok(Response::new(Full::default()))
            }
        });
        let runtime = crate::tools::runtime(1);
        let listener = super::listener();
        let address = listener.local_addr().unwrap();
        let server = runtime.spawn(std::future::IntoFuture::into_future(weald_http::serve(
            listener, service,
        )));
        let client = Client::connect(address).await;
        client.send(&HELLO.replace(" / ", " /waits ")).await;
        waiting.receive().await.unwrap();
        drop(server);
        weald_kernel::blocking(move || drop(runtime));
        until_yielding(|| drops.count() == 1).await;
        flushed();
        assert!(reports("weald::panic", "/waits").is_empty());
    });
}

/// Bytes; without any it panics when hyper looks at them, and notes that.
#[derive(Default)]
pub(super) struct Brittle {
    pub(super) bytes: Option<Bytes>,
    has_broken: Arc<AtomicBool>,
}

impl bytes::Buf for Brittle {
    fn remaining(&self) -> usize {
        self.bytes.as_ref().map_or(1, Bytes::len)
    }

    fn chunk(&self) -> &[u8] {
        let broken = self.bytes.is_none();
        self.has_broken.fetch_or(broken, Ordering::SeqCst);
        self.bytes.as_ref().expect("the bytes break")
    }

    fn advance(&mut self, count: usize) {
        self.bytes.as_mut().expect("the bytes break").advance(count);
    }
}

/// A part of a service: the first one that is dropped after the bytes have broken panics.
#[derive(Clone)]
struct Follows(Arc<AtomicBool>);

impl Drop for Follows {
    fn drop(&mut self) {
        let has_broken = self.0.swap(false, Ordering::SeqCst);
        assert!(!has_broken, "and the service breaks too");
    }
}

/// A value in the extensions of a response.
#[derive(Clone)]
struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "the guard panics");
    }
}

/// The requests arrive together, so the first answer is held until the second is there.
#[test]
fn a_panic_of_what_hyper_got_takes_no_earlier_answer_with_it() {
    run(2, async {
        collect_reports();
        let part = Follows(Arc::default());
        let service = tower::service_fn(move |request: Request<RequestBody>| {
            let is_whole = request.uri().path() != "/bytes";
            let body = Full::new(Brittle {
                bytes: is_whole.then(|| "alive.".into()),
                has_broken: part.0.clone(),
            });
            let mut response = Response::new(body);
            if request.uri().path() == "/guard" {
                response.extensions_mut().insert(Guard);
            }
            std::future::ready(Ok::<_, Infallible>(response))
        });
        let service_type = type_name_of_val(&service);
        let server = start(service, |server| server);
        let together = |path: &str| format!("{HELLO}{}", HELLO.replace(" / ", path));
        let mut client = Client::connect(server.address).await;
        let peer = client.stream.local_addr().unwrap();
        client.send(&together(" /guard ")).await;
        for _ in 0..2 {
            client.until("alive.").await;
        }
        flushed();
        let guard = reports("weald::panic", &format!("GET /guard from {peer}"));
        assert_eq!(guard.len(), 1, "{guard:?}");
        // Bytes that nobody reads would make the end a reset, which takes earlier answers away.
        client
            .send(&(together(" /bytes ") + &"x".repeat(1 << 20)))
            .await;
        client.until("alive.").await;
        let end = client.stream.read(&mut [0]).await;
        assert_eq!(end.unwrap(), 0, "the response cannot be sent");
        drop(client);
        flushed();
        let texts = told_of(service_type, peer);
        assert_eq!(texts.len(), 3, "{texts:?}");
        for text in &texts[1..] {
            assert!(text.contains("GET /bytes"), "{texts:?}");
        }
        server.end().await;
    });
}
