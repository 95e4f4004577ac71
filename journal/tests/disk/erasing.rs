//! Erasable bytes: durable before the record that refers to them, and gone for good when they are erased.

use weald_forest::NodeId;
use weald_forest::journal::{Appended, Blob, BlobId, Erasure, Journal, Level, Position, Record};
use weald_journal::{DiskJournal, Settings, SimulatedDisk, Work};

use crate::records::{all, flush, is_durable, open, put_checkpoint, with};

pub(crate) fn blob(number: u64, len: usize) -> Blob {
    Blob {
        id: BlobId(u128::from(number) << 70),
        tree: 1,
        node: NodeId::new(number).unwrap(),
        name: "secret".into(),
        bytes: vec![u8::try_from(number).unwrap(); len].into(),
    }
}

/// Appends a record that brings bytes, or erases those of a node.
pub(crate) fn append(
    journal: &DiskJournal,
    number: u64,
    (brings, erases): (&[Blob], Option<u64>),
) -> Option<Position> {
    let erasure = erases.map(|node| Erasure {
        place: (1, NodeId::new(node).unwrap(), "secret".into()),
        ids: Vec::new(),
    });
    let sent = with(number, 40, |record| {
        let (blobs, erases) = (brings, erasure.as_ref());
        journal.append(&Record {
            blobs,
            erases,
            ..*record
        })
    });
    match sent.ok()? {
        Appended::Accepted(position) => Some(position),
        Appended::Sent(answer) => {
            while journal.work(Work::Prepare) || journal.work(Work::Write) {}
            pollster::block_on(answer).ok()
        }
    }
}

pub(crate) fn read(journal: &DiskJournal, number: u64) -> Option<Vec<u8>> {
    pollster::block_on(journal.blob(blob(number, 0).id)).unwrap()
}

#[test]
fn bytes_of_any_length_are_read_back_also_after_opening() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    let lens = [0, 1, 400, 3000, 9000];
    for (number, len) in (1..).zip(lens) {
        append(&journal, number, (&[blob(number, len)], None)).unwrap();
    }
    flush(&journal);
    let check = |journal: &DiskJournal| {
        for (number, len) in (1..).zip(lens) {
            assert_eq!(
                read(journal, number),
                Some(blob(number, len).bytes.to_vec())
            );
        }
    };
    check(&journal);
    drop(journal);
    let disk = disk.after_power_cut(3);
    check(&open(&disk).unwrap());
    check(&open(&disk).unwrap());
}

/// So many that a frame of their ids would be longer than a frame may be.
#[test]
fn very_many_bytes_are_erased_by_one_record() {
    let disk = SimulatedDisk::new();
    let open = |disk: &SimulatedDisk| {
        let settings = Settings::new().segment(8 << 20).by_hand();
        DiskJournal::open_on(disk.clone(), settings).unwrap()
    };
    let journal = open(&disk);
    append(&journal, 1, (&[blob(1, 10)], None)).unwrap();
    append(&journal, 2, (&[blob(2, 10)], None)).unwrap();
    let others = (0..70_000).map(|number| BlobId(1000 + number));
    let erasure = Erasure {
        place: (1, NodeId::new(1).unwrap(), "secret".into()),
        ids: others.chain([blob(2, 0).id]).collect(),
    };
    let sent = with(3, 40, |record| {
        journal.append(&Record {
            erases: Some(&erasure),
            ..*record
        })
    });
    assert!(matches!(sent, Ok(Appended::Accepted(_))));
    append(&journal, 4, (&[blob(4, 10)], None)).unwrap();
    flush(&journal);
    let check = |journal: &DiskJournal| {
        let found = [1, 2, 4].map(|number| read(journal, number).is_some());
        assert_eq!(found, [false, false, true]);
        assert_eq!(all(journal).len(), 4);
    };
    check(&journal);
    drop(journal);
    check(&open(&disk.after_power_cut(5)));
}

#[test]
fn what_is_sealed_or_erased_is_in_no_file() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    let secret = b"a secret of some length".to_vec();
    let it = Blob {
        bytes: secret.clone().into(),
        ..blob(1, 0)
    };
    append(&journal, 1, (&[it], None)).unwrap();
    flush(&journal);
    let before = disk.names();
    let keys: Vec<_> = before
        .iter()
        .filter(|name| name.ends_with(".keys"))
        .collect();
    let [keys] = keys[..] else {
        panic!("{before:?}")
    };
    let key = disk.file(keys).unwrap()[52..84].to_vec();
    let have = |disk: &SimulatedDisk, bytes: &[u8]| {
        let names = disk.names().into_iter();
        let have = names.filter(|name| {
            let file = disk.file(name).unwrap();
            file.windows(bytes.len()).any(|window| window == bytes)
        });
        have.collect::<Vec<_>>()
    };
    assert_eq!(have(&disk, &secret), [""; 0]);
    assert_eq!(have(&disk, &key), [keys.as_str()]);
    let position = append(&journal, 2, (&[], Some(1))).unwrap();
    journal.work(Work::Write);
    assert!(journal.reached(Level::Buffered) >= position);
    assert_eq!(have(&disk, &key), [""; 0]);
    assert_eq!(read(&journal, 1), None);
    // Also on the medium, whatever it had not synced.
    for seed in 0..20 {
        assert_eq!(
            have(&disk.after_power_cut(seed), &key),
            [""; 0],
            "seed {seed}"
        );
    }
}

#[test]
fn bytes_that_are_put_again_after_they_were_erased_stay() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    append(&journal, 1, (&[blob(1, 50)], None)).unwrap();
    append(&journal, 2, (&[], Some(1))).unwrap();
    let again = Blob {
        id: BlobId(99),
        ..blob(1, 60)
    };
    append(&journal, 3, (std::slice::from_ref(&again), None)).unwrap();
    flush(&journal);
    for journal in [journal, open(&disk.after_kill()).unwrap()] {
        assert_eq!(read(&journal, 1), None);
        let found = pollster::block_on(journal.blob(again.id)).unwrap();
        assert_eq!(found.as_deref(), Some(&again.bytes[..]));
    }
}

#[test]
fn power_cuts_lose_no_bytes_of_a_durable_record_and_bring_none_back_that_were_erased() {
    for seed in 0..300 {
        let disk = SimulatedDisk::new();
        disk.cut_power_at(seed % 100);
        // For each record its position, whether it is durable, and the node that it brings or erases.
        let mut appended: Vec<(Position, bool, u64, bool)> = Vec::new();
        if let Ok(journal) = open(&disk) {
            for number in 1..=12 {
                let (node, erases) = if number % 3 == 0 {
                    (number - 2, true)
                } else {
                    (number, false)
                };
                let brings = [blob(node, 700)];
                let brings = if erases { &[][..] } else { &brings[..] };
                let Some(position) = append(&journal, number, (brings, erases.then_some(node)))
                else {
                    break;
                };
                appended.push((position, false, node, erases));
                journal.work(Work::Prepare);
                journal.work(Work::Write);
                if (seed + number) % 2 == 0 {
                    journal.work(Work::Sync);
                }
                for (position, durable, ..) in &mut appended {
                    *durable |= is_durable(&journal, *position);
                }
            }
        }
        for second in 0..2 {
            let disk = disk.after_power_cut(seed * 7 + second);
            disk.cut_power_at(seed % 20 + second * 10);
            let _ = open(&disk);
            let disk = disk.after_power_cut(seed);
            let journal = open(&disk).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            let found = all(&journal).len();
            let durable = appended.iter().filter(|(_, durable, ..)| *durable).count();
            assert!(found >= durable, "seed {seed}: {found} of {durable}");
            for node in 1..=12 {
                let mut of_it = appended[..found]
                    .iter()
                    .filter(|(_, _, other, _)| *other == node);
                let is_there = of_it.next_back().is_some_and(|(.., erases)| !erases);
                let due = is_there.then(|| blob(node, 700).bytes.to_vec());
                assert_eq!(read(&journal, node), due, "seed {seed}, node {node}");
            }
        }
    }
}

#[test]
fn keys_without_segments_are_damage_and_are_not_touched() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    append(&journal, 1, (&[blob(1, 50)], None)).unwrap();
    flush(&journal);
    // A journal that is closed notes its end as well.
    let disk = disk.after_kill();
    let names = disk.names().into_iter();
    for name in names.filter(|name| name.ends_with(".segment")) {
        disk.set_file(&name, None);
    }
    let state = || {
        let names = disk.names().into_iter();
        names
            .map(|name| (disk.file(&name), name))
            .collect::<Vec<_>>()
    };
    let before = state();
    let mut names = before.iter().map(|(_, name)| name);
    let keys = names.find(|name| name.ends_with(".keys")).unwrap();
    for _ in 0..2 {
        let error = open(&disk).unwrap_err().to_string();
        assert!(error.contains(keys), "{error}");
        assert_eq!(state(), before);
    }
}

#[test]
fn keys_are_not_appended_to_a_file_that_was_replaced_or_may_have_been() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    let at = append(&journal, 1, (&[blob(1, 50)], None)).unwrap();
    flush(&journal);
    // Before the checkpoint, a new key file is named.
    disk.fail_next_sync_of_names();
    assert!(put_checkpoint(&journal, at, &[b"all"]).is_err());
    append(&journal, 2, (&[blob(2, 60)], None)).unwrap();
    flush(&journal);
    assert!(read(&journal, 2).is_some());
    drop(journal);
    let mut disks = vec![disk.after_kill()];
    disks.extend((0..20).map(|seed| disk.after_power_cut(seed)));
    for disk in disks {
        let found = read(&open(&disk).unwrap(), 2);
        assert_eq!(found.as_deref(), Some(&blob(2, 60).bytes[..]));
    }
}

#[test]
fn a_writer_that_was_overtaken_leaves_the_keys_and_checkpoints_of_the_new_one() {
    for case in 0..4 {
        let disk = SimulatedDisk::new();
        let old = open(&disk).unwrap();
        let brings = [blob(1, 50)];
        let brings = if case == 0 { &[][..] } else { &brings[..] };
        let at = append(&old, 1, (brings, None)).unwrap();
        flush(&old);
        put_checkpoint(&old, at, &[b"all"]).unwrap();
        disk.break_lock();
        let new = open(&disk).unwrap();
        append(&new, 2, (&[blob(2, 60)], None)).unwrap();
        flush(&new);
        let names = disk.names();
        match case {
            0 | 3 => {
                append(&old, 3, (&[blob(3, 70)], None));
                old.work(Work::Write);
            }
            1 => assert!(pollster::block_on(old.trim(at)).is_err()),
            _ => assert!(put_checkpoint(&old, at, &[b"other"]).is_err()),
        }
        assert_eq!(disk.names(), names, "case {case}");
        drop((old, new));
        let journal = open(&disk.after_kill()).unwrap();
        let found = read(&journal, 2);
        assert_eq!(found, Some(blob(2, 60).bytes.to_vec()), "case {case}");
        let checkpoint = crate::records::read_checkpoint(&journal).unwrap();
        assert_eq!(checkpoint, Some((at, b"all".to_vec())), "case {case}");
    }
}

/// The key file, and a copy of the disk as the next process finds it.
fn key_file(disk: &SimulatedDisk) -> (SimulatedDisk, String, Vec<u8>) {
    let disk = disk.after_kill();
    let mut names = disk.names().into_iter();
    let name = names.find(|name| name.ends_with(".keys")).unwrap();
    let bytes = disk.file(&name).unwrap();
    (disk, name, bytes)
}

/// The bytes of all files but the lock.
fn files(disk: &SimulatedDisk) -> Vec<(String, Option<Vec<u8>>)> {
    let names = disk.names().into_iter();
    names.map(|name| (name.clone(), disk.file(&name))).collect()
}

fn must_be_damage(disk: &SimulatedDisk, name: &str) {
    let before = files(disk);
    for _ in 0..2 {
        let error = open(disk).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("damaged"), "{error}");
        assert!(files(disk) == before, "it was changed");
    }
}

#[test]
fn a_damaged_key_that_a_record_needs_is_damage_and_no_torn_tail() {
    // The head of a key file has 36 bytes, and the entry of a blob here has 94.
    let (head, entry) = (36, 94);
    for has_checkpoint in [false, true] {
        let disk = SimulatedDisk::new();
        let journal = open(&disk).unwrap();
        append(&journal, 1, (&[blob(1, 50)], None)).unwrap();
        append(&journal, 2, (&[blob(2, 50)], None)).unwrap();
        let at = append(&journal, 3, (&[blob(3, 50)], None)).unwrap();
        flush(&journal);
        if has_checkpoint {
            put_checkpoint(&journal, at, &[b"all"]).unwrap();
        }
        for number in 0..3 {
            let (disk, name, mut bytes) = key_file(&disk);
            let whole = bytes.clone();
            bytes[head + number * entry + 20] ^= 1;
            disk.set_file(&name, Some(&bytes));
            must_be_damage(&disk, &name);
            disk.set_file(&name, Some(&whole));
            let journal = open(&disk).unwrap();
            assert!((1..=3).all(|number| read(&journal, number).is_some()));
        }
    }
}

#[test]
fn a_damaged_key_of_bytes_that_were_erased_is_in_nobodys_way() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    append(&journal, 1, (&[blob(1, 50)], None)).unwrap();
    append(&journal, 2, (&[], Some(1))).unwrap();
    flush(&journal);
    drop(journal);
    let (disk, name, mut bytes) = key_file(&disk);
    bytes[36 + 20] ^= 1;
    disk.set_file(&name, Some(&bytes));
    assert_eq!(read(&open(&disk).unwrap(), 1), None);
}

#[test]
fn a_key_file_that_is_missing_is_damage() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    append(&journal, 1, (&[blob(1, 50)], None)).unwrap();
    flush(&journal);
    // In the first opening only the record tells, in a later one the head as well.
    for has_record in [true, false] {
        let (disk, name, bytes) = key_file(&disk);
        let name = if has_record {
            name
        } else {
            drop(open(&disk).unwrap());
            let (_, renewed, _) = key_file(&disk);
            assert_ne!(renewed, name);
            renewed
        };
        disk.set_file(&name, None);
        must_be_damage(&disk, &name);
        if has_record {
            disk.set_file(&name, Some(&bytes));
            assert!(read(&open(&disk).unwrap(), 1).is_some());
        }
    }
}

#[test]
fn a_full_disk_refuses_erasable_bytes_before_anything_is_written_and_erases_as_often_as_asked() {
    let disk = SimulatedDisk::new();
    let open = |disk: &SimulatedDisk| {
        let settings = Settings::new().segment(1 << 20).by_hand();
        DiskJournal::open_on(disk.clone(), settings)
    };
    let journal = open(&disk).unwrap();
    append(&journal, 1, (&[blob(1, 10)], None)).unwrap();
    append(&journal, 2, (&[blob(2, 10)], None)).unwrap();
    flush(&journal);
    let journals = [(journal, disk.clone()), {
        let disk = disk.after_kill();
        (open(&disk).unwrap(), disk)
    }];
    for (journal, disk) in journals {
        while journal.work(Work::Prepare) {}
        disk.set_room(Some(disk.used()));
        // The key file has room for a hundred and some, and after an opening for none.
        let mut taken = 2;
        while taken < 250 && append(&journal, taken + 1, (&[blob(taken + 1, 1)], None)).is_some() {
            taken += 1;
            journal.work(Work::Write);
        }
        assert!(taken < 250, "there is room without end");
        for node in [1, 2] {
            let number = taken + node;
            assert!(append(&journal, number, (&[], Some(node))).is_some());
            flush(&journal);
            assert_eq!(read(&journal, node), None);
            // Others take whatever room this has given back.
            disk.set_room(Some(disk.used()));
        }
        let last = (taken > 2).then(|| read(&journal, taken).unwrap());
        assert!(last.is_none_or(|last| last.len() == 1));
        disk.set_room(None);
        let next = blob(taken + 5, 10);
        append(&journal, taken + 5, (std::slice::from_ref(&next), None)).unwrap();
        flush(&journal);
        let number = taken + 5;
        assert_eq!(read(&journal, number), Some(next.bytes.to_vec()));
        drop(journal);
        let journal = open(&disk.after_power_cut(9)).unwrap();
        assert_eq!(read(&journal, number), Some(next.bytes.to_vec()));
        assert_eq!([1, 2].map(|number| read(&journal, number)), [None, None]);
    }
}

#[test]
fn a_missing_key_file_is_damage_though_a_checkpoint_is_all_that_needs_its_keys() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    append(&journal, 1, (&[blob(1, 10)], None)).unwrap();
    let at = append(&journal, 2, (&[blob(2, 10)], None)).unwrap();
    flush(&journal);
    put_checkpoint(&journal, at, &[b"all"]).unwrap();
    for disk in [disk.after_kill(), disk.after_power_cut(1)] {
        let is_key_file = |name: &String| name.ends_with(".keys");
        let keys = disk.names().into_iter().find(is_key_file).unwrap();
        let bytes = disk.file(&keys).unwrap();
        disk.set_file(&keys, None);
        let before = disk.names();
        for _ in 0..2 {
            let error = open(&disk).unwrap_err().to_string();
            assert!(
                error.contains(&keys) && error.contains("missing"),
                "{error}"
            );
            assert_eq!(disk.names(), before);
        }
        disk.set_file(&keys, Some(&bytes));
        let journal = open(&disk).unwrap();
        assert!(read(&journal, 1).is_some() && read(&journal, 2).is_some());
    }
}
