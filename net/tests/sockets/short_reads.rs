//! Reads that return fewer bytes than there was room for, although the system has more.

use std::{
    future::poll_fn,
    io::{IoSlice, Write},
    mem::MaybeUninit,
    net,
    os::{fd::AsFd, unix},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    send, sendmsg, socketpair,
};
use weald_kernel::spawn;
use weald_net::{Stream, Transport};

use crate::tools::{until_yielding, watch};

/// How a reader reads.
#[derive(Clone, Copy)]
enum Method {
    Operation,
    Adapter,
}

async fn read<T: Transport>(stream: &Stream<T>, method: Method) -> Vec<u8> {
    match method {
        Method::Operation => {
            let mut buffer = [0; 64];
            let count = stream.read(&mut buffer).await.unwrap();
            buffer[..count].to_vec()
        }
        Method::Adapter => {
            let mut place = [const { MaybeUninit::uninit() }; 64];
            let mut bytes = Vec::new();
            poll_fn(|cx| stream.poll_read_with(cx, &mut place, |read| bytes = read.to_vec()))
                .await
                .unwrap();
            bytes
        }
    }
}

/// Reads a byte, and then all of "abcdef", which `send_rest` sends in one go once the reader waits for it.
fn reads_all<T: Transport, P: Write + Send + 'static>(
    (mut peer, socket): (P, T),
    method: Method,
    send_rest: fn(&mut P),
) {
    // One worker: it sees no report while the peer sends, so there is a single report for everything.
    let runtime = crate::tools::runtime(1);
    let sends = runtime.spawn(async move {
        let stream = Stream::from_std(socket).unwrap();
        let had = Arc::new(AtomicUsize::new(0));
        let count = had.clone();
        let reader = spawn(async move {
            let mut all = Vec::new();
            while all.len() < "-abcdef".len() {
                all.extend(read(&stream, method).await);
                count.store(all.len(), Ordering::SeqCst);
            }
            all
        });
        peer.write_all(b"-").unwrap();
        until_yielding(|| had.load(Ordering::SeqCst) == 1).await;
        send_rest(&mut peer);
        assert_eq!(reader.await.unwrap(), b"-abcdef");
        drop(peer);
    });
    runtime.block_on(sends).unwrap();
}

fn tcp() -> (net::TcpStream, net::TcpStream) {
    let listener = net::TcpListener::bind(super::here()).unwrap();
    let client = net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.set_nodelay(true).unwrap();
    (client, listener.accept().unwrap().0)
}

/// The system stops a read at the mark.
#[test]
fn an_urgent_mark_ends_no_stream() {
    let _watch = watch();
    for method in [Method::Operation, Method::Adapter] {
        reads_all(tcp(), method, |peer| {
            peer.write_all(b"abc").unwrap();
            send(peer.as_fd(), b"!", SendFlags::OOB).unwrap();
            peer.write_all(b"def").unwrap();
        });
    }
}

/// Bytes that were sent with descriptors are returned by a read of their own.
#[test]
fn passed_descriptors_end_no_stream() {
    let _watch = watch();
    for method in [Method::Operation, Method::Adapter] {
        reads_all(unix::net::UnixStream::pair().unwrap(), method, |peer| {
            let descriptors = [peer.as_fd()];
            let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut ancillary = SendAncillaryBuffer::new(&mut room);
            assert!(ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)));
            let bytes = [IoSlice::new(b"abc")];
            sendmsg(&*peer, &bytes, &mut ancillary, SendFlags::empty()).unwrap();
            peer.write_all(b"def").unwrap();
        });
    }
}

#[test]
fn records_are_read_one_by_one() {
    let _watch = watch();
    for method in [Method::Operation, Method::Adapter] {
        let (one, other) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .unwrap();
        let pair: (unix::net::UnixStream, unix::net::UnixStream) = (one.into(), other.into());
        reads_all(pair, method, |peer| {
            peer.write_all(b"abc").unwrap();
            peer.write_all(b"def").unwrap();
        });
    }
}
