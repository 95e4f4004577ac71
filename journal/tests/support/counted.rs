//! A medium that counts what is read, because an opening must read little, however long the history is.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use weald_journal::{LockError, Medium, MediumFile, SimulatedDisk};

#[derive(Default)]
struct Counts {
    opened: AtomicUsize,
    bytes: AtomicUsize,
}

/// A simulated disk that counts. A clone is the same one.
#[derive(Clone)]
pub(crate) struct Counted(pub(crate) SimulatedDisk, Arc<Counts>);

struct CountedFile(Box<dyn MediumFile>, Arc<Counts>);

impl Counted {
    pub(crate) fn new(disk: SimulatedDisk) -> Self {
        Self(disk, Arc::default())
    }

    /// The disk as the next process finds it, with nothing counted.
    pub(crate) fn after_kill(disk: &SimulatedDisk) -> Self {
        Self::new(disk.after_kill())
    }

    /// How many times a file was opened, and how many bytes were read of all files.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let count = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        (count(&self.1.opened), count(&self.1.bytes))
    }

    fn counted(&self, file: Box<dyn MediumFile>) -> Box<dyn MediumFile> {
        Box::new(CountedFile(file, Arc::clone(&self.1)))
    }
}

impl Medium for Counted {
    fn name(&self) -> String {
        self.0.name()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.0.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn MediumFile>> {
        Ok(self.counted(self.0.create(name)?))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn MediumFile>> {
        self.1.opened.fetch_add(1, Ordering::Relaxed);
        Ok(self.counted(self.0.open(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.0.sync_names()
    }

    fn lock(&self) -> Result<Box<dyn MediumFile>, LockError> {
        self.0.lock()
    }
}

impl MediumFile for CountedFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.0.read_at(bytes, offset)?;
        self.1.bytes.fetch_add(read, Ordering::Relaxed);
        Ok(read)
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
