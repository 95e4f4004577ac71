//! Sockets and their runtime: shutdown, use from other runtimes, virtual time.

use std::{sync::mpsc, thread, time::Duration};

use weald_kernel::{Runtime, sleep, spawn, spawn_local};
use weald_net::{TcpListener, UnixStream};
use weald_sync::Wait;

use super::here;
use crate::tools::{until, watch};

#[test]
fn a_shutdown_ends_jobs_that_wait_for_sockets() {
    let _watch = watch();
    let runtime = crate::tools::runtime(2);
    let (one, other) = runtime.block_on(async { UnixStream::pair().unwrap() });
    let listener = runtime.block_on(async { TcpListener::bind(here()).unwrap() });
    let jobs = [
        runtime.spawn(async move { other.read(&mut [0]).await.map(drop) }),
        runtime.spawn(async move { listener.accept().await.map(drop) }),
    ];
    until(|| runtime.waits().to_string().matches("readable").count() == 2);
    let report = runtime.shutdown(Duration::from_secs(10));
    assert_eq!(report.cancelled, 2);
    assert!(report.not_stopped.is_empty());
    for job in jobs {
        assert!(job.wait().unwrap_err().is_cancelled());
    }
    drop(one);
}

#[test]
fn a_thread_that_waits_gets_an_error_when_the_runtime_is_gone() {
    let _watch = watch();
    let runtime = crate::tools::runtime(1);
    let (_one, other) = runtime.block_on(async { UnixStream::pair().unwrap() });
    let (start, started) = mpsc::channel();
    let waiting = thread::spawn(move || {
        start.send(()).unwrap();
        let first = other.read(&mut [0]).wait();
        let second = other.read(&mut [0]).wait();
        (first, second, other.readable().wait())
    });
    started.recv().unwrap();
    drop(runtime);
    let (first, second, third) = waiting.join().unwrap();
    for error in [first.unwrap_err(), second.unwrap_err(), third.unwrap_err()] {
        assert!(error.to_string().contains("shut down"), "{error}");
    }
}

#[test]
fn a_socket_is_used_by_jobs_of_another_runtime() {
    let _watch = watch();
    let (first, second) = (crate::tools::runtime(1), crate::tools::runtime(1));
    let (one, other) = first.block_on(async { UnixStream::pair().unwrap() });
    let reader = second.spawn(async move {
        let mut byte = [0];
        other.read_exact(&mut byte).await.unwrap();
        byte[0]
    });
    until(|| second.waits().to_string().contains("readable"));
    first.block_on(one.write_all(&[5])).unwrap();
    assert_eq!(second.block_on(reader).unwrap(), 5);
}

#[test]
fn a_test_runtime_waits_for_sockets_only_when_time_cannot_advance() {
    let _watch = watch();
    Runtime::test(3).block_on(async {
        let (one, other) = UnixStream::pair().unwrap();
        let before = weald_kernel::now();
        let reader = spawn(async move {
            let mut byte = [0];
            other.read_exact(&mut byte).await.unwrap();
            byte[0]
        });
        sleep(Duration::from_secs(3600)).await;
        assert_eq!(weald_kernel::now() - before, Duration::from_secs(3600));
        let outside = thread::spawn(move || one.try_write(&[4]).unwrap());
        assert_eq!(reader.await.unwrap(), 4);
        outside.join().unwrap();
    });
}

/// The job may run on one thread only, and that thread waits in the poller.
#[test]
fn a_local_job_is_woken_on_a_thread_that_waits_in_the_poller() {
    let _watch = watch();
    let runtime = crate::tools::runtime(1);
    for _ in 0..50 {
        let (sender, receiver) = weald_sync::channel::unbounded::<u8>();
        let (other, ready) = mpsc::channel();
        let job = runtime.spawn(async move {
            let keeps_the_poller_busy = UnixStream::pair().unwrap();
            let local = spawn_local(async move { receiver.receive().await.unwrap() }).unwrap();
            other.send(()).unwrap();
            let value = local.await.unwrap();
            drop(keeps_the_poller_busy);
            value
        });
        ready.recv().unwrap();
        until(|| runtime.metrics().sleeping == 1);
        sender.try_send(6).unwrap();
        assert_eq!(runtime.block_on(job).unwrap(), 6);
    }
}
