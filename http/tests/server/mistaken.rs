//! Failures that would be taken for others: of an upstream server, of destructors, of bodies without a length, of
//! heads.

use std::{
    convert::Infallible,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::client::conn::http1 as client;
use weald_http::{RequestBody, rt::Io};
use weald_kernel::Wait;
use weald_net::UnixStream;

use super::{Client, HELLO, run, start};
use crate::reports::{collect_reports, flushed, reports};

/// As a gateway: asks a server that hangs up.
async fn ask_upstream() -> hyper::Result<Response<hyper::body::Incoming>> {
    let (one, other) = UnixStream::pair().unwrap();
    let (mut sender, connection) = client::handshake(Io(one)).await?;
    drop(other);
    weald_kernel::spawn(connection).detach();
    sender
        .send_request(Request::new(Empty::<Bytes>::new()))
        .await
}

#[test]
fn a_failure_of_an_upstream_server_is_not_the_clients_fault() {
    run(2, async {
        collect_reports();
        let service = tower::service_fn(|_request: Request<RequestBody>| ask_upstream());
        let server = start(service, |server| server);
        let mut client = Client::connect(server.address).await;
        let peer = client.stream.local_addr().unwrap();
        client.send(HELLO).await;
        let head = client.until("\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 500"), "{head}");
        flushed();
        let told = reports("weald::service", &format!("`GET / from {peer}`"));
        assert_eq!(told.len(), 1, "{told:?}");
        drop(client);
        server.end().await;
    });
}

/// Panics twice.
struct Panics;

impl Future for Panics {
    type Output = Result<Response<Empty<Bytes>>, Infallible>;

    fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Self::Output> {
        panic!("the service panics");
    }
}

impl Drop for Panics {
    fn drop(&mut self) {
        panic!("and so does its destructor");
    }
}

#[test]
fn a_panic_of_a_service_whose_destructor_panics_is_answered() {
    run(2, async {
        let service = tower::service_fn(|_request: Request<RequestBody>| Panics);
        let server = start(service, |server| server);
        let mut client = Client::connect(server.address).await;
        for _ in 0..2 {
            client.send(HELLO).await;
            let head = client.until("\r\n\r\n").await;
            assert!(head.starts_with("HTTP/1.1 500"), "{head}");
        }
        drop(client);
        server.end().await;
    });
}

/// What follows the head is the tunnel.
#[test]
fn a_granted_tunnel_has_no_length() {
    run(2, async {
        let service = tower::service_fn(|_request: Request<RequestBody>| {
            let response = Response::builder().header("content-length", "4");
            std::future::ready(response.body(Full::new(Bytes::from("four"))))
        });
        let server = start(service, |server| server);
        let mut client = Client::connect(server.address).await;
        client
            .send("CONNECT x:443 HTTP/1.1\r\nhost: x:443\r\n\r\n")
            .await;
        let head = client.until("\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(!head.contains("content-length"), "{head}");
        assert!(!head.contains("transfer-encoding"), "{head}");
        drop(client);
        server.end().await;
    });
}

/// To a client of HTTP/1.0 the end of the connection is that of the body.
#[test]
fn a_body_that_fails_does_not_look_whole_to_an_old_client() {
    run(2, async {
        let service = tower::service_fn(|request: Request<RequestBody>| {
            let last = match request.uri().path() {
                "/breaks" => Err(io::Error::other("it breaks")),
                _ => Ok(Frame::data(Bytes::from("last"))),
            };
            let frames = [Ok(Frame::data(Bytes::from("first "))), last];
            let body = StreamBody::new(futures_util::stream::iter(frames));
            std::future::ready(Ok::<_, Infallible>(Response::new(body)))
        });
        let server = start(service, |server| server);
        for (path, is_whole) in [("/", true), ("/breaks", false)] {
            let client = Client::connect(server.address).await;
            client.send(&format!("GET {path} HTTP/1.0\r\n\r\n")).await;
            let mut buffer = [0; 1024];
            let mut answer = Vec::new();
            let end = loop {
                match client.stream.read(&mut buffer).await {
                    Ok(0) => break Ok(()),
                    Ok(count) => answer.extend_from_slice(&buffer[..count]),
                    Err(error) => break Err(error.kind()),
                }
            };
            let answer = String::from_utf8_lossy(&answer);
            match is_whole {
                true => assert!(answer.ends_with("first last") && end.is_ok(), "{answer}"),
                false => assert_eq!(end, Err(io::ErrorKind::ConnectionReset), "{answer}"),
            }
        }
        server.end().await;
    });
}

/// It would wait for ever: the job that it holds up is the one that reads the body.
#[test]
fn a_service_that_waits_for_its_own_body_with_its_stack_is_told() {
    run(2, async {
        collect_reports();
        let service = tower::service_fn(|request: Request<RequestBody>| async move {
            let path = request.uri().path().to_owned();
            let body = request.into_body().collect();
            let body = match &*path {
                "/reads" => body.wait().unwrap(),
                "/later" => {
                    let later = async {
                        weald_kernel::sleep(Duration::from_millis(1)).await;
                        body.await
                    };
                    Box::pin(later).wait().unwrap()
                }
                "/blocks" => weald_kernel::blocking(|| body.wait().unwrap()),
                // As is right.
                _ => weald_kernel::offload(|| body.wait().unwrap())
                    .await
                    .unwrap(),
            };
            Ok::<_, Infallible>(Response::new(Full::new(body.to_bytes())))
        });
        let server = start(service, |server| server);
        let request =
            |path| format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\n");
        for (path, rest) in [
            ("/reads", ""),
            ("/later", ""),
            ("/blocks", ""),
            ("/reads", "hello"),
        ] {
            let mut client = Client::connect(server.address).await;
            client.send(&(request(path) + rest)).await;
            let head = client.until("\r\n\r\n").await;
            assert!(head.starts_with("HTTP/1.1 500"), "{path}: {head}");
        }
        flushed();
        let told = reports("weald::panic", "cannot be waited for with the stack");
        assert!(told[0].text.contains("`POST /reads from "), "{told:?}");
        let mut client = Client::connect(server.address).await;
        client.send(&request("/offloads")).await;
        client.send("hello").await;
        client.until("\r\n\r\nhello").await;
        drop(client);
        server.end().await;
    });
}
