//! Options of TCP sockets reach the system.

use std::time::Duration;

use socket2::SockRef;
use weald_net::{KeepAlive, TcpListener, TcpStream};

use super::{here, pair};
use crate::tools::watch;

#[test]
fn options_are_set() {
    let _watch = watch();
    crate::tools::runtime(1).block_on(async {
        let (client, server) = pair().await;
        assert_eq!(client.peer_addr().unwrap(), server.local_addr().unwrap());
        client.set_nodelay(true).unwrap();
        assert!(client.nodelay().unwrap());
        client.set_ttl(17).unwrap();
        client.set_linger(Some(Duration::from_secs(3))).unwrap();
        client.set_recv_buffer_size(40_000).unwrap();
        client.set_send_buffer_size(30_000).unwrap();
        let keepalive = KeepAlive {
            idle: Duration::from_secs(60),
            interval: Duration::from_secs(5),
        };
        client.set_keepalive(Some(keepalive)).unwrap();
        let socket = SockRef::from(&client);
        assert_eq!(socket.ttl_v4().unwrap(), 17);
        assert_eq!(socket.linger().unwrap(), Some(Duration::from_secs(3)));
        assert_eq!(
            socket.recv_buffer_size().unwrap(),
            80_000,
            "the system doubles it"
        );
        assert_eq!(socket.send_buffer_size().unwrap(), 60_000);
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), keepalive.interval);
        client.set_keepalive(None).unwrap();
        assert!(!socket.keepalive().unwrap());
    });
}

#[test]
fn small_writes_are_sent_at_once_by_default() {
    let _watch = watch();
    crate::tools::runtime(1).block_on(async {
        let (client, server) = pair().await;
        assert!(client.nodelay().unwrap());
        assert!(server.nodelay().unwrap());
        server.set_nodelay(false).unwrap();
        assert!(!server.nodelay().unwrap());
        let socket = std::net::TcpListener::bind(here()).unwrap();
        let listener = TcpListener::from_std(socket).unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (server, _) = listener.accept().await.unwrap();
        assert!(!server.nodelay().unwrap(), "its owner sets its options");
    });
}
