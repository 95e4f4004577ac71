//! `Runtime::trim`: memory of ended jobs is returned, and everything keeps working. Alone in its program,
//! because a trim in another test would take the memory that this test counts.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use tools::{Drops, runtime, watch};
use weald_kernel::{Mailbox, Runtime, Spawn, spawn, yield_now};

/// Runs `count` processes that are alive at the same time. Each ends with one message unread.
fn run_processes(runtime: &Runtime, count: usize) {
    let drops = Drops::default();
    let counted = drops.clone();
    let all = runtime.spawn(async move {
        let mut jobs = Vec::with_capacity(count);
        for n in 0..count as u64 {
            let (job, address) = Spawn::new()
                .spawn_with_mailbox(
                    move |mut mailbox: Mailbox<(u64, tools::Token)>| async move {
                        let message = std::future::poll_fn(|cx| mailbox.poll_receive(cx)).await;
                        assert_eq!(message.0, n);
                    },
                )
                .unwrap();
            jobs.push((job, address));
        }
        for (n, (_, address)) in jobs.iter().enumerate() {
            assert!(address.post((n as u64, counted.token())).is_ok());
            let _unread = address.post((0, counted.token()));
        }
        for (job, _) in jobs {
            job.await.unwrap();
        }
    });
    runtime.block_on(all).unwrap();
    assert_eq!(drops.count(), 2 * count);
}

#[test]
fn memory_of_ended_processes_is_returned() {
    let _watch = watch();
    let runtime = runtime(2);
    run_processes(&runtime, 200_000);
    let returned = runtime.trim();
    if cfg!(not(weald_plain_alloc)) {
        // At least half of 200,000 headers of 48 bytes.
        assert!(returned > 200_000 * 48 / 2, "only {returned} bytes");
    }
    run_processes(&runtime, 20_000);
    runtime.trim();
    runtime.block_on(async { spawn(yield_now()).await.unwrap() });
    run_processes(&runtime, 20_000);
}
