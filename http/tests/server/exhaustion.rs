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
    let ended = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "server::exhaustion::a_server_without_descriptors_pauses_and_continues",
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

async fn child(runtime: &weald_kernel::Runtime) {
    let limits = Rlimit {
        current: Some(64),
        ..getrlimit(Resource::Nofile)
    };
    setrlimit(Resource::Nofile, limits).unwrap();
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
