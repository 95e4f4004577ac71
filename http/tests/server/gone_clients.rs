//! Clients that go while they are served: the service's future is dropped, whichever way they went.

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

/// Never answers a request that came whole, and tells when it begins and when it is dropped.
fn endless(drops: &Drops) -> (impl weald_http::Serve, channel::Receiver<()>) {
    let (began, begun) = channel::unbounded();
    let drops = drops.clone();
    let service = tower::service_fn(move |request: Request<RequestBody>| {
        let (began, token) = (began.clone(), drops.token());
        async move {
            began.try_send(()).unwrap();
            if request.into_body().collect().await.is_ok() {
                std::future::pending::<()>().await;
            }
            drop(token);
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::new())))
        }
    });
    (service, begun)
}

#[test]
fn a_service_ends_with_its_client() {
    run(2, async {
        let drops = Drops::default();
        let (service, begun) = endless(&drops);
        let server = start(service, |server| server);
        let post = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n12345";
        let mut ended = 0;
        for linger in [None, Some(Duration::ZERO)] {
            for request in [HELLO, post] {
                let client = Client::connect(server.address).await;
                client.stream.set_linger(linger).unwrap();
                client.send(request).await;
                begun.receive().await.unwrap();
                drop(client);
                ended += 1;
                until_yielding(|| drops.count() == ended).await;
            }
        }
        assert!(server.end().await.not_stopped.is_empty());
    });
}

const CHILD: &str = "WEALD_HTTP_CLIENTS";

/// The clients are another program, which is killed.
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
        let (service, begun) = endless(&drops);
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
            begun.receive().await.unwrap();
        }
        clients.kill().unwrap();
        clients.wait().unwrap();
        until_yielding(|| drops.count() == 50).await;
        assert!(server.end().await.not_stopped.is_empty());
    });
}

#[test]
fn who_ends_only_its_direction_is_answered_if_that_is_wanted() {
    run(2, async {
        let (begin, allowed) = channel::unbounded::<()>();
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
        begin.try_send(()).unwrap();
        assert!(answered.rest().await.ends_with("still there."));
        strict.end().await;
        lenient.end().await;
    });
}
