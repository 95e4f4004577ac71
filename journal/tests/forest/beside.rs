//! Reading the history beside the forest that is open: only what is durable, and in time that grows with the records.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use pollster::block_on;
use weald_forest::{Attributes, CommitError, Committed, Forest, Level, TreeHandle};
use weald_journal::{
    DiskForest, DiskJournal, Moment, OpenForestError, PastError, Settings, SimulatedDisk, Work,
};

use crate::counted::Counted;

fn append(tree: &TreeHandle, level: Level) -> Result<Committed, CommitError> {
    let mut edit = tree.edit();
    let root = edit.root();
    edit.append(root, Attributes::new()).unwrap();
    block_on(edit.commit().level(level))
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// What becomes of a future whose journal works by hand.
fn work_until<T>(journal: &DiskJournal, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = poll(future.as_mut()) {
            return output;
        }
        let works = [Work::Prepare, Work::Write, Work::Sync];
        assert!(
            works.into_iter().any(|work| journal.work(work)),
            "nothing is left to be done"
        );
    }
}

#[test]
fn a_version_that_is_not_durable_yet_is_waited_for() {
    let settings = Settings::new().by_hand();
    let journal = DiskJournal::open_on(SimulatedDisk::new(), settings).unwrap();
    let opening = DiskForest::recover(Forest::builder(), journal.clone());
    let forest = work_until(&journal, opening).unwrap();
    let tree = work_until(&journal, forest.create("notes")).unwrap();
    let before = tree.view().version();
    let version = append(&tree, Level::Accepted).unwrap().version;
    {
        let mut past = pin!(forest.at(Moment::Version(version)));
        let mut missed = pin!(forest.commits_after(&tree, version));
        for work in [None, Some(Work::Write)] {
            assert!(work.is_none_or(|work| journal.work(work)));
            assert!(poll(past.as_mut()).is_pending());
            assert!(poll(missed.as_mut()).is_pending());
        }
        assert!(journal.work(Work::Sync));
        let Poll::Ready(past) = poll(past.as_mut()) else {
            panic!("it is durable")
        };
        assert_eq!(past.unwrap().get("notes").unwrap().view().tree().len(), 2);
        let Poll::Ready(missed) = poll(missed.as_mut()) else {
            panic!("it is durable")
        };
        assert!(missed.unwrap().is_empty());
    }
    // A commit for which nobody waits is not shown before it is durable, although it is in the
    // file.
    append(&tree, Level::Accepted).unwrap();
    assert!(journal.work(Work::Write));
    let latest = Moment::Time(SystemTime::now() + Duration::from_secs(1000));
    let past = block_on(forest.at(latest)).unwrap();
    assert_eq!(past.get("notes").unwrap().view().tree().len(), 2);
    assert_eq!(
        block_on(forest.commits_after(&tree, before)).unwrap().len(),
        1
    );
    assert!(journal.work(Work::Sync));
    assert_eq!(
        block_on(forest.commits_after(&tree, before)).unwrap().len(),
        2
    );
}

#[test]
fn a_forest_whose_journal_failed_shows_no_history_and_says_to_open_it_again() {
    let disk = SimulatedDisk::new();
    // No mark is synced but by the end.
    let settings = || Settings::new().silence(Duration::from_secs(1000));
    let open = || {
        let journal = DiskJournal::open_on(disk.clone(), settings()).unwrap();
        block_on(DiskForest::recover(Forest::builder(), journal))
    };
    let forest = open().unwrap();
    let tree = block_on(forest.create("notes")).unwrap();
    let before = tree.view().version();
    disk.fail_next_sync();
    let lost = append(&tree, Level::Durable);
    assert!(matches!(lost, Err(CommitError::Unknown(_))), "{lost:?}");
    let is_failed = |error| matches!(error, OpenForestError::Past(PastError::Failed));
    let latest = Moment::Time(SystemTime::now() + Duration::from_secs(1000));
    for moment in [latest, Moment::Version(before)] {
        let error = block_on(forest.at(moment)).unwrap_err();
        assert!(
            error.to_string().contains("open the forest again"),
            "{error}"
        );
        assert!(is_failed(error));
    }
    assert!(is_failed(
        block_on(forest.commits_after(&tree, before)).unwrap_err()
    ));
    drop((forest, tree));
    let forest = open().unwrap();
    block_on(forest.at(Moment::Version(before))).unwrap();
}

/// A forest with a quiet tree, and a busy one with this many commits and tags; and its disk.
fn busy(commits: u64, tags: u64) -> (DiskForest, TreeHandle, Counted) {
    let disk = Counted::new(SimulatedDisk::new());
    let settings = Settings::new().segment(64 << 10).checkpoint_after(None);
    let journal = DiskJournal::open_on(disk.clone(), settings).unwrap();
    let forest = block_on(DiskForest::recover(Forest::builder(), journal)).unwrap();
    let quiet = block_on(forest.create("quiet")).unwrap();
    let tree = block_on(forest.create("busy")).unwrap();
    let mut made = Vec::new();
    for _ in 0..commits {
        made.push(append(&tree, Level::Accepted).unwrap().version);
    }
    // No longer the newest.
    let old = made.len().saturating_sub(900)..;
    for (version, tag) in made[old].iter().zip(0..tags) {
        block_on(tree.tag(&tag.to_string(), *version)).unwrap();
    }
    append(&tree, Level::Durable).unwrap();
    (forest, quiet, disk)
}

/// How many bytes are read in a call.
fn read_in<T>(disk: &Counted, call: impl FnOnce() -> T) -> (T, usize) {
    let before = disk.counts().1;
    let output = call();
    (output, disk.counts().1 - before)
}

#[test]
fn four_times_as_many_commits_to_others_are_read_in_four_times_the_reading() {
    let reading = |commits| {
        let (forest, quiet, disk) = busy(commits, 0);
        let begin = quiet.view().version();
        let (none, without) = read_in(&disk, || {
            block_on(forest.commits_after(&quiet, begin)).unwrap()
        });
        assert!(none.is_empty());
        append(&quiet, Level::Durable).unwrap();
        let (one, with) = read_in(&disk, || {
            block_on(forest.commits_after(&quiet, begin)).unwrap()
        });
        assert_eq!(one.len(), 1);
        without + with
    };
    let (one, four) = (reading(2_500), reading(10_000));
    assert!(four < one * 5, "{one} bytes, then {four}");
}

#[test]
fn all_versions_that_tags_name_are_found_in_one_more_reading() {
    let latest = Moment::Time(SystemTime::now() + Duration::from_secs(1000));
    let reading = |tags| {
        let (forest, _, disk) = busy(2_000, tags);
        let (past, bytes) = read_in(&disk, || block_on(forest.at(latest)).unwrap());
        let tree = past.get("busy").unwrap();
        assert_eq!(tree.tags().len() as u64, tags);
        for (tag, version) in tree.tags() {
            let nodes = 1 + 2_000 - 900 + tag.parse::<u64>().unwrap() + 1;
            let found = tree.tagged(&tag).unwrap();
            assert_eq!((found.version(), found.tree().len()), (version, nodes));
        }
        bytes
    };
    let (one, many) = (reading(1), reading(60));
    assert!(many < one * 2, "{one} bytes, then {many}");
}
