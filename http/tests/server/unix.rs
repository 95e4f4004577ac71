//! HTTP over a Unix socket.

use std::future::{IntoFuture, pending};

use weald_kernel::spawn;
use weald_net::{UnixListener, UnixStream};

use super::{HELLO, hello, run};

#[test]
fn a_unix_socket_is_served() {
    run(2, async {
        let path = std::env::temp_dir().join(format!("weald-http-{}", std::process::id()));
        let _leftover = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        let server = weald_http::serve(listener, tower::service_fn(hello));
        let server = spawn(server.until(pending::<()>()).into_future());
        let client = UnixStream::connect(&path).await.unwrap();
        client.write_all(HELLO.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"hello.") {
            let mut buffer = [0; 256];
            let count = client.read(&mut buffer).await.unwrap();
            assert!(count > 0, "{answer:?}");
            answer.extend_from_slice(&buffer[..count]);
        }
        assert!(answer.starts_with(b"HTTP/1.1 200 OK"));
        server.cancel();
        std::fs::remove_file(&path).unwrap();
    });
}
