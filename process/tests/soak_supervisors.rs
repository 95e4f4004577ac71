//! Very many children that are killed at random under one_for_one while clients call them. No call is lost without an
//! error, and no restart is missed.
//!
//! `WEALD_SOAK=<seconds>` makes it long; from 60 seconds on there are 100,000 children.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    collections::{BTreeSet, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tools::{Drops, Random, runtime, soak, until};
use weald_process::{
    self as process, CallError, ChildSpec, Inbox, Monitor, Name, Pid, ProcessId, Reply, Strategy,
    Supervisor, monitor, registered,
};

const HOUR: Duration = Duration::from_secs(3600);
/// How many kills one killer has under way.
const AT_ONCE: usize = 100;

/// Return the number, and the caller's.
struct Ask(usize, Reply<(usize, usize)>);

/// A round with all of them takes a minute or two on a busy machine, and a test that seems to hang is ended.
fn children() -> usize {
    let seconds = std::env::var("WEALD_SOAK").ok();
    match seconds.and_then(|text| text.parse::<u64>().ok()) {
        Some(60..) => 100_000,
        Some(_) => 3_000,
        None => 300,
    }
}

fn name(child: usize) -> Name<Ask> {
    Name::of(format!("child {child}"))
}

/// A child that answers, and counts its starts.
fn spec(child: usize, starts: &Arc<AtomicUsize>, drops: &Drops) -> ChildSpec {
    let (starts, drops) = (starts.clone(), drops.clone());
    ChildSpec::process(child.to_string(), move |mut inbox: Inbox<Ask>| {
        starts.fetch_add(1, Ordering::SeqCst);
        name(child).register(&inbox.pid()).unwrap();
        let token = drops.token();
        async move {
            let _token = token;
            loop {
                let Ask(number, reply) = inbox.receive().await;
                let _unheard = reply.send((child, number));
            }
        }
    })
}

/// Kills `kills` children, and returns which: a kill that comes to one that is dead already counts once.
async fn kill(children: usize, kills: usize, mut random: Random) -> BTreeSet<ProcessId> {
    let (mut killed, mut under_way) = (BTreeSet::new(), VecDeque::<Monitor>::new());
    for _ in 0..kills {
        let victim: Pid<Ask> = name(random.below(children)).registered().await.unwrap();
        under_way.push_back(monitor(&victim));
        victim.kill();
        killed.insert(victim.id());
        if under_way.len() >= AT_ONCE {
            under_way.pop_front().unwrap().await;
        }
    }
    for down in under_way {
        down.await;
    }
    killed
}

/// What became of the calls of one client.
#[derive(Default)]
struct Calls {
    made: usize,
    answered: usize,
    failed: usize,
}

/// Calls children at random until it is told to stop.
async fn call(children: usize, stop: Arc<AtomicBool>, mut random: Random) -> Calls {
    let mut calls = Calls::default();
    while !stop.load(Ordering::SeqCst) {
        let child = random.below(children);
        let callee: Pid<Ask> = name(child).registered().await.unwrap();
        calls.made += 1;
        match callee.call(|reply| Ask(calls.made, reply)).await {
            Ok(answer) => {
                assert_eq!(answer, (child, calls.made));
                calls.answered += 1;
            }
            Err(CallError::Died(_)) => calls.failed += 1,
            Err(other) => panic!("{other}"),
        }
    }
    calls
}

async fn chaos(random: &mut Random, drops: &Drops) {
    let children = children();
    let starts = Arc::new(AtomicUsize::new(0));
    let supervisor = Supervisor::new(Strategy::OneForOne).intensity(usize::MAX, HOUR);
    let supervisor = supervisor.start().await.unwrap();
    for child in 0..children {
        let child = spec(child, &starts, drops);
        supervisor.start_child(child).await.unwrap();
    }
    let stop = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (stop, own) = (stop.clone(), Random(random.next()));
            process::spawn(move |_: Inbox<()>| call(children, stop, own)).unwrap()
        })
        .collect();
    let killers: Vec<_> = (0..2)
        .map(|_| {
            let own = Random(random.next());
            process::spawn(move |_: Inbox<()>| kill(children, children / 2, own)).unwrap()
        })
        .collect();
    let mut killed = BTreeSet::new();
    for killer in killers {
        killed.extend(killer.await.unwrap());
    }
    stop.store(true, Ordering::SeqCst);
    for client in clients {
        let calls = client.await.unwrap();
        assert_eq!(calls.answered + calls.failed, calls.made, "a call is lost");
    }
    // Each is there again, under its name, and answers.
    for child in 0..children {
        let callee = name(child).registered().await.unwrap();
        assert_eq!(callee.call(|reply| Ask(0, reply)).await, Ok((child, 0)));
    }
    assert_eq!(
        starts.load(Ordering::SeqCst),
        children + killed.len(),
        "a restart is missed"
    );
    let states = supervisor.children().await.unwrap();
    assert_eq!(states.len(), children);
    assert!(states.iter().all(|child| child.unit.is_some()));
    drop(states);
    supervisor.stop().await;
    assert!(registered().is_empty());
}

fn round(random: &mut Random) {
    let drops = Drops::default();
    let runtime = runtime(1 + random.below(2));
    runtime.block_on(chaos(random, &drops));
    until(|| runtime.metrics().processes == 0);
    until(|| drops.count() == drops.made());
    runtime.shutdown(Duration::from_secs(30));
}

#[test]
fn soak_children_that_are_killed_at_random() {
    soak(round);
}
