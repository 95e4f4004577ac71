//! Hyper driven directly, on Weald's streams, timer and executor, as a server and as a client.

use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, Full};
use hyper::{
    body::Incoming, client::conn::http1 as client, rt::Executor as _,
    server::conn::http1 as server, service::service_fn,
};
use weald_http::rt::{Executor, Io, Timer};
use weald_net::{TcpStream, UnixStream};
use weald_sync::oneshot;

use super::{hello, run, start};

async fn ask<T: weald_net::Transport>(stream: weald_net::Stream<T>) -> Bytes {
    let (mut sender, connection) = client::handshake(Io(stream)).await.unwrap();
    let driver = weald_kernel::spawn(connection);
    let request = Request::get("/")
        .header("host", "x")
        .body(Empty::<Bytes>::new());
    let response = sender.send_request(request.unwrap()).await.unwrap();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    drop(sender);
    driver.await.unwrap().unwrap();
    body
}

#[test]
fn hypers_client_talks_to_the_server() {
    run(2, async {
        let server = start(tower::service_fn(hello), |server| server);
        let stream = TcpStream::connect(server.address).await.unwrap();
        assert_eq!(ask(stream).await, "hello.");
        assert!(server.end().await.not_stopped.is_empty());
    });
}

#[test]
fn hypers_server_uses_the_timer() {
    run(2, async {
        let answer = service_fn(|_request: Request<Incoming>| async {
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("by hand"))))
        });
        let (one, other) = UnixStream::pair().unwrap();
        let served = weald_kernel::spawn(
            server::Builder::new()
                .timer(Timer)
                .header_read_timeout(Duration::from_millis(50))
                .serve_connection(Io(other), answer),
        );
        one.write_all(b"GET / HT").await.unwrap();
        let ended = served.await.unwrap();
        assert!(ended.unwrap_err().is_timeout());
        let (one, other) = UnixStream::pair().unwrap();
        weald_kernel::spawn(server::Builder::new().serve_connection(Io(other), answer)).detach();
        assert_eq!(ask(one).await, "by hand");
    });
}

#[test]
fn hypers_executor_spawns_jobs() {
    run(1, async {
        let (sender, mut receiver) = oneshot::channel();
        Executor.execute(async move {
            let _receiver_dropped = sender.send(5);
        });
        assert_eq!(receiver.receive().await.unwrap(), 5);
        let (sender, mut receiver) = oneshot::channel();
        let serves = weald_kernel::Spawn::new().name("orders");
        let serving = serves.spawn(async move {
            Executor.execute(async move {
                let _receiver_dropped = sender.send(weald_kernel::current_name());
            });
        });
        serving.await.unwrap();
        let name = receiver.receive().await.unwrap().unwrap().to_string();
        assert!(
            name.starts_with("`hyper's work for orders` spawned at http/tests/server/by_hand.rs:"),
            "{name}"
        );
    });
}
