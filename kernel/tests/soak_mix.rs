//! A random mix of everything on one runtime, by seed. `WEALD_SOAK=<seconds>` sets how long it runs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{sync::mpsc, time::Duration};

use tools::{Drops, Latch, Random, soak, until};
use weald_kernel::{
    JoinSet, Mailbox, Runtime, Spawn, Wait, block_in_place, scope, sleep, spawn, spawn_child,
    spawn_local, timeout, yield_now,
};

/// One unit of work. It holds a token and may spawn more units.
fn work(
    mut random: Random,
    drops: Drops,
    depth: u32,
) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        let _token = drops.token();
        for _ in 0..random.below(4) {
            step(&mut random, &drops, depth).await;
        }
    })
}

async fn step(random: &mut Random, drops: &Drops, depth: u32) {
    let child = |random: &mut Random| work(Random(random.next()), drops.clone(), depth + 1);
    if depth > 4 {
        return yield_now().await;
    }
    let millis = Duration::from_millis(random.below(4) as u64);
    match random.below(16) {
        0 => yield_now().await,
        1 => sleep(millis).await,
        2 => sleep(millis).wait(),
        3 => drop(spawn(child(random))),
        4 => drop(spawn(child(random)).await),
        5 => drop(spawn(child(random)).wait()),
        6 => drop(spawn_child(child(random))),
        7 => {
            let job = spawn(child(random));
            job.cancel();
            let _ = job.await;
        }
        8 => drop(timeout(millis, child(random)).await),
        9 => block_in_place(std::thread::yield_now),
        10 => {
            let (first, second) = (child(random), child(random));
            scope(async move |scope| {
                scope.spawn(first).detach();
                let _ = scope.spawn(second).await;
            })
            .await;
        }
        11 => {
            let mut set = JoinSet::new();
            for _ in 0..3 {
                set.spawn(child(random));
            }
            drop(set.join_next().await);
        }
        12 => processes(random.below(20), drops.clone()).await,
        13 => {
            let (latch, opens) = (Latch::default(), Latch::default());
            let (first, second) = (latch.clone(), opens.clone());
            std::thread::spawn(move || first.open());
            spawn(async move { second.open() }).detach();
            latch.await;
            opens.wait();
        }
        14 => {
            let token = drops.token();
            let local = spawn_local(async move {
                let rc = std::rc::Rc::new(token);
                yield_now().await;
                drop(rc);
            });
            if let Ok(local) = local {
                let _ = local.await;
            }
        }
        _ => {
            let token = drops.token();
            let job = spawn(async move {
                let _token = token;
                yield_now().await;
                std::panic::resume_unwind(Box::new("on purpose"))
            });
            let result: Result<(), _> = job.await;
            drop(result);
        }
    }
}

/// Runs a process that receives some of its messages and ends with the rest unread.
async fn processes(count: usize, drops: Drops) {
    let token = drops.token();
    let receives = async move |mailbox: &mut Mailbox<tools::Token>| {
        for _ in 0..count {
            drop(std::future::poll_fn(|cx| mailbox.poll_receive(cx)).await);
        }
    };
    let spawned = Spawn::new().spawn_with_mailbox(|mut mailbox| async move {
        let _token = token;
        receives(&mut mailbox).await;
    });
    let Ok((job, address)) = spawned else { return };
    for _ in 0..count + 3 {
        drop(address.post(drops.token()));
    }
    let _ = job.await;
    drop(address.post(drops.token()));
}

/// Every token that is created is dropped, however the round ends.
fn round(random: &mut Random) {
    let workers = 1 + random.below(4);
    let stuck_after = Duration::from_millis(1 + random.below(10) as u64);
    let builder = Runtime::builder().workers(workers).stuck_after(stuck_after);
    let runtime = builder
        .retire_after(Duration::from_millis(20))
        .build()
        .unwrap();
    let drops = Drops::default();
    let (done, is_done) = mpsc::channel();
    let roots = 10 + random.below(40);
    for _ in 0..roots {
        let (work, done) = (work(Random(random.next()), drops.clone(), 0), done.clone());
        runtime
            .spawn(async move {
                work.await;
                done.send(()).unwrap();
            })
            .detach();
    }
    let ends_early = random.below(3) == 0;
    if !ends_early {
        for _ in 0..roots {
            is_done.recv().unwrap();
        }
        until(|| {
            let now = runtime.metrics();
            now.processes == 0 && now.runnable == 0
        });
        if random.below(4) == 0 {
            runtime.trim();
        }
        let report = runtime.shutdown(Duration::from_secs(30));
        assert_eq!(report.not_stopped, []);
    } else {
        drop(runtime);
    }
    until(|| drops.made() == drops.count());
}

#[test]
fn soak_everything_at_once() {
    soak(round);
}
