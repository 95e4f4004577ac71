//! Ten thousand connections at once, in a child process whose descriptor limit allows them.

use std::{env, process::Command};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use weald_kernel::spawn;

use super::{Client, HELLO, hello, start};

const CHILD: &str = "WEALD_HTTP_MANY";
const MANY: u64 = 10_000;

#[test]
fn ten_thousand_are_served_and_close_at_once() {
    if env::var_os(CHILD).is_some() {
        let _watch = crate::tools::watch();
        return crate::tools::runtime(2).block_on(child());
    }
    let ended = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "server::many::ten_thousand_are_served_and_close_at_once",
        ])
        .env(CHILD, "1")
        .output()
        .unwrap();
    assert!(
        ended.status.success(),
        "{}",
        String::from_utf8_lossy(&ended.stderr)
    );
}

async fn child() {
    let limits = getrlimit(Resource::Nofile);
    let current = limits.maximum.unwrap_or(u64::MAX).min(2 * MANY + 200);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(current),
            maximum: limits.maximum,
        },
    )
    .unwrap();
    // Both ends are in this process. Fewer connections where the system does not allow that many descriptors.
    let each = MANY.min((current - 200) / 2) / 100;
    let server = start(tower::service_fn(hello), |server| server);
    let address = server.address;
    let jobs: Vec<_> = (0..100)
        .map(|_| {
            spawn(async move {
                let mut clients = Vec::new();
                for _ in 0..each {
                    let client = Client::connect(address).await;
                    client.send(HELLO).await;
                    clients.push(client);
                }
                for client in &mut clients {
                    client.until("hello.").await;
                }
                clients
            })
        })
        .collect();
    let mut clients = Vec::new();
    for job in jobs {
        clients.extend(job.await.unwrap());
    }
    for client in &mut clients {
        client.send(HELLO).await;
    }
    for client in &mut clients {
        client.until("hello.").await;
    }
    drop(clients);
    assert!(server.end().await.not_stopped.is_empty());
}
