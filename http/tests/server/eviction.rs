//! At the limit of connections, idle ones make room for new ones, and busy ones do not.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use weald_http::RequestBody;
use weald_kernel::spawn;
use weald_sync::channel::unbounded;

use super::{Client, HELLO, hello, run, start};
use crate::{
    reports::{collect_reports, reports},
    tools::until_yielding,
};

/// Some clients send an empty line after a request. The other connection, which the server would have to close in its
/// place, shows that the server has read it.
#[test]
fn a_connection_that_got_an_empty_line_is_idle() {
    run(1, async {
        let server = start(tower::service_fn(hello), |server| {
            let long = std::time::Duration::from_secs(3600);
            server.max_connections(2).header_timeout(long)
        });
        let mut first = Client::connect(server.address).await;
        first.send(HELLO).await;
        first.until("hello.").await;
        first.send("\r\n").await;
        let mut second = Client::connect(server.address).await;
        for _ in 0..100 {
            second.send(HELLO).await;
            second.until("hello.").await;
        }
        second.send("GET").await;
        let mut third = Client::connect(server.address).await;
        third.send(HELLO).await;
        third.until("hello.").await;
        assert_eq!(first.rest().await, "", "it made room");
        second.send(HELLO.strip_prefix("GET").unwrap()).await;
        second.until("hello.").await;
        drop((second, third));
        server.end().await;
    });
}

/// It gives up its buffers, and then gets a request.
#[test]
fn a_request_after_empty_lines_is_served() {
    run(1, async {
        let server = start(tower::service_fn(hello), |server| server);
        let mut client = Client::connect(server.address).await;
        client.send("\r\n").await;
        let mut other = Client::connect(server.address).await;
        for _ in 0..3 {
            for _ in 0..100 {
                other.send(HELLO).await;
                other.until("hello.").await;
            }
            client.send("\n").await;
            client.send(HELLO).await;
            client.until("hello.").await;
            client.send("\r\n\r\n").await;
        }
        drop((client, other));
        server.end().await;
    });
}

#[test]
fn a_new_client_takes_the_place_of_the_one_that_is_idle_longest() {
    run(2, async {
        let server = start(tower::service_fn(hello), |server| server.max_connections(3));
        let mut clients = Vec::new();
        for _ in 0..3 {
            let mut client = Client::connect(server.address).await;
            client.send(HELLO).await;
            client.until("hello.").await;
            clients.push(client);
        }
        // Without an eviction this waits for the idle timeout, which is longer than the test may take.
        for _ in 0..7 {
            let mut client = Client::connect(server.address).await;
            client.send(HELLO).await;
            client.until("hello.").await;
            clients.push(client);
        }
        // Seven were closed, in an orderly way: each sees the end, and no error.
        let (mut closed, mut open) = (0, 0);
        for mut client in clients {
            if client
                .stream
                .try_read(&mut [0; 1])
                .is_ok_and(|count| count == 0)
            {
                closed += 1;
            } else {
                open += 1;
                client.send(HELLO).await;
                client.until("hello.").await;
            }
        }
        assert_eq!((closed, open), (7, 3));
        server.end().await;
    });
}

#[test]
fn a_client_that_never_asked_makes_room_too() {
    run(2, async {
        let server = start(tower::service_fn(hello), |server| server.max_connections(2));
        let silent = [
            Client::connect(server.address).await,
            Client::connect(server.address).await,
        ];
        for _ in 0..4 {
            let mut client = Client::connect(server.address).await;
            client.send(HELLO).await;
            client.until("hello.").await;
        }
        for client in silent {
            assert_eq!(client.rest().await, "");
        }
        server.end().await;
    });
}

/// A connection is idle again once the body of its last request has arrived.
#[test]
fn clients_that_sent_a_body_make_room_too() {
    run(2, async {
        let service = tower::service_fn(async |request: Request<RequestBody>| {
            let body = request.into_body().collect().await?.to_bytes();
            Ok::<_, hyper::Error>(Response::new(Full::new(body)))
        });
        let server = start(service, |server| server.max_connections(2));
        let length = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\ndone.";
        let chunks = "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\ndone.\r\n0\r\n\r\n";
        let mut clients = Vec::new();
        for request in [length, chunks, length, chunks, length, chunks] {
            let mut client = Client::connect(server.address).await;
            client.send(request).await;
            client.until("done.").await;
            clients.push(client);
        }
        drop(clients);
        server.end().await;
    });
}

/// Hyper reads the rest of a body that the service dropped, if it has arrived, and the connection is idle then.
#[test]
fn clients_whose_bodies_nobody_reads_to_the_end_make_room_too() {
    run(2, async {
        let service = tower::service_fn(async |mut request: Request<RequestBody>| {
            match request.uri().path() {
                "/unread" => {}
                "/late" => weald_kernel::yield_now().await,
                "/data" => drop(request.body_mut().frame().await),
                _ => spawn_reader(request.into_body()),
            }
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("done."))))
        });
        let server = start(service, |server| server.max_connections(2));
        let length = "content-length: 5\r\n\r\nwords";
        let chunks = "transfer-encoding: chunked\r\n\r\n5\r\nwords\r\n0\r\n\r\n";
        let mut clients = Vec::new();
        for path in ["/unread", "/late", "/data", "/elsewhere"] {
            for body in [length, chunks, length, chunks] {
                let mut client = Client::connect(server.address).await;
                let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\n");
                client.send(&(head + body)).await;
                client.until("done.").await;
                clients.push(client);
            }
        }
        // The last one was not closed, and goes on.
        let last = clients.last_mut().unwrap();
        last.send(HELLO).await;
        last.until("done.").await;
        drop(clients);
        server.end().await;
    });
}

/// Reads one frame in a job of its own, after the answer, and then drops the body.
fn spawn_reader(mut body: RequestBody) {
    let reading = async move {
        weald_kernel::yield_now().await;
        drop(body.frame().await);
    };
    spawn(reading).detach();
}

/// Answers when it is told to. If that takes long, it is reported.
#[test]
fn busy_connections_are_left_and_the_new_one_waits_for_one_that_falls_idle() {
    run(2, async {
        collect_reports();
        let (go, gone) = unbounded::<()>();
        let gone = std::sync::Arc::new(weald_sync::Mutex::new(gone));
        let service = tower::service_fn(move |request: Request<RequestBody>| {
            let gone = gone.clone();
            async move {
                if request.uri().path() == "/wait" {
                    let gone = gone.lock().await;
                    gone.receive().await.unwrap();
                }
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("done."))))
            }
        });
        let server = start(service, |server| server.max_connections(2));
        let mut busy = Vec::new();
        for _ in 0..2 {
            let client = Client::connect(server.address).await;
            client.send(&HELLO.replace(" / ", " /wait ")).await;
            busy.push(client);
        }
        let address = server.address;
        let third = spawn(async move {
            let mut client = Client::connect(address).await;
            client.send(HELLO).await;
            client.until("done.").await;
        });
        weald_kernel::sleep(std::time::Duration::from_millis(50)).await;
        assert!(!third.is_finished(), "there is no room");
        let peer = busy[0].stream.local_addr().unwrap();
        let busy_one = format!("2 serve requests, one of them `GET /wait from {peer}`");
        until_yielding(|| !reports("weald::service", &busy_one).is_empty()).await;
        for _ in 0..2 {
            go.try_send(()).unwrap();
        }
        for client in &mut busy {
            client.until("done.").await;
        }
        third.await.unwrap();
        server.end().await;
    });
}

/// They hold the places, and no request is to blame. A connection that is asked to make room before it has read the
/// part of a head may do so: then the third client has a place, and the test begins again.
#[test]
fn clients_that_have_sent_a_part_of_a_head_are_reported_as_such() {
    run(2, async {
        collect_reports();
        while !are_reported_as_such().await {}
    });
}

async fn are_reported_as_such() -> bool {
    let server = start(tower::service_fn(hello), |server| {
        let long = std::time::Duration::from_secs(3600);
        server.max_connections(2).header_timeout(long)
    });
    let has_room = Arc::new(AtomicBool::new(false));
    let mut peers = Vec::new();
    for _ in 0..2 {
        let mut client = Client::connect(server.address).await;
        // So both are served at the limit.
        client.send(HELLO).await;
        client.until("hello.").await;
        client.send("GET / HTTP/1.1\r\n").await;
        peers.push(client.stream.local_addr().unwrap());
        let has_room = has_room.clone();
        spawn(async move {
            client.rest().await;
            has_room.store(true, Ordering::Relaxed);
        })
        .detach();
    }
    let _third = Client::connect(server.address).await;
    let told = format!(
        "2 wait for the rest of a request's head from their clients, one of them {}",
        peers[0]
    );
    let is_reported = || !reports("weald::service", &told).is_empty();
    until_yielding(|| is_reported() || has_room.load(Ordering::Relaxed)).await;
    let is_reported = is_reported();
    server.end().await;
    is_reported
}

/// Two connections were upgraded. The server no longer lists them, but they hold their places.
#[test]
fn upgraded_connections_count() {
    run(2, async {
        let (taken, all) = unbounded();
        let service = tower::service_fn(move |request: Request<RequestBody>| {
            let taken = taken.clone();
            async move {
                let mut response = Response::new(Full::new(Bytes::new()));
                if request.headers().contains_key(header::UPGRADE) {
                    spawn(async move {
                        taken
                            .try_send(hyper::upgrade::on(request).await.unwrap())
                            .unwrap();
                    })
                    .detach();
                    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
                    let headers = response.headers_mut();
                    headers.insert(header::UPGRADE, header::HeaderValue::from_static("shout"));
                    headers.insert(
                        header::CONNECTION,
                        header::HeaderValue::from_static("upgrade"),
                    );
                }
                Ok::<_, Infallible>(response)
            }
        });
        let server = start(service, |server| server.max_connections(2));
        let mut upgraded = Vec::new();
        for _ in 0..2 {
            let client = Client::connect(server.address).await;
            let upgrade = "connection: upgrade\r\nupgrade: shout\r\n\r\n";
            client
                .send(&HELLO.replace("\r\n\r\n", &format!("\r\n{upgrade}")))
                .await;
            upgraded.push((all.receive().await.unwrap(), client));
        }
        let address = server.address;
        let third = spawn(async move {
            let mut client = Client::connect(address).await;
            client.send(HELLO).await;
            client.until("HTTP/1.1 200").await;
        });
        weald_kernel::sleep(std::time::Duration::from_millis(50)).await;
        assert!(
            !third.is_finished(),
            "upgraded connections hold their places"
        );
        drop(upgraded.pop());
        third.await.unwrap();
        drop(upgraded);
        server.end().await;
    });
}

#[test]
fn a_client_whose_last_request_had_a_body_makes_room_too() {
    run(2, async {
        let echo = tower::service_fn(|request: Request<RequestBody>| async {
            let body = request.into_body().collect().await?.to_bytes();
            Ok::<_, hyper::Error>(Response::new(Full::new(body)))
        });
        let server = start(echo, |server| server.max_connections(1));
        let mut clients = Vec::new();
        for body in [
            "content-length: 5\r\n\r\nfirst",
            "transfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n0\r\n\r\n",
        ] {
            let mut client = Client::connect(server.address).await;
            client
                .send(&format!("POST / HTTP/1.1\r\nhost: x\r\n{body}"))
                .await;
            client.until("first").await;
            clients.push(client);
        }
        let mut last = Client::connect(server.address).await;
        last.send(HELLO).await;
        last.until("\r\n\r\n").await;
        for client in clients {
            assert_eq!(client.rest().await, "");
        }
        drop(last);
        server.end().await;
    });
}

/// The connection that is to make room gets a request at that moment, which is answered; another one makes room.
#[test]
fn a_request_that_arrives_with_the_order_to_close_is_answered_and_another_connection_makes_room() {
    let _watch = crate::tools::watch();
    // One worker, which nobody retakes: while a job runs, the server does not.
    let runtime = weald_kernel::Runtime::builder()
        .workers(1)
        .stuck_after(std::time::Duration::from_secs(3_600))
        .build()
        .unwrap();
    runtime.block_on(async {
        let (go, gone) = unbounded::<()>();
        let gone = std::sync::Arc::new(weald_sync::Mutex::new(gone));
        let service = tower::service_fn(move |request: Request<RequestBody>| {
            let gone = gone.clone();
            async move {
                if request.uri().path() == "/wait" {
                    let gone = gone.lock().await;
                    gone.receive().await.unwrap();
                }
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("done."))))
            }
        });
        let server = start(service, |server| server.max_connections(2));
        let mut clients = Vec::new();
        for _ in 0..2 {
            let mut client = Client::connect(server.address).await;
            client.send(HELLO).await;
            client.until("done.").await;
            clients.push(client);
        }
        // Long enough for both to give up their buffers.
        weald_kernel::sleep(std::time::Duration::from_millis(800)).await;
        let wait = HELLO.replace(" / ", " /wait ");
        let (first, address) = (clients.remove(0), server.address);
        let both = weald_kernel::spawn(async move {
            let third = std::net::TcpStream::connect(address).unwrap();
            first.stream.try_write(wait.as_bytes()).unwrap();
            (first, third)
        });
        let (mut first, third) = both.await.unwrap();
        let mut third = Client {
            stream: weald_net::TcpStream::from_std(third).unwrap(),
            read: Vec::new(),
        };
        third.send(HELLO).await;
        third.until("done.").await;
        go.try_send(()).unwrap();
        first.until("done.").await;
        drop((first, clients, third));
        server.end().await;
    });
}
