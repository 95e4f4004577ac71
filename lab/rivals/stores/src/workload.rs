//! `durable`: threads commit records of a hundred bytes, one in each commit.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use common::{Call, bind_to_processors, commit_at_once, fail, print_metrics};

use crate::committer::{self, Author};
use crate::{Level, Record, Store};

/// The unit in which the system counts what a file takes.
const BLOCK: u64 = 512;

/// A directory that is removed in the end.
struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        let _the_rest_stays = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn durable<S: Store>(call: &Call, batched: bool) -> ! {
    bind_to_processors(call.workers);
    let name = format!("rival-durable-{}", std::process::id());
    let above = call
        .optional("dir")
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let place = Place(above.join(name));
    if let Err(error) = fs::create_dir_all(&place.0) {
        fail(&format!(
            "{} cannot be created: {error}.",
            place.0.display()
        ));
    }
    let levels = [("buffered", Level::Buffered), ("durable", Level::Durable)];
    let Some(store) = S::open(&place.0, call.word("level", &levels)) else {
        drop(place);
        fail("This store has no commit of this level: leave this row out.")
    };
    let writers = call.count("writers");
    let each = call.count("commits").div_ceil(writers);
    let (elapsed, latencies) = if batched {
        through_committer(&store, writers, each)
    } else {
        alone(&store, writers, each)
    };
    let stored = store.count();
    drop(store);
    let bytes = size_of(&place.0);
    drop(place);
    if stored != latencies.len() {
        fail("The store has a different number of records than were committed.");
    }
    let at = |share: usize| latencies[(latencies.len() - 1) * share / 100].as_secs_f64() * 1e6;
    print_metrics(&[
        (
            "commits_per_s",
            latencies.len() as f64 / elapsed.as_secs_f64(),
        ),
        ("p50_us", at(50)),
        ("p99_us", at(99)),
        ("bytes_per_commit", bytes as f64 / latencies.len() as f64),
    ])
}

/// Every writer commits a transaction of its own.
fn alone<S: Store>(store: &S, writers: usize, each: usize) -> (Duration, Vec<Duration>) {
    commit_at_once(writers, each, |number| {
        let mut writer = store.writer();
        move |step| S::commit(&mut writer, &[record(number, step)])
    })
}

/// One thread commits for all writers.
fn through_committer<S: Store>(
    store: &S,
    writers: usize,
    each: usize,
) -> (Duration, Vec<Duration>) {
    let (requests, waiting) = crossbeam_channel::unbounded();
    std::thread::scope(|scope| {
        scope.spawn(move || committer::serve(store, &waiting));
        // The committer ends with the last sender, which this closure has.
        commit_at_once(writers, each, move |number| {
            let author = Author::new(requests.clone());
            move |step| {
                if !author.commit(record(number, step)) {
                    fail("The committer has ended: see the message above.");
                }
            }
        })
    })
}

/// The keys of a writer follow each other, as the nodes that it would append.
fn record(number: usize, step: usize) -> Record {
    let (mut key, mut value) = ([0; 12], [b'x'; 100]);
    key[..4].copy_from_slice(&(number as u32).to_be_bytes());
    key[4..].copy_from_slice(&(step as u64).to_be_bytes());
    value[..8].copy_from_slice(&(step as u64).to_le_bytes());
    (key, value)
}

/// How many bytes the files of a directory take.
fn size_of(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else {
        return 0;
    };
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size_of(&entry.path()),
        Ok(metadata) => metadata.blocks() * BLOCK,
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}
