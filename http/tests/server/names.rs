//! Reports about a request name its method, its path, its client, the type of the service, and where it is served.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, mpsc},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tower_service::Service;
use weald_http::RequestBody;

use super::{Client, HELLO, run, start};
use crate::{
    blocker::Blocker,
    reports::{Report, collect_reports, flushed, reports},
    tools::until_yielding,
};

/// A service with a name that reports can give.
#[derive(Clone)]
struct Shop(Arc<Mutex<mpsc::Receiver<()>>>);

impl Service<Request<RequestBody>> for Shop {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future =
        std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(
        &mut self,
        _cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let shop = self.clone();
        Box::pin(async move {
            match request.uri().path() {
                "/blocks" => _ = shop.0.lock().unwrap().recv(),
                "/panics" => panic!("sold out"),
                _ => {}
            }
            Ok(Response::new(Full::new("done.".into())))
        })
    }
}

fn check(report: &Report, request: &str) {
    let text = &report.text;
    assert!(text.contains(request), "{text}");
    assert!(text.contains("names::Shop"), "{text}");
    assert!(
        text.contains("spawned at http/tests/server/names.rs:"),
        "{text}"
    );
    assert!(!text.contains("unnamed"), "{text}");
}

#[test]
fn a_request_that_blocks_or_panics_is_named() {
    run(2, async {
        collect_reports();
        let (release, released) = mpsc::channel();
        let server = start(Shop(Arc::new(Mutex::new(released))), |server| server);
        let mut client = Client::connect(server.address).await;
        let peer = client.stream.local_addr().unwrap();
        client.send(&HELLO.replace(" / ", " /panics ")).await;
        client.until("\r\n\r\n").await;
        client.send(&HELLO.replace(" / ", " /blocks ")).await;
        let blocks = format!("GET /blocks from {peer}");
        until_yielding(|| !reports("weald::monitor", &blocks).is_empty()).await;
        check(&reports("weald::monitor", &blocks)[0], &blocks);
        release.send(()).unwrap();
        client.until("done.").await;
        flushed();
        let panics = format!("GET /panics from {peer}");
        check(&reports("weald::panic", &panics)[0], &panics);
        drop(client);
        server.end().await;
    });
}

/// A future that never ends, and whose destructor blocks.
struct Sticks(Blocker);

impl Future for Sticks {
    type Output = Result<Response<Full<Bytes>>, Infallible>;

    fn poll(
        self: std::pin::Pin<&mut Self>,
        _cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Self::Output> {
        std::task::Poll::Pending
    }
}

impl Drop for Sticks {
    fn drop(&mut self) {
        self.0.block();
    }
}

/// The request is still in flight when the server stops the connection.
#[test]
fn a_destructor_that_blocks_at_the_end_of_a_connection_is_named_with_its_request() {
    run(2, async {
        collect_reports();
        let blocker = Blocker::default();
        let sticks = blocker.clone();
        let service =
            tower::service_fn(move |_request: Request<RequestBody>| Sticks(sticks.clone()));
        let server = start(service, |server| {
            server.drain_for(std::time::Duration::from_millis(50))
        });
        let client = Client::connect(server.address).await;
        let peer = client.stream.local_addr().unwrap();
        client.send(&HELLO.replace(" / ", " /sticks ")).await;
        let drained = server.end().await;
        assert_eq!(drained.not_stopped.len(), 1, "{drained:?}");
        let sticks = format!("GET /sticks from {peer}");
        until_yielding(|| !reports("weald::monitor", &sticks).is_empty()).await;
        blocker.open();
        assert_eq!(client.rest().await, "");
    });
}
