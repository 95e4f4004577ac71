//! Connecting: to an address without a listener, and to a listener whose queue is full.

use std::{io::ErrorKind, net::SocketAddr, task::Poll, time::Duration};

use weald_net::{ConnectError, Connector, TcpListener, TcpStream};

use super::here;
use crate::tools::{on_each, watch};

#[test]
fn a_connection_without_a_listener_is_refused() {
    on_each(|runtime| {
        runtime.block_on(async {
            let listener = TcpListener::bind(here()).unwrap();
            let address = listener.local_addr().unwrap();
            drop(listener);
            let refused = TcpStream::connect(address).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        });
    });
}

/// A listener whose queue is full, and which never accepts: it answers nobody.
fn silent() -> (socket2::Socket, SocketAddr, Vec<socket2::Socket>) {
    let new = || socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let socket = new();
    socket.bind(&here().into()).unwrap();
    socket.listen(0).unwrap();
    let address = socket.local_addr().unwrap();
    let fill = (0..4).map(|_| {
        let client = new();
        client.set_nonblocking(true).unwrap();
        let _in_progress = client.connect(&address);
        client
    });
    let clients = fill.collect();
    (socket, address.as_socket().unwrap(), clients)
}

/// One after the other, the first address would take minutes.
#[test]
fn an_address_that_does_not_answer_delays_the_next_only_briefly() {
    let _watch = watch();
    crate::tools::runtime(1).block_on(async {
        let (_socket, dead, _clients) = silent();
        let listener = TcpListener::bind(here()).unwrap();
        let live = listener.local_addr().unwrap();
        let connector = Connector::new().attempt_delay(Duration::from_millis(1));
        let connector = connector.attempt_limit(Duration::from_secs(3600));
        let stream = connector.connect_any(&[dead, live]).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), live);
    });
}

/// How many sockets of the system wait for an answer of this address.
fn attempts(to: SocketAddr) -> usize {
    let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
    let port = format!(":{:04X}", to.port());
    // The columns are a number, the local address, the peer's, and the state: 02 is SYN_SENT.
    let is_attempt = |line: &&str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        columns[2].ends_with(&port) && columns[3] == "02"
    };
    table.lines().filter(is_attempt).count()
}

#[test]
fn a_connection_that_is_given_up_midway_closes_the_sockets_of_all_attempts() {
    let _watch = watch();
    crate::tools::runtime(1).block_on(async {
        let (_socket, one, _clients) = silent();
        let (_other_socket, other, _other_clients) = silent();
        let before = [attempts(one), attempts(other)];
        let connector = Connector::new().attempt_delay(Duration::from_millis(1));
        let connector = connector.attempt_limit(Duration::from_secs(3600));
        let addresses = [one, other];
        let mut connecting = Box::pin(connector.connect_any(&addresses));
        std::future::poll_fn(|cx| {
            assert!(connecting.as_mut().poll(cx).is_pending());
            match [attempts(one), attempts(other)] == before.map(|count| count + 1) {
                true => Poll::Ready(()),
                false => {
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
            }
        })
        .await;
        drop(connecting);
        assert_eq!([attempts(one), attempts(other)], before);
    });
}

/// A failure starts the next attempt at once, whatever the delay is.
#[test]
fn the_error_has_what_each_address_said() {
    let _watch = watch();
    crate::tools::runtime(1).block_on(async {
        let (_socket, dead, _clients) = silent();
        let closed = TcpListener::bind(here()).unwrap().local_addr().unwrap();
        let connector = Connector::new().attempt_delay(Duration::from_secs(3600));
        let connector = connector.attempt_limit(Duration::from_millis(50));
        let error = connector.connect_any(&[closed, dead]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        let inner: &ConnectError = error.get_ref().unwrap().downcast_ref().unwrap();
        let said: Vec<_> = inner
            .attempts
            .iter()
            .map(|(at, error)| (*at, error.kind()))
            .collect();
        assert_eq!(
            said,
            [
                (closed, ErrorKind::ConnectionRefused),
                (dead, ErrorKind::TimedOut)
            ]
        );
        assert!(inner.to_string().contains(&closed.to_string()), "{inner}");
        let nothing = connector.connect_any(&[]).await.unwrap_err();
        assert_eq!(nothing.kind(), ErrorKind::NotFound);
    });
}

/// The queue of a listener that does not accept fills up; the next connection waits until its deadline.
#[test]
fn a_connection_to_a_full_queue_times_out() {
    let _watch = watch();
    crate::tools::runtime(1).block_on(async {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
        let socket = socket.unwrap();
        socket.bind(&here().into()).unwrap();
        socket.listen(0).unwrap();
        let address = socket.local_addr().unwrap().as_socket().unwrap();
        let mut connected = Vec::new();
        let limit = Duration::from_millis(200);
        loop {
            match TcpStream::connect(address).within(limit).await {
                Ok(stream) => connected.push(stream.unwrap()),
                Err(_timed_out) => break,
            }
            assert!(connected.len() < 10, "the queue has room for one or two");
        }
        assert!(!connected.is_empty(), "some were queued");
    });
}
