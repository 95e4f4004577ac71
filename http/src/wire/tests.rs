//! An upgraded connection: its job and the code that took over its stream share the wire.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    time::Duration,
};

use hyper::rt::Write;
use weald_kernel::{Runtime, spawn, timeout};
use weald_net::UnixStream;
use weald_sync::oneshot;

use super::*;
use crate::{
    closing::Closing,
    registry::{Entry, Registry},
    tracked_io::TrackedIo,
};

type UnixWire = Wire<std::os::unix::net::UnixStream>;

/// A connection right after its upgrade: what its job has, and what the code has that took over the stream.
fn upgraded(
    stream: UnixStream,
) -> (
    Arc<UnixWire>,
    Entry,
    TrackedIo<std::os::unix::net::UnixStream>,
) {
    let activity = Activity::new(None, "a service", Arc::default());
    let (entry, permit) = Arc::<Registry>::default().enter(&activity);
    let wire = Arc::new(Wire::new(stream, activity));
    let io = TrackedIo {
        wire: wire.clone(),
        first: bytes::Bytes::new(),
        permit,
    };
    (wire, entry, io)
}

/// The connection's job after the upgrade.
fn job(wire: Arc<UnixWire>, entry: Entry) -> impl Future<Output = ()> {
    let mut closing = Closing::of_upgraded();
    async move {
        poll_fn(|cx| closing.poll(&wire, &entry, cx)).await;
        wire.leave();
    }
}

/// Tells when `future` was polled for the first time.
fn told<F: Future>(future: F) -> (impl Future<Output = F::Output>, oneshot::Receiver<()>) {
    let (begun, has_begun) = oneshot::channel();
    let mut begun = Some(begun);
    let mut future = Box::pin(future);
    let told = poll_fn(move |cx| {
        let polled = future.as_mut().poll(cx);
        if let Some(begun) = begun.take() {
            let _nobody_waits = begun.send(());
        }
        polled
    });
    (told, has_begun)
}

fn run(test: impl Future<Output = ()> + Send + 'static) {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let test = timeout(Duration::from_secs(100), test);
    runtime.block_on(test).expect("nobody waits for ever");
}

/// Both wait for room, in either order.
#[test]
fn an_upgraded_stream_and_its_connection_both_end_their_waits() {
    for job_is_first in [true, false] {
        run(async move {
            let (ours, other) = UnixStream::pair().unwrap();
            let (wire, entry, mut io) = upgraded(ours);
            let mut most = 0;
            while let Ok(count) = wire.stream.try_write(&[b'x'; 4096]) {
                most += count;
            }
            wire.hold(b"held");
            let (job, mut job_waits) = told(job(wire, entry));
            let writer =
                async move { poll_fn(|cx| Pin::new(&mut io).poll_write(cx, b"more")).await };
            let (writer, mut writer_waits) = told(writer);
            let ended = match job_is_first {
                true => {
                    let job = spawn(job);
                    job_waits.receive().await.unwrap();
                    let writer = spawn(writer);
                    writer_waits.receive().await.unwrap();
                    (job, writer)
                }
                false => {
                    let writer = spawn(writer);
                    writer_waits.receive().await.unwrap();
                    let job = spawn(job);
                    job_waits.receive().await.unwrap();
                    (job, writer)
                }
            };
            let mut all = vec![0; most + 8];
            other.read_exact(&mut all).await.unwrap();
            assert_eq!(&all[most..], b"heldmore");
            ended.0.await.unwrap();
            assert_eq!(ended.1.await.unwrap().unwrap(), 4);
        });
    }
}

#[test]
fn one_that_takes_over_sends_what_the_connection_left() {
    run(async {
        let (ours, other) = UnixStream::pair().unwrap();
        let (wire, entry, mut io) = upgraded(ours);
        wire.hold(b"held");
        let writer = async move {
            let count = poll_fn(|cx| Pin::new(&mut io).poll_write(cx, b"more")).await;
            poll_fn(|cx| Pin::new(&mut io).poll_shutdown(cx)).await?;
            count
        };
        let (writer, mut writer_waits) = told(writer);
        let writer = spawn(writer);
        writer_waits.receive().await.unwrap();
        // The job is stopped.
        wire.leave();
        drop((entry, wire));
        let mut all = [0; 8];
        other.read_exact(&mut all).await.unwrap();
        assert_eq!(&all, b"heldmore");
        assert_eq!(other.read(&mut all).await.unwrap(), 0);
        assert_eq!(writer.await.unwrap().unwrap(), 4);
    });
}

#[test]
fn the_end_of_an_upgraded_stream_is_sent_although_hyper_is_still_polled() {
    run(async {
        let (ours, other) = UnixStream::pair().unwrap();
        let (wire, entry, mut io) = upgraded(ours);
        wire.set_holds(true);
        poll_fn(|cx| Pin::new(&mut io).poll_write(cx, b"bye"))
            .await
            .unwrap();
        poll_fn(|cx| Pin::new(&mut io).poll_shutdown(cx))
            .await
            .unwrap();
        wire.set_holds(false);
        job(wire.clone(), entry).await;
        let mut all = [0; 4];
        other.read_exact(&mut all[..3]).await.unwrap();
        assert_eq!(other.read(&mut all).await.unwrap(), 0, "its end arrives");
        assert_eq!(wire.lock().bytes.capacity(), 0, "its buffer is gone");
        drop(io);
    });
}

/// Another thread sends the held bytes. A response that is ahead of its writes continues all the same.
#[test]
fn what_another_thread_has_sent_counts_as_written() {
    run(async {
        let (ours, _other) = UnixStream::pair().unwrap();
        let wire = Arc::new(Wire::new(
            ours,
            Activity::new(None, "a service", Arc::default()),
        ));
        poll_fn(|cx| {
            for _ in 0..8 {
                let frame = [b'x'; 8 << 10];
                wire.activity.pace.give(2 * frame.len());
                assert!(wire.poll_write(&[IoSlice::new(&frame)], cx).is_ready());
                wire.send_now();
                assert!(wire.poll_send(cx).is_ready());
            }
            Poll::Ready(())
        })
        .await;
        assert!(!wire.activity.pace.must_wait());
    });
}

/// Hyper keeps what the wire refuses. There may be room before it is polled again, and then not everything was sent.
#[test]
fn what_hyper_keeps_is_not_sent() {
    run(async {
        let (ours, other) = UnixStream::pair().unwrap();
        let activity = Activity::new(None, "a service", Arc::default());
        let wire = Wire::new(ours, activity);
        let mut most = 0;
        while let Ok(count) = wire.stream.try_write(&[b'x'; 4096]) {
            most += count;
        }
        wire.hold(b"held");
        wire.set_holds(true);
        poll_fn(|cx| {
            assert!(wire.poll_send(cx).is_pending());
            let refused = wire.poll_write(&[IoSlice::new(b"more")], cx);
            assert!(refused.is_pending());
            Poll::Ready(())
        })
        .await;
        let mut all = vec![0; most];
        other.read_exact(&mut all).await.unwrap();
        poll_fn(|cx| wire.poll_send(cx)).await.unwrap();
        assert!(!wire.activity.has_sent_all(), "hyper has more");
        let more = [IoSlice::new(b"more")];
        poll_fn(|cx| wire.poll_write(&more, cx)).await.unwrap();
        wire.set_holds(false);
        poll_fn(|cx| wire.poll_send(cx)).await.unwrap();
        assert!(wire.activity.has_sent_all());
        let mut last = [0; 8];
        other.read_exact(&mut last).await.unwrap();
        assert_eq!(&last, b"heldmore");
    });
}
