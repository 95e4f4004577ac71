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
            let mut places = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
            assert_eq!(server.read_vectored(&mut places).await.unwrap(), 7);
            assert_eq!((&first, &second[..5]), (b"on", &b"e two"[..]));
        });
    });
}
