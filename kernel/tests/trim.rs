//! `Runtime::trim`: memory of ended jobs is returned, and everything keeps working. Alone in its program,
//! because a trim in another test would take the memory that this test counts.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/processes.rs"]
mod processes;
#[path = "support/tools.rs"]
mod tools;

use processes::run_processes;
use tools::{runtime, watch};
use weald_kernel::{spawn, yield_now};

#[test]
fn memory_of_ended_processes_is_returned() {
    let _watch = watch();
    let runtime = runtime(2);
    run_processes(&runtime, 200_000);
    let returned = runtime.trim();
    if cfg!(not(weald_plain_alloc)) {
        // At least half of 200,000 headers of 48 bytes.
        assert!(returned > 200_000 * 48 / 2, "only {returned} bytes");
    }
    run_processes(&runtime, 20_000);
    runtime.trim();
    runtime.block_on(async { spawn(yield_now()).await.unwrap() });
    run_processes(&runtime, 20_000);
}
