//! Authors that write for all, and authors that are gone or never come back.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use weald_forest::journal::{Durability, Journal, Level, Position};
use weald_journal::{DiskJournal, Settings, SimulatedDisk};

use crate::hooked::{Hooked, Hooks};
use crate::records::{all, must_append, open};

thread_local! {
    /// How often this thread has written.
    static WRITES: Cell<u32> = const { Cell::new(0) };
}

fn count() -> std::io::Result<()> {
    WRITES.set(WRITES.get() + 1);
    Ok(())
}

fn with_threads() -> Settings {
    Settings::new().segment(1 << 20)
}

fn poll_once(future: impl Future<Output = Durability>) -> Poll<Durability> {
    let mut cx = Context::from_waker(Waker::noop());
    pin!(future).poll(&mut cx)
}

#[test]
fn an_author_who_waits_until_a_commit_is_buffered_writes_it() {
    let (disk, hooks) = (SimulatedDisk::new(), Hooks::default());
    let journal = DiskJournal::open_on(Hooked(disk, hooks.clone()), with_threads()).unwrap();
    hooks.on_write(count);
    // A thread may come first, now and then.
    for number in 1..2_000 {
        let position = must_append(&journal, number, 100);
        let when = journal.when_reached(position, Level::Buffered);
        assert_eq!(pollster::block_on(when), Durability::Reached);
        assert!(journal.reached(Level::Buffered) >= position);
        if WRITES.get() > 0 {
            return;
        }
    }
    panic!("a thread has written all");
}

thread_local! {
    /// Whether this thread's writes take so long that a thread of the journal looks meanwhile.
    static IS_SLOW: Cell<bool> = const { Cell::new(false) };
}

#[test]
fn what_an_author_has_written_is_durable_after_a_silence() {
    for _ in 0..5 {
        let (disk, hooks) = (SimulatedDisk::new(), Hooks::default());
        let settings = with_threads().silence(Duration::from_millis(1));
        let journal = DiskJournal::open_on(Hooked(disk, hooks.clone()), settings).unwrap();
        hooks.on_write(|| {
            if IS_SLOW.get() {
                std::thread::park_timeout(Duration::from_millis(10));
            }
            Ok(())
        });
        IS_SLOW.set(true);
        let position = must_append(&journal, 1, 100);
        let when = journal.when_reached(position, Level::Buffered);
        assert_eq!(pollster::block_on(when), Durability::Reached);
        // To wait for the level would ask for a sync.
        let limit = Instant::now() + Duration::from_secs(60);
        while journal.reached(Level::Durable) < position {
            assert!(Instant::now() < limit, "no thread looks any more");
            std::thread::yield_now();
        }
    }
}

#[test]
fn nobody_depends_on_a_leader_that_never_comes_back() {
    let journal = DiskJournal::open_on(SimulatedDisk::new(), with_threads()).unwrap();
    for number in (1..60).step_by(3) {
        let leader = must_append(&journal, number, 100);
        let mut leader = journal.when_reached(leader, Level::Buffered);
        let _polled = leader
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        let other = must_append(&journal, number + 1, 100);
        let other = journal.when_reached(other, Level::Buffered);
        assert_eq!(pollster::block_on(other), Durability::Reached);
        let last = must_append(&journal, number + 2, 100);
        let last = journal.when_reached(last, Level::Durable);
        assert_eq!(pollster::block_on(last), Durability::Reached);
        drop(leader);
    }
}

#[test]
fn a_journal_that_is_closed_writes_what_a_leader_has_left() {
    for _ in 0..20 {
        let disk = SimulatedDisk::new();
        let journal = DiskJournal::open_on(disk.clone(), with_threads()).unwrap();
        let position = must_append(&journal, 1, 100);
        let mut leader = journal.when_reached(position, Level::Buffered);
        let _polled = leader
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        journal.close();
        assert_eq!(pollster::block_on(leader), Durability::Reached);
        drop(journal);
        assert_eq!(all(&open(&disk).unwrap()).len(), 1);
    }
}

#[test]
fn authors_of_many_threads_get_what_they_wait_for_also_beside_some_that_leave() {
    let journal = DiskJournal::open_on(SimulatedDisk::new(), with_threads()).unwrap();
    let next = Mutex::new(1);
    // The forest, too, appends one record at a time.
    let append = || -> Position {
        let mut next = next.lock().unwrap();
        let position = must_append(&journal, *next, 100);
        *next += 1;
        position
    };
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (journal, append) = (&journal, &append);
            scope.spawn(move || {
                for round in 0..300 {
                    let position = append();
                    let level = match (round + thread) % 7 {
                        0 => Level::Durable,
                        _ => Level::Buffered,
                    };
                    let when = journal.when_reached(position, level);
                    if (round * 3 + thread) % 5 == 0 {
                        let _polled = poll_once(when);
                    } else {
                        assert_eq!(pollster::block_on(when), Durability::Reached);
                        assert!(journal.reached(level) >= position);
                    }
                }
            });
        }
    });
    assert_eq!(all(&journal).len(), 900);
}
