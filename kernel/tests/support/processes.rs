//! Many processes that live at the same time, and what they leave.

use weald_kernel::{Mailbox, Runtime, Spawn};

use crate::tools::{Drops, Token};

/// Runs `count` processes that are alive at the same time. Each ends with one message unread.
pub(crate) fn run_processes(runtime: &Runtime, count: usize) {
    let drops = Drops::default();
    let counted = drops.clone();
    let all = runtime.spawn(async move {
        let mut jobs = Vec::with_capacity(count);
        for n in 0..count as u64 {
            let (job, address) = Spawn::new()
                .spawn_with_mailbox(move |mut mailbox: Mailbox<(u64, Token)>| async move {
                    let message = std::future::poll_fn(|cx| mailbox.poll_receive(cx)).await;
                    assert_eq!(message.0, n);
                })
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
