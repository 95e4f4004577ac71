//! The suite that every journal must pass, on a directory of the file system and on a simulated disk.

use std::pin::Pin;
use std::time::SystemTime;

use weald_forest::journal::conformance::{Subject, check};
use weald_forest::journal::{Journal, Level, Record};
use weald_forest::{CommitId, Version};
use weald_journal::{Directory, DiskJournal, Settings, SimulatedDisk};

struct InFiles {
    journal: DiskJournal,
    _directory: tempfile::TempDir,
}

fn settings() -> Settings {
    // Small segments, so that records have several frames and lie in several files.
    Settings::new().segment(16 * 1024)
}

/// Waits until everything that was accepted has a level.
fn wait_for(journal: &DiskJournal, level: Level) {
    let last = pollster::block_on(journal.last()).unwrap();
    let position = last.map_or_else(Default::default, |(last, _)| last);
    pollster::block_on(journal.when_reached(position, level));
}

impl Subject for InFiles {
    fn journal(&self) -> &dyn Journal {
        &self.journal
    }

    fn settle(&self) {}

    fn sync(&self, level: Level) {
        wait_for(&self.journal, level);
    }

    fn fail(&self) -> bool {
        false
    }

    fn block_on(&self, future: Pin<Box<dyn Future<Output = ()> + '_>>) {
        pollster::block_on(future);
    }
}

struct OnDisk {
    disk: SimulatedDisk,
    journal: DiskJournal,
}

impl Subject for OnDisk {
    fn journal(&self) -> &dyn Journal {
        &self.journal
    }

    fn settle(&self) {}

    fn sync(&self, level: Level) {
        wait_for(&self.journal, level);
    }

    fn fail(&self) -> bool {
        // The accepted record is in a file; another record shows the journal that the disk is broken.
        wait_for(&self.journal, Level::Buffered);
        self.disk.break_down();
        let record = Record {
            version: Version {
                incarnation: 1,
                number: 99,
            },
            id: CommitId(99),
            time: SystemTime::UNIX_EPOCH,
            digest: None,
            bytes: b"",
            changes: &[],
            blobs: &[],
            erases: None,
        };
        // It is refused if a thread of the journal has met the broken disk before.
        let _ = self.journal.append(&record);
        wait_for(&self.journal, Level::Durable);
        true
    }

    fn block_on(&self, future: Pin<Box<dyn Future<Output = ()> + '_>>) {
        pollster::block_on(future);
    }
}

#[test]
fn files_pass() {
    check(&|| {
        let directory = tempfile::tempdir().unwrap();
        let medium = Directory::create(directory.path()).unwrap();
        let journal = DiskJournal::open_on(medium, settings()).unwrap();
        Box::new(InFiles {
            journal,
            _directory: directory,
        })
    })
    .unwrap();
}

#[test]
fn a_simulated_disk_passes() {
    check(&|| {
        let disk = SimulatedDisk::new();
        let journal = DiskJournal::open_on(disk.clone(), settings()).unwrap();
        Box::new(OnDisk { disk, journal })
    })
    .unwrap();
}
