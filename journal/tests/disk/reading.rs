//! Opening for reading on a simulated disk: it shows what the next writer would find, makes sure that it stays, and
//! changes nothing.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use weald_forest::NodeId;
use weald_forest::journal::{
    AppendError, Appended, Blob, BlobId, Durability, Entry, Erasure, Journal, Level, Position,
    ReadError, Record, Resolved,
};
use weald_forest::{CommitId, Version};
use weald_journal::{
    DiskJournal, LockError, Medium, MediumFile, OpenError, ReadOnlyJournal, SimulatedDisk, Work,
};

use crate::crash::Random;
use crate::records::{all, append, bytes, flush, must_append, open, put_checkpoint, small, with};

fn read(disk: &SimulatedDisk) -> Result<ReadOnlyJournal, OpenError> {
    ReadOnlyJournal::open_on(disk.clone())
}

fn seen(journal: &ReadOnlyJournal) -> Vec<Entry> {
    pollster::block_on(journal.read(Position::default(), usize::MAX)).unwrap()
}

fn files(disk: &SimulatedDisk) -> BTreeMap<String, Option<Vec<u8>>> {
    let files = disk.names().into_iter();
    files.map(|name| (name.clone(), disk.file(&name))).collect()
}

#[test]
fn what_was_written_is_seen_while_it_is_open_and_nothing_changes() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    let mut before = Vec::new();
    for number in 1..20 {
        must_append(&journal, number, 300);
        flush(&journal);
        journal.work(Work::Mark);
        flush(&journal);
        let (found, operations) = (files(&disk), disk.operations());
        let reader = read(&disk).unwrap();
        let entries = seen(&reader);
        assert_eq!(entries.last().unwrap().record, bytes(number, 300));
        assert_eq!(entries[..entries.len() - 1], before);
        assert_eq!(files(&disk), found);
        assert_eq!(
            disk.operations(),
            operations,
            "all was marked, so it syncs nothing"
        );
        assert!(reader.is_whole());
        before = entries;
    }
}

#[test]
fn what_is_seen_is_there_after_a_power_cut() {
    for seed in 0..60 {
        let disk = SimulatedDisk::new();
        let journal = open(&disk).unwrap();
        let mut random = Random(seed);
        for number in 1..=1 + random.below(12) {
            let _ = append(
                &journal,
                number,
                40 + usize::try_from(random.below(900)).unwrap(),
            );
            if random.below(3) == 0 {
                flush(&journal);
            } else {
                journal.work(Work::Prepare);
                journal.work(Work::Write);
            }
        }
        let shown = seen(&read(&disk).unwrap());
        let found = files(&disk);
        let disk = disk.after_power_cut(seed);
        assert_eq!(files(&disk).len(), found.len());
        let opened = all(&open(&disk).unwrap());
        assert!(opened.len() >= shown.len(), "seed {seed}");
        assert_eq!(opened[..shown.len()], shown, "seed {seed}");
    }
}

#[test]
fn it_sees_what_the_next_writer_finds_wherever_the_power_was_cut() {
    let mut torn = 0;
    for seed in 0..300 {
        let disk = SimulatedDisk::new();
        let mut random = Random(seed);
        disk.cut_power_at(random.below(60));
        if let Ok(journal) = open(&disk) {
            for number in 1..20 {
                let len = [9, 200, 3000][usize::try_from(random.below(3)).unwrap()];
                let _ = append(&journal, number, len);
                let work = [Work::Write, Work::Sync, Work::Mark, Work::Prepare];
                for _ in 0..3 {
                    journal.work(work[usize::try_from(random.below(4)).unwrap()]);
                }
            }
        }
        disk.cut_power();
        let disk = disk.after_power_cut(seed);
        let shown = match read(&disk) {
            Ok(journal) => seen(&journal),
            // The power went off before there was a segment.
            Err(OpenError::NoForest { .. }) => Vec::new(),
            Err(error) => panic!("seed {seed}: {error}"),
        };
        let opened = all(&open(&disk).unwrap());
        assert_eq!(opened, shown, "seed {seed}");
        torn += usize::from(!shown.is_empty());
    }
    assert!(torn > 30, "only {torn} had records, so little was tried");
}

#[test]
fn damage_is_found_as_by_a_writer_and_nothing_changes() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    for number in 1..6 {
        must_append(&journal, number, 60);
        flush(&journal);
    }
    drop(journal);
    let disk = disk.after_kill();
    let name = disk
        .names()
        .into_iter()
        .find(|name| name.contains(".segment"));
    let name = name.unwrap();
    let mut content = disk.file(&name).unwrap();
    content[200] ^= 1;
    disk.set_file(&name, Some(&content));
    let found = files(&disk);
    let Err(OpenError::Damaged { damage, .. }) = read(&disk) else {
        panic!("it was not found");
    };
    assert_eq!((damage.file, damage.offset < 300), (name, true));
    assert_eq!(files(&disk), found);
}

#[test]
fn a_sync_that_fails_is_told_and_shows_nothing() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    must_append(&journal, 1, 60);
    journal.work(Work::Write);
    disk.fail_next_sync();
    assert!(matches!(read(&disk), Err(OpenError::Failed { .. })));
}

#[test]
fn an_empty_disk_has_no_forest() {
    let disk = SimulatedDisk::new();
    let error = read(&disk).unwrap_err();
    assert!(matches!(error, OpenError::NoForest { .. }));
    assert_eq!((disk.names(), disk.operations()), (Vec::new(), 0));
}

#[test]
fn it_takes_nothing_and_its_answers_are_of_what_it_sees() {
    let disk = SimulatedDisk::new();
    let writer = open(&disk).unwrap();
    let first = must_append(&writer, 1, 60);
    let second = must_append(&writer, 2, 3000);
    flush(&writer);
    let journal = read(&disk).unwrap();
    let appended = with(3, 60, |record| journal.append(record).err());
    assert_eq!(appended, Some(AppendError::ReadOnly));
    let last = pollster::block_on(journal.last()).unwrap();
    assert_eq!(last, Some((second, CommitId(2))));
    assert!(journal.reached(Level::Durable) >= second);
    let version = Version {
        incarnation: 1,
        number: 1,
    };
    let resolved = |number| pollster::block_on(journal.resolve(CommitId(number)));
    let stored = Resolved::Stored {
        position: first,
        version,
    };
    assert_eq!(resolved(1), stored);
    // A writer may store it yet.
    assert_eq!(resolved(9), Resolved::Unknown);
    let later = must_append(&writer, 3, 60);
    flush(&writer);
    let when = pollster::block_on(journal.when_reached(later, Level::Buffered));
    assert_eq!(when, Durability::Unknown);
    assert_eq!(seen(&journal).len(), 2);
    assert_eq!(pollster::block_on(journal.blob(BlobId(1))), Ok(None));
    assert!(pollster::block_on(journal.trim(first)).is_err());
    let mut follower = journal.follow(first);
    let mut next = || pollster::block_on(std::future::poll_fn(|cx| follower.poll_next(cx)));
    assert_eq!(next().unwrap()[0].record, bytes(2, 3000));
    assert!(matches!(next(), Err(ReadError::Failed(text)) if text.contains("open it again")));
}

#[test]
fn it_goes_back_to_any_record_that_was_not_trimmed() {
    let disk = SimulatedDisk::new();
    let writer = open(&disk).unwrap();
    let positions: Vec<_> = (1..=12)
        .map(|number| {
            let position = must_append(&writer, number, 700);
            flush(&writer);
            position
        })
        .collect();
    put_checkpoint(&writer, positions[7], &[b"piece"]).unwrap();
    let journal = read(&disk).unwrap();
    let entries = seen(&journal);
    for at in 0..12 {
        let earlier = journal.as_of(&entries[at]).unwrap();
        assert_eq!(seen(&earlier), entries[..=at]);
        let id = CommitId(at as u128 + 1);
        let last = pollster::block_on(earlier.last()).unwrap();
        assert_eq!(last, Some((positions[at], id)));
        let checkpoint = pollster::block_on(earlier.checkpoint()).unwrap();
        assert_eq!(checkpoint.is_some(), at >= 7, "record {at}");
    }
    let whole = journal.without_checkpoint().unwrap();
    assert!(pollster::block_on(whole.checkpoint()).unwrap().is_none());
    assert_eq!(seen(&whole), entries);
    pollster::block_on(writer.trim(positions[5])).unwrap();
    assert!(!journal.is_whole());
    let journal = read(&disk).unwrap();
    assert!(journal.is_trimmed() && journal.is_whole());
    assert!(journal.without_checkpoint().is_none());
    let left = pollster::block_on(journal.read(journal.begin(), usize::MAX)).unwrap();
    assert!((6..12).contains(&left.len()) && entries.ends_with(&left));
    let refused = journal.as_of(&entries[6]).err();
    let checkpoint = positions[7];
    assert_eq!(refused, Some(ReadError::TooOld { checkpoint }));
    assert!(journal.as_of(&entries[7]).is_ok());
}

#[test]
fn a_reader_is_in_no_writers_way() {
    let disk = SimulatedDisk::new();
    let writer = open(&disk).unwrap();
    must_append(&writer, 1, 60);
    flush(&writer);
    drop(writer);
    let reader = read(&disk).unwrap();
    let writer = DiskJournal::open_on(disk.clone(), small()).unwrap();
    must_append(&writer, 2, 60);
    flush(&writer);
    assert_eq!(seen(&reader).len(), 1);
    assert_eq!(seen(&read(&disk).unwrap()).len(), 2);
}

/// Appends a record, syncs and marks it. Some bring erasable bytes, which the next one erases; not all, because a
/// reader whose keys are gone before it can read them begins again.
fn go_on((journal, last): &mut (DiskJournal, u64)) {
    *last += 1;
    let number = *last;
    let (brings, erases) = (number % 20 == 0, number % 20 == 1 && number > 1);
    let node = |number| NodeId::new(number).unwrap();
    let blobs = [Blob {
        id: BlobId(number.into()),
        tree: 1,
        node: node(number),
        name: "secret".into(),
        bytes: vec![7; 40].into(),
    }];
    let erasure = Erasure {
        place: (1, node(number - 1), "secret".into()),
        ids: Vec::new(),
    };
    let sent = with(number, 300, |record| {
        journal.append(&Record {
            blobs: &blobs[..usize::from(brings)],
            erases: erases.then_some(&erasure),
            ..*record
        })
    });
    if let Ok(Appended::Sent(answer)) = sent {
        while journal.work(Work::Prepare) || journal.work(Work::Write) {}
        pollster::block_on(answer).unwrap();
    }
    flush(journal);
    journal.work(Work::Mark);
    flush(journal);
}

/// A disk on which a writer appends, syncs and marks a record after each of this many reads.
struct Busy {
    disk: SimulatedDisk,
    writer: Arc<Mutex<(DiskJournal, u64)>>,
    left: Arc<AtomicU64>,
}

struct BusyFile(
    Box<dyn MediumFile>,
    Arc<Mutex<(DiskJournal, u64)>>,
    Arc<AtomicU64>,
);

impl Medium for Busy {
    fn name(&self) -> String {
        self.disk.name()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn MediumFile>> {
        let (writer, left) = (Arc::clone(&self.writer), Arc::clone(&self.left));
        Ok(Box::new(BusyFile(self.disk.open(name)?, writer, left)))
    }

    fn sync_names(&self) -> io::Result<()> {
        self.disk.sync_names()
    }

    fn create(&self, _: &str) -> io::Result<Box<dyn MediumFile>> {
        unreachable!("a reader creates nothing")
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        unreachable!("a reader renames nothing")
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        unreachable!("a reader removes nothing")
    }

    fn lock(&self) -> Result<Box<dyn MediumFile>, LockError> {
        unreachable!("a reader takes no lock")
    }
}

impl MediumFile for BusyFile {
    fn cut(&self, len: u64) -> io::Result<()> {
        self.0.cut(len)
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.0.read_at(bytes, offset)?;
        let take = |left: u64| left.checked_sub(1);
        let is_left = self
            .2
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        if is_left.is_ok() {
            go_on(&mut self.1.lock().unwrap());
        }
        Ok(read)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        unreachable!("a reader writes nothing")
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
}

#[test]
fn a_writer_that_goes_on_between_any_two_reads_is_no_damage() {
    for left in (0..60).step_by(4).chain([300]) {
        let disk = SimulatedDisk::new();
        let writer = open(&disk).unwrap();
        for number in 1..=5 {
            must_append(&writer, number, 300);
            flush(&writer);
        }
        let writer = Arc::new(Mutex::new((writer, 5)));
        let (reads, left) = (left, Arc::new(AtomicU64::new(left)));
        let busy = Busy {
            disk,
            writer,
            left: Arc::clone(&left),
        };
        let journal = ReadOnlyJournal::open_on(busy).unwrap();
        // It does not begin again and again, for as long as the writer is busy.
        let left = left.load(Ordering::Relaxed);
        assert!(reads < 300 || left > 100, "{left} of {reads} are left");
        let records = seen(&journal);
        assert!(records.len() >= 5);
        for (number, entry) in (1..).zip(records) {
            assert_eq!(entry.record, bytes(number, 300));
            let id = BlobId(u128::from(number));
            let blob = pollster::block_on(journal.blob(id)).unwrap();
            assert!(blob.is_none_or(|blob| blob == [7; 40]));
        }
    }
}

#[test]
fn a_journal_that_lacks_an_older_checkpoint_is_not_whole_because_the_past_begins_with_it() {
    let disk = SimulatedDisk::new();
    let writer = open(&disk).unwrap();
    let mut names = Vec::new();
    for number in 1..=2 {
        let at = must_append(&writer, number, 300);
        flush(&writer);
        put_checkpoint(&writer, at, &[b"piece"]).unwrap();
        names.push(format!("{:032x}.checkpoint", at.0));
    }
    let journal = read(&disk).unwrap();
    assert!(journal.is_whole());
    disk.set_file(&names[0], None);
    assert!(!journal.is_whole() && read(&disk).unwrap().is_whole());
}
