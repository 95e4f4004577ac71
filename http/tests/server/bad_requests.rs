//! Input that is not a request: the server refuses it or closes its connection, and serves the others.

use std::{net::Shutdown, time::Duration};

use super::{Client, HELLO, hello, run, start};
use crate::tools::Random;

/// Each with the start of the answer, if there is one.
const BAD: &[(&[u8], &str)] = &[
    (b"", ""),
    (b"\0", "HTTP/1.1 400"),
    (b"hello?\r\n\r\n", "HTTP/1.1 400"),
    (b"GET /\r\n\r\n", "HTTP/1.1 400"),
    (b"GET / HTTP/9.9\r\nhost: x\r\n\r\n", "HTTP/1.1 505"),
    (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", "HTTP/1.1 400"),
    (b"GET / HTTP/1.1\r\na: \x01\r\n\r\n", "HTTP/1.1 400"),
    (b"GET /\xff\xfe HTTP/1.1\r\n\r\n", "HTTP/1.1 400"),
    (
        b"POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        "HTTP/1.1 400",
    ),
    (
        b"POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        "HTTP/1.1 400",
    ),
    (
        b"POST / HTTP/1.1\r\ncontent-length: 99999999999999999999\r\n\r\n",
        "HTTP/1.1 400",
    ),
    (
        b"POST / HTTP/1.1\r\ntransfer-encoding: gzip\r\n\r\n",
        "HTTP/1.1 400",
    ),
    // The first bytes of a TLS connection, and of HTTP/2.
    (
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        "HTTP/1.1 400",
    ),
    (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ""),
];

#[test]
fn input_that_is_not_a_request_is_refused() {
    run(2, async {
        let server = start(tower::service_fn(hello), |server| server);
        for (bad, answer) in BAD {
            let client = Client::connect(server.address).await;
            client.stream.write_all(bad).await.unwrap();
            client.stream.shutdown(Shutdown::Write).unwrap();
            let found = client.rest().await;
            let shown = String::from_utf8_lossy(bad);
            assert!(found.starts_with(answer), "{shown:?}: {found:?}");
            assert!(!found.contains("200 OK"), "{shown:?}: {found:?}");
        }
        still_serves(server.address).await;
        assert!(server.end().await.not_stopped.is_empty());
    });
}

/// It takes the place of `Host`.
#[test]
fn a_malformed_host_in_an_absolute_target_is_refused() {
    run(2, async {
        let server = start(tower::service_fn(hello), |server| server);
        for host in ["a,b", ":80"] {
            let client = Client::connect(server.address).await;
            let target = format!("GET http://{host}/ ");
            client.send(&HELLO.replace("GET / ", &target)).await;
            let answer = client.rest().await;
            assert!(answer.starts_with("HTTP/1.1 400"), "{host}: {answer}");
        }
        still_serves(server.address).await;
        server.end().await;
    });
}

/// Random bytes, requests with one random byte, and requests that are cut off at a random place.
#[test]
fn no_bytes_do_harm() {
    run(2, async {
        let server = start(tower::service_fn(hello), |server| server);
        let mut random = Random(7);
        let valid = b"POST /a?b HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
        for round in 0..300 {
            let mut bytes = valid.to_vec();
            match round % 3 {
                0 => {
                    bytes = (0..random.below(200))
                        .map(|_| random.next().to_le_bytes()[0])
                        .collect()
                }
                1 => {
                    let at = random.below(bytes.len());
                    bytes[at] = random.next().to_le_bytes()[0];
                }
                _ => bytes.truncate(random.below(valid.len())),
            }
            let client = Client::connect(server.address).await;
            // The server may already have closed the connection.
            let _refused = client.stream.write_all(&bytes).await;
            if round % 2 == 0 {
                let _refused = client.stream.shutdown(Shutdown::Write);
                client.rest().await;
            } else {
                client.stream.set_linger(Some(Duration::ZERO)).unwrap();
            }
        }
        still_serves(server.address).await;
        assert!(server.end().await.not_stopped.is_empty());
    });
}

#[test]
fn a_head_without_an_end_is_too_large() {
    run(2, async {
        let server = start(tower::service_fn(hello), |server| {
            server.max_buffer(16 << 10)
        });
        let mut client = Client::connect(server.address).await;
        client.send("GET / HTTP/1.1\r\n").await;
        let line = format!("name: {}\r\n", "v".repeat(1000));
        for _ in 0..17 {
            // The answer arrives before the whole head is sent.
            let _refused = client.stream.write_all(line.as_bytes()).await;
        }
        client.until("HTTP/1.1 431").await;
        still_serves(server.address).await;
        server.end().await;
    });
}

async fn still_serves(address: std::net::SocketAddr) {
    let mut client = Client::connect(address).await;
    client.send(HELLO).await;
    client.until("hello.").await;
}
