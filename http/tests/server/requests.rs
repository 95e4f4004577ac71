//! Requests: one after another on one connection, several at once, and after a pause.

use std::{convert::Infallible, future::Future, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use weald_http::RequestBody;
use weald_kernel::sleep;

use super::{Client, run, start};

/// Answers with the path and the length of the body.
async fn path_and_length(
    request: Request<RequestBody>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let text = format!("{path} {}.", body.len());
    Ok(Response::new(Full::new(text.into())))
}

fn with_server<F: Future<Output = ()>>(test: impl Fn(std::net::SocketAddr) -> F) {
    for workers in [1, 2] {
        run(workers, async {
            let server = start(tower::service_fn(path_and_length), |server| server);
            test(server.address).await;
            let drained = server.end().await;
            assert!(drained.not_stopped.is_empty());
        });
    }
}

#[test]
fn a_connection_is_kept_alive() {
    with_server(|address| async move {
        let mut client = Client::connect(address).await;
        for number in 0..20 {
            client
                .send(&format!("GET /{number} HTTP/1.1\r\nhost: x\r\n\r\n"))
                .await;
            client.until("\r\n\r\n").await;
            assert_eq!(client.until(".").await, format!("/{number} 0"));
        }
        client
            .send("GET /last HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            .await;
        assert!(client.rest().await.ends_with("/last 0."));
    });
}

#[test]
fn requests_that_arrive_together_are_answered_in_order() {
    with_server(|address| async move {
        let mut client = Client::connect(address).await;
        let requests: String = (0..50)
            .map(|number| format!("GET /{number} HTTP/1.1\r\nhost: x\r\n\r\n"))
            .collect();
        client.send(&requests).await;
        for number in 0..50 {
            client.until("\r\n\r\n").await;
            assert_eq!(client.until(".").await, format!("/{number} 0"));
        }
    });
}

/// The pauses are longer than it takes a connection to give up its buffers. The last one is in the middle of a
/// request.
#[test]
fn a_connection_that_gave_up_its_buffers_still_serves() {
    run(2, async {
        let server = start(tower::service_fn(path_and_length), |server| server);
        let mut client = Client::connect(server.address).await;
        let body = "b".repeat(100_000);
        for request in [
            "GET /first HTTP/1.1\r\nhost: x\r\n\r\n",
            "GET /second HTTP/1.1\r\nhost: x\r\n\r\n",
        ] {
            client.send(request).await;
            client.until("\r\n\r\n").await;
            client.until(" 0.").await;
            sleep(Duration::from_millis(2500)).await;
        }
        client
            .send("GET /third HTTP/1.1\r\nhost: x\r\n\r\nPOST /fou")
            .await;
        client.until("/third 0.").await;
        sleep(Duration::from_millis(2500)).await;
        client
            .send(&format!(
                "rth HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n",
                body.len()
            ))
            .await;
        client.send(&body).await;
        client.until("/fourth 100000.").await;
        drop(client);
        server.end().await;
    });
}

#[test]
fn bodies_of_any_length_arrive() {
    with_server(|address| async move {
        let mut client = Client::connect(address).await;
        for length in [0, 1, 8191, 8192, 8193, 1 << 20] {
            let head = format!("POST /b HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n");
            client.send(&head).await;
            client.send(&"x".repeat(length)).await;
            client.until("\r\n\r\n").await;
            assert_eq!(client.until(".").await, format!("/b {length}"));
        }
    });
}
