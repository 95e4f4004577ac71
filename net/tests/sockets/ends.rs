//! How connections end: half, whole, and by a reset.

use std::{io::ErrorKind, net::Shutdown, time::Duration};

use futures_util::{AsyncReadExt, AsyncWriteExt};
use weald_kernel::spawn;

use super::pair;
use crate::tools::on_each;

#[test]
fn half_a_close_leaves_the_other_half() {
    on_each(|runtime| {
        runtime.block_on(async {
            let (client, server) = pair().await;
            client.write_all(b"question").await.unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            let mut question = Vec::new();
            (&server).read_to_end(&mut question).await.unwrap();
            assert_eq!(question, b"question");
            server.write_all(b"answer").await.unwrap();
            drop(server);
            let mut answer = Vec::new();
            (&client).read_to_end(&mut answer).await.unwrap();
            assert_eq!(answer, b"answer");
        });
    });
}

/// The end arrives while the reader waits, together with the last bytes, and after a read of exactly the bytes
/// that were there.
#[test]
fn the_end_reaches_a_reader_however_it_comes() {
    on_each(|runtime| {
        runtime.block_on(async {
            for length in [0, 1, 3, 4, 5, 8] {
                let (client, server) = pair().await;
                let reader = spawn(async move {
                    let (mut read, mut buffer) = (Vec::new(), [0; 4]);
                    loop {
                        match server.read(&mut buffer).await.unwrap() {
                            0 => return read,
                            count => read.extend_from_slice(&buffer[..count]),
                        }
                    }
                });
                weald_kernel::yield_now().await;
                client.write_all(&vec![1; length]).await.unwrap();
                drop(client);
                assert_eq!(reader.await.unwrap().len(), length);
            }
        });
    });
}

#[test]
fn a_reset_is_an_error() {
    on_each(|runtime| {
        runtime.block_on(async {
            let (client, server) = pair().await;
            client.set_linger(Some(Duration::ZERO)).unwrap();
            let reader = spawn(async move {
                let mut byte = [0];
                let read = server.read(&mut byte).await;
                (read, server)
            });
            weald_kernel::yield_now().await;
            drop(client);
            let (read, server) = reader.await.unwrap();
            assert_eq!(read.unwrap_err().kind(), ErrorKind::ConnectionReset);
            let written = server.write_all(b"anybody there?").await;
            assert_eq!(written.unwrap_err().kind(), ErrorKind::BrokenPipe);
        });
    });
}

#[test]
fn halves_shut_down_their_direction_and_are_reunited() {
    on_each(|runtime| {
        runtime.block_on(async {
            let (client, server) = pair().await;
            let (mut read, write) = server.split();
            drop(write);
            let mut byte = [0];
            assert_eq!(client.read(&mut byte).await.unwrap(), 0);
            client.write_all(&[1]).await.unwrap();
            assert_eq!(read.read(&mut byte).await.unwrap(), 1);

            let (client, server) = pair().await;
            let (read, mut write) = server.split();
            let (other_read, other_write) = client.split();
            let (read, other_write) = read.reunite(other_write).unwrap_err();
            write.write_all(b"still open").await.unwrap();
            let server = read.reunite(write).unwrap();
            let client = other_read.reunite(other_write).unwrap();
            let mut text = [0; 10];
            client.read_exact(&mut text).await.unwrap();
            client.write_all(&text).await.unwrap();
            server.read_exact(&mut text).await.unwrap();
            assert_eq!(&text, b"still open");
        });
    });
}
