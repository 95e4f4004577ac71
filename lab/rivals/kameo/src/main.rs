//! The rival kameo: processes are its actors on tokio's multi_thread runtime, with unbounded mailboxes; only what
//! processes have beyond messages is measured.
//!
//! Invariant: no process is supervised or named, and the tracing feature is off, so that nothing is
//! paid for that is not used.

#[path = "../../tokio/src/gate.rs"]
mod gate;
mod processes;

use common::{Call, Workload, bad_usage, fail, locked_versions};
use tokio::runtime::Builder;

fn main() {
    let version = locked_versions(&["kameo", "tokio"]);
    let call = Call::from_env(&version);
    let mut builder = Builder::new_multi_thread();
    let Ok(runtime) = builder.worker_threads(call.workers).enable_time().build() else {
        fail("The runtime cannot start its threads: give fewer workers.");
    };
    let Workload::Processes(processes) = call.workload else {
        bad_usage("The rival kameo runs on tokio's scheduler: measure this workload with tokio.");
    };
    runtime.block_on(async move {
        match tokio::spawn(processes::run(processes)).await {
            Ok(()) => unreachable!("every workload ends the program"),
            Err(_) => fail("The measured task panicked: see the message above."),
        }
    });
}
