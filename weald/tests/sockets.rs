//! Sockets work from every kind of unit: processes, threads, callbacks, forks, and plain futures.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{net::SocketAddr, sync::mpsc, time::Duration};

use weald::{
    Runtime, Wait,
    net::{TcpListener, TcpStream},
    process::{self, Inbox, callback},
    thread,
};

/// Starts an echo server for this many connections, and returns its address.
fn serve(connections: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    weald::spawn(async move {
        for _ in 0..connections {
            let (stream, _) = listener.accept().await.unwrap();
            weald::spawn(async move {
                let mut buffer = [0; 64];
                loop {
                    match stream.read(&mut buffer).await.unwrap() {
                        0 => return,
                        count => stream.write_all(&buffer[..count]).await.unwrap(),
                    }
                }
            })
            .detach();
        }
    })
    .detach();
    address
}

async fn ask(address: SocketAddr) -> [u8; 5] {
    let stream = TcpStream::connect(address).await.unwrap();
    let mut answer = [0; 5];
    for _ in 0..10 {
        stream.write_all(b"hello").await.unwrap();
        stream.read_exact(&mut answer).await.unwrap();
    }
    answer
}

/// As [`ask`], in straight-line code.
fn ask_and_wait(address: SocketAddr) -> [u8; 5] {
    let stream = TcpStream::connect(address)
        .within(Duration::from_secs(30))
        .wait();
    let stream = stream.unwrap().unwrap();
    let mut answer = [0; 5];
    for _ in 0..10 {
        stream.write_all(b"hello").wait().unwrap();
        stream.read_exact(&mut answer).wait().unwrap();
    }
    answer
}

fn on_each(test: impl AsyncFn()) {
    for workers in [1, 2] {
        let runtime = Runtime::builder().workers(workers).build().unwrap();
        let limited = weald::timeout(Duration::from_secs(60), test());
        let ended = runtime.block_on(limited);
        assert!(ended.is_ok(), "with {workers} workers it hangs");
    }
}

#[test]
fn a_process_speaks() {
    on_each(async || {
        let address = serve(2);
        let awaits = process::spawn(async move |_inbox: Inbox<()>| ask(address).await).unwrap();
        let waits = process::spawn(async move |_inbox: Inbox<()>| ask_and_wait(address)).unwrap();
        assert_eq!(awaits.await.unwrap(), *b"hello");
        assert_eq!(waits.await.unwrap(), *b"hello");
    });
}

#[test]
fn threads_speak() {
    on_each(async || {
        let address = serve(20);
        let threads: Vec<_> = (0..20)
            .map(|_| thread::spawn(move || ask_and_wait(address)))
            .collect();
        for thread in threads {
            assert_eq!(thread.await.unwrap(), *b"hello");
        }
    });
}

#[test]
fn callbacks_speak() {
    on_each(async || {
        let address = serve(20);
        let (said, heard) = weald::sync::channel::unbounded();
        for number in 0..20 {
            let said = said.clone();
            callback::after(Duration::from_millis(number), move || {
                said.try_send(ask_and_wait(address)).unwrap();
            })
            .detach();
        }
        for _ in 0..20 {
            assert_eq!(heard.receive().await.unwrap(), *b"hello");
        }
    });
}

#[test]
fn both_halves_of_a_fork_speak() {
    on_each(async || {
        let address = serve(2);
        let job =
            weald::spawn(
                async move { weald::join(|| ask_and_wait(address), || ask_and_wait(address)) },
            );
        assert_eq!(job.await.unwrap(), (*b"hello", *b"hello"));
    });
}

#[test]
fn a_thread_of_the_system_speaks() {
    on_each(async || {
        let address = serve(1);
        let (said, heard) = mpsc::channel();
        let client = std::thread::spawn(move || said.send(ask_and_wait(address)));
        weald::spawn(async move {
            assert_eq!(
                weald::block_in_place(move || heard.recv()).unwrap(),
                *b"hello"
            );
        })
        .await
        .unwrap();
        client.join().unwrap().unwrap();
    });
}
