//! `durable`: threads commit records of a hundred bytes, one in each commit.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use common::{bind_to_processors, fail, print_metrics};

use crate::call::Call;
use crate::committer::{self, Author};
use crate::store::{Record, Store};

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
    let place = Place(call.above.join(name));
    if let Err(error) = fs::create_dir_all(&place.0) {
        fail(&format!(
            "{} cannot be created: {error}.",
            place.0.display()
        ));
    }
    let Some(store) = S::open(&place.0, call.level) else {
        drop(place);
        fail("This store has no commit of this level: leave this row out.")
    };
    let each = call.commits.div_ceil(call.writers);
    let (elapsed, mut latencies) = if batched {
        through_committer(&store, call.writers, each)
    } else {
        alone(&store, call.writers, each)
    };
    latencies.sort_unstable();
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
    on_threads(writers, each, || {
        let mut writer = store.writer();
        move |record| S::commit(&mut writer, &[record])
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
        on_threads(writers, each, move || {
            let author = Author::new(requests.clone());
            move |record| {
                if !author.commit(record) {
                    fail("The committer has ended: see the message above.");
                }
            }
        })
    })
}

/// Runs the writers and returns how long they took together, and each commit.
fn on_threads<C: FnMut(Record)>(
    writers: usize,
    each: usize,
    writer: impl Fn() -> C + Sync,
) -> (Duration, Vec<Duration>) {
    let start = Barrier::new(writers + 1);
    let write = |number: usize| {
        let mut commit = writer();
        let mut latencies = Vec::with_capacity(each);
        start.wait();
        for step in 0..each {
            let record = record(number, step);
            let clock = Instant::now();
            commit(record);
            latencies.push(clock.elapsed());
        }
        latencies
    };
    std::thread::scope(|scope| {
        let write = &write;
        let threads: Vec<_> = (0..writers)
            .map(|number| scope.spawn(move || write(number)))
            .collect();
        start.wait();
        let clock = Instant::now();
        let latencies = threads.into_iter().map(|thread| thread.join());
        let Ok(latencies) = latencies.collect::<Result<Vec<_>, _>>() else {
            fail("A writer panicked: see the message above.")
        };
        (clock.elapsed(), latencies.into_iter().flatten().collect())
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
