//! The connection limit: further connections wait, and are accepted when others end.

use super::{Client, HELLO, hello, run, start};

#[test]
fn a_connection_beyond_the_limit_waits() {
    run(2, async {
        let server = start(tower::service_fn(hello), |server| server.max_connections(2));
        let mut clients = Vec::new();
        for _ in 0..2 {
            let mut client = Client::connect(server.address).await;
            client.send(HELLO).await;
            client.until("hello.").await;
            clients.push(client);
        }
        let mut third = Client::connect(server.address).await;
        third.send(HELLO).await;
        let early = third
            .stream
            .readable()
            .within(std::time::Duration::from_millis(50))
            .await;
        assert!(early.is_err(), "it was accepted beyond the limit");
        clients.pop();
        third.until("hello.").await;
        drop((clients, third));
        assert!(server.end().await.not_stopped.is_empty());
    });
}
