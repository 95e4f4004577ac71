//! Trees as persistent data: nodes by hand, imbl and rpds.
//!
//! Invariants: the program is bound to as many processors as there are workers before the first thread starts. A
//! version is a root behind an arc-swap; a commit swaps the root, or starts again.

mod database;
mod document;
mod library;
mod workload;

use common::{Call, use_processors};

use document::Shape;
pub(crate) use library::{ByHand, Imbl, Library, Rpds};

/// How many children the nodes of each level have, from the root downwards, by the number of nodes.
const SHAPES: [(&str, Shape); 5] = [
    ("1", &[]),
    ("100", &[3, 4, 7]),
    ("156", &[5, 5, 5]),
    ("10005", &[4, 4, 4, 5, 5, 5]),
    ("810156", &[5, 5, 5, 5, 5, 6, 6, 6]),
];

pub(crate) fn run<L: Library>(call: &Call) -> ! {
    use_processors(call.workers);
    let shape = || call.word("nodes", &SHAPES);
    match call.workload.as_str() {
        "tree-read" => workload::read::<L>(call, shape()),
        "tree-write" => workload::write::<L>(call, shape()),
        "hot-tree" => workload::hot::<L>(call, shape()),
        "append" => workload::append::<L>(call.count("children"), call.count("commits")),
        "snapshot" => workload::snapshot::<L>(call, shape()),
        _ => crate::nothing_for(call),
    }
}
