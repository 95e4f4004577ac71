//! Writers on several threads, and a journal that answers late, refuses, loses answers and panics, against what the
//! journal has in the end.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::too_many_lines,
    reason = "a storm is one list of what may happen"
)]

#[path = "support/hooks.rs"]
mod hooks;
#[path = "support/replay.rs"]
mod replay;
#[path = "support/tools.rs"]
mod tools;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hooks::Hooks;
use replay::Replayed;
use tools::{Random, Wait};
use weald_forest::journal::{Journal, Position};
use weald_forest::{
    AppendError, Attributes, Commit, CommitError, CommitId, EditError, Forest, MemoryJournal, Path,
    Query, Since, TreeHandle, WatchEnd,
};

const WRITERS: usize = 4;
const TREES: usize = 3;

/// What a writer knows of its commits.
#[derive(Default)]
struct Known {
    made: BTreeMap<CommitId, u64>,
    refused: BTreeSet<CommitId>,
}

fn write(seed: u64, forest: &Forest, trees: &[TreeHandle], rounds: usize) -> Known {
    let mut random = Random(seed);
    let mut known = Known::default();
    let mut last = 0;
    for round in 0..rounds {
        let id = CommitId(u128::from(seed) << 32 | round as u128 | 1 << 100);
        let tree = &trees[random.below(TREES)];
        let other = &trees[random.below(TREES)];
        let small = |tree: &TreeHandle| {
            let mut edit = tree.edit();
            let root = edit.root();
            edit.append(root, Attributes::new().with("by", seed.to_le_bytes()))
                .unwrap();
            edit
        };
        let outcome = match random.below(10) {
            0..4 => small(tree).commit().id(id).wait(),
            4 if tree.number() != other.number() => Commit::of([small(tree), small(other)])
                .unwrap()
                .id(id)
                .wait(),
            5 => {
                let mut edit = tree.edit();
                let node = edit.append(edit.root(), Attributes::new()).unwrap();
                for _ in 0..150 {
                    edit.append(node, Attributes::new().with("by", "many"))
                        .unwrap();
                }
                edit.commit().id(id).wait()
            }
            6 => {
                let mut edit = tree.edit();
                let root = edit.root();
                let large = edit
                    .tree()
                    .root()
                    .children()
                    .find(|node| node.children().len() > 100)
                    .map(|node| node.id());
                if let Some(large) = large {
                    edit.delete(large).unwrap();
                } else {
                    edit.put_attribute(root, "none", seed.to_le_bytes())
                        .unwrap();
                }
                edit.commit().id(id).wait()
            }
            7 => {
                let update = tree.update(|edit| {
                    let root = edit.root();
                    let bytes = edit
                        .attribute(root, "n")?
                        .map(|bytes| bytes.try_into().unwrap());
                    let count = bytes.map_or(0, u64::from_le_bytes) + 1;
                    edit.put_attribute(root, "n", count.to_le_bytes())?;
                    Ok::<_, EditError>(())
                });
                match update.wait() {
                    Ok(_) => {}
                    Err(weald_forest::UpdateError::Commit(CommitError::Journal(_))) => {}
                    Err(error) => panic!("{error}"),
                }
                continue;
            }
            8 => {
                let name = format!("tree {}", random.below(3));
                let outcome = match random.below(3) {
                    0 => forest.create(&name).wait().map(|_| ()),
                    1 => forest.delete(&name).wait().map(|_| ()),
                    _ => forest
                        .rename(&name, &format!("tree {}", random.below(3)))
                        .wait()
                        .map(|_| ()),
                };
                assert!(
                    matches!(
                        outcome,
                        Ok(()) | Err(CommitError::Name(_) | CommitError::Journal(_))
                    ),
                    "{outcome:?}"
                );
                continue;
            }
            _ => {
                // A version that can be read can be found, tagged and restored.
                let version = tree.view().version();
                tree.kept_at(version).unwrap();
                let at = other.view().version().max(version);
                tree.kept_at(at).unwrap();
                let outcome = match random.below(4) {
                    0 => tree.restore(version).wait(),
                    1 => tree.tag("x", version).wait(),
                    2 => tree.add_index("by").wait(),
                    _ => tree.drop_index("by").wait(),
                };
                assert!(
                    matches!(outcome, Ok(_) | Err(CommitError::Journal(_))),
                    "{outcome:?}"
                );
                continue;
            }
        };
        match outcome {
            Ok(receipt) => {
                assert!(receipt.version.number > last);
                last = receipt.version.number;
                assert!(tree.view().version().number >= 1);
                tree.kept_at(receipt.version).unwrap();
                known.made.insert(id, last);
            }
            Err(CommitError::Conflict(_) | CommitError::Journal(_)) => {
                known.refused.insert(id);
            }
            Err(error) => panic!("{error}"),
        }
    }
    known
}

fn storm(seed: u64, pipelined: usize) {
    let memory = MemoryJournal::by_hand().pipelined(pipelined);
    let hooks = Hooks::of(memory.clone());
    let forest = Forest::builder()
        .keep(1_000_000)
        .journal(hooks.clone())
        .build();
    let over = Arc::new(AtomicBool::new(false));
    let (is_over, medium, faults) = (
        Arc::clone(&over),
        memory.clone(),
        Arc::new(AtomicBool::new(false)),
    );
    let has_faults = Arc::clone(&faults);
    let answers = std::thread::spawn(move || {
        let mut random = Random(seed ^ 99);
        while !is_over.load(Ordering::Relaxed) {
            let is_fine = !has_faults.load(Ordering::Relaxed);
            match random.below(30) {
                0 if !is_fine => medium.refuse(AppendError::Full),
                1 if !is_fine => medium.lose_answer(random.below(2) == 0),
                2..6 => (0..100).for_each(|_| std::thread::yield_now()),
                _ => medium.accept(1 + random.below(4)),
            }
            medium.sync(weald_forest::Level::Durable);
            std::thread::yield_now();
        }
    });
    let trees: Vec<_> = (0..TREES)
        .map(|number| forest.create(&format!("main {number}")).wait().unwrap())
        .collect();
    let mut random = Random(seed);
    let within = forest.clone();
    let main = trees[0].clone();
    hooks.look(move |_| match random.below(40) {
        0 => panic!("the journal panics before it takes the record"),
        1 => Err(AppendError::Full),
        2 => Err(AppendError::Unknown),
        3 => {
            assert!(matches!(
                within.create("in").wait(),
                Err(CommitError::InJournal)
            ));
            let version = main.view().version();
            main.kept_at(version).unwrap();
            within.stats();
            Ok(())
        }
        _ => Ok(()),
    });
    faults.store(true, Ordering::Relaxed);
    let watchers: Vec<_> = trees
        .iter()
        .map(|tree| {
            let mut watch = tree.watch(&Path::default(), Since::Now).unwrap();
            std::thread::spawn(move || {
                let mut seen = Vec::new();
                loop {
                    match watch.next().wait() {
                        Ok(next) => {
                            assert_eq!(
                                seen.last().copied().unwrap_or(next.before.version().number),
                                next.before.version().number
                            );
                            seen.push(next.after.version().number);
                        }
                        Err(WatchEnd::Deleted) => return seen,
                        Err(error) => panic!("{error}"),
                    }
                }
            })
        })
        .collect();
    let first: Vec<_> = trees
        .iter()
        .map(|tree| tree.view().version().number)
        .collect();
    let known: Vec<Known> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (forest, trees) = (&forest, &trees);
                scope.spawn(move || write(seed * 100 + writer as u64 + 1, forest, trees, 120))
            })
            .collect();
        writers
            .into_iter()
            .map(|writer| writer.join().unwrap())
            .collect()
    });
    faults.store(false, Ordering::Relaxed);
    hooks.look(|_| Ok(()));
    let entries = hooks.read(Position::default(), usize::MAX).wait().unwrap();
    let replayed = Replayed::of(&entries);
    let numbers: Vec<_> = replayed
        .records
        .iter()
        .map(|record| record.version.number)
        .collect();
    assert!(
        numbers.iter().copied().eq(1..=numbers.len() as u64),
        "{numbers:?}"
    );
    let ids: BTreeMap<_, _> = replayed
        .records
        .iter()
        .map(|record| (record.id, record.version.number))
        .collect();
    assert_eq!(ids.len(), numbers.len());
    for known in &known {
        for (id, number) in &known.made {
            let stored = ids.get(id);
            // A commit that changed nothing has the number of an older one, and no record.
            assert_eq!(stored, Some(number));
        }
        assert!(known.refused.iter().all(|id| !ids.contains_key(id)));
    }
    for tree in &trees {
        replayed.check(tree);
        for root in tree.versions() {
            for value in [b"many".to_vec(), (seed * 100 + 1).to_le_bytes().to_vec()] {
                let query = Query::equal("by", &value);
                let found: BTreeSet<_> = root.find(&query).map(|node| node.id()).collect();
                let plain = root.tree().root().preorder();
                let plain = plain.filter(|node| node.get("by") == Some(&value[..]));
                assert_eq!(found, plain.map(|node| node.id()).collect());
            }
        }
    }
    for tree in &trees {
        forest.delete(&tree.name()).wait().unwrap();
    }
    for ((watcher, tree), first) in watchers.into_iter().zip(&trees).zip(first) {
        let seen = watcher.join().unwrap();
        let all: Vec<_> = tree
            .versions()
            .iter()
            .map(|root| root.version().number)
            .collect();
        let all: Vec<_> = all.into_iter().filter(|number| *number > first).collect();
        assert_eq!(seen, all);
    }
    over.store(true, Ordering::Relaxed);
    answers.join().unwrap();
}

#[test]
fn writers_under_a_bad_journal_do_what_it_says() {
    std::panic::set_hook(Box::new(|info| {
        if !info.to_string().contains("the journal panics") {
            eprintln!("{info}");
        }
    }));
    let end = Instant::now()
        + Duration::from_secs(std::env::var("STORM").map_or(2, |s| s.parse().unwrap()));
    let mut seed = 1;
    while Instant::now() < end {
        let started = Instant::now();
        let (done, ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            storm(seed, [1, 2, 8, 1024][usize::try_from(seed).unwrap() % 4]);
            let _ = done.send(());
        });
        match ended.recv_timeout(Duration::from_secs(300)) {
            Ok(()) => eprintln!("seed {seed}: {:?}", started.elapsed()),
            Err(error) => panic!("seed {seed}: {error}"),
        }
        seed += 1;
    }
}
