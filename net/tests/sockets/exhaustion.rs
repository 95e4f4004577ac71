//! Descriptors are used up: callers that need one get an error, and the reactor continues.

use std::{
    env,
    process::Command,
    time::{Duration, Instant},
};

use weald_net::{TcpListener, TcpStream, is_exhausted};

use super::here;
use crate::tools::watch;

const CHILD: &str = "WEALD_FEW_DESCRIPTORS";

#[test]
fn a_program_without_descriptors_gets_an_error_and_continues() {
    let _watch = watch();
    if env::var_os(CHILD).is_some() {
        return child();
    }
    let ended = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "sockets::exhaustion::a_program_without_descriptors_gets_an_error_and_continues",
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

fn child() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limits = Rlimit {
        current: Some(40),
        ..getrlimit(Resource::Nofile)
    };
    setrlimit(Resource::Nofile, limits).unwrap();
    crate::tools::runtime(2).block_on(async {
        let listener = TcpListener::bind(here()).unwrap();
        let address = listener.local_addr().unwrap();
        let mut clients = Vec::new();
        let refused = loop {
            match TcpStream::connect(address).await {
                Ok(client) => clients.push(client),
                Err(error) => break error,
            }
        };
        assert_eq!(refused.raw_os_error(), Some(24), "too many open files");
        // Connections are pending, but there is no descriptor to accept one.
        let refused = listener.accept().await.unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(24));
        assert!(is_exhausted(&refused));
        // A loop around `accept` does not spin.
        let before = Instant::now();
        for _ in 0..3 {
            assert!(is_exhausted(&listener.accept().await.unwrap_err()));
        }
        assert!(before.elapsed() >= Duration::from_millis(5 + 10 + 20));
        // Once descriptors are free again, everything continues: no connection lost its place.
        clients.truncate(clients.len() / 2);
        let (server, _) = listener.accept().await.unwrap();
        let client = &clients[0];
        client.write_all(b"here").await.unwrap();
        let mut text = [0; 4];
        server.read_exact(&mut text).await.unwrap();
        assert_eq!(&text, b"here");
    });
}
