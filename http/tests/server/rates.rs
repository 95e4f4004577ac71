//! The least rates of clients: one that trickles is given up, and a service that is slow itself is left alone.

use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use weald_http::{MinRate, RequestBody};
use weald_kernel::{sleep, spawn};

use super::{Client, HELLO, run, start, with_some_limit};

const SHORT: Duration = Duration::from_millis(100);
/// Far more than any client of these tests manages.
const FAST: MinRate = MinRate::new(1 << 30, SHORT);

async fn count(request: Request<RequestBody>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    Ok(Response::new(Full::new(format!("{}.", body.len()).into())))
}

/// A second stream for the socket of `client`.
fn writer(client: &Client) -> weald_net::TcpStream {
    let socket = socket2::SockRef::from(&client.stream).try_clone().unwrap();
    weald_net::TcpStream::from_std(socket.into()).unwrap()
}

/// What a client gets that sends a byte each 20 ms, until it is refused or has sent a thousand.
async fn answer_to_a_trickle(address: std::net::SocketAddr) -> String {
    let client = Client::connect(address).await;
    client
        .send("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n")
        .await;
    let drip = writer(&client);
    let drips = spawn(async move {
        for _ in 0..1000 {
            if drip.write_all(b"x").await.is_err() {
                return;
            }
            sleep(SHORT / 5).await;
        }
    });
    let mut client = client;
    let answer = client.until("\r\n\r\n").await;
    drips.cancel();
    answer
}

#[test]
fn a_body_that_trickles_is_refused() {
    run(2, async {
        let server = start(tower::service_fn(count), |server| {
            server.min_body_rate(FAST)
        });
        let answer = answer_to_a_trickle(server.address).await;
        assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
        assert!(answer.contains("\r\ndate: "), "{answer}");
        server.end().await;
    });
}

#[test]
fn a_body_that_trickles_while_another_job_reads_it_is_refused() {
    run(2, async {
        let elsewhere = tower::service_fn(|request: Request<RequestBody>| async {
            spawn(count(request)).await.unwrap()
        });
        let server = start(elsewhere, |server| server.min_body_rate(FAST));
        let answer = answer_to_a_trickle(server.address).await;
        assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
        server.end().await;
    });
}

/// The client has sent everything; only the service's own work takes time.
#[test]
fn a_service_that_reads_slowly_is_not_the_clients_fault() {
    run(2, async {
        let slow = tower::service_fn(|mut request: Request<RequestBody>| async move {
            sleep(2 * SHORT).await;
            let mut length = 0;
            while let Some(frame) = request.body_mut().frame().await {
                length += frame.unwrap().into_data().unwrap().len();
                sleep(2 * SHORT).await;
            }
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(format!("{length}.")))))
        });
        let server = start(slow, |server| server.min_body_rate(FAST));
        let mut client = Client::connect(server.address).await;
        client
            .send("POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n")
            .await;
        client.until("2.").await;
        drop(client);
        server.end().await;
    });
}

#[test]
fn a_reader_that_trickles_is_given_up() {
    const LENGTH: usize = 64 << 20;
    run(2, async {
        let large = tower::service_fn(|_request: Request<RequestBody>| async {
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(vec![b'x'; LENGTH]))))
        });
        let server = start(large, |server| server.min_write_rate(FAST));
        let client = Client::connect(server.address).await;
        client.send(HELLO).await;
        // More is written again and again, so the client is never quiet for the time limit of writes.
        let mut length = 0;
        let mut buffer = vec![0; 64 << 10];
        loop {
            match client.stream.read(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(count) => length += count,
            }
            sleep(SHORT / 5).await;
        }
        assert!(length < LENGTH, "the slow reader got everything");
        assert!(server.end().await.not_stopped.is_empty());
    });
}

/// Each event takes longer than the grace.
#[test]
fn a_service_that_writes_slowly_is_never_cut() {
    run(2, async {
        let events = tower::service_fn(|_request: Request<RequestBody>| async {
            let events = stream::unfold(0, |event| async move {
                sleep(2 * SHORT).await;
                let frame = Frame::data(Bytes::from(format!("event {event}.")));
                (event < 5).then_some((Ok::<_, Infallible>(frame), event + 1))
            });
            Ok::<_, Infallible>(Response::new(StreamBody::new(events)))
        });
        let server = start(events, |server| {
            server.min_write_rate(FAST).write_timeout(SHORT)
        });
        let mut client = Client::connect(server.address).await;
        client.send(HELLO).await;
        client.until("event 4.").await;
        client.until("0\r\n\r\n").await;
        drop(client);
        server.end().await;
    });
}

/// The system reports room only when a third of its buffer is free, which takes this reader longer than both limits.
#[test]
fn a_reader_that_is_fast_enough_is_left_alone_however_large_the_buffers_are() {
    const LENGTH: usize = 24 << 20;
    run(
        2,
        with_some_limit(async |limit| {
            let large = tower::service_fn(|_request: Request<RequestBody>| async {
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(vec![b'x'; LENGTH]))))
            });
            let limit = 10 * limit;
            let server = start(large, |server| {
                server
                    .write_timeout(limit)
                    .min_write_rate(MinRate::new(10_000, limit))
            });
            let client = Client::connect(server.address).await;
            let socket = socket2::SockRef::from(&client.stream);
            socket.set_recv_buffer_size(256 << 10).unwrap();
            client.send(HELLO).await;
            let mut length = 0;
            let mut buffer = vec![0; 32 << 10];
            let begin = weald_kernel::now();
            while length < LENGTH {
                match client.stream.read(&mut buffer).await {
                    Ok(0) | Err(_) => break,
                    Ok(count) => length += count,
                }
                if begin.elapsed() < 5 * limit {
                    sleep(limit / 20).await;
                }
            }
            drop(client);
            server.end().await;
            match length >= LENGTH {
                true => Ok(()),
                false => Err(format!(
                    "the server gave the reader up after {length} bytes"
                )),
            }
        }),
    );
}
