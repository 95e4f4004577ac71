//! The rivals that keep trees as persistent data: nodes by hand, imbl and rpds, one per call.
//!
//! Invariants: the argument before the workload names the library: `--by-hand`, `--imbl` or `--rpds`. The
//! program is bound to as many processors as there are workers before the first thread starts. A
//! version is a root behind an arc-swap; a commit swaps the root, or starts again.

mod call;
mod database;
mod document;
mod library;
mod workload;

use common::{bad_usage, fail, locked_versions};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use call::{Call, What};
use library::{ByHand, Imbl, Library, Rpds};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("--by-hand") => run::<ByHand>(&arguments[1..], &["arc-swap"]),
        Some("--imbl") => run::<Imbl>(&arguments[1..], &["imbl", "arc-swap"]),
        Some("--rpds") => run::<Rpds>(&arguments[1..], &["rpds", "arc-swap"]),
        _ => bad_usage("No library is named: begin with --by-hand, --imbl or --rpds."),
    }
}

fn run<L: Library>(arguments: &[String], packages: &[&str]) -> ! {
    let call = Call::parse(arguments, &locked_versions(packages));
    use_processors(call.workers);
    let workers = call.workers;
    match call.what {
        What::Read {
            shape,
            tasks,
            visit,
        } => workload::read::<L>(shape, (tasks, visit), workers),
        What::Write { shape, trees, mode } => workload::write::<L>(shape, (trees, mode), workers),
        What::Hot {
            shape,
            writers,
            commits,
            kept,
        } => workload::hot::<L>(shape, (writers, commits), kept),
        What::Append { children, commits } => workload::append::<L>(children, commits),
        What::Snapshot { shape, reads, held } => {
            workload::snapshot::<L>(shape, (reads, held), workers)
        }
    }
}

/// Binds the program to the first `workers` of the processors that it may use.
fn use_processors(workers: usize) {
    let Ok(allowed) = sched_getaffinity(None) else {
        fail("The processors of this program cannot be read: run this on Linux.")
    };
    let mut chosen = CpuSet::new();
    let usable = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    usable.take(workers).for_each(|cpu| chosen.set(cpu));
    let enough = chosen.count() as usize == workers;
    if !enough || sched_setaffinity(None, &chosen).is_err() {
        fail("There are fewer processors than workers: give fewer workers.");
    }
}
