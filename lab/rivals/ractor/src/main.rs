//! The rival ractor: processes are its actors on tokio's multi_thread runtime, mailboxes are their
//! message ports.
//!
//! Invariant: no process is supervised or named, and the tracing feature is off, so that nothing is
//! paid for that is not used.

#[path = "../../tokio/src/gate.rs"]
mod gate;
mod mailbox;
mod processes;
mod ring;
mod spawn;
mod traffic;

use common::{Call, Payload, Workload, fail, locked_versions};
use ractor::{Actor, ActorRef};
use tokio::runtime::Builder;

fn main() {
    let version = locked_versions(&["ractor", "tokio"]);
    let call = Call::from_env(&version);
    let mut builder = Builder::new_multi_thread();
    let Ok(runtime) = builder.worker_threads(call.workers).enable_time().build() else {
        fail("The runtime cannot start its threads: give fewer workers.");
    };
    runtime.block_on(async move {
        match tokio::spawn(run(call)).await {
            Ok(()) => unreachable!("every workload ends the program"),
            Err(_) => fail("The measured task panicked: see the message above."),
        }
    });
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
            mailbox::run(k, bytes, |text| text).await;
        }
        Workload::Mailbox {
            k,
            bytes,
            payload: Payload::Fresh,
        } => {
            mailbox::run(k, bytes, Box::<str>::from).await;
        }
        Workload::ManyToMany {
            processes,
            messages,
        } => {
            traffic::many_to_many(processes, messages).await;
        }
        Workload::FanIn { senders, messages } => traffic::fan_in(senders, messages).await,
        Workload::PingPong { rounds } => traffic::ping_pong(rounds).await,
        Workload::Processes(processes) => processes::run(processes).await,
        Workload::Stall(_)
        | Workload::BurstSend { .. }
        | Workload::Demo { .. }
        | Workload::Handoff { .. }
        | Workload::Waiting(_)
        | Workload::Sleeping(_)
        | Workload::Forking(_)
        | Workload::Items { .. }
        | Workload::Thread(_) => {
            fail("The rival ractor runs on tokio's scheduler: measure this workload with tokio.")
        }
    }
}

/// Starts a process and returns its address.
#[expect(
    clippy::manual_async_fn,
    reason = "Send cannot be inferred through ractor's futures"
)]
fn start<P: Actor>(
    process: P,
    arguments: P::Arguments,
) -> impl Future<Output = ActorRef<P::Msg>> + Send {
    async move {
        match P::spawn(None, process, arguments).await {
            Ok((address, _)) => address,
            Err(_) => fail("A process cannot be started: give a smaller number of them."),
        }
    }
}
