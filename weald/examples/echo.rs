//! An echo over TCP, in straight lines: a thread of Weald for each connection.
//!
//! `cargo run -p weald --example echo`, and `nc localhost 7000`

use std::io;

use weald::{
    net::{TcpListener, TcpStream},
    sync::Wait,
    thread,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:7000".parse()?)?;
    println!("{}", listener.local_addr()?);
    loop {
        let (stream, peer) = match listener.accept().wait() {
            Ok(accepted) => accepted,
            // One client's failure, or no descriptors for a moment, for which the listener pauses by itself.
            Err(error) => {
                eprintln!("nobody was accepted: {error}");
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

/// Sends back whatever comes, and counts it. To wait with the stack gives the worker to others.
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
