//! The rivals in Rust that need nothing but cargo: runtimes, actors, channels, locks, forks and persistent trees. The
//! first argument names one.
//!
//! Each workload is one program, generic over what it is measured on. A workload that the named rival does not have
//! ends the program with a sentence.

mod actors;
mod demo;
mod forks;
mod groups;
mod offences;
mod sleeping;
mod stall;
mod system;
mod systems;
mod threads;
mod traffic;
mod trees;
mod waits;

use common::{Call, bad_usage, bind_to_processors, locked_versions};

use actors::{Actors, Kameo, Ractor};
use systems::{Flavour, May, Smol, Std, Tokio, on_runtime};
use trees::{ByHand, Imbl, Rpds};
use waits::*;

/// The rivals, each with the packages whose versions it reports, and its program.
const RIVALS: [(&str, &[&str], fn(&'static Call) -> !); 17] = [
    ("tokio", &["tokio"], |call| {
        tokio(Flavour::MultiThread, call)
    }),
    ("tokio-current-thread", &["tokio"], |call| {
        tokio(Flavour::CurrentThread, call)
    }),
    ("tokio-eager-handoff", &["tokio"], |call| {
        tokio(Flavour::EagerHandoff, call)
    }),
    ("smol", &["smol", "async-executor"], smol),
    (
        "flume-async",
        &["flume", "smol", "async-executor"],
        flume_async,
    ),
    ("may", &["may"], may),
    ("std", &[], std_alone),
    ("crossbeam", &["crossbeam-channel"], crossbeam),
    ("flume", &["flume"], flume),
    ("parking-lot", &["parking_lot"], parking_lot),
    ("ractor", &["ractor", "tokio"], ractor),
    ("kameo", &["kameo", "tokio"], kameo),
    ("rayon", &["rayon"], |call| forks::on_rayon(call)),
    ("chili", &["chili"], |call| forks::on_chili(call)),
    ("trees-by-hand", &["arc-swap"], |call| {
        trees::run::<ByHand>(call)
    }),
    ("imbl", &["imbl", "arc-swap"], |call| {
        trees::run::<Imbl>(call)
    }),
    ("rpds", &["rpds", "arc-swap"], |call| {
        trees::run::<Rpds>(call)
    }),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let name = arguments.first().map_or("", String::as_str);
    let rival = RIVALS.iter().find(|(known, ..)| *known == name);
    let Some((name, packages, run)) = rival else {
        bad_usage("No rival is named: begin with a name of the table in rust/src/main.rs.")
    };
    let version = match *name {
        "std" => version_of_std(),
        "tokio-current-thread" => locked_versions(packages) + " (current_thread)",
        "tokio-eager-handoff" => locked_versions(packages) + " (eager driver hand-off)",
        _ => locked_versions(packages),
    };
    run(Call::parse(&arguments[1..], &version))
}

fn version_of_std() -> String {
    let allocator = locked_versions(&[]);
    let with = if allocator.is_empty() { "" } else { " with " };
    format!("std of rustc {}{with}{allocator}", env!("COMPILER_VERSION"))
}

fn nothing_for(call: &Call) -> ! {
    bad_usage(&format!(
        "This rival has no program for `{}`: leave it out.",
        call.workload
    ))
}

fn tokio(flavour: Flavour, call: &'static Call) -> ! {
    // Before the runtime starts its threads, which inherit the binding.
    if call.workload == "burst-send" {
        bind_to_processors(call.count("cores"));
    }
    on_runtime(flavour, call.workers, async move {
        traffic::run::<Tokio>(call).await;
        match call.workload.as_str() {
            "burst-send" => traffic::burst_send::<Tokio>(call).await,
            "demo" => demo::run(call).await,
            _ => {}
        }
        groups::run(call).await;
        stall::run::<Tokio>(call).await;
        sleeping::run::<Tokio>(call).await;
        locks_of_tokio(call).await;
        nothing_for(call)
    })
}

async fn locks_of_tokio(call: &Call) {
    if is_of_mutex(call) {
        footprint(call, || tokio::sync::Mutex::new(()));
    }
    locks::<Tokio, TokioLock, TokioTurns, tokio::sync::Barrier>(call).await;
    tokio_channels::<Tokio>(call).await;
}

fn smol(call: &'static Call) -> ! {
    Smol::run(call.workers, async move {
        traffic::run::<Smol>(call).await;
        stall::run::<Smol>(call).await;
        sleeping::run::<Smol>(call).await;
        if is_of_mutex(call) {
            footprint(call, || smol::lock::Mutex::new(()));
        }
        locks::<Smol, AsyncLock, AsyncTurns, smol::lock::Barrier>(call).await;
        async_channels::<Smol>(call).await;
        nothing_for(call)
    })
}

fn flume_async(call: &'static Call) -> ! {
    Smol::run(call.workers, async move {
        flume_futures::<Smol>(call).await;
        nothing_for(call)
    })
}

fn may(call: &'static Call) -> ! {
    match call.workload.as_str() {
        "quicksort" | "fib" | "nqueens" | "tree-search" => forks::on_may(call),
        _ => {}
    }
    May::run(call.workers, async move {
        traffic::run::<May>(call).await;
        if is_of_mutex(call) {
            footprint(call, || may::sync::Mutex::new(()));
        }
        locks::<May, MayLock, MayTurns, may::sync::Barrier>(call).await;
        may_channels::<May>(call).await;
        if call.workload == "thread" {
            threads::of_may(call);
        }
        nothing_for(call)
    })
}

fn std_alone(call: &'static Call) -> ! {
    if call.workload == "quicksort" {
        forks::on_threads(call);
    }
    Std::run(call.workers, async move {
        if is_of_mutex(call) {
            footprint(call, || std::sync::Mutex::new(()));
        }
        locks::<Std, StdLock, StdTurns, std::sync::Barrier>(call).await;
        std_channels::<Std>(call).await;
        if call.workload == "thread" {
            threads::of_std(call);
        }
        nothing_for(call)
    })
}

fn crossbeam(call: &'static Call) -> ! {
    Std::run(call.workers, async move {
        crossbeam_channels::<Std>(call).await;
        nothing_for(call)
    })
}

fn flume(call: &'static Call) -> ! {
    Std::run(call.workers, async move {
        flume_calls::<Std>(call).await;
        nothing_for(call)
    })
}

fn parking_lot(call: &'static Call) -> ! {
    Std::run(call.workers, async move {
        if is_of_mutex(call) {
            footprint(call, || parking_lot::Mutex::new(()));
        }
        match call.workload.as_str() {
            // It has no barrier of its own.
            "lock" | "condvar" => {
                locks::<Std, ParkingLotLock, ParkingLotTurns, std::sync::Barrier>(call).await;
            }
            _ => {}
        }
        nothing_for(call)
    })
}

fn ractor(call: &'static Call) -> ! {
    on_runtime(Flavour::MultiThread, call.workers, async move {
        actors::traffic(call).await;
        of_actors::<Ractor>(call).await
    })
}

fn kameo(call: &'static Call) -> ! {
    on_runtime(Flavour::MultiThread, call.workers, of_actors::<Kameo>(call))
}

async fn of_actors<A: Actors>(call: &Call) {
    actors::run::<A>(call).await;
    bad_usage("Actors run on tokio's scheduler: measure this workload with tokio.")
}
