//! Work that blocks keeps no worker.

use std::sync::mpsc;

use weald_net::offload;

use crate::tools::watch;

/// More work than there may be at once blocks; the only worker goes on meanwhile.
#[test]
fn a_worker_goes_on_while_more_is_blocked_than_may_be_at_once() {
    let _watch = watch();
    let runtime = crate::tools::runtime(1);
    let mut ends = Vec::new();
    let jobs: Vec<_> = (0..100)
        .map(|number| {
            let (end, ended) = mpsc::channel::<()>();
            ends.push(end);
            runtime.spawn(offload(move || {
                // Until its sender is dropped.
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
fn a_panic_comes_through() {
    let _watch = watch();
    let runtime = crate::tools::runtime(1);
    let job = runtime.spawn(offload(|| panic!("at work")));
    assert!(runtime.block_on(job).unwrap_err().is_panic());
}
