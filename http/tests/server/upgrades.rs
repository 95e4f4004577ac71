//! A connection that switches to another protocol.

use std::{
    convert::Infallible,
    future::poll_fn,
    io,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use futures_util::io::{AsyncReadExt, AsyncWriteExt};
use http::{Request, Response, StatusCode, header};
use http_body_util::{Empty, Full};
use hyper::upgrade::Upgraded;
use weald_http::{RequestBody, rt::Futures};
use weald_kernel::spawn;
use weald_sync::channel;

use super::{Client, run, start};
use crate::tools::until_yielding;

async fn read(io: &mut Futures<Upgraded>) -> io::Result<Vec<u8>> {
    let mut bytes = [0; 64];
    let count = io.read(&mut bytes).await?;
    Ok(bytes[..count].to_vec())
}

/// Echoes what arrives, in capitals.
async fn shout(request: Request<RequestBody>) -> Result<Response<Empty<Bytes>>, Infallible> {
    spawn(async move {
        let mut io = Futures(hyper::upgrade::on(request).await.unwrap());
        loop {
            let text = read(&mut io).await.unwrap().to_ascii_uppercase();
            if text.is_empty() {
                break;
            }
            io.write_all(&text).await.unwrap();
        }
    })
    .detach();
    let response = Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(header::UPGRADE, "shout")
        .header(header::CONNECTION, "upgrade");
    Ok(response.body(Empty::new()).unwrap())
}

#[test]
fn an_upgraded_connection_belongs_to_the_service() {
    run(2, async {
        let server = start(tower::service_fn(shout), |server| server);
        let mut client = Client::connect(server.address).await;
        client
            .send(
                "GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: shout\r\n\r\nwith it",
            )
            .await;
        client.until("\r\n\r\nWITH IT").await;
        assert!(
            server.end().await.not_stopped.is_empty(),
            "the server no longer owns the connection"
        );
        client.send("and after it").await;
        client.until("AND AFTER IT").await;
    });
}

/// The service has begun to answer when the server begins to end. The answer says nothing of a close: a client that
/// takes such a word seriously would give up what it was granted.
#[test]
fn what_is_granted_while_the_server_ends_belongs_to_the_service() {
    for (request, granted) in [
        (
            "GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: shout\r\n\r\n",
            "HTTP/1.1 101",
        ),
        (
            "CONNECT x:80 HTTP/1.1\r\nhost: x:80\r\n\r\n",
            "HTTP/1.1 200",
        ),
    ] {
        run(2, async move {
            let (report, started) = channel::unbounded();
            let (allow, allowed) = channel::unbounded::<()>();
            let allowed = Arc::new(allowed);
            let polls = Arc::new(AtomicUsize::new(0));
            let counted = polls.clone();
            let service = tower::service_fn(move |request: Request<RequestBody>| {
                let (report, allowed, polls) = (report.clone(), allowed.clone(), counted.clone());
                async move {
                    report.try_send(()).unwrap();
                    let mut waits = pin!(allowed.receive());
                    let waits = poll_fn(|cx| {
                        polls.fetch_add(1, Ordering::SeqCst);
                        waits.as_mut().poll(cx)
                    });
                    waits.await.unwrap();
                    let is_tunnel = request.method() == http::Method::CONNECT;
                    let mut response = shout(request).await?;
                    if is_tunnel {
                        *response.status_mut() = StatusCode::OK;
                        response.headers_mut().clear();
                    }
                    Ok::<_, Infallible>(response)
                }
            });
            let server = start(service, |server| server);
            let idle = Client::connect(server.address).await;
            let mut client = Client::connect(server.address).await;
            client.send(request).await;
            started.receive().await.unwrap();
            // The first poll may not have begun, or may go on.
            let polled = polls.load(Ordering::SeqCst).max(1);
            let ending = spawn(server.end());
            assert_eq!(idle.rest().await, "", "all connections have the order");
            until_yielding(|| polls.load(Ordering::SeqCst) > polled).await;
            allow.try_send(()).unwrap();
            let head = client.until("\r\n\r\n").await;
            assert!(head.starts_with(granted), "{head}");
            assert!(!head.contains("close"), "{head}");
            assert!(ending.await.unwrap().not_stopped.is_empty());
            client.send("after it").await;
            client.until("AFTER IT").await;
        });
    }
}

/// Its client would wait for an answer, or take what follows for another protocol.
#[test]
fn a_protocol_that_the_client_has_not_asked_for_is_not_granted() {
    run(2, async {
        let service = tower::service_fn(|request: Request<RequestBody>| {
            let mut response = Response::new(Full::new(Bytes::from("alive.")));
            if request.uri().path() == "/grants" {
                *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            }
            std::future::ready(Ok::<_, Infallible>(response))
        });
        let server = start(service, |server| server);
        for request in [
            "GET /grants HTTP/1.1\r\nhost: x\r\n\r\n",
            "GET /grants HTTP/1.0\r\nhost: x\r\nconnection: upgrade, keep-alive\r\nupgrade: x\r\n\r\n",
        ] {
            let mut client = Client::connect(server.address).await;
            client.send(request).await;
            let head = client.until("\r\n\r\n").await;
            assert!(head.contains(" 500 "), "{head}");
        }
        server.end().await;
    });
}

/// As `curl --http2` asks with each request. The client is still sending when it gets its answer.
#[test]
fn a_refusal_of_a_request_that_asks_for_another_protocol_arrives() {
    run(2, async {
        let server = start(tower::service_fn(super::hello), |server| server);
        for _ in 0..10 {
            let mut client = Client::connect(server.address).await;
            let head = "POST / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: h2c\r\n\
                        content-length: 1000000\r\n\r\n";
            client.send(head).await;
            client.until("hello.").await;
            // Without a reader this would be reset.
            let rest = "x".repeat(1_000_000);
            client.send(&rest).await;
            assert_eq!(client.stream.read(&mut [0]).await.unwrap(), 0);
        }
        server.end().await;
    });
}
