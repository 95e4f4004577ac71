//! Names of attributes that are too long for the format.

use weald_forest::NodeId;
use weald_forest::journal::{AppendError, Appended, Blob, Erasure, Journal, Record};
use weald_journal::{DiskJournal, Settings, SimulatedDisk, Work};

use crate::erasing::{blob, read};
use crate::records::{all, flush, with};

/// A frame must hold the whole name. What could be put or erased under a longer one could not be read again.
#[test]
fn a_name_that_is_longer_than_a_frame_is_refused_and_the_longest_is_read_back() {
    let lengths = [
        (1 << 10, (1 << 8) - 36),
        (1 << 20, (1 << 18) - 36),
        (16 << 20, (1 << 20) - 36),
    ];
    for (segment, longest) in lengths {
        let disk = SimulatedDisk::new();
        let open = |disk: &SimulatedDisk| {
            let settings = Settings::new().segment(segment).by_hand();
            DiskJournal::open_on(disk.clone(), settings).unwrap()
        };
        let named = |number, len| {
            let name = "n".repeat(len).into();
            Blob {
                name,
                ..blob(number, 10)
            }
        };
        let journal = open(&disk);
        let record = |number, blobs: &[Blob], erases: Option<&Erasure>| {
            with(number, 40, |record| {
                let sent = journal.append(&Record {
                    blobs,
                    erases,
                    ..*record
                });
                sent.map(|sent| match sent {
                    Appended::Accepted(_) => {}
                    Appended::Sent(answer) => {
                        while journal.work(Work::Prepare) || journal.work(Work::Write) {}
                        pollster::block_on(answer).unwrap();
                    }
                })
            })
        };
        let refused = Err(AppendError::TooLarge { max: longest });
        let erasure = |len| Erasure {
            place: (1, NodeId::new(1).unwrap(), "n".repeat(len).into()),
            ids: Vec::new(),
        };
        assert_eq!(record(1, &[named(1, longest + 1)], None), refused);
        assert_eq!(record(1, &[], Some(&erasure(longest + 1))), refused);
        assert_eq!(record(1, &[named(1, longest)], None), Ok(()));
        assert_eq!(record(2, &[named(2, longest)], None), Ok(()));
        assert_eq!(record(3, &[], Some(&erasure(longest))), Ok(()));
        assert_eq!(record(4, &[], None), Ok(()));
        flush(&journal);
        drop(journal);
        let journal = open(&disk.after_power_cut(9));
        let found = [1, 2].map(|number| read(&journal, number).is_some());
        assert_eq!(found, [false, true], "segments of {segment} bytes");
        assert_eq!(all(&journal).len(), 4);
    }
}
