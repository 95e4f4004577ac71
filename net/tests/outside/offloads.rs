//! Offloaded work that blocks does not occupy a worker.

use std::sync::mpsc;

use weald_net::offload;

use crate::tools::watch;

/// More work blocks than may run at once, and the only worker continues in the meantime.
#[test]
fn a_worker_continues_while_more_work_blocks_than_may_run_at_once() {
    let _watch = watch();
    let runtime = crate::tools::runtime(1);
    let mut ends = Vec::new();
    let jobs: Vec<_> = (0..100)
        .map(|number| {
            let (end, ended) = mpsc::channel::<()>();
            ends.push(end);
            runtime.spawn(offload(move || {
                // Blocks until the sender is dropped.
                let _dropped = ended.recv();
                number
            }))
        })
        .collect();
    for round in 0..100 {
        assert_eq!(
            runtime
                .block_on(runtime.spawn(async move { round }))
                .unwrap(),
            round
        );
    }
    drop(ends);
    for (number, job) in jobs.into_iter().enumerate() {
        assert_eq!(runtime.block_on(job).unwrap().unwrap(), number);
    }
}

#[test]
fn a_panic_reaches_the_caller() {
    let _watch = watch();
    let runtime = crate::tools::runtime(1);
    let job = runtime.spawn(offload(|| panic!("at work")));
    assert!(runtime.block_on(job).unwrap_err().is_panic());
}
