//! Several buffers in one transfer.

use std::io::{IoSlice, IoSliceMut};

use super::pair;
use crate::tools::on_each;

#[test]
fn buffers_are_filled_in_order() {
    on_each(|runtime| {
        runtime.block_on(async {
            let (client, server) = pair().await;
            let parts = [
                IoSlice::new(b"one "),
                IoSlice::new(b""),
                IoSlice::new(b"two"),
            ];
            assert_eq!(client.write_vectored(&parts).await.unwrap(), 7);
            let (mut first, mut second) = ([0; 2], [0; 16]);
            let mut buffers = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
            assert_eq!(server.read_vectored(&mut buffers).await.unwrap(), 7);
            assert_eq!((&first, &second[..5]), (b"on", &b"e two"[..]));
        });
    });
}

/// Small buffers are copied into one, large ones are passed on as they are.
#[test]
fn buffers_of_any_length_are_written_in_order() {
    on_each(|runtime| {
        runtime.block_on(async {
            for lengths in [
                [0, 0, 1],
                [200, 12, 300],
                [200, 13, 300],
                [511, 0, 2],
                [4000; 3],
            ] {
                let (client, server) = pair().await;
                let bytes: Vec<Vec<u8>> = (1..).zip(lengths).map(|(n, len)| vec![n; len]).collect();
                let parts: Vec<_> = bytes.iter().map(|part| IoSlice::new(part)).collect();
                let all = bytes.concat();
                assert_eq!(client.write_vectored(&parts).await.unwrap(), all.len());
                let mut read = vec![0; all.len()];
                server.read_exact(&mut read).await.unwrap();
                assert_eq!(read, all);
            }
        });
    });
}
