//! Slow clients: those that do not send, and those that do not read.

use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use weald_http::RequestBody;

use super::{Client, HELLO, run, start, with_some_limit};
use crate::tools::{Drops, Token, until_yielding};

const SHORT: Duration = Duration::from_millis(100);

/// The bytes of a large response, which tell when nobody needs them any more.
struct Large(
    Vec<u8>,
    #[expect(dead_code, reason = "its drop counts")] Token,
);

impl AsRef<[u8]> for Large {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

async fn small(_request: Request<RequestBody>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::new("small.".into())))
}

#[test]
fn a_head_that_does_not_end_is_refused() {
    run(
        2,
        with_some_limit(async |limit| {
            let server = start(tower::service_fn(small), |server| {
                server.header_timeout(limit)
            });
            let silent = Client::connect(server.address).await;
            let started = Client::connect(server.address).await;
            started.send("GET / HTTP/1.1\r\nhost:").await;
            let later = Client::connect(server.address).await;
            later.send(&format!("{HELLO}GET / HT")).await;
            assert_eq!(silent.rest().await, "");
            let (started, later) = (started.rest().await, later.rest().await);
            assert!(server.end().await.not_stopped.is_empty());
            // Each is refused, unless it had not begun within the limit.
            let is_refused =
                started.starts_with("HTTP/1.1 408") && later.contains("small.HTTP/1.1 408");
            is_refused.then_some(()).ok_or(started + &later)
        }),
    );
}

/// A head that arrives byte by byte does not restart the time limit.
#[test]
fn a_head_that_trickles_is_refused_too() {
    run(
        2,
        with_some_limit(async |limit| {
            let server = start(tower::service_fn(small), |server| {
                server.header_timeout(limit)
            });
            let client = Client::connect(server.address).await;
            let drips = weald_kernel::spawn({
                let socket = socket2::SockRef::from(&client.stream).try_clone().unwrap();
                async move {
                    let drip = weald_net::TcpStream::from_std(socket.into()).unwrap();
                    while drip.write_all(b"G").await.is_ok() {
                        weald_kernel::sleep(Duration::from_millis(5)).await;
                    }
                }
            });
            let answer = client.rest().await;
            server.end().await;
            drips.cancel();
            answer
                .starts_with("HTTP/1.1 408")
                .then_some(())
                .ok_or(answer)
        }),
    );
}

#[test]
fn a_client_that_reads_nothing_is_given_up() {
    run(2, async {
        let drops = Drops::default();
        let counted = drops.clone();
        let large = tower::service_fn(move |_: Request<RequestBody>| {
            let large = Large(vec![b'x'; 64 << 20], counted.token());
            std::future::ready(Ok::<_, Infallible>(Response::new(Full::new(
                Bytes::from_owner(large),
            ))))
        });
        let server = start(large, |server| server.write_timeout(SHORT));
        let client = Client::connect(server.address).await;
        client.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
        // The client reads nothing until the server has given the response up, so the shutdown waits for nothing.
        until_yielding(|| drops.count() == 1).await;
        let text = client.rest().await;
        assert!(
            text.len() < 64 << 20,
            "not everything fits in the system's buffers"
        );
        assert!(server.end().await.not_stopped.is_empty());
    });
}

#[test]
fn a_quiet_client_is_closed() {
    run(2, async {
        let server = start(tower::service_fn(small), |server| {
            server.idle_timeout(SHORT)
        });
        let mut client = Client::connect(server.address).await;
        client.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
        client.until("small.").await;
        assert_eq!(client.rest().await, "");
        server.end().await;
    });
}
