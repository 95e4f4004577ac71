//! A TCP echo server in straight-line code: one thread of Weald for each connection.
//!
//! `cargo run -p weald --example echo`, and `nc localhost 7000`

use std::io;

use weald::{
    net::{TcpListener, TcpStream, is_final},
    sync::Wait,
    thread,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:7000".parse()?)?;
    println!("{}", listener.local_addr()?);
    loop {
        let (stream, peer) = match listener.accept().wait() {
            Ok(accepted) => accepted,
            Err(error) if is_final(&error) => return Err(error.into()),
            // One client failed, or no descriptors are free; in the second case the listener pauses on its own.
            Err(error) => {
                eprintln!("no connection was accepted: {error}");
                continue;
            }
        };
        thread::spawn(move || match echo(&stream) {
            Ok(bytes) => println!("{peer} sent {bytes} bytes"),
            Err(error) => println!("{peer} is gone: {error}"),
        })
        .detach();
    }
}

/// Sends back everything it receives, and counts the bytes. While it waits, its worker runs others.
fn echo(stream: &TcpStream) -> io::Result<usize> {
    let mut buffer = [0; 4096];
    let mut bytes = 0;
    loop {
        let count = stream.read(&mut buffer).wait()?;
        if count == 0 {
            return Ok(bytes);
        }
        stream.write_all(&buffer[..count]).wait()?;
        bytes += count;
    }
}
