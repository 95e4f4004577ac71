//! The rivals that work with OS threads: std, crossbeam, flume and parking_lot, one per call.
//!
//! Invariant: the program is bound to as many processors as there are workers before the first
//! thread starts. The argument before the workload names the library: `--std`, `--crossbeam`,
//! `--flume` or `--parking-lot`.

mod barrier;
mod channel;
mod ends;
mod gate;
mod joins;
mod lock;
mod select;
mod team;
mod threading;

use common::{
    Call, Kind, Thing, Threading, Waiting, Workload, bad_usage, fail, locked_versions,
    print_footprint,
};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The library whose channels and locks are measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Library {
    Std,
    Crossbeam,
    Flume,
    ParkingLot,
}

impl Library {
    /// The library that the first argument names.
    fn of(option: Option<&String>) -> Self {
        match option.map(String::as_str) {
            Some("--std") => Self::Std,
            Some("--crossbeam") => Self::Crossbeam,
            Some("--flume") => Self::Flume,
            Some("--parking-lot") => Self::ParkingLot,
            _ => bad_usage(
                "No library is named: begin with --std, --crossbeam, --flume or --parking-lot.",
            ),
        }
    }

    fn version(self) -> String {
        match self {
            Self::Std => {
                let allocator = locked_versions(&[]);
                let with = if allocator.is_empty() { "" } else { " with " };
                format!("std of rustc {}{with}{allocator}", env!("COMPILER_VERSION"))
            }
            Self::Crossbeam => locked_versions(&["crossbeam-channel"]),
            Self::Flume => locked_versions(&["flume"]),
            Self::ParkingLot => locked_versions(&["parking_lot"]),
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let library = Library::of(arguments.first());
    let call = Call::parse(&arguments[1..], &library.version());
    use_processors(call.workers);
    match call.workload {
        Workload::Waiting(waiting) | Workload::Thread(Threading::Waiting(waiting)) => {
            run(library, waiting)
        }
        Workload::Thread(threading) if library == Library::Std => threading::run(threading),
        Workload::Forking(forking) if library == Library::Std => joins::run(forking, call.workers),
        _ => bad_usage("These threads have no program for this workload: see the rival cpp."),
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

fn run(library: Library, waiting: Waiting) -> ! {
    match waiting {
        Waiting::Channel {
            senders,
            messages,
            kind,
        } => match library {
            Library::Std => channel::run(ends::of_std(kind), senders, messages),
            Library::Crossbeam => channel::run(ends::of_crossbeam(kind), senders, messages),
            Library::Flume => channel::run(ends::of_flume(kind), senders, messages),
            Library::ParkingLot => locks_only(),
        },
        Waiting::Select {
            branches,
            messages,
            kind,
        } => match library {
            Library::Crossbeam => select::crossbeam(branches, messages, kind),
            Library::Flume => select::flume(branches, messages, kind),
            Library::Std | Library::ParkingLot => bad_usage("This library cannot select."),
        },
        Waiting::Lock {
            units,
            rounds,
            inside,
        } => match library {
            Library::Std => lock::run(lock::OfStd::default(), (units, rounds), inside),
            Library::ParkingLot => {
                lock::run(lock::OfParkingLot::default(), (units, rounds), inside)
            }
            Library::Crossbeam | Library::Flume => channels_only(),
        },
        Waiting::Condvar { rounds } => match library {
            Library::Std => lock::std_condvar(rounds),
            Library::ParkingLot => lock::parking_lot_condvar(rounds),
            Library::Crossbeam | Library::Flume => channels_only(),
        },
        Waiting::Barrier { units, rounds } => match library {
            Library::Std => barrier::run(units, rounds),
            _ => bad_usage("This library has no barrier: give --std."),
        },
        Waiting::Footprint { n, what } => footprint(library, n, what),
    }
}

fn locks_only() -> ! {
    bad_usage("parking_lot has no channels: give another library.")
}

fn channels_only() -> ! {
    bad_usage("This library has channels only: give --std or --parking-lot.")
}

fn footprint(library: Library, n: usize, what: Thing) -> ! {
    match (library, what) {
        (Library::Std, Thing::Mutex) => print_footprint(n, || std::sync::Mutex::new(())),
        (Library::ParkingLot, Thing::Mutex) => print_footprint(n, || parking_lot::Mutex::new(())),
        (Library::Std, Thing::Channel(Kind::Unbounded)) => {
            print_footprint(n, std::sync::mpsc::channel::<u64>)
        }
        (Library::Std, Thing::Channel(kind)) => {
            let room = ends::room(kind).expect("the other kinds have room");
            print_footprint(n, || std::sync::mpsc::sync_channel::<u64>(room))
        }
        (Library::Crossbeam, Thing::Channel(kind)) => {
            print_footprint(n, || ends::of_crossbeam(kind))
        }
        (Library::Flume, Thing::Channel(kind)) => print_footprint(n, || ends::of_flume(kind)),
        (Library::Crossbeam | Library::Flume, Thing::Mutex) => channels_only(),
        (Library::ParkingLot, Thing::Channel(_)) => locks_only(),
    }
}
