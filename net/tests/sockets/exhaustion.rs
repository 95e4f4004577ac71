//! Descriptors are used up: callers that need one get an error, and the reactor continues. Listeners that are over.

use std::{
    env,
    os::fd::OwnedFd,
    process::Command,
    time::{Duration, Instant},
};

use weald_kernel::Runtime;
use weald_net::{TcpListener, TcpStream, is_exhausted, is_final};

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

/// A loop around `accept` that ends at no error takes no processor time, however the listener has ended.
#[test]
fn a_listener_that_is_over_says_so_and_a_loop_around_it_does_not_spin() {
    let _watch = watch();
    let of_another =
        crate::tools::runtime(1).block_on(async { TcpListener::bind(here()).unwrap() });
    // Its time advances only while nothing else can be done.
    Runtime::test(1).block_on(async {
        let shut_down = TcpListener::bind(here()).unwrap();
        rustix::net::shutdown(&shut_down, rustix::net::Shutdown::Both).unwrap();
        let datagrams: OwnedFd = std::net::UdpSocket::bind(here()).unwrap().into();
        let datagrams = TcpListener::from_std(datagrams.into()).unwrap();
        for (listener, ends) in [(of_another, true), (shut_down, true), (datagrams, false)] {
            let before = weald_kernel::now();
            for _ in 0..4 {
                let error = listener.accept().await.unwrap_err();
                assert_eq!(is_final(&error), ends, "{error:?}");
            }
            let paused = weald_kernel::now() - before;
            assert!(paused >= Duration::from_millis(5 + 10 + 20), "{paused:?}");
        }
    });
}
