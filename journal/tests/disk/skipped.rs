//! Erasable values that cannot be read, in a journal that may skip damaged ones.

use std::io;

use weald_forest::journal::{BlobId, Journal, ReadError};
use weald_journal::{DiskJournal, ReadOnlyJournal, Settings, SimulatedDisk};

use crate::erasing::{append, blob};
use crate::hooked::{Hook, Hooked, Hooks};
use crate::records::{flush, must_append, open, put_checkpoint, small};

/// The length of the head of a segment.
const HEAD: usize = 128;

/// The lengths of the values of two nodes, as far as they were read.
fn lens(journal: &dyn Journal) -> Result<Vec<Option<usize>>, ReadError> {
    let ids = [1, 2].map(|node| blob(node, 0).id);
    let mut lens = vec![None; 2];
    let mut take = |id: BlobId, bytes: Option<Vec<u8>>| {
        let at = ids.iter().position(|asked| *asked == id).unwrap();
        lens[at] = bytes.map(|bytes| bytes.len());
    };
    pollster::block_on(journal.blobs(ids.to_vec(), &mut take))?;
    Ok(lens)
}

/// A file that cannot be opened for another reason is there, and its value may be whole.
#[test]
fn only_what_is_missing_or_cannot_be_read_is_skipped() {
    let failures: [(Hook, bool); 4] = [
        (|| Err(io::Error::from_raw_os_error(5)), true),
        (|| Err(io::Error::from_raw_os_error(2)), true),
        (|| Err(io::Error::from_raw_os_error(24)), false),
        (|| Err(io::Error::from_raw_os_error(13)), false),
    ];
    let disk = SimulatedDisk::new();
    let journal = DiskJournal::open_on(disk.clone(), small()).unwrap();
    for node in [1, 2] {
        append(&journal, node, (&[blob(node, 30)], None)).unwrap();
    }
    flush(&journal);
    drop(journal);
    let settings: [fn(Settings) -> Settings; 2] = [|it| it, Settings::skip_damaged_values];
    for (settings, skips) in settings.into_iter().zip([false, true]) {
        let hooks = Hooks::default();
        let medium = || Hooked(disk.clone(), hooks.clone());
        let reader = ReadOnlyJournal::open_with(medium(), &settings(small())).unwrap();
        let writer = DiskJournal::open_on(medium(), settings(small())).unwrap();
        let journals: [&dyn Journal; 2] = [&reader, &writer];
        for journal in journals {
            assert_eq!(lens(journal), Ok(vec![Some(30); 2]));
            for (failure, is_lasting) in failures {
                hooks.on_open(Some(failure));
                let found = lens(journal);
                hooks.on_open(None);
                match skips && is_lasting {
                    true => assert_eq!(found, Ok(vec![None; 2])),
                    false => assert!(found.is_err(), "{found:?}"),
                }
            }
            let has = pollster::block_on(journal.has_blob(blob(1, 0).id));
            assert_eq!(has, Ok(true), "nothing was removed");
        }
    }
}

/// A value is read only after the opening has begun its segment; records are read before.
#[test]
fn only_an_opening_that_finds_damage_before_it_changes_anything_says_that_nothing_has_changed() {
    for has_checkpoint in [false, true] {
        let disk = SimulatedDisk::new();
        let journal = open(&disk).unwrap();
        append(&journal, 1, (&[blob(1, 30)], None)).unwrap();
        let at = must_append(&journal, 2, 100);
        flush(&journal);
        if has_checkpoint {
            put_checkpoint(&journal, at, &[b"all"]).unwrap();
        }
        drop(journal);
        drop(open(&disk).unwrap());
        let name = "0000000000000001-00000001.segment";
        let mut segment = disk.file(name).unwrap();
        segment[HEAD + 20] ^= 1;
        disk.set_file(name, Some(&segment));
        let error = match open(&disk) {
            Ok(journal) => lens(&journal).unwrap_err().to_string(),
            Err(error) => error.to_string(),
        };
        assert!(error.contains("from a copy"), "{error}");
        assert_eq!(error.contains("has changed"), !has_checkpoint, "{error}");
    }
}
