//! What a forest on disk waits for holds no worker.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;

use weald::Wait;
use weald::forest::disk::*;
use weald::forest::{Attributes, Forest};

/// A disk that notes which threads list and open its files, and which give its lock back.
#[derive(Clone)]
struct Noting(SimulatedDisk, Arc<Mutex<Vec<ThreadId>>>);

impl Noting {
    fn note(&self) {
        self.1.lock().unwrap().push(thread::current().id());
    }

    fn noted(&self) -> Vec<ThreadId> {
        std::mem::take(&mut self.1.lock().unwrap())
    }
}

impl Medium for Noting {
    fn name(&self) -> String {
        self.0.name()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.note();
        self.0.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn MediumFile>> {
        self.0.create(name)
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn MediumFile>> {
        self.note();
        self.0.open(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.note();
        self.0.sync_names()
    }

    fn lock(&self) -> Result<Box<dyn MediumFile>, LockError> {
        Ok(Box::new(Lock(self.0.lock()?, self.clone())))
    }
}

struct Lock(Box<dyn MediumFile>, Noting);

impl Drop for Lock {
    fn drop(&mut self) {
        self.1.note();
    }
}

impl MediumFile for Lock {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.0.write_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn cut(&self, len: u64) -> io::Result<()> {
        self.0.cut(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
}

#[test]
fn openings_the_past_a_checkpoint_and_the_end_are_the_work_of_threads_that_serve_no_job() {
    let disk = Noting(SimulatedDisk::new(), Arc::default());
    let open = || DiskJournal::open_on(disk.clone(), Settings::new()).unwrap();
    let forest = DiskForest::recover(Forest::builder(), open()).wait();
    forest.unwrap().create("before").wait().unwrap();
    let journal = open();
    // The one worker stays on its thread, however slow the machine is.
    let builder = weald::Runtime::builder().workers(1);
    let runtime = builder
        .stuck_after(Duration::from_secs(1000))
        .build()
        .unwrap();
    let job = weald::thread::spawn(move || {
        let here = thread::current().id();
        let must_be_elsewhere = |what: &str| {
            let noted = disk.noted();
            assert!(!noted.is_empty(), "{what} uses the disk");
            assert!(!noted.contains(&here), "{what} is done here");
        };
        disk.noted();
        let forest = DiskForest::recover(Forest::builder(), journal)
            .wait()
            .unwrap();
        must_be_elsewhere("an opening");
        let notes = forest.create("notes").wait().unwrap();
        let since = notes.view().version();
        let mut edit = notes.edit();
        edit.append(edit.root(), Attributes::new()).unwrap();
        edit.commit().wait().unwrap();
        let seen = ReadOnlyJournal::open_on(disk.clone()).unwrap();
        disk.noted();
        let seen = ReadOnlyForest::recover(Forest::builder(), seen).wait();
        assert_eq!(seen.unwrap().list(), ["before", "notes"]);
        must_be_elsewhere("an opening for reading");
        let past = forest.at(Moment::Version(since)).wait().unwrap();
        assert_eq!(past.get("notes").unwrap().view().tree().len(), 1);
        must_be_elsewhere("the past");
        assert_eq!(forest.commits_after(&notes, since).wait().unwrap().len(), 1);
        must_be_elsewhere("what was missed");
        forest.checkpoint().wait().unwrap();
        must_be_elsewhere("a checkpoint");
        forest.close().wait();
        must_be_elsewhere("the end");
    });
    runtime.block_on(job).unwrap();
}
