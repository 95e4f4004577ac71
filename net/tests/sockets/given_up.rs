//! A dropped wait leaves no waker behind, and a dropped socket leaves no descriptor.

use std::{
    fs,
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

use weald_net::UnixStream;

use super::pair;
use crate::tools::{on_each, watch};

struct NoopWake;

impl Wake for NoopWake {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn a_dropped_wait_keeps_no_waker() {
    let _watch = watch();
    crate::tools::runtime(1).block_on(async {
        let (_one, other) = UnixStream::pair().unwrap();
        let wake = Arc::new(NoopWake);
        let waker = Waker::from(wake.clone());
        let mut cx = Context::from_waker(&waker);
        for waits in [1, 2, 10] {
            let mut buffers = vec![[0_u8; 1]; waits];
            let mut reads: Vec<_> = buffers
                .iter_mut()
                .map(|buffer| Box::pin(other.read(buffer)))
                .collect();
            for read in &mut reads {
                assert!(read.as_mut().poll(&mut cx).is_pending());
            }
            assert!(Arc::strong_count(&wake) >= 2 + waits);
            drop(reads);
            assert_eq!(
                Arc::strong_count(&wake),
                2,
                "only the references of the test are left"
            );
        }
        let mut readable = pin!(other.readable());
        assert!(readable.as_mut().poll(&mut cx).is_pending());
        assert!(matches!(readable.poll(&mut cx), Poll::Pending));
    });
}

fn descriptors() -> Vec<String> {
    let all = fs::read_dir("/proc/self/fd").unwrap();
    let names = all.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let mut names: Vec<_> = names.map(|name| name.display().to_string()).collect();
    names.retain(|name| name.starts_with("socket:"));
    names
}

#[test]
fn a_dropped_socket_is_closed() {
    on_each(|runtime| {
        runtime.block_on(async {
            let (client, server) = pair().await;
            let inode = |stream: &weald_net::TcpStream| {
                use std::os::fd::{AsFd, AsRawFd};
                let link = format!("/proc/self/fd/{}", stream.as_fd().as_raw_fd());
                fs::read_link(link).unwrap().display().to_string()
            };
            let names = [inode(&client), inode(&server)];
            assert!(names.iter().all(|name| descriptors().contains(name)));
            drop((client, server));
            assert!(!names.iter().any(|name| descriptors().contains(name)));
        });
    });
}
