//! Supervisors of many children, and clients that lose no call without an error while children are killed at random.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/children.rs"]
mod children;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use children::HOUR;
use tools::{Random, for_seeds, on_each, watch};
use weald_kernel::{Runtime, spawn, yield_now};
use weald_process::{
    CallError, ChildSpec, Inbox, Name, Pid, Reply, Restart, Strategy, Supervisor, monitor,
};

enum Request {
    Double(u32, Reply<u32>),
}

static SERVER: Name<Request> = Name::new("server");

fn server(starts: &Arc<AtomicU32>) -> ChildSpec {
    let starts = starts.clone();
    ChildSpec::process("server", move |mut inbox: Inbox<Request>| {
        starts.fetch_add(1, Ordering::SeqCst);
        SERVER.register(&inbox.pid()).unwrap();
        async move {
            loop {
                let Request::Double(n, reply) = inbox.receive().await;
                yield_now().await;
                let _unheard = reply.send(2 * n);
            }
        }
    })
}

/// Kills the server again and again while clients call it.
async fn chaos(random: &mut Random, kills: u32) {
    let starts = Arc::new(AtomicU32::new(0));
    let supervisor = Supervisor::new(Strategy::OneForOne)
        .intensity(usize::MAX, HOUR)
        .child(server(&starts));
    let supervisor = supervisor.start().await.unwrap();
    let clients: Vec<_> = (0..3)
        .map(|n| {
            spawn(async move {
                let (mut done, mut lost) = (0_u32, 0_u32);
                while done < 20 {
                    let server: Pid<Request> = SERVER.registered().await.unwrap();
                    match server.call(|reply| Request::Double(n, reply)).await {
                        Ok(double) => {
                            assert_eq!(double, 2 * n);
                            done += 1;
                        }
                        Err(CallError::Died(_)) => lost += 1,
                        Err(other) => panic!("{other}"),
                    }
                }
                lost
            })
        })
        .collect();
    for _ in 0..kills {
        for _ in 0..random.below(12) {
            yield_now().await;
        }
        let server = SERVER.registered().await.unwrap();
        let down = monitor(&server);
        server.kill();
        down.await;
    }
    for client in clients {
        client.await.unwrap();
    }
    let last = SERVER.registered().await.unwrap();
    assert!(last.is_alive());
    supervisor.stop().await;
    assert_eq!(starts.load(Ordering::SeqCst), kills + 1);
}

#[test]
fn no_call_is_lost_without_an_error_and_no_restart_is_missed() {
    for_seeds(100, |random| {
        let seed = random.next();
        Runtime::test(seed).block_on(chaos(random, 20));
    });
    on_each(|runtime| runtime.block_on(chaos(&mut Random(1), 100)));
}

/// A child that waits for an order.
fn waits(id: impl Into<std::borrow::Cow<'static, str>>) -> ChildSpec {
    ChildSpec::process(id, async |mut inbox: Inbox<()>| inbox.receive().await)
}

#[test]
fn a_supervisor_of_very_many_children_starts_finds_and_ends_them() {
    const MANY: usize = 100_000;
    let _watch = watch();
    // On a busy machine a child may look stuck at its end, and then its supervisor is told apart, maybe as the last.
    let builder = Runtime::builder().workers(2);
    let builder = builder.stuck_after(HOUR);
    let runtime = builder.build().unwrap();
    runtime.block_on(async {
        let supervisor = Supervisor::new(Strategy::OneForOne).start().await.unwrap();
        for n in 0..MANY {
            let spec = waits(n.to_string()).restart(Restart::Temporary);
            supervisor.start_child(spec).await.unwrap();
        }
        let children = supervisor.children().await.unwrap();
        assert_eq!(children.len(), MANY);
        assert!(
            children
                .iter()
                .enumerate()
                .all(|(n, c)| c.id == n.to_string())
        );
        // The first half ends itself, and the supervisor forgets it; the other half is ended with the supervisor.
        for child in &children[..MANY / 2] {
            let unit = child.unit.as_ref().unwrap();
            let down = monitor(unit);
            unit.kill();
            // The supervisor was told before.
            down.await;
        }
        assert_eq!(supervisor.children().await.unwrap().len(), MANY / 2);
        supervisor.stop().await;
        assert!(children.iter().all(|c| c.unit.as_ref().unwrap().is_done()));
    });
}
