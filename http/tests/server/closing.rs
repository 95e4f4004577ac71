//! A client that still sends when the server closes finds the answer, and no reset.

use std::{io, net::Shutdown};

use weald_net::TcpStream;

use super::{Client, HELLO, hello, run, start};
use crate::tools::until_yielding;

/// More than one read takes.
const MUCH: usize = 1 << 20;

/// Sends much after `first`, and then reads. A reset would have taken the answer away.
async fn answer_of(address: std::net::SocketAddr, first: &str) -> String {
    let client = Client::connect(address).await;
    // Together, so that the server finds some of it when it answers.
    client.send(&(first.to_owned() + &"x".repeat(MUCH))).await;
    client.stream.shutdown(Shutdown::Write).unwrap();
    client.rest().await
}

#[test]
fn a_refusal_is_read_by_a_client_that_sends_on() {
    run(2, async {
        let server = start(tower::service_fn(hello), |server| server);
        for (first, answer) in [
            ("no request\r\n\r\n", "HTTP/1.1 400"),
            ("GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400"),
            ("GET / HTTP/3.0\r\nhost: x\r\n\r\n", "HTTP/1.1 505"),
            // The service answers without reading the body.
            (
                "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9999999\r\n\r\n",
                "HTTP/1.1 200",
            ),
            (
                "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
                "HTTP/1.1 200",
            ),
        ] {
            let found = answer_of(server.address, first).await;
            assert!(found.starts_with(answer), "{first:?}: {found:?}");
        }
        assert!(server.end().await.not_stopped.is_empty());
    });
}

#[test]
fn an_unknown_version_is_named_also_after_other_requests() {
    run(2, async {
        let server = start(tower::service_fn(hello), |server| server);
        let unknown = HELLO.replace("HTTP/1.1", "HTTP/1.7");
        let mut client = Client::connect(server.address).await;
        client.send(HELLO).await;
        client.until("hello.").await;
        client.send(&format!("{HELLO}{unknown}")).await;
        let answers = client.rest().await;
        assert!(answers.starts_with("HTTP/1.1 200"), "{answers}");
        assert!(
            answers.contains("hello.HTTP/1.1 505 HTTP Version Not Supported\r\n"),
            "{answers}"
        );
        server.end().await;
    });
}

/// A client that neither ends nor sends is not waited for: the next one has its place at once, and a server that ends
/// reports no connection.
#[test]
fn a_connection_that_waits_for_its_clients_end_makes_room() {
    run(2, async {
        let server = start(tower::service_fn(hello), |server| server.max_connections(1));
        let mut refused = Client::connect(server.address).await;
        refused.send("no request\r\n\r\n").await;
        refused.until("HTTP/1.1 400").await;
        let mut next = Client::connect(server.address).await;
        next.send(HELLO).await;
        next.until("hello.").await;
        is_closed(&refused.stream).await;
        drop((refused, next));
        server.end().await;
    });
}

/// Waits until the peer has closed both directions: then writes fail.
async fn is_closed(stream: &TcpStream) {
    until_yielding(|| {
        let written = stream.try_write(b"x");
        written.is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock)
    })
    .await;
}
