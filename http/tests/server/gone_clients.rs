//! Clients that leave while they are served: the service's future is dropped, however they leave.

use std::{
    convert::Infallible,
    env,
    io::{BufRead, BufReader, Write},
    net::{Shutdown, TcpStream as StdStream},
    process::{Command, Stdio},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use weald_http::RequestBody;
use weald_sync::channel;

use super::{Client, HELLO, run, start};
use crate::tools::{Drops, until_yielding};

/// A service that never answers a complete request, and reports when it starts and when it is dropped.
fn endless(drops: &Drops) -> (impl weald_http::Serve, channel::Receiver<()>) {
    let (report, started) = channel::unbounded();
    let drops = drops.clone();
    let service = tower::service_fn(move |request: Request<RequestBody>| {
        let (report, token) = (report.clone(), drops.token());
        async move {
            report.try_send(()).unwrap();
            if request.into_body().collect().await.is_ok() {
                std::future::pending::<()>().await;
            }
            drop(token);
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::new())))
        }
    });
    (service, started)
}

#[test]
fn a_service_ends_with_its_client() {
    run(2, async {
        let drops = Drops::default();
        let (service, started) = endless(&drops);
        let server = start(service, |server| server);
        let post = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n12345";
        let mut ended = 0;
        for linger in [None, Some(Duration::ZERO)] {
            for request in [HELLO, post] {
                let client = Client::connect(server.address).await;
                client.stream.set_linger(linger).unwrap();
                client.send(request).await;
                started.receive().await.unwrap();
                drop(client);
                ended += 1;
                until_yielding(|| drops.count() == ended).await;
            }
        }
        assert!(server.end().await.not_stopped.is_empty());
    });
}

/// The service never reads the body, or another request is behind the one that it answers, so hyper does not read on.
#[test]
fn a_service_ends_with_its_client_whatever_is_left_to_read() {
    run(2, async {
        let drops = Drops::default();
        let (report, started) = channel::unbounded();
        let counted = drops.clone();
        let service = tower::service_fn(move |request: Request<RequestBody>| {
            let (report, token) = (report.clone(), counted.token());
            async move {
                report.try_send(()).unwrap();
                std::future::pending::<()>().await;
                drop((request, token));
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::new())))
            }
        });
        let drops_half_closed = start(service.clone(), |server| server);
        let answers_half_closed = start(service, |server| server.answer_half_closed());
        let post = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 30\r\n\r\n";
        let reset = Some(Duration::ZERO);
        let mut ended = 0;
        // A client that only ends its direction may still wait for the answer.
        for (server, linger) in [
            (&drops_half_closed, None),
            (&drops_half_closed, reset),
            (&answers_half_closed, reset),
        ] {
            for request in [format!("{HELLO}{HELLO}"), post.to_owned()] {
                let client = Client::connect(server.address).await;
                client.stream.set_linger(linger).unwrap();
                client.send(&request).await;
                started.receive().await.unwrap();
                drop(client);
                ended += 1;
            }
        }
        until_yielding(|| drops.count() == ended).await;
        for server in [drops_half_closed, answers_half_closed] {
            assert!(server.end().await.not_stopped.is_empty());
        }
    });
}

const CHILD: &str = "WEALD_HTTP_CLIENTS";

/// The clients are in a child process, which is killed.
#[test]
fn a_service_ends_when_its_clients_are_killed() {
    if let Ok(address) = env::var(CHILD) {
        let connect = |_| {
            let mut stream = StdStream::connect(&address).unwrap();
            stream.write_all(HELLO.as_bytes()).unwrap();
            stream
        };
        let _streams: Vec<_> = (0..50).map(connect).collect();
        println!("\nasked");
        std::thread::park();
        return;
    }
    run(2, async {
        let drops = Drops::default();
        let (service, started) = endless(&drops);
        let server = start(service, |server| server);
        let mut clients = Command::new(env::current_exe().unwrap())
            .args([
                "--exact",
                "server::gone_clients::a_service_ends_when_its_clients_are_killed",
                "--nocapture",
            ])
            .env(CHILD, server.address.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(clients.stdout.take().unwrap()).lines();
        let mut lines = lines.map(Result::unwrap);
        assert!(lines.any(|line| line == "asked"));
        for _ in 0..50 {
            started.receive().await.unwrap();
        }
        clients.kill().unwrap();
        clients.wait().unwrap();
        until_yielding(|| drops.count() == 50).await;
        assert!(server.end().await.not_stopped.is_empty());
    });
}

#[test]
fn a_half_closed_client_is_answered_only_if_the_server_allows_it() {
    run(2, async {
        let (allow, allowed) = channel::unbounded::<()>();
        let allowed = std::sync::Arc::new(allowed);
        let service = tower::service_fn(move |_request: Request<RequestBody>| {
            let allowed = allowed.clone();
            async move {
                allowed.receive().await.unwrap();
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("still there."))))
            }
        });
        let strict = start(service.clone(), |server| server);
        let lenient = start(service, |server| server.answer_half_closed());
        let [dropped, answered] = [&strict, &lenient].map(|server| server.address);
        let (dropped, answered) = (
            Client::connect(dropped).await,
            Client::connect(answered).await,
        );
        for client in [&dropped, &answered] {
            client.send(HELLO).await;
            client.stream.shutdown(Shutdown::Write).unwrap();
        }
        assert_eq!(dropped.rest().await, "");
        allow.try_send(()).unwrap();
        assert!(answered.rest().await.ends_with("still there."));
        strict.end().await;
        lenient.end().await;
    });
}

/// Hyper reads nothing meanwhile, because another request is behind the one in flight. Time is virtual.
#[test]
fn a_half_closed_client_is_answered_however_long_that_takes_if_the_server_allows_it() {
    weald_kernel::Runtime::test(1).block_on(async {
        let service = tower::service_fn(|_request: Request<RequestBody>| async {
            weald_kernel::sleep(Duration::from_secs(20)).await;
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("still there."))))
        });
        let strict = start(service, |server| server);
        let lenient = start(service, |server| server.answer_half_closed());
        for (server, answers) in [(strict, 0), (lenient, 2)] {
            let client = Client::connect(server.address).await;
            client.send(&format!("{HELLO}{HELLO}")).await;
            client.stream.shutdown(Shutdown::Write).unwrap();
            let answer = client.rest().await;
            assert_eq!(answer.matches("still there.").count(), answers, "{answer}");
            server.end().await;
        }
    });
}
