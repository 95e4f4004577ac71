//! How the parts of a batch are written: short ones that follow each other leave in one call of the medium.
//!
//! A commit with erasable bytes has two parts, its blob and its record, and a batch has many such commits. A call for
//! each part would take longer than everything else that the journal does for it.

use std::io;

use crate::core::Core;
use crate::frame::{self, Kind};
use crate::item::Item;
use crate::medium::write_all;
use crate::place::Place;

/// A part that is longer is written by itself, and not copied.
const SHORT: usize = 16 << 10;
/// No more is gathered for one call.
const MOST: usize = 256 << 10;

/// Parts that follow each other, from a place on.
#[derive(Default)]
struct Gathered {
    begin: Option<Place>,
    bytes: Vec<u8>,
}

impl Core {
    /// Writes the parts of a batch in their order. After a short write nothing more is written.
    pub(crate) fn write_items(&self, items: &[Item]) -> io::Result<()> {
        let mut gathered = Gathered::default();
        for (at, item) in items.iter().enumerate() {
            // Alone it is not copied.
            let is_alone = gathered.begin.is_none() && at + 1 == items.len();
            if is_alone || !gathered.takes(item) {
                self.write_gathered(&mut gathered)?;
                if is_alone || !gathered.takes(item) {
                    self.write_item_with(item, write_all)?;
                    continue;
                }
            }
            gathered.add(item);
        }
        self.write_gathered(&mut gathered)
    }

    fn write_gathered(&self, gathered: &mut Gathered) -> io::Result<()> {
        let Some(begin) = gathered.begin.take() else {
            return Ok(());
        };
        let file = self.file(begin.segment)?;
        write_all(&*file, &gathered.bytes, begin.offset.into())?;
        gathered.bytes.clear();
        Ok(())
    }
}

impl Gathered {
    /// Whether an item is short, and follows what was gathered.
    fn takes(&self, item: &Item) -> bool {
        let (place, len) = match item {
            Item::Bytes(place, bytes) => (place, bytes.len()),
            Item::Sealed(place, sealing, part) => (place, sealing.body_len(*part)),
            Item::Frame(..) => return false,
        };
        let follows = self.begin.is_none_or(|begin| {
            begin.segment == place.segment
                && begin.offset as usize + self.bytes.len() == place.offset as usize
        });
        len <= SHORT && follows && self.bytes.len() + len <= MOST
    }

    fn add(&mut self, item: &Item) {
        match item {
            Item::Bytes(place, bytes) => {
                self.begin.get_or_insert(*place);
                self.bytes.extend_from_slice(bytes);
            }
            Item::Sealed(place, sealing, part) => {
                self.begin.get_or_insert(*place);
                let body = sealing.body(*part);
                let header = frame::header(*place, Kind::Blob, std::iter::once(&body[..]));
                self.bytes.extend_from_slice(&header);
                self.bytes.extend_from_slice(&body);
            }
            Item::Frame(..) => unreachable!("a part of a long record is not gathered"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::SystemTime;

    use weald_forest::journal::{Appended, Blob, BlobId, Journal, Record};
    use weald_forest::{CommitId, NodeId, Version};

    use crate::core::Work;
    use crate::disk_journal::DiskJournal;
    use crate::open::open;
    use crate::settings::Settings;
    use crate::simulated::SimulatedDisk;

    #[test]
    fn commits_with_erasable_bytes_leave_in_one_write() {
        const COMMITS: u64 = 20;
        let disk = SimulatedDisk::new();
        let settings = Settings::new().segment(1 << 20).by_hand();
        let core = open(Arc::new(disk.clone()), settings).unwrap();
        while core.work(Work::Write) || core.work(Work::Sync) {}
        let journal = DiskJournal::of(core);
        let (mut operations, mut waiting) = (Vec::new(), Vec::new());
        // The first batch makes the file of the keys.
        for batch in 0..2 {
            for number in batch * COMMITS..(batch + 1) * COMMITS {
                let incarnation = 1;
                let id = CommitId(number.into());
                let blob = Blob {
                    id: BlobId(u128::from(number) + 1),
                    tree: 1,
                    node: NodeId::new(1).unwrap(),
                    name: "post".into(),
                    bytes: vec![7; 100].into(),
                };
                let appended = journal.append(&Record {
                    version: Version {
                        incarnation,
                        number,
                    },
                    id,
                    time: SystemTime::UNIX_EPOCH,
                    digest: None,
                    bytes: b"a commit",
                    changes: &[],
                    blobs: &[blob],
                    erases: None,
                });
                // Those of the first batch wait until there is room for keys.
                let is_taken = matches!(appended, Ok(Appended::Accepted(_)));
                assert!(is_taken || batch == 0);
                waiting.push(appended);
            }
            let before = disk.operations();
            while journal.work(Work::Write) {}
            operations.push(disk.operations() - before);
            while journal.work(Work::Prepare) || journal.work(Work::Write) {}
        }
        // The keys, their sync, and all frames.
        assert_eq!(operations[1], 3);
    }
}
