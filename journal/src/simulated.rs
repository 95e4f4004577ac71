//! A simulated disk as a medium: it loses, tears, reorders, delays and refuses what a real one may, on a seed.
//!
//! - When the power is cut, bytes that were written and not synced are lost, kept or torn, sector by sector and in any
//!   order.
//! - Names that were not synced are kept up to any of their changes.
//! - A sync that fails loses what it was to make durable, and still shows it until the power is cut; the next one
//!   succeeds. That is what Linux does.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::faults::Faults;
use crate::medium::{LockError, Medium, MediumFile};
use crate::names::{LOCK, noted_pid};
use crate::sectors::{FileState, Random};

/// A disk in memory. A clone is the same disk.
#[derive(Clone, Default)]
pub struct SimulatedDisk(Arc<Shared>);

#[derive(Default)]
struct Shared {
    disk: Mutex<Disk>,
    released: Condvar,
}

#[derive(Clone, Default)]
struct Disk {
    files: Vec<FileState>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    /// The states of the names since they were synced.
    changes: Vec<BTreeMap<String, usize>>,
    /// The file that was locked last, and whether it still is.
    lock: Option<usize>,
    is_locked: bool,
    operations: u64,
    faults: Faults,
}

impl SimulatedDisk {
    /// An empty disk without faults.
    pub fn new() -> Self {
        Self::default()
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with(disk: Disk) -> Self {
        let shared = Shared {
            disk: Mutex::new(disk),
            released: Condvar::new(),
        };
        Self(Arc::new(shared))
    }

    /// How many operations it has done that change something: writes, syncs, changes of names.
    pub fn operations(&self) -> u64 {
        self.disk().operations
    }

    /// The power goes off within the operation of this number, counted from 0.
    pub fn cut_power_at(&self, operation: u64) {
        self.disk().faults.off_at = Some(operation);
    }

    /// The operation of this number fails and changes nothing.
    pub fn fail_operation(&self, operation: u64) {
        self.disk().faults.fails_at = Some(operation);
    }

    /// The power goes off now. Every later operation fails.
    pub fn cut_power(&self) {
        self.disk().faults.is_off = true;
        self.0.released.notify_all();
    }

    /// The disk as it may be found after the power was cut: another disk, without faults.
    #[must_use]
    pub fn after_power_cut(&self, seed: u64) -> Self {
        let mut random = Random(seed);
        let disk = self.disk();
        let states = disk.changes.len();
        let names = match random.below(states + 1) {
            0 => disk.durable_names.clone(),
            state => disk.changes[state - 1].clone(),
        };
        let keeps = [0, 50, 90, 100][random.below(4)];
        let files = disk.files.iter();
        let files = files
            .map(|file| file.after_power_cut(&mut random, keeps))
            .collect();
        Self::with(Disk {
            files,
            durable_names: names.clone(),
            names,
            ..Disk::default()
        })
    }

    /// The disk as the next process finds it after this one was killed: another disk, without faults. Nothing is lost,
    /// and what was not durable is not durable now either.
    #[must_use]
    pub fn after_kill(&self) -> Self {
        let mut disk = self.disk().clone();
        (disk.is_locked, disk.faults, disk.operations) = (false, Faults::default(), 0);
        Self::with(disk)
    }

    /// From now on, whatever changes something fails; what is there can be read.
    pub fn break_down(&self) {
        self.disk().faults.is_broken = true;
    }

    /// From now on, every sync waits.
    pub fn hold_syncs(&self) {
        self.disk().faults.holds_syncs = true;
    }

    /// Syncs go on.
    pub fn release_syncs(&self) {
        self.disk().faults.holds_syncs = false;
        self.0.released.notify_all();
    }

    /// The next sync of a file that was synced before fails. So a file that is just being prepared by another thread
    /// does not use the fault up.
    pub fn fail_next_sync(&self) {
        self.disk().faults.fails_sync = true;
    }

    /// The next sync of the names fails, and they are as they were until the power is cut.
    pub fn fail_next_sync_of_names(&self) {
        self.disk().faults.fails_sync_names = true;
    }

    /// The next write fails after half of its bytes.
    pub fn fail_next_write(&self) {
        self.disk().faults.fails_write = true;
    }

    /// The next write writes half of its bytes, and says so.
    pub fn shorten_next_write(&self) {
        self.disk().faults.shortens_write = true;
    }

    /// The disk has room for this many bytes in all; `None` for any number. As on a real one, a write that does not fit
    /// is short, and only one for which there is no room at all fails.
    pub fn set_room(&self, bytes: Option<usize>) {
        self.disk().faults.room = bytes;
    }

    /// Forgets that the directory is locked, as some network file systems do.
    pub fn break_lock(&self) {
        self.disk().is_locked = false;
    }

    /// Removes the locked file, as somebody might who takes it for a leftover of an older program.
    pub fn remove_lock(&self) {
        self.set_file(LOCK, None);
    }

    /// How many bytes all named files have.
    pub fn used(&self) -> usize {
        self.disk().used()
    }

    /// The names of all files, without the one that is locked, which each opening changes.
    pub fn names(&self) -> Vec<String> {
        let disk = self.disk();
        let names = disk.names.keys().filter(|name| *name != LOCK);
        names.cloned().collect()
    }

    /// The bytes of a file, if there is one.
    pub fn file(&self, name: &str) -> Option<Vec<u8>> {
        let disk = self.disk();
        let file = *disk.names.get(name)?;
        Some(disk.files[file].bytes.clone())
    }

    /// Whether somebody who reads the medium itself finds some bytes, even in files that have lost their names.
    pub fn holds(&self, bytes: &[u8]) -> bool {
        let has = |all: &[u8]| all.windows(bytes.len()).any(|window| window == bytes);
        let disk = self.disk();
        let mut files = disk.files.iter();
        files.any(|file| has(&file.bytes) || has(&file.durable))
    }

    /// Replaces the bytes of a file, durably: damage, or a copy that is put back.
    pub fn set_file(&self, name: &str, bytes: Option<&[u8]>) {
        let mut disk = self.disk();
        disk.names.remove(name);
        disk.durable_names.remove(name);
        if let Some(bytes) = bytes {
            let number = disk.files.len();
            disk.files.push(FileState {
                bytes: bytes.to_vec(),
                durable: bytes.to_vec(),
                unsynced: Vec::new(),
            });
            disk.names.insert(name.to_owned(), number);
            disk.durable_names.insert(name.to_owned(), number);
        }
    }
}

impl Disk {
    fn used(&self) -> usize {
        self.names
            .values()
            .map(|file| self.files[*file].bytes.len())
            .sum()
    }

    /// How many of some bytes there is room for.
    fn fits(&self, file: usize, offset: usize, len: usize) -> usize {
        let Some(room) = self.faults.room else {
            return len;
        };
        let free = room.saturating_sub(self.used());
        let end = self.files[file].bytes.len().max(offset) + free;
        len.min(end.saturating_sub(offset))
    }

    /// Counts an operation. The power may go off in it.
    fn begin(&mut self) -> io::Result<()> {
        self.faults.must_be_on()?;
        self.operations += 1;
        self.faults.begin(self.operations - 1)
    }

    fn end(&self) -> io::Result<()> {
        if self.faults.is_off {
            return Err(io::Error::other("the power went off"));
        }
        Ok(())
    }

    fn named(&mut self) -> io::Result<()> {
        let names = self.names.clone();
        self.changes.push(names);
        self.end()
    }

    fn create(&mut self, name: &str) -> io::Result<usize> {
        let number = self.files.len();
        self.files.push(FileState::default());
        self.names.insert(name.to_owned(), number);
        self.named()?;
        Ok(number)
    }

    fn find(&self, name: &str) -> io::Result<usize> {
        self.names
            .get(name)
            .copied()
            .ok_or(io::ErrorKind::NotFound.into())
    }
}

/// An open file of a simulated disk.
struct SimulatedFile {
    disk: SimulatedDisk,
    number: usize,
    is_lock: bool,
}

impl Drop for SimulatedFile {
    fn drop(&mut self) {
        let mut disk = self.disk.disk();
        if self.is_lock && disk.lock == Some(self.number) {
            disk.is_locked = false;
        }
    }
}

impl Medium for SimulatedDisk {
    fn name(&self) -> String {
        "simulated disk".into()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let disk = self.disk();
        disk.end()?;
        Ok(disk.names.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn MediumFile>> {
        let mut disk = self.disk();
        disk.begin()?;
        let number = disk.create(name)?;
        Ok(self.opened(number))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn MediumFile>> {
        let disk = self.disk();
        disk.end()?;
        let number = disk.find(name)?;
        Ok(self.opened(number))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut disk = self.disk();
        disk.begin()?;
        let number = disk.find(from)?;
        disk.names.remove(from);
        disk.names.insert(to.to_owned(), number);
        disk.named()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut disk = self.disk();
        disk.begin()?;
        disk.find(name)?;
        disk.names.remove(name);
        disk.named()
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut disk = self.disk();
        disk.begin()?;
        disk.end()?;
        if std::mem::take(&mut disk.faults.fails_sync_names) {
            return Err(io::Error::other("a sync of the names failed"));
        }
        disk.changes.clear();
        disk.durable_names = disk.names.clone();
        Ok(())
    }

    fn lock(&self) -> Result<Box<dyn MediumFile>, LockError> {
        let mut disk = self.disk();
        disk.end().map_err(LockError::Failed)?;
        let number = disk.find(LOCK);
        let number = number.or_else(|_| disk.create(LOCK))?;
        // If the name leads to another file than the locked one, that file is free.
        let is_held = disk.is_locked && disk.lock == Some(number);
        (disk.lock, disk.is_locked) = (Some(number), true);
        drop(disk);
        if is_held {
            let file = self.opened(number);
            let pid = noted_pid(&*file).unwrap_or(0);
            return Err(LockError::Held { pid });
        }
        Ok(Box::new(SimulatedFile {
            disk: self.clone(),
            number,
            is_lock: true,
        }))
    }
}

impl SimulatedDisk {
    fn opened(&self, number: usize) -> Box<dyn MediumFile> {
        Box::new(SimulatedFile {
            disk: self.clone(),
            number,
            is_lock: false,
        })
    }
}

impl MediumFile for SimulatedFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let disk = self.disk.disk();
        if self.is_lock && disk.names.get(LOCK) != Some(&self.number) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let all = &disk.files[self.number].bytes;
        let from = offset.min(all.len());
        let len = bytes.len().min(all.len() - from);
        bytes[..len].copy_from_slice(&all[from..from + len]);
        Ok(len)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut disk = self.disk.disk();
        disk.begin()?;
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let fits = disk.fits(self.number, offset, bytes.len());
        if fits == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let bytes = &bytes[..fits];
        let fails = std::mem::take(&mut disk.faults.fails_write);
        let is_short = std::mem::take(&mut disk.faults.shortens_write);
        let half = if fails || is_short {
            bytes.len() / 2
        } else {
            bytes.len()
        };
        let file = &mut disk.files[self.number];
        file.unsynced.push((offset, bytes[..half].to_vec()));
        FileState::write(&mut file.bytes, offset, &bytes[..half]);
        if fails {
            return Err(io::Error::other("a write failed"));
        }
        disk.end()?;
        Ok(half)
    }

    fn sync(&self) -> io::Result<()> {
        let mut disk = self.disk.disk();
        disk.begin()?;
        // Bytes that are written while it runs are not covered by it.
        let covered = disk.files[self.number].unsynced.len();
        while disk.faults.holds_syncs && !disk.faults.is_off {
            let waited = self.disk.0.released.wait(disk);
            disk = waited.unwrap_or_else(PoisonError::into_inner);
        }
        let fails = disk.faults.fails_sync && !disk.files[self.number].durable.is_empty();
        disk.faults.fails_sync &= !fails;
        disk.end()?;
        let file = &mut disk.files[self.number];
        let covered = covered.min(file.unsynced.len());
        let covered: Vec<_> = file.unsynced.drain(..covered).collect();
        if fails {
            return Err(io::Error::other("a sync failed"));
        }
        for (offset, written) in covered {
            FileState::write(&mut file.durable, offset, &written);
        }
        Ok(())
    }

    fn cut(&self, len: u64) -> io::Result<()> {
        let mut disk = self.disk.disk();
        disk.begin()?;
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        // What was written behind is not there again later: the power may only keep the cut from the medium.
        let file = &mut disk.files[self.number];
        file.bytes.truncate(len);
        file.unsynced
            .retain(|(offset, bytes)| offset + bytes.len() <= len);
        disk.end()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.disk().files[self.number].bytes.len() as u64)
    }
}
