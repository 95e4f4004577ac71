//! Bodies that do not arrive: the server gives up a slow client, but not a slow service.

use std::{
    convert::Infallible,
    pin::pin,
    sync::{
        LazyLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::{
    FutureExt,
    future::{Either, select},
};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use weald_http::RequestBody;
use weald_kernel::{sleep, timeout};

use super::{Client, run, start, with_some_limit};
use crate::tools::{Drops, until_yielding};

const SHORT: Duration = Duration::from_millis(100);
const POST: &str = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n";
/// After its answer the connection ends.
static LAST_POST: LazyLock<String> =
    LazyLock::new(|| POST.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n"));

async fn count(request: Request<RequestBody>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    Ok(Response::new(Full::new(format!("{}.", body.len()).into())))
}

#[test]
fn a_body_that_stops_is_refused_and_the_service_dropped() {
    run(2, async {
        let drops = Drops::default();
        let counted = drops.clone();
        let service = tower::service_fn(move |request| {
            let token = counted.token();
            async move {
                let counted = count(request).await;
                drop(token);
                counted
            }
        });
        let server = start(service, |server| server.body_timeout(SHORT));
        for start in ["", "123"] {
            let client = Client::connect(server.address).await;
            client.send(POST).await;
            client.send(start).await;
            let answer = client.rest().await;
            assert!(answer.starts_with("HTTP/1.1 408"), "{answer:?}");
        }
        until_yielding(|| drops.count() == 2).await;
        assert!(server.end().await.not_stopped.is_empty());
    });
}

/// Each piece restarts the time limit: together they take longer than a client may be silent.
#[test]
fn a_body_that_arrives_in_pieces_is_awaited() {
    run(
        2,
        with_some_limit(async |limit| {
            let server = start(tower::service_fn(count), |server| {
                server.body_timeout(limit)
            });
            let client = Client::connect(server.address).await;
            client.send(&LAST_POST).await;
            for _ in 0..10 {
                sleep(limit / 4).await;
                // The server may have given it up.
                let _refused = client.stream.write_all(b"x").await;
            }
            let answer = client.rest().await;
            server.end().await;
            answer.ends_with("10.").then_some(()).ok_or(answer)
        }),
    );
}

/// What the client owes comes with the head, so the service never waits for it.
#[test]
fn a_service_that_takes_its_time_is_not_the_clients_fault() {
    run(2, async {
        let slow = tower::service_fn(|mut request: Request<RequestBody>| async move {
            match request.uri().path() {
                "/all" => drop(request.body_mut().collect().await.unwrap()),
                "/part" => drop(request.body_mut().frame().await.unwrap().unwrap()),
                _ => {}
            }
            sleep(5 * SHORT).await;
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("late."))))
        });
        let server = start(slow, |server| server.body_timeout(SHORT));
        let mut clients = Vec::new();
        for (path, body) in [("/all", "1234567890"), ("/part", "123"), ("/none", "123")] {
            let client = Client::connect(server.address).await;
            let head = POST.replace(" / ", &format!(" {path} "));
            client.send(&(head + body)).await;
            clients.push(client);
        }
        for mut client in clients {
            client.until("late.").await;
        }
        server.end().await;
    });
}

/// The frame for which the service asked arrives within the limit, and the service does not take it.
#[test]
fn a_service_that_does_not_take_what_has_arrived_takes_its_time() {
    run(
        2,
        with_some_limit(async |limit| {
            let has_asked = &*Box::leak(Box::new(AtomicBool::new(false)));
            let slow = tower::service_fn(move |mut request: Request<RequestBody>| async move {
                let early = request.body_mut().frame().now_or_never();
                assert!(early.is_none());
                has_asked.store(true, Ordering::Relaxed);
                sleep(5 * limit).await;
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("late."))))
            });
            let server = start(slow, |server| server.body_timeout(limit));
            let client = Client::connect(server.address).await;
            client.send(&LAST_POST).await;
            until_yielding(|| has_asked.load(Ordering::Relaxed)).await;
            client.send("1234567890").await;
            let answer = client.rest().await;
            server.end().await;
            answer.ends_with("late.").then_some(()).ok_or(answer)
        }),
    );
}

/// `100 Continue` does not count as a response.
#[test]
fn a_body_that_stops_after_100_continue_is_refused() {
    run(2, async {
        let server = start(tower::service_fn(count), |server| {
            server.body_timeout(SHORT)
        });
        let mut client = Client::connect(server.address).await;
        let expects = POST.replace("\r\n\r\n", "\r\nexpect: 100-continue\r\n\r\n");
        client.send(&expects).await;
        client.until("HTTP/1.1 100 Continue\r\n\r\n").await;
        client.send("123").await;
        let answer = client.rest().await;
        assert!(answer.starts_with("HTTP/1.1 408"), "{answer:?}");
        server.end().await;
    });
}

/// A service that takes what arrives within a timeout, and then does something else.
#[test]
fn a_service_that_no_longer_waits_takes_its_time() {
    run(
        2,
        with_some_limit(async |limit| {
            let impatient =
                tower::service_fn(move |mut request: Request<RequestBody>| async move {
                    let mut count = 0;
                    while let Ok(Some(frame)) = timeout(limit / 4, request.body_mut().frame()).await
                    {
                        count += frame.unwrap().into_data().unwrap().len();
                    }
                    sleep(5 * limit).await;
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(format!("{count}.")))))
                });
            let server = start(impatient, |server| server.body_timeout(limit));
            let client = Client::connect(server.address).await;
            client.send(&format!("{}123", *LAST_POST)).await;
            let answer = client.rest().await;
            server.end().await;
            answer.ends_with("3.").then_some(()).ok_or(answer)
        }),
    );
}

/// The service handles other events in between, which does not extend the client's time limit.
#[test]
fn a_service_that_waits_for_several_things_refuses_a_body_that_stops() {
    run(2, async {
        let busy = tower::service_fn(|request: Request<RequestBody>| async move {
            let body = request.into_body().collect();
            let ticks = async {
                loop {
                    sleep(SHORT / 20).await;
                }
            };
            let Either::Left((body, _)) = select(pin!(body), pin!(ticks)).await;
            Ok::<_, Infallible>(Response::new(Full::new(body.unwrap().to_bytes())))
        });
        let server = start(busy, |server| server.body_timeout(SHORT));
        let client = Client::connect(server.address).await;
        client.send(POST).await;
        client.send("123").await;
        let answer = client.rest().await;
        assert!(answer.starts_with("HTTP/1.1 408"), "{answer:?}");
        server.end().await;
    });
}

#[test]
fn a_body_that_stops_while_another_job_reads_it_is_refused() {
    run(2, async {
        let elsewhere = tower::service_fn(|request: Request<RequestBody>| async move {
            weald_kernel::spawn(count(request)).await.unwrap()
        });
        let server = start(elsewhere, |server| server.body_timeout(SHORT));
        for start in ["", "123"] {
            let client = Client::connect(server.address).await;
            client.send(POST).await;
            client.send(start).await;
            let answer = client.rest().await;
            assert!(answer.starts_with("HTTP/1.1 408"), "{answer:?}");
        }
        server.end().await;
    });
}
