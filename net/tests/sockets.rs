//! Sockets, one file for each behaviour.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

mod sockets {
    mod back_pressure;
    mod busy_workers;
    mod choices;
    mod connect;
    mod echo;
    mod ends;
    mod exhaustion;
    mod from_callbacks;
    mod given_up;
    mod many;
    mod options;
    mod runtimes;
    mod short_reads;
    mod unix;
    mod vectored;

    use std::net::SocketAddr;

    use weald_net::{TcpListener, TcpStream};

    /// Any free port of this machine.
    fn here() -> SocketAddr {
        "127.0.0.1:0".parse().unwrap()
    }

    /// The two ends of a TCP connection.
    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(here()).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap());
        let client = client.await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        (client, server)
    }
}
