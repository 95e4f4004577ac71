//! Readiness is served while workers are busy: between short jobs, and beside one that computes.

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

/// A stream that a job reads one byte from, and the end from which it comes.
fn reader(runtime: &Runtime) -> (weald_kernel::JoinHandle<u8>, StdStream) {
    let (theirs, ours) = StdStream::pair().unwrap();
    let job = runtime.spawn(async {
        let stream = UnixStream::from_std(theirs).unwrap();
        let mut byte = [0];
        stream.read_exact(&mut byte).await.unwrap();
        byte[0]
    });
    // It has attempted to read, and waits.
    until(|| runtime.waits().to_string().contains("readable"));
    (job, ours)
}

#[test]
fn workers_that_never_lack_jobs_look() {
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

/// The worker that waited in the poller is woken by a report, for a job that computes from then on; the other
/// one parks, and nobody waits in the poller.
#[test]
fn one_that_computes_leaves_it_to_a_neighbour() {
    let _watch = watch();
    let runtime = Runtime::builder()
        .workers(2)
        .stuck_after(std::time::Duration::from_secs(50))
        .build()
        .unwrap();
    for _ in 0..20 {
        let (job, mut ours) = reader(&runtime);
        let (theirs, mut first) = StdStream::pair().unwrap();
        let (done, begun) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicBool::new(false)),
        );
        let (done_there, begun_there) = (done.clone(), begun.clone());
        let computes = runtime.spawn(async move {
            let stream = UnixStream::from_std(theirs).unwrap();
            stream.read_exact(&mut [0]).await.unwrap();
            begun_there.store(true, Ordering::Relaxed);
            while !done_there.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        until(|| runtime.waits().to_string().matches("readable").count() == 2);
        until(|| runtime.metrics().sleeping == 2);
        first.write_all(&[1]).unwrap();
        until(|| begun.load(Ordering::Relaxed));
        ours.write_all(&[8]).unwrap();
        assert_eq!(runtime.block_on(job).unwrap(), 8);
        done.store(true, Ordering::Relaxed);
        runtime.block_on(computes).unwrap();
    }
}

/// The only worker's thread is stuck: a stand-in takes its right, and the reactor goes on.
#[test]
fn a_stuck_thread_takes_no_readiness_with_it() {
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
