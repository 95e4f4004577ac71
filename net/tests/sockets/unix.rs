//! Unix sockets at a path.

use std::{io::ErrorKind, path::PathBuf};

use weald_kernel::spawn;
use weald_net::{UnixListener, UnixStream};

use crate::tools::on_each;

/// A path that is free now and again when this is dropped.
struct Free(PathBuf);

impl Free {
    fn path(name: &str) -> Free {
        let file = format!("weald-{name}-{}", std::process::id());
        Free(std::env::temp_dir().join(file))
    }
}

impl Drop for Free {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_listener_at_a_path_accepts() {
    on_each(|runtime| {
        runtime.block_on(async {
            let free = Free::path("listener");
            let listener = UnixListener::bind(&free.0).unwrap();
            let taken = UnixListener::bind(&free.0).unwrap_err();
            assert_eq!(taken.kind(), ErrorKind::AddrInUse);
            let server = spawn(async move {
                let (stream, _) = listener.accept().await.unwrap();
                let mut text = [0; 5];
                stream.read_exact(&mut text).await.unwrap();
                stream.write_all(&text).await.unwrap();
            });
            let client = UnixStream::connect(&free.0).await.unwrap();
            client.write_all(b"local").await.unwrap();
            let mut text = [0; 5];
            client.read_exact(&mut text).await.unwrap();
            assert_eq!(&text, b"local");
            server.await.unwrap();
        });
    });
}

#[test]
fn nobody_listens_at_the_path() {
    on_each(|runtime| {
        let free = Free::path("nobody");
        let refused = runtime.block_on(async { UnixStream::connect(&free.0).await });
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotFound);
    });
}
