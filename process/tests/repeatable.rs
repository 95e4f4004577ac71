//! A run of the test runtime is a function of the program and the seed: the same trace in every run, whatever ran
//! before on the thread, whatever other runtimes do meanwhile, and in another process.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    collections::HashSet,
    env,
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use tools::watch;
use weald_kernel::{
    JoinSet, Runtime, Wait, fork, now, scope, sleep, spawn, spawn_local, timeout, yield_now,
};
use weald_process::{self as process, Inbox, callback, receptor::Receptor};
use weald_sync::{Mutex as WaitingMutex, always, channel, choose, select};

const MS: Duration = Duration::from_millis(1);

/// What a run does, in order.
#[derive(Clone, Default)]
struct Trace(Arc<Mutex<Vec<String>>>);

impl Trace {
    fn note(&self, what: impl std::fmt::Display) {
        self.0.lock().unwrap().push(what.to_string());
    }

    /// Notes its drop.
    fn ending(&self, name: impl std::fmt::Display) -> Ending {
        Ending(self.clone(), format!("end of {name}"))
    }
}

struct Ending(Trace, String);

impl Drop for Ending {
    fn drop(&mut self) {
        // A destructor chooses, too.
        let chosen = choose(vec![always(1), always(2), always(3)]).wait();
        self.0.note(format_args!("{} {chosen}", self.1));
    }
}

/// Of many events that are ready at once, these are chosen.
async fn choices(trace: &Trace) {
    let channels: Vec<_> = (0..4).map(|_| channel::unbounded::<u32>()).collect();
    for (sender, _) in &channels {
        (0..4).for_each(|n| sender.try_send(n).unwrap());
    }
    for _ in 0..8 {
        let from = select! {
            _ = channels[0].1.receive() => 0,
            _ = channels[1].1.receive() => 1,
            _ = channels[2].1.receive() => 2,
            _ = channels[3].1.receive() => 3,
        };
        trace.note(format_args!("from {from}"));
        trace.note(choose(vec![always("one"), always("two"), always("three")]).await);
    }
}

async fn timers_and_locks(trace: &Trace) {
    let begin = now();
    let lock = Arc::new(WaitingMutex::new(0));
    let mut set = JoinSet::new();
    for n in 0..6_u32 {
        let (trace, lock) = (trace.clone(), lock.clone());
        set.spawn(async move {
            sleep(MS * (n % 3)).await;
            let mut held = lock.lock().await;
            yield_now().await;
            *held += n;
            trace.note(format_args!("{n} adds up to {}", *held));
        });
    }
    while set.join_next().await.is_some() {}
    let late = timeout(5 * MS, std::future::pending::<()>()).await;
    trace.note(format_args!("{} {:?}", late.is_err(), now() - begin));
}

async fn processes(trace: &Trace) {
    let (sender, ended) = channel::rendezvous();
    let mut pids = Vec::new();
    for n in 0..4 {
        let (trace, sender) = (trace.clone(), sender.clone());
        let body = move |mut inbox: Inbox<u32>| async move {
            for _ in 0..3 {
                let message = inbox.receive().await;
                trace.note(format_args!("process {n} has {message}"));
            }
            sender.send(n).await.unwrap();
        };
        pids.push(process::spawn(body).unwrap().into_pid());
    }
    for message in 0..3 {
        for pid in &pids {
            let pid = pid.clone();
            spawn(async move { pid.send(message) }).detach();
        }
    }
    for _ in 0..4 {
        trace.note(format_args!("ended: {}", ended.receive().await.unwrap()));
    }
}

async fn callbacks(trace: &Trace) {
    let (sender, ran) = channel::unbounded();
    for n in 0..6 {
        let (trace, sender) = (trace.clone(), sender.clone());
        let run = move || {
            trace.note(format_args!("callback {n}"));
            sender.try_send(()).unwrap();
        };
        match n % 2 {
            0 => callback::spawn(run).detach(),
            _ => callback::after(MS * (n % 3), run).detach(),
        }
    }
    for _ in 0..6 {
        ran.receive().await.unwrap();
    }
}

async fn forks(trace: &Trace) {
    let trace = trace.clone();
    let sum = spawn(async move {
        let (tx, rx) = channel::rendezvous();
        let (left, right) = fork::join(
            || {
                trace.note("left");
                tx.send(2).wait().unwrap();
                2
            },
            || {
                trace.note("right");
                rx.receive().wait().unwrap()
            },
        );
        let parts = Mutex::new(Vec::new());
        fork::scope(|scope| {
            for n in 0..5 {
                let parts = &parts;
                scope.spawn(move || parts.lock().unwrap().push(n));
            }
        });
        trace.note(format_args!("{:?}", parts.into_inner().unwrap()));
        left + right
    });
    assert_eq!(sum.await.unwrap(), 4);
}

/// What is left when the run ends, is cancelled in an order: jobs that wait, with and without their stacks, that are
/// pinned, in a set, or threads of a receptor.
async fn leave_some(trace: &Trace) -> JoinSet<()> {
    let receptor = Receptor::<()>::start().unwrap();
    let mut set = JoinSet::new();
    for n in 0..12 {
        let end = trace.ending(format_args!("waiter {n}"));
        spawn(async move {
            std::future::pending::<()>().await;
            drop(end);
        })
        .detach();
        let end = trace.ending(format_args!("member {n}"));
        set.spawn(async move {
            std::future::pending::<()>().await;
            drop(end);
        });
        let end = trace.ending(format_args!("stack {n}"));
        spawn(async move {
            std::future::pending::<()>().wait();
            drop(end);
        })
        .detach();
        let end = trace.ending(format_args!("local {n}"));
        let local = spawn_local(async move {
            std::future::pending::<()>().await;
            drop(end);
        });
        local.unwrap().detach();
        let end = trace.ending(format_args!("thread {n}"));
        receptor
            .spawn_with_id(move |thread| thread.set_handler(move |()| _ = &end))
            .await
            .unwrap();
    }
    sleep(MS).await;
    set
}

fn run(seed: u64) -> Vec<String> {
    let trace = Trace::default();
    let runtime = Runtime::test(seed);
    let kept = trace.clone();
    runtime.block_on(async move {
        let trace = kept;
        let parts = async |n| match n {
            0 => choices(&trace).await,
            1 => timers_and_locks(&trace).await,
            2 => processes(&trace).await,
            3 => callbacks(&trace).await,
            _ => forks(&trace).await,
        };
        for n in 0..5 {
            parts(n).await;
        }
        scope(async |scope| {
            for n in 0..5 {
                let trace = trace.clone();
                scope
                    .spawn(async move {
                        yield_now().await;
                        trace.note(format_args!("child {n}"));
                    })
                    .detach();
            }
        })
        .await;
        drop(leave_some(&trace).await);
    });
    drop(runtime);
    let trace = std::mem::take(&mut *trace.0.lock().unwrap());
    assert_eq!(
        trace
            .iter()
            .filter(|line| line.starts_with("end of"))
            .count(),
        60
    );
    trace
}

/// Another run on the same thread, which leaves behind what it can: jobs' blocks in use or free in another order,
/// choices drawn, stacks pooled.
fn disturb(round: u64) -> Vec<weald_kernel::JoinHandle<u64>> {
    Runtime::test(1_000 + round).block_on(async move {
        let mut kept: Vec<_> = (0..20 + round).map(|n| spawn(async move { n })).collect();
        for _ in 0..round {
            yield_now().await;
            choose(vec![always(1), always(2)]).await;
        }
        kept.retain(|handle| !handle.is_finished() || round.is_multiple_of(3));
        kept.reverse();
        kept
    })
}

#[test]
fn a_seed_gives_one_trace_whatever_ran_before() {
    let watch = watch();
    let mut traces = HashSet::new();
    let mut kept = Vec::new();
    for seed in 0..20 {
        watch.again();
        let first = run(seed);
        for round in 1..20 {
            kept.push(disturb(round));
            if round.is_multiple_of(4) {
                kept.remove(kept.len() / 2);
            }
            let again = run(seed);
            let differs = first.iter().zip(&again).position(|(a, b)| a != b);
            let near = differs.map(|n| (&first[n.saturating_sub(2)..=n], &again[n]));
            assert_eq!(again, first, "seed {seed}, run {round}: {near:?}");
        }
        traces.insert(first);
    }
    assert!(traces.len() >= 15, "only {} traces", traces.len());
}

/// A runtime that ends looks at all jobs of the program, those of other runtimes too.
#[test]
fn a_seed_gives_one_trace_beside_runtimes_that_end() {
    let _watch = watch();
    let is_over = AtomicBool::new(false);
    thread::scope(|threads| {
        threads.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                drop(Runtime::test(1));
            }
        });
        let traces: Vec<_> = (0..100).map(|_| run(0)).collect();
        is_over.store(true, Ordering::Relaxed);
        assert!(traces.iter().all(|trace| *trace == traces[0]));
    });
}

/// A name that makes this program print its traces instead of testing them.
const PRINT: &str = "WEALD_TEST_PRINTS_TRACES";

#[test]
fn another_process_has_the_same_traces() {
    let _watch = watch();
    let own: Vec<String> = (0..5).flat_map(run).collect();
    if env::var_os(PRINT).is_some() {
        println!("begin\n{}\nend", own.join("\n"));
        return;
    }
    let name = "another_process_has_the_same_traces";
    let child = Command::new(env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env(PRINT, "1")
        .output()
        .unwrap();
    let text = String::from_utf8(child.stdout).unwrap();
    let printed = text
        .lines()
        .skip_while(|line| !line.ends_with("begin"))
        .skip(1);
    let theirs: Vec<&str> = printed.take_while(|line| *line != "end").collect();
    assert!(child.status.success(), "{text}");
    assert_eq!(theirs, own);
}
