//! Options of TCP sockets reach the system.

use std::time::Duration;

use socket2::SockRef;
use weald_net::KeepAlive;

use super::pair;
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
