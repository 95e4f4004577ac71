//! `stall` with offender=sync and offender=append: does a journal that is busy stop small buffered commits?
//!
//! A forest on disk. A writer commits to a tree of its own every millisecond, and waits until that would survive the
//! end of the program. With offender=sync every sync of the medium takes a second, and the offenders make durable
//! commits one after the other, so that there always is one. With offender=append they append many bytes at once to
//! trees of their own, and rest 20 ms in between.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weald::forest::disk::{
    Directory, DiskForest, DiskJournal, LockError, Medium, MediumFile, Settings,
};
use weald::forest::{Forest, Level, TreeHandle};

use super::durable::Place;
use super::large_commits::{Running, write};
use super::trees::{not_committed, not_edited};
use crate::error::Error;
use crate::params::Params;

/// How long a sync of the slow medium takes.
const SYNC: Duration = Duration::from_secs(1);
const REST: Duration = Duration::from_millis(20);
/// How long the values are that are appended. One commit has many.
const VALUE: usize = 1 << 20;
/// Few versions are kept, so that what was appended is let go during the run.
const KEPT: usize = 4;

/// What a row asks for.
#[derive(Clone, Copy)]
pub(super) struct JournalOffenders {
    /// How many bytes a commit appends; none, if the syncs are slow instead.
    bytes: Option<usize>,
}

impl JournalOffenders {
    pub(super) fn slow_syncs() -> Self {
        Self { bytes: None }
    }

    pub(super) fn appends(params: &Params) -> Result<Self, Error> {
        let bytes = Some(params.count("bytes")?);
        Ok(Self { bytes })
    }

    /// Opens a forest, and starts the writer and this many offenders.
    pub(super) async fn start(self, params: &Params, offenders: usize) -> Result<Running, Error> {
        let failed = |error: &dyn std::fmt::Display| {
            Error::workload(format!("The forest cannot be opened: {error}."))
        };
        let place = Place::new(params)?;
        let is_slow = Arc::new(AtomicBool::new(false));
        let medium = SlowMedium {
            directory: Directory::create(place.path()).map_err(|error| failed(&error))?,
            is_slow: Arc::clone(&is_slow),
        };
        let settings = Settings::new().checkpoint_after(None);
        let journal = DiskJournal::open_on(medium, settings).map_err(|error| failed(&error))?;
        let forest = DiskForest::recover(Forest::builder().keep(KEPT), journal).await;
        let forest = forest.map_err(|error| failed(&error))?;
        let create = async |name: &str| {
            let created = forest.create(name).await;
            created.map_err(|error| not_committed(&error))
        };
        let stop = Arc::new(AtomicBool::new(false));
        let small = create("small").await?;
        let mut running = Vec::new();
        for number in 0..offenders {
            let tree = create(&format!("big{number}")).await?;
            running.push(weald::spawn(offend(tree, self.bytes, Arc::clone(&stop))));
        }
        let writing = write(small, Some(Level::Buffered), Arc::clone(&stop));
        is_slow.store(self.bytes.is_none(), Ordering::Relaxed);
        let writer = weald::spawn(async move {
            let outcome = writing.await;
            // Otherwise closing takes a second for each sync that is left.
            is_slow.store(false, Ordering::Relaxed);
            outcome
        });
        Ok(Running::on_disk(stop, running, writer, (forest, place)))
    }
}

async fn offend(
    tree: TreeHandle,
    bytes: Option<usize>,
    stop: Arc<AtomicBool>,
) -> Result<(), Error> {
    let value = Arc::<[u8]>::from(vec![b'x'; VALUE]);
    while !stop.load(Ordering::Relaxed) {
        let mut edit = tree.edit().blind();
        let values = bytes.map_or(1, |bytes| bytes.div_ceil(VALUE));
        let value = if bytes.is_some() {
            &value[..]
        } else {
            b"small"
        };
        for number in 0..values {
            let name = number.to_string();
            let put = edit.put_attribute(edit.root(), &name, value);
            put.map_err(|error| not_edited(&error))?;
        }
        let committed = edit.commit().level(Level::Durable).await;
        committed.map_err(|error| not_committed(&error))?;
        if bytes.is_some() {
            weald::sleep(REST).await;
        }
    }
    Ok(())
}

/// A directory whose syncs take a second while that is asked for.
struct SlowMedium {
    directory: Directory,
    is_slow: Arc<AtomicBool>,
}

struct SlowFile {
    file: Box<dyn MediumFile>,
    is_slow: Arc<AtomicBool>,
}

impl SlowMedium {
    fn slow(&self, file: Box<dyn MediumFile>) -> Box<dyn MediumFile> {
        Box::new(SlowFile {
            file,
            is_slow: Arc::clone(&self.is_slow),
        })
    }
}

impl Medium for SlowMedium {
    fn name(&self) -> String {
        self.directory.name()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.directory.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn MediumFile>> {
        self.directory.create(name).map(|file| self.slow(file))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn MediumFile>> {
        self.directory.open(name).map(|file| self.slow(file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.directory.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.directory.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.directory.sync_names()
    }

    fn lock(&self) -> Result<Box<dyn MediumFile>, LockError> {
        self.directory.lock()
    }
}

impl MediumFile for SlowFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(bytes, offset)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "this is a thread of the journal, and a slow medium is what is measured"
    )]
    fn sync(&self) -> io::Result<()> {
        if self.is_slow.load(Ordering::Relaxed) {
            std::thread::sleep(SYNC);
        }
        self.file.sync()
    }

    fn cut(&self, len: u64) -> io::Result<()> {
        self.file.cut(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}
