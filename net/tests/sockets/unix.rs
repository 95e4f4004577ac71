//! Unix sockets at a path.

use std::{io::ErrorKind, path::PathBuf, time::Duration};

use weald_kernel::spawn;
use weald_net::{UnixListener, UnixStream};

use crate::tools::{on_each, watch};

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
fn a_socket_file_is_taken_over_only_if_nobody_answers() {
    on_each(|runtime| {
        runtime.block_on(async {
            let path = TempPath::new("stale");
            drop(UnixListener::bind_replacing(&path.0).unwrap());
            let taken = UnixListener::bind(&path.0).unwrap_err();
            assert_eq!(taken.kind(), ErrorKind::AddrInUse);
            let listener = UnixListener::bind_replacing(&path.0).unwrap();
            let taken = UnixListener::bind_replacing(&path.0).unwrap_err();
            assert_eq!(taken.kind(), ErrorKind::AddrInUse);
            // It was not removed.
            let _probe = listener.accept().await.unwrap();
            let client = UnixStream::connect(&path.0).await.unwrap();
            listener.accept().await.unwrap();
            drop((client, listener));
            std::fs::remove_file(&path.0).unwrap();
            std::fs::write(&path.0, "no socket").unwrap();
            let taken = UnixListener::bind_replacing(&path.0).unwrap_err();
            assert_eq!(taken.kind(), ErrorKind::AddrInUse);
            assert_eq!(std::fs::read(&path.0).unwrap(), b"no socket");
        });
    });
}

/// All of them find the file stale; one listens, and keeps its file.
#[test]
fn of_several_that_take_over_at_once_one_listens() {
    let _watch = watch();
    let runtime = crate::tools::runtime(1);
    let path = TempPath::new("raced");
    for _ in 0..50 {
        drop(std::os::unix::net::UnixListener::bind(&path.0).unwrap());
        let handle = &runtime;
        let bound: Vec<_> = std::thread::scope(|scope| {
            let bind = || handle.block_on(async { UnixListener::bind_replacing(&path.0) });
            let all: Vec<_> = (0..4).map(|_| scope.spawn(bind)).collect();
            let all = all.into_iter().map(|thread| thread.join().unwrap());
            all.filter_map(Result::ok).collect()
        });
        assert_eq!(bound.len(), 1);
        runtime
            .block_on(async { UnixStream::connect(&path.0).await })
            .unwrap();
        drop(bound);
        std::fs::remove_file(&path.0).unwrap();
    }
}

#[test]
fn a_connection_waits_for_room_in_the_queue() {
    let _watch = watch();
    let runtime = crate::tools::runtime(1);
    let path = TempPath::new("full");
    let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None).unwrap();
    socket
        .bind(&socket2::SockAddr::unix(&path.0).unwrap())
        .unwrap();
    socket.listen(0).unwrap();
    let mut queued = Vec::new();
    // The system says that the queue is full by refusing.
    while let Ok(stream) = connect_now(&path.0) {
        queued.push(stream);
        assert!(queued.len() < 10, "the queue has room for one or two");
    }
    let target = path.0.clone();
    let waits = runtime.spawn(async move { UnixStream::connect(target).await });
    runtime.block_on(weald_kernel::sleep(Duration::from_millis(20)));
    assert!(!waits.is_finished());
    drop(socket.accept().unwrap());
    runtime.block_on(waits).unwrap().unwrap();
}

#[test]
fn what_keeps_a_path_from_being_taken_over_is_named() {
    let _watch = watch();
    let runtime = crate::tools::runtime(1);
    let path = TempPath::new("busy");
    let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None).unwrap();
    socket
        .bind(&socket2::SockAddr::unix(&path.0).unwrap())
        .unwrap();
    socket.listen(0).unwrap();
    let mut queued = Vec::new();
    while let Ok(stream) = connect_now(&path.0) {
        queued.push(stream);
        assert!(queued.len() < 10, "the queue has room for one or two");
    }
    let replace = |path: std::path::PathBuf| {
        let bound = runtime.block_on(async { UnixListener::bind_replacing(path) });
        bound.unwrap_err()
    };
    let busy = replace(path.0.clone());
    assert_eq!(busy.kind(), ErrorKind::AddrInUse);
    assert!(busy.to_string().contains("queue"), "{busy}");
    let missing = replace(path.0.with_extension("missing").join("socket"));
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert!(missing.to_string().contains("missing/socket"), "{missing}");
}

/// Connects without waiting.
fn connect_now(path: &std::path::Path) -> std::io::Result<socket2::Socket> {
    let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.connect(&socket2::SockAddr::unix(path)?)?;
    Ok(socket)
}

#[test]
fn a_path_without_a_listener_is_refused() {
    on_each(|runtime| {
        let path = TempPath::new("unused");
        let refused = runtime.block_on(async { UnixStream::connect(&path.0).await });
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotFound);
    });
}

#[test]
fn errors_name_the_path_and_an_empty_one_is_refused() {
    let _watch = watch();
    crate::tools::runtime(1).block_on(async {
        let missing = TempPath::new("missing").0.join("socket");
        let connected = UnixStream::connect(&missing).await.unwrap_err();
        let bound = UnixListener::bind(&missing).unwrap_err();
        let replacing = UnixListener::bind_replacing(&missing).unwrap_err();
        for error in [connected, bound, replacing] {
            assert_eq!(error.kind(), ErrorKind::NotFound);
            let text = error.to_string();
            assert!(text.contains("weald-missing-"), "{text}");
        }
        for refused in [UnixListener::bind(""), UnixListener::bind_replacing("")] {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidInput);
        }
    });
}
