//! Echoes over TCP: from jobs, from code that waits with its stack, and from threads outside any runtime.

use std::{net::SocketAddr, thread};

use futures_util::{AsyncReadExt, AsyncWriteExt};
use weald_kernel::spawn;
use weald_net::{TcpListener, TcpStream};
use weald_sync::Wait;

use super::here;
use crate::tools::{on_each, watch};

async fn echo(stream: TcpStream) {
    let mut buffer = [0; 1024];
    loop {
        match stream.read(&mut buffer).await.unwrap() {
            0 => return,
            count => stream.write_all(&buffer[..count]).await.unwrap(),
        }
    }
}

/// Serves this many connections, and returns the address.
fn serve(connections: usize) -> SocketAddr {
    let listener = TcpListener::bind(here()).unwrap();
    let address = listener.local_addr().unwrap();
    spawn(async move {
        for _ in 0..connections {
            let (stream, _) = listener.accept().await.unwrap();
            spawn(echo(stream)).detach();
        }
    })
    .detach();
    address
}

async fn ask(address: SocketAddr, rounds: u32) {
    let stream = TcpStream::connect(address).await.unwrap();
    for round in 0..rounds {
        let mut answer = [0; 4];
        stream.write_all(&round.to_be_bytes()).await.unwrap();
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(u32::from_be_bytes(answer), round);
    }
}

#[test]
fn jobs_echo() {
    on_each(|runtime| {
        runtime.block_on(async {
            let address = serve(8);
            let clients: Vec<_> = (0..8).map(|_| spawn(ask(address, 100))).collect();
            for client in clients {
                client.await.unwrap();
            }
        });
    });
}

#[test]
fn a_job_waits_with_its_stack() {
    let _watch = watch();
    let runtime = crate::tools::runtime(1);
    let job = runtime.spawn(async {
        let stream = TcpStream::connect(serve(1)).wait().unwrap();
        for byte in 0..100 {
            let mut answer = [0];
            stream.write(&[byte]).wait().unwrap();
            stream.read(&mut answer).wait().unwrap();
            assert_eq!(answer, [byte]);
        }
    });
    runtime.block_on(job).unwrap();
}

#[test]
fn a_thread_outside_any_runtime_waits() {
    let _watch = watch();
    let runtime = crate::tools::runtime(2);
    let address = runtime.block_on(async { serve(1) });
    // The thread uses the default runtime, which this call creates.
    let client = thread::spawn(move || {
        let stream = TcpStream::connect(address).wait().unwrap();
        stream.write_all(b"outside").wait().unwrap();
        let mut answer = [0; 7];
        stream.read_exact(&mut answer).wait().unwrap();
        answer
    });
    assert_eq!(&client.join().unwrap(), b"outside");
}

#[test]
fn the_traits_of_futures_io_echo() {
    let _watch = watch();
    crate::tools::runtime(2).block_on(async {
        let mut stream = TcpStream::connect(serve(1)).await.unwrap();
        stream.write_all(b"generic").await.unwrap();
        AsyncWriteExt::close(&mut stream).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "generic");
    });
}
