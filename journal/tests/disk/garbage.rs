//! Files that anybody may have changed in any way: opening and reading answer or fail, and nothing else.

use weald_forest::NodeId;
use weald_forest::journal::{Blob, BlobId, Journal, Record};
use weald_journal::{SimulatedDisk, Work};

use crate::crash::Random;
use crate::records::{flush, must_append, open, put_checkpoint, read_checkpoint, with};

/// A journal with several segments, a checkpoint, keys, and a blob.
fn recorded() -> SimulatedDisk {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    for number in 1..=8 {
        let position = must_append(&journal, number, 400);
        flush(&journal);
        if number == 3 {
            put_checkpoint(&journal, position, &[b"piece", &[1; 200]]).unwrap();
        }
    }
    let blobs = [Blob {
        id: BlobId(5),
        tree: 1,
        node: NodeId::new(2).unwrap(),
        name: "secret".into(),
        bytes: vec![3; 700].into(),
    }];
    let sent = with(9, 10, |record| {
        journal.append(&Record {
            blobs: &blobs,
            ..*record
        })
    });
    assert!(sent.is_ok());
    flush(&journal);
    journal.work(Work::Mark);
    flush(&journal);
    drop(journal);
    disk.after_kill()
}

#[test]
fn no_change_of_any_file_makes_opening_or_reading_panic() {
    let recorded = recorded();
    let mut opened = 0;
    for seed in 0..600 {
        let mut random = Random(seed);
        let disk = recorded.after_kill();
        let names = disk.names();
        let mut below = |bound: usize| usize::try_from(random.below(bound.max(1) as u64)).unwrap();
        for _ in 0..=below(3) {
            let name = &names[below(names.len())];
            let Some(mut bytes) = disk.file(name) else {
                continue;
            };
            let (at, other) = (below(bytes.len()), below(bytes.len()));
            match below(6) {
                0 => bytes.truncate(at),
                1 => bytes[at.min(other)..at.max(other)].fill(0),
                2 => bytes.rotate_left(at),
                3 => bytes.clear(),
                4 if !bytes.is_empty() => bytes[at] = u8::try_from(below(256)).unwrap(),
                _ => {
                    // The content of another file.
                    bytes = disk.file(&names[below(names.len())]).unwrap_or_default();
                }
            }
            disk.set_file(name, Some(&bytes));
        }
        let Ok(journal) = open(&disk) else { continue };
        opened += 1;
        let _ = pollster::block_on(journal.read(Default::default(), usize::MAX));
        let _ = read_checkpoint(&journal);
        let _ = pollster::block_on(journal.blob(BlobId(5)));
        must_append(&journal, 20, 50);
        flush(&journal);
    }
    assert!(
        opened > 20,
        "only {opened} were opened, so little was tried"
    );
}
