//! The rival tokio: processes are spawned tasks, mailboxes are unbounded mpsc channels.
//!
//! Invariant: the measured work runs in a spawned task, so that the `block_on` thread is never part
//! of it. With `--current-thread` before the workload, the runtime is the current_thread one, which has
//! exactly one worker.

mod barrier;
mod channel;
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

use common::{Call, Payload, Workload, bad_usage, fail, locked_versions};
use tokio::runtime::{Builder, Runtime};

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let current_thread = arguments
        .first()
        .is_some_and(|first| first == "--current-thread");
    let mut version = locked_versions(&["tokio"]);
    if current_thread {
        arguments.remove(0);
        version.push_str(" (current_thread)");
    }
    let call = Call::parse(&arguments, &version);
    if current_thread && call.workers != 1 {
        fail("The current_thread runtime has one worker: give workers=1.");
    }
    let runtime = if current_thread {
        current_thread_runtime()
    } else {
        multi_thread(call.workers)
    };
    runtime.block_on(async move {
        match tokio::spawn(run(call)).await {
            Ok(()) => unreachable!("every workload ends the program"),
            Err(_) => fail("The measured task panicked: see the message above."),
        }
    });
}

fn current_thread_runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap_or_else(|_| no_runtime())
}

fn multi_thread(workers: usize) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder
        .worker_threads(workers)
        .enable_time()
        .build()
        .unwrap_or_else(|_| no_runtime())
}

fn no_runtime() -> ! {
    fail("The runtime cannot start its threads: give fewer workers.")
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
        Workload::Forking(_) | Workload::Thread(_) => {
            bad_usage("Tasks have no stack to fork on: leave it out.")
        }
    }
}
