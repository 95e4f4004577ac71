//! Connecting: to an address without a listener, and to a listener whose queue is full.

use std::{io::ErrorKind, time::Duration};

use weald_net::{TcpListener, TcpStream};

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
