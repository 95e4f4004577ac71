//! A directory that lacks files, or the ends of files, as after a copy that was interrupted: a crash never leaves one,
//! so opening says what is damaged, and changes nothing. And what is cut off on purpose is not missed.

use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use weald_forest::journal::{Appended, Checkpoint, Journal, Position};
use weald_journal::{DiskJournal, OpenError, ReadOnlyJournal, SimulatedDisk, Work};

use crate::erasing::{self, blob};
use crate::records::{all, append, flush, must_append, open, put_checkpoint};

/// The names of the segments, oldest first.
fn segments(disk: &SimulatedDisk) -> Vec<String> {
    let names = disk.names().into_iter();
    names.filter(|name| name.ends_with(".segment")).collect()
}

/// Records in several segments.
fn write(journal: &DiskJournal, numbers: std::ops::RangeInclusive<u64>) {
    for number in numbers {
        must_append(journal, number, 300);
        flush(journal);
    }
}

/// Opening finds damage in this file, for writing and for reading, and leaves everything as it is.
fn must_be_damaged(disk: &SimulatedDisk, file: &str) {
    let before: Vec<_> = disk.names().iter().map(|name| disk.file(name)).collect();
    for _ in 0..2 {
        let error = open(disk).unwrap_err().to_string();
        assert!(error.contains(file) && error.contains("damaged"), "{error}");
        let error = ReadOnlyJournal::open_on(disk.clone()).err();
        let error = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(file), "{error}");
        let after: Vec<_> = disk.names().iter().map(|name| disk.file(name)).collect();
        assert!(before == after, "something was changed");
    }
}

#[test]
fn a_segment_that_is_missing_between_others_is_damage() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    write(&journal, 1..=24);
    // No note of the end helps here.
    let killed = disk.after_kill();
    let names = segments(&killed);
    // The last one is prepared, and has nothing.
    assert!(names.len() > 4, "{names:?}");
    for name in &names[..names.len() - 1] {
        let disk = killed.after_kill();
        disk.set_file(name, None);
        must_be_damaged(&disk, name);
    }
}

#[test]
fn a_segment_of_a_later_format_is_no_damage_and_the_version_that_wrote_it_is_asked_for() {
    let disk = SimulatedDisk::new();
    write(&open(&disk).unwrap(), 1..=3);
    let disk = disk.after_kill();
    let last = segments(&disk).pop().unwrap();
    let mut bytes = disk.file(&last).unwrap();
    bytes[7] = 9;
    let check = crc32c::crc32c(&bytes[..124]);
    bytes[124..128].copy_from_slice(&check.to_le_bytes());
    disk.set_file(&last, Some(&bytes));
    let told = |error: OpenError| {
        let text = error.to_string();
        let is_told = text.contains(&last) && text.contains("format 9, which this version");
        assert!(is_told && text.contains("open the forest with"), "{text}");
        assert!(!text.contains("damaged"), "{text}");
    };
    told(open(&disk).unwrap_err());
    told(ReadOnlyJournal::open_on(disk.clone()).err().unwrap());
    assert_eq!(disk.file(&last), Some(bytes), "nothing was changed");
}

#[test]
fn a_further_segment_whose_head_is_damaged_is_named_and_not_the_one_before_it() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    write(&journal, 1..=24);
    journal.work(Work::Mark);
    flush(&journal);
    let killed = disk.after_kill();
    let names = segments(&killed);
    assert!(names.len() > 4, "{names:?}");
    // The last one is prepared, and has nothing.
    for name in &names[1..names.len() - 1] {
        let disk = killed.after_kill();
        let mut bytes = disk.file(name).unwrap();
        bytes[20] ^= 1;
        disk.set_file(name, Some(&bytes));
        must_be_damaged(&disk, name);
    }
}

#[test]
fn a_segment_that_is_shorter_than_it_was_made_is_damage() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    write(&journal, 1..=6);
    let killed = disk.after_kill();
    let names = segments(&killed);
    for name in &names[..names.len() - 1] {
        let bytes = killed.file(name).unwrap();
        for len in [128, bytes.len() / 2, bytes.len() - 1] {
            let disk = killed.after_kill();
            disk.set_file(name, Some(&bytes[..len]));
            must_be_damaged(&disk, name);
        }
    }
}

/// Its head is gone as well, but no segment is prepared behind one that is not whole.
#[test]
fn a_segment_that_was_emptied_before_a_prepared_one_is_damage() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    write(&journal, 1..=24);
    let killed = disk.after_kill();
    let names = segments(&killed);
    let last_begun = &names[names.len() - 2];
    for len in [0, 100] {
        let disk = killed.after_kill();
        let bytes = disk.file(last_begun).unwrap();
        disk.set_file(last_begun, Some(&bytes[..len]));
        must_be_damaged(&disk, last_begun);
    }
    // The last one was being prepared.
    let disk = killed.after_kill();
    disk.set_file(names.last().unwrap(), Some(&[0; 100]));
    open(&disk).unwrap();
}

#[test]
fn what_a_closed_journal_had_is_missed() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    write(&journal, 1..=6);
    drop(journal);
    let names = segments(&disk);
    let last = names.last().unwrap();
    let bytes = disk.file(last).unwrap();
    let mut emptied = bytes.clone();
    emptied[128..].fill(0);
    for lost in [None, Some(vec![0; bytes.len()]), Some(emptied)] {
        let disk = disk.after_kill();
        disk.set_file(last, lost.as_deref());
        let error = open(&disk).unwrap_err().to_string();
        assert!(error.contains("damaged"), "{error}");
    }
    let disk = disk.after_kill();
    names.iter().for_each(|name| disk.set_file(name, None));
    must_be_damaged(&disk, last);
}

#[test]
fn segments_that_were_exchanged_are_damage() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    write(&journal, 1..=24);
    let disk = disk.after_kill();
    let names = segments(&disk);
    let [one, other] = [&names[1], &names[2]].map(|name| disk.file(name).unwrap());
    disk.set_file(&names[1], Some(&other));
    disk.set_file(&names[2], Some(&one));
    must_be_damaged(&disk, &names[1]);
}

#[test]
fn a_segment_before_a_checkpoint_may_be_trimmed_only_with_all_before_it() {
    let disk = SimulatedDisk::new();
    for opening in 0..2 {
        let journal = open(&disk).unwrap();
        write(&journal, opening * 10 + 1..=opening * 10 + 6);
        let last = all(&journal).last().unwrap().position;
        flush(&journal);
        put_checkpoint(&journal, last, &[b"all"]).unwrap();
    }
    let names = segments(&disk);
    let lost = disk.after_kill();
    lost.set_file(&names[2], None);
    must_be_damaged(&lost, &names[2]);
    let trimmed = disk.after_kill();
    names[..3]
        .iter()
        .for_each(|name| trimmed.set_file(name, None));
    open(&trimmed).unwrap();
}

#[test]
fn openings_without_a_commit_take_no_room() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    write(&journal, 1..=2);
    journal.work(Work::Mark);
    flush(&journal);
    let expected = all(&journal);
    drop(journal);
    let used = |opening: &str| {
        let journal = open(&disk).expect(opening);
        flush(&journal);
        assert!(all(&journal) == expected, "{opening}");
        drop(journal);
        disk.used()
    };
    let (first, mut last) = (used("the first"), 0);
    for _ in 0..8 {
        last = used("a later one");
    }
    // A head for each of them, and no more.
    assert!(last <= first + 8 * 128, "{first} bytes became {last}");
}

#[test]
fn a_cut_that_the_loss_of_power_undoes_changes_nothing() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    write(&journal, 1..=4);
    let expected = all(&journal);
    drop(journal);
    for seed in 0..50 {
        let disk = disk.after_kill();
        let begun = disk.operations();
        disk.cut_power_at(begun + seed);
        drop(open(&disk));
        disk.cut_power();
        let disk = disk.after_power_cut(seed);
        let journal = open(&disk).unwrap();
        assert!(all(&journal) == expected, "seed {seed}");
    }
}

#[test]
fn a_note_of_the_end_that_is_torn_is_none() {
    let disk = SimulatedDisk::new();
    let close = |numbers| {
        write(&open(&disk).unwrap(), numbers);
        disk.file("lock").unwrap()
    };
    let (longer, shorter) = (close(1..=10), close(11..=12));
    assert_ne!(longer[64..], shorter[64..]);
    for from in 64..128 {
        for end in from..=128 {
            let mut torn = shorter.clone();
            torn[from..end].copy_from_slice(&longer[from..end]);
            let disk = disk.after_kill();
            disk.set_file("lock", Some(&torn));
            open(&disk).unwrap_or_else(|error| panic!("{from}..{end}: {error}"));
        }
    }
}

#[test]
fn damage_of_earlier_openings_and_of_the_checkpoint_is_found_before_anything_changes() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    write(&journal, 1..=3);
    let at = must_append(&journal, 4, 300);
    flush(&journal);
    put_checkpoint(&journal, at, &[&[1; 300], &[2; 700]]).unwrap();
    write(&journal, 5..=20);
    drop(journal);
    let earlier = disk.after_kill();
    let journal = open(&earlier).unwrap();
    write(&journal, 21..=24);
    drop(journal);
    let names = earlier.names().into_iter();
    let checked = names.filter(|name| {
        // The segment of the checkpoint is needed from there on only.
        name.ends_with(".checkpoint") || disk.file(name).is_some() && name > &segments(&disk)[0]
    });
    let checked: Vec<_> = checked.filter(|name| !name.contains("key")).collect();
    assert!(checked.len() > 4, "{checked:?}");
    for name in checked {
        let bytes = earlier.file(&name).unwrap();
        for at in (0..bytes.len()).step_by(37) {
            let disk = earlier.after_kill();
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            disk.set_file(&name, Some(&damaged));
            let before: Vec<_> = disk.names().iter().map(|name| disk.file(name)).collect();
            match open(&disk) {
                Err(error) => {
                    let error = error.to_string();
                    assert!(
                        error.contains(&name) && error.contains("damaged"),
                        "{error}"
                    );
                    let after: Vec<_> = disk.names().iter().map(|name| disk.file(name)).collect();
                    assert!(before == after, "{name} at {at}: something was changed");
                }
                // Behind the end of a segment nothing counts, and no more do the last bytes of a head.
                Ok(journal) => assert_eq!(all(&journal).len(), 24, "{name} at {at}"),
            }
        }
    }
}

#[test]
fn an_opening_removes_no_file_that_no_journal_has_made() {
    let disk = SimulatedDisk::new();
    write(&open(&disk).unwrap(), 1..=3);
    let (foreign, own) = (["notes.txt.new", "a.segment.new"], "00-1.checkpoint");
    let left = format!("{:032x}.checkpoint.new", 1);
    for name in foreign.into_iter().chain([own, &left]) {
        disk.set_file(name, Some(b"somebody's"));
    }
    drop(open(&disk).unwrap());
    let has = |name: &str| disk.file(name).is_some();
    assert!(foreign.into_iter().all(has) && has(own) && !has(&left));
}

#[test]
fn a_close_waits_for_a_checkpoint_that_somebody_writes() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    let at = must_append(&journal, 1, 300);
    flush(&journal);
    let (closing, beside) = (journal.clone(), disk.clone());
    // Within the checkpoint, another thread closes the journal.
    let pieces = (0..3).map(move |piece| {
        if piece == 1 {
            let closing = closing.clone();
            std::thread::spawn(move || closing.close());
            for _ in 0..2000 {
                assert!(open(&beside).is_err(), "the lock was given back");
                std::thread::yield_now();
            }
        }
        vec![1; 100]
    });
    let (blobs, pieces) = (Vec::new(), Box::new(pieces));
    let put = journal.put_checkpoint(Checkpoint { at, blobs, pieces });
    let _ended = pollster::block_on(put);
    journal.close();
    assert_eq!(all(&open(&disk).unwrap()).len(), 1);
}

/// A copy without its oldest files looks like a journal that was trimmed.
#[test]
fn a_missing_segment_with_bytes_that_are_referred_to_is_damage() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    erasing::append(&journal, 1, (&[blob(1, 10)], None)).unwrap();
    write(&journal, 2..=12);
    let at = must_append(&journal, 13, 300);
    flush(&journal);
    let (blobs, pieces) = (vec![blob(1, 0).id], Box::new(std::iter::empty()));
    pollster::block_on(journal.put_checkpoint(Checkpoint { at, blobs, pieces })).unwrap();
    drop(journal);
    let name = &segments(&disk)[0];
    disk.set_file(name, None);
    let before = disk.names();
    let error = open(&disk).unwrap_err().to_string();
    assert!(error.contains(name) && error.contains("missing"), "{error}");
    assert_eq!(disk.names(), before);
}

#[test]
fn a_file_that_has_no_name_of_a_segment_is_none() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    write(&journal, 1..=12);
    drop(journal);
    let stray = "ffffffffffffffff-00000000.segment";
    disk.set_file(stray, Some(&[]));
    assert_eq!(all(&open(&disk).unwrap()).len(), 12);
    assert!(disk.file(stray).is_some(), "it is somebody else's");
}

/// Without it the journal looked as if it had been trimmed, so a later checkpoint does not list it.
#[test]
fn a_segment_that_somebody_has_put_back_before_the_first_one_stays() {
    let disk = SimulatedDisk::new();
    let checkpoint = |numbers: std::ops::RangeInclusive<u64>| {
        let journal = open(&disk).unwrap();
        write(&journal, numbers.clone());
        let at = must_append(&journal, numbers.end() + 1, 300);
        flush(&journal);
        put_checkpoint(&journal, at, &[b"x"]).unwrap();
    };
    checkpoint(1..=12);
    let name = &segments(&disk)[0];
    let bytes = disk.file(name).unwrap();
    disk.set_file(name, None);
    checkpoint(14..=24);
    disk.set_file(name, Some(&bytes));
    drop(open(&disk).unwrap());
    assert_eq!(disk.file(name), Some(bytes));
}

/// Trims a journal when it is woken.
struct Trims(DiskJournal);

impl Wake for Trims {
    fn wake(self: Arc<Self>) {
        let trimmed = pollster::block_on(self.0.trim(Position::default()));
        assert!(trimmed.is_err());
    }
}

#[test]
fn a_close_holds_nothing_back_while_it_wakes_others() {
    let journal = open(&SimulatedDisk::new()).unwrap();
    let mut waits = (1..).find_map(|number| match append(&journal, number, 300).unwrap() {
        Appended::Accepted(_) => None,
        Appended::Sent(answer) => Some(answer),
    });
    let waker = Waker::from(Arc::new(Trims(journal.clone())));
    let mut cx = Context::from_waker(&waker);
    let answer = waits.as_mut().unwrap().as_mut();
    assert!(answer.poll(&mut cx).is_pending());
    // It would wait for itself.
    journal.close();
}
