//! A service whose clone blocks: only the connection that the clone is for waits, and reports name it.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    net::Shutdown,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tower_service::Service;
use weald_http::{RequestBody, Step};
use weald_kernel::Runtime;
use weald_sync::channel;

use super::{Client, HELLO, panics::Brittle, run, start, with_some_limit};
use crate::{
    blocker::Blocker,
    reports::{collect_reports, reports},
    tools::{until_yielding, watch},
};

/// If it is set, the next clone blocks.
#[derive(Default)]
struct Sticky {
    next: Arc<AtomicBool>,
    blocker: Blocker,
}

impl Sticky {
    /// The next clone blocks. Connects the client whose connection makes it, and waits until it blocks.
    async fn stick(next: &AtomicBool, blocker: &Blocker, address: std::net::SocketAddr) -> Client {
        let begun = blocker.begun();
        next.store(true, Ordering::SeqCst);
        let client = Client::connect(address).await;
        until_yielding(|| blocker.begun() > begun).await;
        client
    }
}

impl Clone for Sticky {
    fn clone(&self) -> Sticky {
        if self.next.swap(false, Ordering::SeqCst) {
            self.blocker.block();
        }
        Sticky {
            next: self.next.clone(),
            blocker: self.blocker.clone(),
        }
    }
}

/// Answers `/breaks` with bytes that panic when hyper looks at them.
impl Service<Request<RequestBody>> for Sticky {
    type Response = Response<Full<Brittle>>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Full<Brittle>>, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let mut answer = Brittle::default();
        if request.uri().path() != "/breaks" {
            answer.bytes = Some("done.".into());
        }
        ready(Ok(Response::new(Full::new(answer))))
    }
}

async fn is_served(address: std::net::SocketAddr) {
    let mut client = Client::connect(address).await;
    client.send(HELLO).await;
    client.until("done.").await;
}

/// One after the other, so that each takes an instance of the service that is left.
#[test]
fn clones_that_block_delay_only_their_own_connections_and_are_named() {
    run(1, async {
        collect_reports();
        let service = Sticky::default();
        let (next, blocker) = (service.next.clone(), service.blocker.clone());
        let server = start(service, |server| server);
        is_served(server.address).await;
        let mut stuck = Vec::new();
        for _ in 0..4 {
            let client = Sticky::stick(&next, &blocker, server.address).await;
            client.send(HELLO).await;
            stuck.push(client);
            for _ in 0..5 {
                is_served(server.address).await;
            }
        }
        let peer = stuck[0].stream.local_addr().unwrap();
        let named = format!("no request from {peer}");
        until_yielding(|| !reports("weald::monitor", &named).is_empty()).await;
        blocker.open();
        let text = &reports("weald::monitor", &named)[0].text;
        assert!(text.contains("the clone of "), "{text}");
        assert!(text.contains("clones::Sticky"), "{text}");
        assert!(
            text.contains("spawned at http/tests/server/clones.rs:"),
            "{text}"
        );
        for mut client in stuck {
            client.until("done.").await;
        }
        assert!(server.end().await.not_stopped.is_empty());
    });
}

/// No time limit ends the one that waits. The one that leaves its instance goes by itself, or is given up in the middle
/// of an answer.
#[test]
fn if_as_many_clones_as_there_are_instances_never_end_a_connection_that_ends_leaves_its_own() {
    for is_given_up in [false, true] {
        run(1, async {
            let service = Sticky::default();
            let (next, blocker) = (service.next.clone(), service.blocker.clone());
            let server = start(service, |server| {
                server.header_timeout(Duration::from_secs(3600))
            });
            let mut served = Client::connect(server.address).await;
            served.send(HELLO).await;
            served.until("done.").await;
            let mut stuck = Vec::new();
            for _ in 0..2 {
                stuck.push(Sticky::stick(&next, &blocker, server.address).await);
            }
            let mut waits = Client::connect(server.address).await;
            waits.send(HELLO).await;
            match is_given_up {
                true => served.send(&HELLO.replace(" / ", " /breaks ")).await,
                false => served.stream.shutdown(Shutdown::Both).unwrap(),
            }
            waits.until("done.").await;
            blocker.open();
            drop((served, waits, stuck));
            server.end().await;
        });
    }
}

/// The first clone blocks, so there is no other instance yet.
#[test]
fn connections_that_wait_for_an_instance_are_served_in_the_end() {
    run(2, async {
        let service = Sticky::default();
        let (next, blocker) = (service.next.clone(), service.blocker.clone());
        let server = start(service, |server| server);
        let mut clients = vec![Sticky::stick(&next, &blocker, server.address).await];
        for _ in 0..20 {
            clients.push(Client::connect(server.address).await);
        }
        for client in &clients {
            client.send(HELLO).await;
        }
        blocker.open();
        for mut client in clients {
            client.until("done.").await;
        }
        assert!(server.end().await.not_stopped.is_empty());
    });
}

#[test]
fn a_connection_that_waits_for_an_instance_ends_with_the_server() {
    run(2, async {
        let service = Sticky::default();
        let (next, blocker) = (service.next.clone(), service.blocker.clone());
        let server = start(service, |server| {
            server.drain_for(Duration::from_millis(50))
        });
        let stuck = Sticky::stick(&next, &blocker, server.address).await;
        let waits = Client::connect(server.address).await;
        waits.send(HELLO).await;
        let drained = server.end().await;
        let answer = waits.rest().await;
        // Before anything is asserted, or a failure would wait for it.
        blocker.open();
        assert_eq!(answer, "");
        assert!(!drained.not_stopped.is_empty(), "{drained:?}");
        let mut steps = drained.not_stopped.iter().map(|connection| connection.step);
        // On a busy machine the server may not have accepted the second one.
        assert!(steps.all(|step| step == Step::Opening), "{drained:?}");
        let text = drained.not_stopped[0].to_string();
        assert!(
            text.ends_with(", whose connection waits for its clone of the service"),
            "{text}"
        );
        assert_eq!(stuck.rest().await, "");
    });
}

/// The deadline would come much later.
#[test]
fn a_connection_without_a_request_that_waits_for_an_instance_ends_with_the_drain() {
    run(2, async {
        let service = Sticky::default();
        let (next, blocker) = (service.next.clone(), service.blocker.clone());
        let server = start(service, |server| {
            let long = Duration::from_secs(3600);
            server.drain_for(long).header_timeout(long)
        });
        let stuck = Sticky::stick(&next, &blocker, server.address).await;
        let waits = Client::connect(server.address).await;
        // The server accepts in order, so it has accepted the one before.
        let _last = Client::connect(server.address).await;
        let _sent = server.end.send(());
        assert_eq!(waits.rest().await, "");
        blocker.open();
        assert_eq!(stuck.rest().await, "");
        assert!(server.ended.await.unwrap().unwrap().not_stopped.is_empty());
    });
}

#[test]
fn a_client_whose_connection_gets_no_instance_in_time_is_told() {
    run(2, async {
        collect_reports();
        with_some_limit(async |limit| {
            let service = Sticky::default();
            let (next, blocker) = (service.next.clone(), service.blocker.clone());
            let server = start(service, |server| server.header_timeout(limit));
            let stuck = Sticky::stick(&next, &blocker, server.address).await;
            let (asks, quiet) = (
                Client::connect(server.address).await,
                Client::connect(server.address).await,
            );
            asks.send(HELLO).await;
            let (answer, nothing) = (asks.rest().await, quiet.rest().await);
            blocker.open();
            drop(stuck);
            let is_told = answer.starts_with("HTTP/1.1 503") && nothing.is_empty();
            let again = Client::connect(server.address).await;
            again
                .send(&HELLO.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n"))
                .await;
            let is_served = again.rest().await.starts_with("HTTP/1.1 200");
            server.end().await;
            match is_told && is_served {
                true => Ok(()),
                false => Err(format!("{answer:?}, {nothing:?}, {is_served}")),
            }
        })
        .await;
        let told = "waited in vain for a clone of server::server::clones::Sticky";
        until_yielding(|| !reports("weald::service", told).is_empty()).await;
    });
}

/// One clone blocks, and the quarantine has no thread for the next one. The connection that is to make it waits there
/// with the last instance.
#[test]
fn connections_that_wait_for_an_instance_keep_their_limit_while_the_quarantine_is_full() {
    let _watch = watch();
    collect_reports();
    let runtime = Runtime::builder().workers(1).spare_threads(2).build();
    runtime.unwrap().block_on(with_some_limit(async |limit| {
        let service = Sticky::default();
        let (next, blocker) = (service.next.clone(), service.blocker.clone());
        let server = start(service, |server| server.header_timeout(limit));
        // Its connection makes another instance.
        let first = Client::connect(server.address).await;
        let last = HELLO.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n");
        first.send(&last).await;
        let is_served = first.rest().await.starts_with("HTTP/1.1 200");
        let stuck = Sticky::stick(&next, &blocker, server.address).await;
        let named = format!("no request from {}", stuck.stream.local_addr().unwrap());
        until_yielding(|| !reports("weald::monitor", &named).is_empty()).await;
        let (answers, answered) = channel::unbounded();
        for _ in 0..2 {
            let client = Client::connect(server.address).await;
            client.send(&last).await;
            let answers = answers.clone();
            let asks = async move { answers.try_send(client.rest().await) };
            weald_kernel::spawn(asks).detach();
        }
        let told = answered.receive().await.unwrap();
        blocker.open();
        let other = answered.receive().await.unwrap();
        drop(stuck);
        server.end().await;
        let is_told = told.starts_with("HTTP/1.1 503") && other.starts_with("HTTP/1.1 200");
        match is_served && is_told {
            true => Ok(()),
            false => Err(format!("{is_served}, {told:?}, {other:?}")),
        }
    }));
}

/// No time limit ends them. Those that wait longest have sent their requests; they are two, because a client that waits
/// for room asks again after a second.
#[test]
fn a_connection_that_waits_for_an_instance_makes_room_unless_a_request_has_arrived() {
    run(2, async {
        let service = Sticky::default();
        let (next, blocker) = (service.next.clone(), service.blocker.clone());
        let server = start(service, |server| {
            server
                .max_connections(4)
                .header_timeout(Duration::from_secs(3600))
        });
        let stuck = Sticky::stick(&next, &blocker, server.address).await;
        let mut served = Vec::new();
        for _ in 0..2 {
            let client = Client::connect(server.address).await;
            client.send(HELLO).await;
            served.push(client);
        }
        let quiet = Client::connect(server.address).await;
        let last = Client::connect(server.address).await;
        assert_eq!(quiet.rest().await, "", "it made room");
        blocker.open();
        last.send(HELLO).await;
        served.push(last);
        for client in &mut served {
            client.until("done.").await;
        }
        drop((stuck, served));
        server.end().await;
    });
}

/// It is still there, so it sees that the server has noticed the end of its direction.
#[test]
fn a_client_that_leaves_while_its_connection_waits_for_an_instance_is_noticed() {
    run(2, async {
        let service = Sticky::default();
        let (next, blocker) = (service.next.clone(), service.blocker.clone());
        let server = start(service, |server| {
            server.header_timeout(Duration::from_secs(3600))
        });
        let stuck = Sticky::stick(&next, &blocker, server.address).await;
        let leaves = Client::connect(server.address).await;
        leaves.send(HELLO).await;
        leaves.stream.shutdown(Shutdown::Write).unwrap();
        let answer = leaves.rest().await;
        blocker.open();
        assert_eq!(answer, "");
        drop(stuck);
        server.end().await;
    });
}

/// If it is told to, its destructor blocks.
#[derive(Clone, Default)]
struct StuckAtEnd {
    sticks: Arc<AtomicBool>,
    blocker: Blocker,
}

impl Drop for StuckAtEnd {
    fn drop(&mut self) {
        if self.sticks.swap(false, Ordering::SeqCst) {
            self.blocker.block();
        }
    }
}

/// The next destructor after that of a request for `/last` is told to block: that of its connection.
impl Service<Request<RequestBody>> for StuckAtEnd {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Full<Bytes>>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let sticks = self.sticks.clone();
        Box::pin(async move {
            if request.uri().path() == "/last" {
                sticks.store(true, Ordering::SeqCst);
            }
            Ok(Response::new(Full::new("done.".into())))
        })
    }
}

/// Its answer is still held, because it leaves when the poll of the connection ends.
#[test]
fn a_destructor_that_blocks_after_the_last_answer_is_none_of_its_requests() {
    run(2, async {
        collect_reports();
        let service = StuckAtEnd::default();
        let blocker = service.blocker.clone();
        let server = start(service, |server| server);
        let client = Client::connect(server.address).await;
        let peer = client.stream.local_addr().unwrap();
        let last = "GET /last HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        client.send(last).await;
        let named = format!("GET /last from {peer}");
        until_yielding(|| !reports("weald::monitor", &named).is_empty()).await;
        blocker.open();
        let text = &reports("weald::monitor", &named)[0].text;
        let destructor = "the destructor of server::server::clones::StuckAtEnd for a connection";
        assert!(text.contains(destructor), "{text}");
        assert!(text.contains("GET /last from"), "{text}");
        assert!(client.rest().await.ends_with("done."));
        server.end().await;
    });
}

/// It was asked to make room, and would be taken for one that is about to close.
#[test]
fn a_connection_whose_destructor_blocks_does_not_keep_others_from_making_room() {
    run(2, async {
        collect_reports();
        let service = StuckAtEnd::default();
        let (sticks, blocker) = (service.sticks.clone(), service.blocker.clone());
        // Nothing else ends the idle ones.
        let server = start(service, |server| {
            server
                .max_connections(2)
                .header_timeout(Duration::from_secs(600))
        });
        let mut first = Client::connect(server.address).await;
        first.send(HELLO).await;
        first.until("done.").await;
        let mut second = Client::connect(server.address).await;
        second.send(HELLO).await;
        second.until("done.").await;
        sticks.store(true, Ordering::SeqCst);
        let mut third = Client::connect(server.address).await;
        third.send(HELLO).await;
        third.until("done.").await;
        let named = "the destructor of server::server::clones::StuckAtEnd";
        until_yielding(|| !reports("weald::monitor", named).is_empty()).await;
        blocker.open();
        drop((first, second, third));
        server.end().await;
    });
}

/// Its destructor blocks at the end of each connection.
#[derive(Clone)]
struct AlwaysStuckAtEnd(Blocker);

impl Drop for AlwaysStuckAtEnd {
    fn drop(&mut self) {
        let name = weald_kernel::current_name().and_then(|job| job.name);
        if name.is_some_and(|name| name.starts_with("the destructor of ")) {
            self.0.block();
        }
    }
}

impl Service<Request<RequestBody>> for AlwaysStuckAtEnd {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Full<Bytes>>, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: Request<RequestBody>) -> Self::Future {
        ready(Ok(Response::new(Full::new("done.".into()))))
    }
}

/// Nothing else ends the idle ones.
#[test]
fn an_idle_connection_makes_room_before_its_destructor_has_ended() {
    run(2, async {
        let blocker = Blocker::default();
        let server = start(AlwaysStuckAtEnd(blocker.clone()), |server| {
            server
                .max_connections(2)
                .header_timeout(Duration::from_secs(600))
        });
        let mut clients = Vec::new();
        for _ in 0..6 {
            let mut client = Client::connect(server.address).await;
            client.send(HELLO).await;
            client.until("done.").await;
            clients.push(client);
        }
        until_yielding(|| blocker.begun() == 4).await;
        for client in clients.drain(..4) {
            assert_eq!(client.rest().await, "", "its socket is closed");
        }
        blocker.open();
        drop(clients);
        server.end().await;
    });
}

/// A stuck one would be asked first, and would not go.
#[test]
fn a_connection_whose_clone_blocks_is_not_asked_to_make_room() {
    run(2, async {
        let service = Sticky::default();
        let (next, blocker) = (service.next.clone(), service.blocker.clone());
        // Nothing else ends the idle one.
        let server = start(service, |server| {
            server
                .max_connections(2)
                .header_timeout(Duration::from_secs(600))
        });
        is_served(server.address).await;
        let mut stuck = Sticky::stick(&next, &blocker, server.address).await;
        let idle = Client::connect(server.address).await;
        is_served(server.address).await;
        let answer = idle.rest().await;
        blocker.open();
        assert_eq!(answer, "", "it made room");
        stuck.send(HELLO).await;
        stuck.until("done.").await;
        assert!(server.end().await.not_stopped.is_empty());
    });
}

/// A refused client is given time to notice, for longer than the server lives.
#[test]
fn a_service_does_not_outlive_its_server_with_a_client_that_lingers() {
    run(1, async {
        let token = Arc::new(());
        let held = token.clone();
        let service = tower::service_fn(move |_request: Request<RequestBody>| {
            let held = held.clone();
            async move {
                drop(held);
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::new())))
            }
        });
        let server = start(service, |server| server);
        let mut client = Client::connect(server.address).await;
        client.send("GET / HTTP/1.1\r\n\r\n").await;
        while client.more().await {}
        assert!(server.end().await.not_stopped.is_empty());
        until_yielding(|| Arc::strong_count(&token) == 1).await;
        // It has not ended its direction before.
        drop(client);
    });
}

/// Its clones block for requests of one route.
struct SticksOnRoute(Blocker);

impl Clone for SticksOnRoute {
    fn clone(&self) -> SticksOnRoute {
        let name = weald_kernel::current_name().and_then(|job| job.name);
        if name.is_some_and(|name| name.starts_with("GET /sticks ")) {
            self.0.block();
        }
        SticksOnRoute(self.0.clone())
    }
}

impl Service<Request<RequestBody>> for SticksOnRoute {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Full<Bytes>>, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: Request<RequestBody>) -> Self::Future {
        ready(Ok(Response::new(Full::new("done.".into()))))
    }
}

/// There are more requests of the route than threads, so if each took one from a worker, nobody would be served.
#[test]
fn a_clone_for_a_request_that_blocks_makes_its_route_suspect() {
    let _watch = watch();
    let runtime = Runtime::builder().workers(1).spare_threads(8).build();
    runtime.unwrap().block_on(async {
        let blocker = Blocker::default();
        let server = start(SticksOnRoute(blocker.clone()), |server| server);
        let mut stuck = Vec::new();
        for _ in 0..40 {
            let client = Client::connect(server.address).await;
            client.send(&HELLO.replace(" / ", " /sticks ")).await;
            stuck.push(client);
        }
        until_yielding(|| blocker.begun() >= 4).await;
        for _ in 0..100 {
            is_served(server.address).await;
        }
        assert!(blocker.begun() < 10, "{} have a thread", blocker.begun());
        blocker.open();
        for client in &mut stuck {
            client.until("done.").await;
            // Its connection still has an instance.
            client.send(HELLO).await;
            client.until("done.").await;
        }
        drop(stuck);
        assert!(server.end().await.not_stopped.is_empty());
    });
}
