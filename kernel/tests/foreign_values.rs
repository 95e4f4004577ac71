//! Clones and comparisons of user values, which tools and forks call: each runs in the unit that asked for it,
//! which is named if it blocks, and under no lock that others need; a panic ends that unit only.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/blocker.rs"]
mod blocker;
#[path = "support/reports.rs"]
mod reports;
#[path = "support/tickers.rs"]
mod tickers;
#[path = "support/tools.rs"]
mod tools;

use std::{
    cmp::Ordering,
    sync::{Arc, Mutex},
};

use blocker::Blocker;
use reports::{collect_reports, reports};
use tickers::Tickers;
use tools::{runtime, until, watch};
use weald_kernel::{JoinHandle, Runtime, Spawn, fork};
use weald_sync::{MVar, cml::Multicast};

/// What a value does while it is cloned or compared.
#[derive(Clone, Default)]
enum Act {
    #[default]
    Nothing,
    Block(Blocker),
    Panic,
}

/// A value whose code is the user's.
struct Value(u32, Arc<Mutex<Act>>);

impl Value {
    fn new(number: u32) -> Value {
        Value(number, Arc::default())
    }

    fn act(&self) {
        let act = std::mem::take(&mut *self.1.lock().unwrap());
        match act {
            Act::Nothing => {}
            Act::Block(blocker) => blocker.block(),
            Act::Panic => panic!("on purpose"),
        }
    }

    /// What the next clone or comparison does.
    fn set(&self, act: Act) {
        *self.1.lock().unwrap() = act;
    }
}

impl Clone for Value {
    fn clone(&self) -> Value {
        self.act();
        Value(self.0, self.1.clone())
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Value) -> Ordering {
        self.act();
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Value) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Value {}

type Start = dyn Fn(&Runtime, &'static str) -> JoinHandle<u32>;
type MakeUser = fn() -> User;

/// A unit that makes the runtime call the code of a value.
struct User {
    /// The value whose code is called.
    value: Arc<Mutex<Act>>,
    /// Starts the unit, with this name.
    start: Box<Start>,
    /// Uses the same tool in another unit; it returns while the code of the value blocks.
    beside: Box<dyn Fn(&Runtime)>,
}

fn reads_an_mvar() -> User {
    let value = Value::new(7);
    let act = value.1.clone();
    let place = Arc::new(MVar::new(value));
    let same = place.clone();
    User {
        value: act,
        start: Box::new(move |runtime, name| {
            let place = place.clone();
            let reads = async move { place.read().await.0 };
            runtime
                .block_on(async { (Spawn::new().name(name).spawn(reads),) })
                .0
        }),
        // The reader has the value.
        beside: Box::new(move |runtime| {
            let same = same.clone();
            let taken = runtime.spawn(async move { same.try_take().map(|value| value.0) });
            assert_eq!(runtime.block_on(taken).unwrap(), None);
        }),
    }
}

fn reads_a_port() -> User {
    let value = Value::new(7);
    let act = value.1.clone();
    let channel = Multicast::new();
    let (port, other) = (channel.port(), channel.port());
    channel.send(value);
    User {
        value: act,
        start: Box::new(move |runtime, name| {
            let mut port = port.clone();
            let reads = async move { port.receive().await.unwrap().0 };
            runtime
                .block_on(async { (Spawn::new().name(name).spawn(reads),) })
                .0
        }),
        beside: Box::new(move |runtime| {
            let mut other = other.clone();
            let reads = runtime.spawn(async move { other.receive().await.unwrap().0 });
            assert_eq!(runtime.block_on(reads).unwrap(), 7);
        }),
    }
}

fn sorts() -> User {
    let act: Arc<Mutex<Act>> = Arc::default();
    let shared = act.clone();
    User {
        value: act,
        start: Box::new(move |runtime, name| {
            let shared = shared.clone();
            let sorts = async move {
                let numbers = (0..20_000).map(|n| n * 7919 % 20_011);
                let mut values: Vec<_> = numbers.map(|n| Value(n, shared.clone())).collect();
                fork::sort(&mut values);
                assert!(values.is_sorted());
                7
            };
            runtime
                .block_on(async { (Spawn::new().name(name).spawn(sorts),) })
                .0
        }),
        beside: Box::new(|runtime| {
            let sorts = runtime.spawn(async {
                let mut numbers: Vec<u32> = (0..20_000).rev().collect();
                fork::sort(&mut numbers);
                numbers[0]
            });
            assert_eq!(runtime.block_on(sorts).unwrap(), 0);
        }),
    }
}

const USERS: [(&str, MakeUser); 3] = [
    ("reads an mvar", reads_an_mvar),
    ("reads a port", reads_a_port),
    ("sorts", sorts),
];

/// With one worker no part of a sort is stolen, so its unit has the name.
#[test]
fn a_clone_or_a_comparison_that_blocks_is_named_as_its_unit_and_stops_nobody() {
    collect_reports();
    for (name, make) in USERS {
        let _watch = watch();
        let runtime = runtime(1);
        let tickers = Tickers::start(&runtime, 20);
        let (user, blocker) = (make(), Blocker::default());
        *user.value.lock().unwrap() = Act::Block(blocker.clone());
        let job = (user.start)(&runtime, name);
        until(|| blocker.begun() == 1);
        tickers.tick(20);
        (user.beside)(&runtime);
        let quoted = format!("`{name}` spawned at kernel/tests/foreign_values.rs:");
        until(|| !reports("weald::monitor", &quoted).is_empty());
        blocker.open();
        assert_eq!(runtime.block_on(job).unwrap(), 7, "{name}");
        tickers.end(&runtime);
    }
}

#[test]
fn a_clone_or_a_comparison_that_panics_ends_its_unit_only() {
    for (name, make) in USERS {
        for workers in [1, 2] {
            let _watch = watch();
            let runtime = runtime(workers);
            let user = make();
            *user.value.lock().unwrap() = Act::Panic;
            let job = (user.start)(&runtime, name);
            let failed = runtime.block_on(job).unwrap_err().to_string();
            assert!(failed.ends_with(" panicked: on purpose"), "{failed}");
            // The value is where it was.
            let again = (user.start)(&runtime, name);
            assert_eq!(runtime.block_on(again).unwrap(), 7, "{name}");
        }
    }
}

/// The one that puts the value wakes the reader, and clones nothing.
#[test]
fn a_clone_for_a_reader_that_waits_is_made_in_the_reader() {
    let _watch = watch();
    let runtime = runtime(1);
    let place = Arc::new(MVar::empty());
    let reads = |place: Arc<MVar<Value>>| async move { place.read().await.0 };
    let readers = [(); 2].map(|()| runtime.spawn(reads(place.clone())));
    until(|| runtime.waits().jobs.len() == 2);
    let value = Value::new(7);
    value.set(Act::Panic);
    let puts = runtime.spawn(async move { place.put(value).await });
    runtime.block_on(puts).unwrap();
    let ended = readers.map(|reader| runtime.block_on(reader));
    let (read, failed): (Vec<_>, Vec<_>) = ended.into_iter().partition(Result::is_ok);
    assert_eq!(read.len(), 1);
    assert!(failed[0].as_ref().unwrap_err().is_panic());
}
