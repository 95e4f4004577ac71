//! Histories of concurrent commits and snapshots are linearizable: there is an order of all operations, each at
//! one moment between its call and its return, in which a plain map behaves the same.
//!
//! The search is that of Wing and Gong (1993), with the memoization of Lowe (2017): the next operation is any
//! that was called before the first return among those that are left; a set of finished operations with a
//! state from which the rest failed once is not tried again.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tools::{Random, Wait, soak};
use weald_forest::{Commit, Edit, Forest, Root, TreeHandle};

/// Trees and their attributes, all numbers.
type State = BTreeMap<(usize, String), u64>;

const TREES: usize = 2;
const NAMES: [&str; 2] = ["x", "y"];

#[derive(Clone, Debug)]
enum Did {
    /// A commit that succeeded: what it read, what it wrote.
    Commit(State, State),
    /// A commit that was refused: it did nothing, at any moment.
    Refused,
    /// A snapshot of some trees, with all their attributes.
    Snapshot(State),
}

#[derive(Clone, Debug)]
struct Operation {
    called: u64,
    returned: u64,
    did: Did,
}

fn apply(did: &Did, state: &State) -> Option<State> {
    let holds = |seen: &State| {
        seen.iter()
            .all(|(key, value)| state.get(key).copied().unwrap_or(0) == *value)
    };
    match did {
        Did::Refused => Some(state.clone()),
        Did::Snapshot(seen) => holds(seen).then(|| state.clone()),
        Did::Commit(read, wrote) => holds(read).then(|| {
            let mut next = state.clone();
            next.extend(wrote.clone());
            next
        }),
    }
}

fn is_linearizable(history: &[Operation]) -> bool {
    assert!(history.len() <= 64);
    let mut failed = HashSet::new();
    search(history, (0, &State::new()), &mut failed)
}

fn search(
    history: &[Operation],
    (done, state): (u64, &State),
    failed: &mut HashSet<(u64, State)>,
) -> bool {
    let is_left = |number: &usize| done & 1 << number == 0;
    let left: Vec<usize> = (0..history.len()).filter(is_left).collect();
    let Some(first_return) = left.iter().map(|number| history[*number].returned).min() else {
        return true;
    };
    if failed.contains(&(done, state.clone())) {
        return false;
    }
    for number in left {
        if history[number].called < first_return
            && let Some(next) = apply(&history[number].did, state)
            && search(history, (done | 1 << number, &next), failed)
        {
            return true;
        }
    }
    failed.insert((done, state.clone()));
    false
}

/// Records what threads do.
struct Recorder {
    time: AtomicU64,
    history: Mutex<Vec<Operation>>,
}

impl Recorder {
    fn new() -> Self {
        Self {
            time: AtomicU64::new(0),
            history: Mutex::default(),
        }
    }

    fn tick(&self) -> u64 {
        self.time.fetch_add(1, Ordering::SeqCst)
    }

    fn record(&self, operation: impl FnOnce() -> Did) {
        let called = self.tick();
        let did = operation();
        let returned = self.tick();
        self.history.lock().unwrap().push(Operation {
            called,
            returned,
            did,
        });
    }
}

/// How a thread commits; the last ones are wrong on purpose.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Right,
    /// The commit does not rely on what it has read.
    Blind,
    /// Trees are read one after the other.
    OneByOne,
    /// Trees are committed to one after the other.
    Torn,
}

fn number(root: &Root, name: &str) -> u64 {
    let value = root.tree().root().get(name);
    value.map_or(0, |value| u64::from_le_bytes(value.try_into().unwrap()))
}

fn snapshot(forest: &Forest, trees: &[TreeHandle], way: Way) -> Did {
    let roots = match way {
        Way::OneByOne => {
            let one = |tree: &TreeHandle| {
                std::thread::yield_now(); // So that others come in between.
                tree.snapshot()
            };
            trees.iter().map(one).collect()
        }
        _ => forest
            .snapshot_all(&trees.iter().collect::<Vec<_>>())
            .unwrap(),
    };
    let mut seen = State::new();
    for (tree, root) in roots.iter().enumerate() {
        seen.extend(NAMES.map(|name| ((tree, name.to_owned()), number(root, name))));
    }
    Did::Snapshot(seen)
}

fn view(trees: &[TreeHandle], tree: usize) -> Did {
    let view = trees[tree].view();
    Did::Snapshot(
        NAMES
            .map(|name| ((tree, name.to_owned()), number(&view, name)))
            .into(),
    )
}

/// Reads some attributes of some trees and writes others, by chance.
fn commit(trees: &[TreeHandle], random: &mut Random, way: Way) -> Did {
    let (mut read, mut wrote, mut edits) = (State::new(), State::new(), Vec::new());
    let first = random.below(TREES);
    for tree in [first, 1 - first].into_iter().take(1 + random.below(2)) {
        let mut edit: Edit = trees[tree].edit();
        if way == Way::Blind {
            edit = edit.blind();
        }
        let root = edit.root();
        let [from, to] = [NAMES[random.below(2)], NAMES[random.below(2)]];
        let value = edit.attribute(root, from).unwrap();
        let value = value.map_or(0, |value| u64::from_le_bytes(value.try_into().unwrap()));
        read.insert((tree, from.to_owned()), value);
        let value = 1 + random.below(1000) as u64;
        edit.put_attribute(root, to, value.to_le_bytes()).unwrap();
        wrote.insert((tree, to.to_owned()), value);
        edits.push(edit);
    }
    if way == Way::Torn && edits.len() == 2 {
        let second = edits.pop().unwrap();
        let (_, outcome) = (edits.pop().unwrap().commit().wait(), second.commit().wait());
        return if outcome.is_ok() {
            Did::Commit(read, wrote)
        } else {
            Did::Refused
        };
    }
    std::thread::yield_now(); // So that others come in between.
    match Commit::of(edits).unwrap().wait() {
        Ok(_) => Did::Commit(read, wrote),
        Err(_) => Did::Refused,
    }
}

/// What three threads do at the same time.
fn history(random: &mut Random, way: Way) -> Vec<Operation> {
    let forest = Forest::builder().keep(1 + random.below(4)).build();
    let trees: Vec<TreeHandle> = (0..TREES)
        .map(|n| forest.create(&n.to_string()).wait().unwrap())
        .collect();
    let recorder = Recorder::new();
    let seeds: Vec<u64> = (0..3).map(|_| random.below(1 << 30) as u64).collect();
    let start = std::sync::Barrier::new(seeds.len());
    std::thread::scope(|scope| {
        for seed in seeds {
            let (forest, trees, recorder, start) = (&forest, &trees, &recorder, &start);
            scope.spawn(move || {
                let mut random = Random(seed);
                start.wait();
                for _ in 0..8 {
                    recorder.record(|| match random.below(5) {
                        0 => snapshot(forest, trees, way),
                        1 => view(trees, random.below(TREES)),
                        _ => commit(trees, &mut random, way),
                    });
                }
            });
        }
    });
    recorder.history.into_inner().unwrap()
}

#[test]
fn soak_histories_are_linearizable() {
    soak(|random| {
        for _ in 0..20 {
            let history = history(random, Way::Right);
            assert!(is_linearizable(&history), "{history:#?}");
        }
    });
}

fn at(called: u64, returned: u64, did: Did) -> Operation {
    Operation {
        called,
        returned,
        did,
    }
}

fn x(value: u64) -> State {
    State::from([((0, "x".to_owned()), value)])
}

#[test]
fn the_checker_knows_right_from_wrong() {
    let (write, read) = (
        |value| Did::Commit(State::new(), x(value)),
        |value| Did::Snapshot(x(value)),
    );
    // Concurrent, so either may be first.
    assert!(is_linearizable(&[at(0, 3, write(1)), at(1, 2, read(0))]));
    assert!(is_linearizable(&[at(0, 3, write(1)), at(1, 2, read(1))]));
    // One after the other.
    assert!(!is_linearizable(&[at(0, 1, write(1)), at(2, 3, read(0))]));
    // Once seen, it stays.
    assert!(!is_linearizable(&[
        at(0, 9, write(1)),
        at(1, 2, read(1)),
        at(3, 4, read(0))
    ]));
    // Both read 0 and both wrote: an update was lost.
    let lost = |value| Did::Commit(x(0), x(value));
    assert!(!is_linearizable(&[at(0, 3, lost(1)), at(1, 2, lost(2))]));
    assert!(is_linearizable(&[
        at(0, 3, lost(1)),
        at(1, 2, Did::Refused)
    ]));
}

/// Two edits of one base that both read what they write, and do not rely on it: one update is lost.
#[test]
fn the_checker_catches_a_commit_that_relies_on_nothing() {
    let forest = Forest::new();
    let trees: Vec<TreeHandle> = (0..TREES)
        .map(|n| forest.create(&n.to_string()).wait().unwrap())
        .collect();
    let mut histories = [Way::Right, Way::Blind].map(|way| {
        let base = number(&trees[0].view(), "x");
        let edits = [base + 1, base + 2].map(|value| {
            let mut edit = trees[0].edit();
            if way == Way::Blind {
                edit = edit.blind();
            }
            let root = edit.root();
            let old = edit
                .attribute(root, "x")
                .unwrap()
                .map_or(0, |old| u64::from_le_bytes(old.try_into().unwrap()));
            edit.put_attribute(root, "x", value.to_le_bytes()).unwrap();
            (edit, old, value)
        });
        let mut history = vec![at(0, 1, Did::Commit(State::new(), x(base)))];
        history.extend(edits.map(|(edit, old, value)| match edit.commit().wait() {
            Ok(_) => at(2, 3, Did::Commit(x(old), x(value))),
            Err(_) => at(2, 3, Did::Refused),
        }));
        history
    });
    let [right, blind] = &mut histories;
    assert!(is_linearizable(right));
    assert!(!is_linearizable(blind));
}

/// Searches for a history that is wrong. Whether threads meet is up to the machine, so it keeps searching.
fn is_caught(way: Way) -> bool {
    let mut random = Random(1);
    (0..20_000).any(|_| !is_linearizable(&history(&mut random, way)))
}

#[test]
fn the_checker_catches_threads_that_rely_on_nothing() {
    assert!(is_caught(Way::Blind));
}

#[test]
fn the_checker_catches_commits_that_are_torn() {
    assert!(is_caught(Way::Torn));
}

#[test]
fn the_checker_catches_trees_that_are_read_one_by_one() {
    assert!(is_caught(Way::OneByOne));
}
