//! A simulated disk on which the parties take turns at each operation.

use std::io;
use std::sync::Arc;

use super::turns::Turns;
use crate::medium::{LockError, Medium, MediumFile};
use crate::simulated::SimulatedDisk;

/// A disk on which each operation is a place where others may come in between.
pub(super) struct Stepped(pub(super) SimulatedDisk, pub(super) Arc<Turns>);

struct SteppedFile(Box<dyn MediumFile>, Arc<Turns>);

fn stepped<T>(turns: &Turns, act: impl FnOnce() -> T) -> T {
    turns.pass();
    let done = act();
    turns.pass();
    done
}

impl Stepped {
    fn file(&self, file: Box<dyn MediumFile>) -> Box<dyn MediumFile> {
        Box::new(SteppedFile(file, Arc::clone(&self.1)))
    }
}

impl Medium for Stepped {
    /// The name is asked for when a failure is reported, so others may come in between there, too.
    fn name(&self) -> String {
        self.1.pass();
        self.0.name()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.0.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn MediumFile>> {
        stepped(&self.1, || self.0.create(name)).map(|file| self.file(file))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn MediumFile>> {
        self.0.open(name).map(|file| self.file(file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        stepped(&self.1, || self.0.rename(from, to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        stepped(&self.1, || self.0.remove(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        stepped(&self.1, || self.0.sync_names())
    }

    fn lock(&self) -> Result<Box<dyn MediumFile>, LockError> {
        self.0.lock()
    }
}

impl MediumFile for SteppedFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        stepped(&self.1, || self.0.write_at(bytes, offset))
    }

    fn sync(&self) -> io::Result<()> {
        stepped(&self.1, || self.0.sync())
    }

    fn cut(&self, len: u64) -> io::Result<()> {
        stepped(&self.1, || self.0.cut(len))
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
}
