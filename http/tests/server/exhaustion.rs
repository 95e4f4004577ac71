//! The server has no descriptor left: it pauses instead of spinning, and then continues.

use std::{env, process::Command};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{Client, HELLO, hello, start};

const CHILD: &str = "WEALD_HTTP_FEW_DESCRIPTORS";

#[test]
fn a_server_without_descriptors_pauses_and_continues() {
    if env::var_os(CHILD).is_some() {
        let _watch = crate::tools::watch();
        let runtime = crate::tools::runtime(2);
        return runtime.block_on(child(&runtime));
    }
    run_child("server::exhaustion::a_server_without_descriptors_pauses_and_continues");
}

#[test]
fn an_idle_connection_makes_room_when_there_are_no_descriptors() {
    if env::var_os(CHILD).is_some() {
        let _watch = crate::tools::watch();
        return crate::tools::runtime(2).block_on(idle_connections());
    }
    run_child("server::exhaustion::an_idle_connection_makes_room_when_there_are_no_descriptors");
}

#[test]
fn a_connection_that_took_the_last_descriptor_makes_room_for_nobody() {
    if env::var_os(CHILD).is_some() {
        let _watch = crate::tools::watch();
        return crate::tools::runtime(2).block_on(last_descriptor());
    }
    run_child(
        "server::exhaustion::a_connection_that_took_the_last_descriptor_makes_room_for_nobody",
    );
}

fn run_child(test: &str) {
    let ended = Command::new(env::current_exe().unwrap())
        .args(["--exact", test])
        .env(CHILD, "1")
        .output()
        .unwrap();
    assert!(
        ended.status.success(),
        "{}: {}{}",
        ended.status,
        String::from_utf8_lossy(&ended.stdout),
        String::from_utf8_lossy(&ended.stderr)
    );
}

fn limit_descriptors() {
    let limits = Rlimit {
        current: Some(64),
        ..getrlimit(Resource::Nofile)
    };
    setrlimit(Resource::Nofile, limits).unwrap();
}

/// Clients that were answered take all descriptors and stay. Those for whom none was left are answered nevertheless.
async fn idle_connections() {
    limit_descriptors();
    let server = start(tower::service_fn(hello), |server| {
        server.max_connections(1000)
    });
    let mut clients = Vec::new();
    while let Ok(stream) = weald_net::TcpStream::connect(server.address).await {
        let client = Client {
            stream,
            read: Vec::new(),
        };
        client.send(HELLO).await;
        clients.push(client);
    }
    // All stay open, so only an eviction gives a descriptor back.
    for client in &mut clients {
        client.until("hello.").await;
    }
    drop(clients);
    server.end().await;
}

/// A client takes the last descriptors and asks only later. Nobody else waits to be accepted, so it is served.
async fn last_descriptor() {
    limit_descriptors();
    let server = start(tower::service_fn(hello), |server| server);
    let open = || std::fs::File::open("/dev/null");
    let mut taken: Vec<_> = std::iter::from_fn(|| open().ok()).collect();
    // One for the client, one for the server.
    taken.truncate(taken.len() - 2);
    let stream = weald_net::TcpStream::connect(server.address).await.unwrap();
    while open().is_ok() {
        weald_kernel::yield_now().await;
    }
    // The server looks for the next connection now, or has looked; if it closes this one, then in this time.
    weald_kernel::sleep(std::time::Duration::from_millis(50)).await;
    let mut client = Client {
        stream,
        read: Vec::new(),
    };
    client.send(HELLO).await;
    client.until("hello.").await;
    drop((client, taken));
    server.end().await;
}

async fn child(runtime: &weald_kernel::Runtime) {
    limit_descriptors();
    let server = start(tower::service_fn(hello), |server| {
        server.max_connections(1000)
    });
    // Clients take the descriptors until there is none to accept with.
    let mut clients = Vec::new();
    while let Ok(stream) = weald_net::TcpStream::connect(server.address).await {
        clients.push(Client {
            stream,
            read: Vec::new(),
        });
    }
    let polls = runtime.metrics().polls;
    weald_kernel::sleep(std::time::Duration::from_millis(100)).await;
    let more = runtime.metrics().polls - polls;
    assert!(
        more < 500,
        "{more} polls while the server could accept nothing"
    );
    // The last connections were not accepted. They are once others close.
    let mut last = clients.pop().unwrap();
    clients.truncate(2);
    last.send(HELLO).await;
    last.until("hello.").await;
    drop((clients, last));
    server.end().await;
}
