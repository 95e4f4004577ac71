//! Sockets in callbacks: a call that would block waits, and stops no other callback.

use std::sync::mpsc;

use weald_kernel::{
    Wait,
    callback::{Owner, When, once},
};

use super::pair;
use crate::tools::on_each;

/// Enough that one thread for each would show in the metrics.
const COUNT: u8 = 100;

#[test]
fn callbacks_read_and_write() {
    on_each(|runtime| {
        let (sender, received) = mpsc::channel();
        runtime.block_on(async {
            let mut writers = Vec::new();
            for n in 0..COUNT {
                let (client, server) = pair().await;
                let sender = sender.clone();
                once(Owner::runtime(), When::Ready, move || {
                    let mut byte = [0];
                    server.read_exact(&mut byte).wait().unwrap();
                    sender.send(byte[0]).unwrap();
                })
                .detach();
                writers.push((n, client));
            }
            // All readers start before the first writer.
            for (n, client) in writers {
                once(Owner::runtime(), When::Ready, move || {
                    client.write_all(&[n]).wait().unwrap();
                })
                .detach();
            }
        });
        let mut bytes: Vec<u8> = received.iter().take(usize::from(COUNT)).collect();
        bytes.sort_unstable();
        assert!(bytes.into_iter().eq(0..COUNT));
        assert!(runtime.metrics().threads < usize::from(COUNT));
    });
}
