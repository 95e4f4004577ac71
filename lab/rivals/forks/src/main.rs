//! The rivals that only fork and join: rayon and chili, one per call.
//!
//! Invariant: each runs on as many OS threads as there are workers. The argument before the workload
//! names the library: `--rayon` or `--chili`.

mod items;
mod with_chili;
mod with_rayon;

use common::{Call, Forking, Workload, bad_usage, locked_versions};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (version, run): (String, fn(Forking, usize) -> !) =
        match arguments.first().map(String::as_str) {
            Some("--rayon") => (locked_versions(&["rayon"]), with_rayon::run),
            Some("--chili") => (locked_versions(&["chili"]), with_chili::run),
            _ => bad_usage("No library is named: begin with --rayon or --chili."),
        };
    let call = Call::parse(&arguments[1..], &version);
    match call.workload {
        Workload::Forking(forking) => run(forking, call.workers),
        Workload::Items { n, chain } if arguments[0] == "--rayon" => {
            with_rayon::run_items(chain, n, call.workers)
        }
        _ => bad_usage("These libraries fork and join and do nothing else: leave them out."),
    }
}
