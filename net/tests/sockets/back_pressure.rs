//! A large transfer whose writer is always ahead: a slow reader makes the writer wait.

use weald_kernel::{spawn, yield_now};
use weald_net::UnixStream;

use crate::tools::on_each;

const BYTES: usize = 8 << 20;

#[test]
fn a_writer_waits_for_a_slow_reader_and_every_byte_arrives() {
    on_each(|runtime| runtime.block_on(slow_reader()));
}

async fn slow_reader() {
    let (one, other) = UnixStream::pair().unwrap();
    let bytes: Vec<u8> = (0..251).cycle().take(BYTES).collect();
    let sent = bytes.clone();
    let writer = spawn(async move { one.write_all(&sent).await });
    // The test does not read yet, so the writer fills the system's buffer and waits.
    other.readable().await.unwrap();
    for _ in 0..100 {
        yield_now().await;
    }
    assert!(
        !writer.is_finished(),
        "8 MiB do not fit in a socket's buffer"
    );
    let mut received = vec![0; BYTES];
    other.read_exact(&mut received).await.unwrap();
    assert!(received == bytes, "every byte arrives, in order");
    writer.await.unwrap().unwrap();
}
