//! The rival smol: processes are tasks of one static async-executor, mailboxes are unbounded
//! async-channels.
//!
//! Invariant: the measured work is itself a task of the executor; `workers` OS threads run it, and
//! the timers have the thread that smol keeps for them. With `--flume` before the workload, the channels
//! are those of flume instead of async-channel.

mod barrier;
mod channel;
mod ends;
mod gate;
mod lock;
mod mailbox;
mod ring;
mod select;
mod sleeping;
mod spawn;
mod stall;
mod team;
mod traffic;
mod waiting;

use async_executor::StaticExecutor;
use common::{Call, Payload, Workload, bad_usage, fail, locked_versions};

/// The executor that all workers run.
static EXECUTOR: StaticExecutor = StaticExecutor::new();

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let flume = arguments.first().is_some_and(|first| first == "--flume");
    let mut packages = vec!["smol", "async-executor"];
    if flume {
        arguments.remove(0);
        packages.insert(0, "flume");
    }
    let call = Call::parse(&arguments, &locked_versions(&packages));
    for _ in 1..call.workers {
        let work = || smol::block_on(EXECUTOR.run(std::future::pending::<()>()));
        if std::thread::Builder::new().spawn(work).is_err() {
            fail("A worker thread cannot be started: give fewer workers.");
        }
    }
    if flume {
        smol::block_on(EXECUTOR.run(EXECUTOR.spawn(run_flume(call))));
    } else {
        smol::block_on(EXECUTOR.run(EXECUTOR.spawn(run(call))));
    }
}

async fn run(call: Call) {
    match call.workload {
        Workload::Spawn { n } => spawn::run(n).await,
        Workload::Ring { n, m, tokens } => ring::run(n, m, tokens).await,
        Workload::Mailbox {
            k,
            bytes,
            payload: Payload::Shared,
        } => {
            let text: &'static str = "x".repeat(bytes).leak();
            mailbox::run(k, || text).await;
        }
        Workload::Mailbox {
            k,
            bytes,
            payload: Payload::Fresh,
        } => {
            let text = "x".repeat(bytes);
            mailbox::run(k, || Box::<str>::from(text.as_str())).await;
        }
        Workload::ManyToMany {
            processes,
            messages,
        } => {
            traffic::many_to_many(processes, messages).await;
        }
        Workload::FanIn { senders, messages } => traffic::fan_in(senders, messages).await,
        Workload::PingPong { rounds } => traffic::ping_pong(rounds).await,
        Workload::Stall(stall) => stall::run(stall).await,
        Workload::Handoff { rounds } => stall::handoff(rounds).await,
        Workload::Waiting(waiting) => waiting::run(waiting).await,
        Workload::Sleeping(sleeping) => sleeping::run(sleeping, call.workers).await,
        Workload::BurstSend { .. } | Workload::Demo { .. } | Workload::Processes(_) => {
            bad_usage("The rival smol has no program for this workload: leave it out.")
        }
        Workload::Forking(_) | Workload::Items { .. } | Workload::Thread(_) => {
            bad_usage("Tasks have no stack to fork on: leave it out.")
        }
    }
}

async fn run_flume(call: Call) {
    match call.workload {
        Workload::Waiting(waiting) => waiting::run_flume(waiting).await,
        _ => bad_usage("flume has channels and nothing else: leave `--flume` out."),
    }
}
