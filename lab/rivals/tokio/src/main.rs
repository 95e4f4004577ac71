//! The rival tokio: processes are spawned tasks, mailboxes are unbounded mpsc channels.
//!
//! Invariant: the measured work runs in a spawned task, so that the `block_on` thread is never part
//! of it. With `--current-thread` before the workload, the runtime is the current_thread one, which has
//! exactly one worker. With `--eager-handoff` a worker hands the timers to another one before it polls a task, which
//! is unstable in tokio: build it with `RUSTFLAGS="--cfg tokio_unstable"`.

mod barrier;
mod channel;
mod demo;
mod files;
mod gate;
mod lock;
mod mailbox;
mod processes;
mod ring;
mod select;
mod sleeping;
mod spawn;
mod stall;
mod team;
mod traffic;
mod waiting;

use common::{Call, Payload, Workload, bad_usage, bind_to_processors, fail, locked_versions};
use tokio::runtime::Builder;

/// Which of tokio's runtimes is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flavour {
    MultiThread,
    EagerHandoff,
    CurrentThread,
}

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let (flavour, addition) = match arguments.first().map(String::as_str) {
        Some("--current-thread") => (Flavour::CurrentThread, " (current_thread)"),
        Some("--eager-handoff") => (Flavour::EagerHandoff, " (eager driver hand-off)"),
        _ => (Flavour::MultiThread, ""),
    };
    if flavour != Flavour::MultiThread {
        arguments.remove(0);
    }
    let version = locked_versions(&["tokio"]) + addition;
    let call = Call::parse(&arguments, &version);
    if flavour == Flavour::CurrentThread && call.workers != 1 {
        fail("The current_thread runtime has one worker: give workers=1.");
    }
    // Before the runtime starts its threads, which inherit the binding.
    if let Workload::BurstSend { cores, .. } = call.workload {
        bind_to_processors(cores);
    }
    let mut builder = match flavour {
        Flavour::CurrentThread => Builder::new_current_thread(),
        Flavour::MultiThread => Builder::new_multi_thread(),
        Flavour::EagerHandoff => eager_handoff(),
    };
    if flavour != Flavour::CurrentThread {
        builder.worker_threads(call.workers);
    }
    let Ok(runtime) = builder.enable_time().build() else {
        fail("The runtime cannot start its threads: give fewer workers.")
    };
    runtime.block_on(async move {
        match tokio::spawn(run(call)).await {
            Ok(()) => unreachable!("every workload ends the program"),
            Err(_) => fail("The measured task panicked: see the message above."),
        }
    });
}

#[cfg(tokio_unstable)]
fn eager_handoff() -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder.enable_eager_driver_handoff();
    builder
}

#[cfg(not(tokio_unstable))]
fn eager_handoff() -> Builder {
    fail("The eager hand-off is unstable: build with RUSTFLAGS=\"--cfg tokio_unstable\".")
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
        Workload::BurstSend {
            receivers, each, ..
        } => traffic::burst_send(receivers, each).await,
        Workload::Demo { processes, seconds } => demo::run(processes, seconds).await,
        Workload::PingPong { rounds } => traffic::ping_pong(rounds).await,
        Workload::Stall(stall) => stall::run(stall).await,
        Workload::Handoff { rounds } => stall::handoff(rounds).await,
        Workload::Waiting(waiting) => waiting::run(waiting).await,
        Workload::Sleeping(sleeping) => sleeping::run(sleeping, call.workers).await,
        Workload::Processes(processes) => processes::run(processes).await,
        Workload::Forking(_) | Workload::Items { .. } | Workload::Thread(_) => {
            bad_usage("Tasks have no stack to fork on: leave it out.")
        }
    }
}
