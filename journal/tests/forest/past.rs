//! A forest as it was at an earlier moment, even before it was opened.

use std::sync::Arc;
use std::sync::Mutex;
use std::task::Waker;
use std::time::{Duration, SystemTime};

use pollster::block_on;
use weald_forest::journal::Journal;
use weald_forest::{Attributes, Clock, Forest, TreeHandle, Value, Version};
use weald_journal::{
    DiskForest, DiskJournal, Moment, OpenForestError, PastError, Settings, SimulatedDisk,
};

/// A clock that a test sets.
struct Hands(Mutex<SystemTime>);

impl Clock for Hands {
    fn now(&self) -> SystemTime {
        *self.0.lock().unwrap()
    }

    fn uptime(&self) -> Duration {
        Duration::ZERO
    }

    fn wake_at(&self, _: Duration, _: Waker) {}
}

fn open(disk: &SimulatedDisk, clock: &Arc<Hands>) -> DiskForest {
    let settings = Settings::new().segment(4096);
    let journal = DiskJournal::open_on(disk.clone(), settings).unwrap();
    let builder = Forest::builder()
        .keep(3)
        .clock(Arc::clone(clock) as Arc<dyn Clock>);
    block_on(DiskForest::recover(builder, journal)).unwrap()
}

/// The newest version of each tree.
fn described(forest: &Forest) -> Vec<String> {
    let of = |name: String| {
        let view = forest.get(&name).unwrap().snapshot();
        let nodes: Vec<_> = view.tree().records().collect();
        format!("{name} {} {:?} {nodes:?}", view.version(), view.time())
    };
    forest.list().into_iter().map(of).collect()
}

/// Does something to a forest, and returns the version that this made.
fn change(forest: &Forest, number: u64) -> Version {
    let name = ["a", "b", "c"][usize::try_from(number % 3).unwrap()];
    let Ok(tree) = forest.get(name) else {
        return block_on(forest.create(name)).unwrap().view().version();
    };
    if number.is_multiple_of(17) {
        return block_on(forest.delete(name)).unwrap().version;
    }
    let mut edit = tree.edit();
    let root = edit.root();
    let attributes = Attributes::new().with("number", number.to_string());
    edit.append(root, attributes).unwrap();
    block_on(edit.commit()).unwrap().version
}

#[test]
fn every_version_and_every_time_is_there_until_it_is_trimmed() {
    let disk = SimulatedDisk::new();
    let begin = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
    let clock = Arc::new(Hands(Mutex::new(begin)));
    let mut versions = Vec::new();
    let mut ends = Vec::new();
    for opening in 0..4 {
        let forest = open(&disk, &clock);
        for step in 0..40 {
            *clock.0.lock().unwrap() += Duration::from_secs(1);
            let version = change(&forest, opening * 40 + step);
            versions.push((version, clock.now(), described(&forest)));
            if step % 15 == 3 {
                block_on(forest.checkpoint()).unwrap();
                let at = block_on(forest.journal().checkpoint()).unwrap().unwrap().at;
                ends.push((at, versions.len()));
            }
        }
    }
    let forest = open(&disk, &clock);
    let past = |moment| block_on(forest.at(moment));
    let check = |from: usize| {
        for (version, time, was) in &versions[from..] {
            for moment in [Moment::Version(*version), Moment::Time(*time)] {
                assert_eq!(&described(&past(moment).unwrap()), was, "{moment:?}");
            }
        }
    };
    check(0);
    let never = Version {
        number: versions[0].0.number + 39 + 5,
        ..versions[0].0
    };
    let error = past(Moment::Version(never)).unwrap_err();
    assert!(matches!(
        error,
        OpenForestError::Past(PastError::NoVersion(version)) if version == never
    ));
    // Once segments are removed, the content of the oldest remaining checkpoint can be shown, and nothing before it.
    let mut removed = 0;
    for (at, len) in ends.into_iter().step_by(3) {
        block_on(forest.journal().trim(at)).unwrap();
        check(len - 1);
        for (version, time, was) in &versions[..len - 1] {
            for moment in [Moment::Version(*version), Moment::Time(*time)] {
                match past(moment) {
                    Ok(past) => assert_eq!(&described(&past), was, "{moment:?}"),
                    Err(OpenForestError::Past(PastError::TooOld { oldest })) => {
                        assert_eq!(oldest, versions[len - 1].0);
                        removed += 1;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
    assert!(removed > 100, "only {removed} moments are too old");
    assert!(past(Moment::Time(begin)).is_err());
}

#[test]
fn what_was_erased_is_erased_at_every_moment_and_what_was_deleted_is_there() {
    let disk = SimulatedDisk::new();
    let clock = Arc::new(Hands(Mutex::new(SystemTime::now())));
    let forest = open(&disk, &clock);
    let tree = block_on(forest.create("a")).unwrap();
    let root = tree.view().tree().root().id();
    let put = |name: &str| {
        let mut edit = tree.edit();
        edit.put_erasable(root, name, b"bytes").unwrap();
        block_on(edit.commit()).unwrap().version
    };
    let [erased, kept] = ["erased", "kept"].map(put);
    block_on(forest.checkpoint()).unwrap();
    let first = block_on(forest.journal().checkpoint()).unwrap().unwrap().at;
    block_on(tree.erase(root, "erased")).unwrap();
    for name in ["erased", "kept"] {
        let mut edit = tree.edit();
        edit.delete_attribute(root, name).unwrap();
        block_on(edit.commit()).unwrap();
    }
    (0..10).for_each(|number| _ = change(&forest, number));
    block_on(forest.checkpoint()).unwrap();
    // The newest versions refer to neither, and the older checkpoint still needs what was not erased.
    block_on(forest.journal().trim(first)).unwrap();
    drop((tree, forest));
    let forest = open(&disk, &clock);
    let value = |name: &str, version| {
        let past = block_on(forest.at(Moment::Version(version))).unwrap();
        let view = past.get("a").unwrap().snapshot();
        let value = past.value(view.tree().root(), name).unwrap();
        match value {
            Value::Erasable(bytes) => Some(bytes.to_vec()),
            Value::Erased { .. } => None,
            Value::Plain(_) | Value::Elsewhere => panic!("its bytes are here"),
        }
    };
    assert_eq!(value("erased", kept), None);
    assert_eq!(value("kept", kept).unwrap(), b"bytes");
    assert_eq!(value("erased", erased), None);
}

#[test]
fn a_watch_catches_up_with_what_memory_no_longer_keeps_also_after_an_opening() {
    let disk = SimulatedDisk::new();
    let clock = Arc::new(Hands(Mutex::new(SystemTime::now())));
    let mut forest = open(&disk, &clock);
    let mut tree = block_on(forest.create("watched")).unwrap();
    let begin = tree.view().version();
    let mut made = Vec::new();
    for step in 0..3_000 {
        let mut edit = tree.edit();
        edit.append(edit.root(), Attributes::new()).unwrap();
        made.push(block_on(edit.commit()).unwrap().version);
        if step % 7 == 0 {
            change(&forest, step);
        }
        if step % 900 == 500 {
            block_on(forest.checkpoint()).unwrap();
        }
        if step == 2_000 {
            drop((tree, forest));
            forest = open(&disk, &clock);
            tree = forest.get("watched").unwrap();
        }
    }
    let catch_up = |tree: &TreeHandle| {
        let (mut last, mut found) = (begin, Vec::new());
        loop {
            let seen = block_on(forest.commits_after(tree, last)).unwrap();
            let Some(newest) = seen.last() else {
                return found;
            };
            last = newest.after.version();
            for seen in &seen {
                let [before, after] = [&seen.before, &seen.after].map(|it| it.tree().len());
                assert_eq!((before + 1, seen.changes().count()), (after, 1));
                found.push(seen.after.version());
            }
        }
    };
    // The last commit may not be marked as durable yet, but it is written, and read after it was synced.
    assert_eq!(catch_up(&tree), made);
    block_on(forest.delete("watched")).unwrap();
    change(&forest, 1);
    assert_eq!(catch_up(&tree), made);
}
