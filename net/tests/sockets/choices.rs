//! Sockets in choices: an event that is not chosen has no effect, and nothing is lost.

use std::time::Duration;

use weald_net::{TcpListener, TcpStream, UnixStream};
use weald_sync::{Event, Wait, after, always, channel, choose, select};

use super::here;
use crate::tools::{on_each, watch};

#[test]
fn a_read_that_was_not_chosen_took_no_byte() {
    on_each(|runtime| {
        runtime.block_on(async {
            let (one, other) = UnixStream::pair().unwrap();
            let (sender, receiver) = channel::unbounded();
            let sent: Vec<u8> = (0..200).collect();
            let writer = weald_kernel::spawn({
                let sent = sent.clone();
                async move {
                    for byte in sent {
                        one.write_all(&[byte]).await.unwrap();
                        sender.try_send(byte).unwrap();
                        weald_kernel::yield_now().await;
                    }
                }
            });
            let (mut read, mut received) = (Vec::new(), 0);
            while read.len() < 200 || received < 200 {
                let mut byte = [0];
                select! {
                    count = other.read(&mut byte) => {
                        if count.unwrap() == 1 {
                            read.push(byte[0]);
                        } else {
                            // The writer has finished, so everything was read.
                            assert_eq!(read.len(), 200);
                            while received < 200 {
                                receiver.receive().await.unwrap();
                                received += 1;
                            }
                        }
                    }
                    value = receiver.receive() => {
                        if value.is_ok() {
                            received += 1;
                        }
                    }
                }
            }
            assert_eq!(read, sent);
            writer.await.unwrap();
        });
    });
}

#[test]
fn a_connection_that_a_losing_event_accepted_is_kept() {
    on_each(|runtime| {
        runtime.block_on(async {
            let listener = TcpListener::bind(here()).unwrap();
            let address = listener.local_addr().unwrap();
            let clients: Vec<_> = (0..50)
                .map(|_| weald_kernel::spawn(async move { TcpStream::connect(address).await }))
                .collect();
            let mut accepted = Vec::new();
            while accepted.len() < 50 {
                let chosen = choose((listener.accept().wrap(Some), always(()).wrap(|()| None)));
                if let Some(connection) = chosen.await {
                    accepted.push(connection.unwrap());
                }
                weald_kernel::yield_now().await;
            }
            for client in clients {
                client.await.unwrap().unwrap();
            }
        });
    });
}

#[test]
fn a_wait_has_a_deadline() {
    let _watch = watch();
    let (one, other) = UnixStream::pair().unwrap();
    let mut byte = [0];
    let late = other
        .read(&mut byte)
        .within(Duration::from_millis(1))
        .wait();
    assert!(late.is_err(), "nothing was written");
    assert!(other.readable().within(Duration::ZERO).wait().is_err());
    one.write_all(&[1]).wait().unwrap();
    assert_eq!(
        other
            .read(&mut byte)
            .within(Duration::from_secs(60))
            .wait()
            .unwrap()
            .unwrap(),
        1
    );
}

#[test]
fn a_select_on_a_plain_thread_waits_with_its_stack() {
    let _watch = watch();
    let (one, other) = UnixStream::pair().unwrap();
    one.try_write(b"now").unwrap();
    let mut buffer = [0; 8];
    let count = select! {
        wait;
        count = other.read(&mut buffer) => count.unwrap(),
        () = after(Duration::from_secs(60)) => 0,
    };
    assert_eq!(&buffer[..count], b"now");
}

/// Several jobs wait for one direction while another wait times out: all the jobs are woken.
#[test]
fn several_jobs_wait_for_one_direction() {
    on_each(|runtime| {
        runtime.block_on(async {
            let (one, other) = UnixStream::pair().unwrap();
            let other = std::sync::Arc::new(other);
            let waiters: Vec<_> = (0..5)
                .map(|_| {
                    let other = other.clone();
                    weald_kernel::spawn(async move { other.readable().await })
                })
                .collect();
            let gone = other.readable().within(Duration::from_millis(1)).await;
            assert!(gone.is_err());
            one.write_all(&[1]).await.unwrap();
            for waiter in waiters {
                waiter.await.unwrap().unwrap();
            }
        });
    });
}
