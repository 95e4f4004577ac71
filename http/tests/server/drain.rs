//! Shutdown: requests in flight may finish until the deadline; those that have not are reported.

use std::{
    convert::Infallible,
    io::{Read, Write},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use weald_http::RequestBody;
use weald_sync::channel;

use super::{Client, HELLO, run, start};

/// A service that reports each request in flight, and answers once it is allowed to.
fn held_back() -> (
    impl weald_http::Serve,
    channel::Receiver<()>,
    channel::Sender<()>,
) {
    let (report, started) = channel::unbounded();
    let (allow, allowed) = channel::unbounded::<()>();
    let allowed = std::sync::Arc::new(allowed);
    let service = tower::service_fn(move |_request: Request<RequestBody>| {
        let (report, allowed) = (report.clone(), allowed.clone());
        async move {
            report.try_send(()).unwrap();
            let _allowed = allowed.receive().await;
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("done."))))
        }
    });
    (service, started, allow)
}

#[test]
fn requests_in_flight_are_finished() {
    run(2, async {
        let (service, started, allow) = held_back();
        let server = start(service, |server| server);
        let idle = Client::connect(server.address).await;
        let busy = Client::connect(server.address).await;
        busy.send("GET /slow HTTP/1.1\r\nhost: x\r\n\r\n").await;
        started.receive().await.unwrap();
        let address = server.address;
        let ending = weald_kernel::spawn(server.end());
        assert_eq!(idle.rest().await, "", "an idle connection is closed");
        assert!(!ending.is_finished(), "one request is in flight");
        let refused = weald_net::TcpStream::connect(address).await;
        assert!(refused.is_err(), "the listener is closed");
        allow.try_send(()).unwrap();
        let answer = busy.rest().await;
        assert!(answer.ends_with("done."), "{answer:?}");
        assert!(answer.contains("connection: close"), "{answer:?}");
        assert!(ending.await.unwrap().not_stopped.is_empty());
    });
}

/// The response was sent, and a job of the service still waits for the rest of the body.
#[test]
fn a_request_whose_body_is_kept_is_named() {
    run(2, async {
        let service = tower::service_fn(|request: Request<RequestBody>| async {
            let reading = request.into_body().collect();
            weald_kernel::spawn(reading).detach();
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("kept."))))
        });
        let server = start(service, |server| {
            server.drain_for(Duration::from_millis(50))
        });
        let mut client = Client::connect(server.address).await;
        client
            .send("POST /keep HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nab")
            .await;
        client.until("kept.").await;
        let drained = server.end().await;
        let [unfinished] = &drained.not_stopped[..] else {
            panic!("one is left: {drained:?}");
        };
        let request = (Method::POST, "/keep".parse().unwrap());
        assert_eq!(unfinished.request, Some(request));
    });
}

#[test]
fn requests_that_do_not_end_in_time_are_reported_and_stopped() {
    run(2, async {
        let (service, started, _allow) = held_back();
        let server = start(service, |server| {
            server.drain_for(Duration::from_millis(50))
        });
        let client = Client::connect(server.address).await;
        client
            .send("GET /for/ever HTTP/1.1\r\nhost: x\r\n\r\n")
            .await;
        started.receive().await.unwrap();
        let peer = client.stream.local_addr().unwrap();
        let drained = server.end().await;
        let [unfinished] = &drained.not_stopped[..] else {
            panic!("one is left: {drained:?}");
        };
        assert_eq!(unfinished.peer, Some(peer));
        assert_eq!(
            unfinished.request,
            Some((Method::GET, "/for/ever".parse().unwrap()))
        );
        assert_eq!(unfinished.to_string(), format!("GET /for/ever from {peer}"));
        assert_eq!(client.rest().await, "", "the connection was stopped");
    });
}

/// The answer to a client that reads nothing delays the shutdown only until the deadline.
#[test]
fn a_client_that_hangs_does_not_prevent_the_shutdown() {
    run(2, async {
        let large = tower::service_fn(|_request: Request<RequestBody>| async {
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(vec![b'x'; 64 << 20]))))
        });
        // Long enough for the other clients' connections to be closed before it, on a loaded machine too.
        let server = start(large, |server| server.drain_for(Duration::from_secs(2)));
        let client = Client::connect(server.address).await;
        client.send("GET /large HTTP/1.1\r\nhost: x\r\n\r\n").await;
        client.stream.readable().await.unwrap();
        let half = Client::connect(server.address).await;
        half.send("GET /half").await;
        let mut served = Client::connect(server.address).await;
        served.send("HEAD / HTTP/1.1\r\nhost: x\r\n\r\n").await;
        served.until("\r\n\r\n").await;
        let drained = server.end().await;
        assert_eq!(drained.not_stopped.len(), 1, "{drained:?}");
        assert!(drained.not_stopped[0].to_string().starts_with("GET /large"));
        assert_eq!(served.rest().await, "");
        assert_eq!(half.rest().await, "");
    });
}

#[test]
fn a_server_that_is_dropped_lets_requests_finish() {
    run(2, async {
        let (service, started, allow) = held_back();
        let server = start(service, |server| server);
        let idle = Client::connect(server.address).await;
        let busy = Client::connect(server.address).await;
        busy.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
        started.receive().await.unwrap();
        server.ended.cancel();
        assert_eq!(idle.rest().await, "");
        let refused = weald_net::TcpStream::connect(server.address).await;
        assert!(refused.is_err(), "the listener is closed");
        allow.try_send(()).unwrap();
        assert!(busy.rest().await.ends_with("done."));
    });
}

/// The client was answered a moment ago, so its connection still has its buffers.
#[test]
fn a_request_that_has_arrived_when_the_drain_begins_is_answered() {
    run(1, async {
        let server = start(tower::service_fn(super::hello), |server| server);
        let mut client = Client::connect(server.address).await;
        client.send(super::HELLO).await;
        client.until("hello.").await;
        client.stream.try_write(super::HELLO.as_bytes()).unwrap();
        assert!(server.end().await.not_stopped.is_empty());
        // It may have been read just before the drain, and then does not say that the connection closes.
        let answer = client.rest().await;
        assert!(answer.ends_with("hello."), "{answer:?}");
    });
}

/// It was answered before, and may be about to send the rest of the next request.
#[test]
fn a_client_that_has_sent_a_part_of_a_head_is_not_reset() {
    run(2, async {
        let (service, started, allow) = held_back();
        let server = start(service, |server| server);
        let mut client = Client::connect(server.address).await;
        client.send(&format!("{HELLO}GET / HT")).await;
        started.receive().await.unwrap();
        allow.try_send(()).unwrap();
        client.until("done.").await;
        // The server ends after its last request.
        let busy = Client::connect(server.address).await;
        busy.send(HELLO).await;
        started.receive().await.unwrap();
        let ending = weald_kernel::spawn(server.end());
        assert!(!client.more().await, "the server has ended its direction");
        // A reset is noticed by the write after the one that causes it.
        for _ in 0..8 {
            client.send("TP/1.1\r\nhost: x\r\n\r\n").await;
        }
        allow.try_send(()).unwrap();
        busy.rest().await;
        assert!(ending.await.unwrap().not_stopped.is_empty());
    });
}

/// The only worker is busy from the first connection to the end of the server, so most of them are in the system's
/// queue by then.
#[test]
fn requests_in_the_queue_of_the_listener_are_answered_when_the_drain_begins() {
    run(1, async {
        let server = start(tower::service_fn(super::hello), |server| server);
        let at_once = weald_kernel::spawn(async move {
            let clients = (0..64).map(|_| {
                let mut client = std::net::TcpStream::connect(server.address).unwrap();
                client.write_all(HELLO.as_bytes()).unwrap();
                client
            });
            let clients: Vec<_> = clients.collect();
            let _sent = server.end.send(());
            (clients, server.ended)
        });
        let (clients, ended) = at_once.await.unwrap();
        assert!(ended.await.unwrap().unwrap().not_stopped.is_empty());
        for mut client in clients {
            let mut answer = String::new();
            client.read_to_string(&mut answer).unwrap();
            assert!(answer.ends_with("hello."), "{answer:?}");
        }
    });
}
