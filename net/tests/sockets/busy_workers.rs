//! Readiness is handled while workers are busy: between short jobs, and beside a job that computes.

use std::{
    io::Write,
    os::unix::net::UnixStream as StdStream,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use weald_kernel::{Runtime, spawn, yield_now};
use weald_net::UnixStream;

use crate::tools::{until, watch};

/// A job that reads one byte from a stream, and the other end of that stream.
fn reader(runtime: &Runtime) -> (weald_kernel::JoinHandle<u8>, StdStream) {
    let (theirs, ours) = StdStream::pair().unwrap();
    let job = runtime.spawn(async {
        let stream = UnixStream::from_std(theirs).unwrap();
        let mut byte = [0];
        stream.read_exact(&mut byte).await.unwrap();
        byte[0]
    });
    // The job has tried to read, and waits.
    until(|| runtime.waits().to_string().contains("readable"));
    (job, ours)
}

#[test]
fn workers_that_always_have_jobs_still_poll() {
    let _watch = watch();
    for workers in [1, 2] {
        let runtime = crate::tools::runtime(workers);
        let (job, mut ours) = reader(&runtime);
        let stop = Arc::new(AtomicBool::new(false));
        let spinners: Vec<_> = (0..4 * workers)
            .map(|_| {
                let stop = stop.clone();
                runtime.spawn(async move {
                    while !stop.load(Ordering::Relaxed) {
                        yield_now().await;
                    }
                })
            })
            .collect();
        until(|| runtime.metrics().sleeping == 0);
        ours.write_all(&[7]).unwrap();
        assert_eq!(runtime.block_on(job).unwrap(), 7);
        stop.store(true, Ordering::Relaxed);
        for spinner in spinners {
            runtime.block_on(spinner).unwrap();
        }
    }
}

/// A report wakes the worker that waits in the poller, and the job it then runs only computes. The other worker
/// is parked, so no worker waits in the poller.
#[test]
fn a_worker_that_computes_leaves_the_poller_to_another() {
    let _watch = watch();
    let runtime = Runtime::builder()
        .workers(2)
        .stuck_after(std::time::Duration::from_secs(50))
        .build()
        .unwrap();
    for _ in 0..20 {
        let (job, mut ours) = reader(&runtime);
        let (theirs, mut first) = StdStream::pair().unwrap();
        let (done, started) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicBool::new(false)),
        );
        let (done_there, started_there) = (done.clone(), started.clone());
        let computes = runtime.spawn(async move {
            let stream = UnixStream::from_std(theirs).unwrap();
            stream.read_exact(&mut [0]).await.unwrap();
            started_there.store(true, Ordering::Relaxed);
            while !done_there.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        until(|| runtime.waits().to_string().matches("readable").count() == 2);
        until(|| runtime.metrics().sleeping == 2);
        first.write_all(&[1]).unwrap();
        until(|| started.load(Ordering::Relaxed));
        ours.write_all(&[8]).unwrap();
        assert_eq!(runtime.block_on(job).unwrap(), 8);
        done.store(true, Ordering::Relaxed);
        runtime.block_on(computes).unwrap();
    }
}

/// The thread of the only worker is stuck: a spare thread takes the worker over, and the reactor continues.
#[test]
fn a_stuck_thread_holds_up_no_readiness() {
    let _watch = watch();
    let runtime = crate::tools::runtime(1);
    let (job, mut ours) = reader(&runtime);
    let done = Arc::new(AtomicBool::new(false));
    let done_there = done.clone();
    let stuck = runtime.spawn(async move {
        spawn(async {}).detach();
        until(|| done_there.load(Ordering::Relaxed));
    });
    ours.write_all(&[9]).unwrap();
    assert_eq!(runtime.block_on(job).unwrap(), 9);
    done.store(true, Ordering::Relaxed);
    runtime.block_on(stuck).unwrap();
}
