//! Unix sockets at a path.

use std::{io::ErrorKind, path::PathBuf};

use weald_kernel::spawn;
use weald_net::{UnixListener, UnixStream};

use crate::tools::on_each;

/// An unused path; its file is removed on drop.
struct TempPath(PathBuf);

impl TempPath {
    fn new(name: &str) -> TempPath {
        let file = format!("weald-{name}-{}", std::process::id());
        TempPath(std::env::temp_dir().join(file))
    }
}

impl Drop for TempPath {
    fn drop(&mut self) {
        let _ignored = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_listener_at_a_path_accepts() {
    on_each(|runtime| {
        runtime.block_on(async {
            let path = TempPath::new("listener");
            let listener = UnixListener::bind(&path.0).unwrap();
            let taken = UnixListener::bind(&path.0).unwrap_err();
            assert_eq!(taken.kind(), ErrorKind::AddrInUse);
            let server = spawn(async move {
                let (stream, _) = listener.accept().await.unwrap();
                let mut text = [0; 5];
                stream.read_exact(&mut text).await.unwrap();
                stream.write_all(&text).await.unwrap();
            });
            let client = UnixStream::connect(&path.0).await.unwrap();
            client.write_all(b"local").await.unwrap();
            let mut text = [0; 5];
            client.read_exact(&mut text).await.unwrap();
            assert_eq!(&text, b"local");
            server.await.unwrap();
        });
    });
}

#[test]
fn a_path_without_a_listener_is_refused() {
    on_each(|runtime| {
        let path = TempPath::new("unused");
        let refused = runtime.block_on(async { UnixStream::connect(&path.0).await });
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotFound);
    });
}
