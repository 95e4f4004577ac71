//! Models of the sequence lock: a reader finds the words of one write, and its next read none of an older write.

use std::sync::Arc;

use loom::thread;

use crate::Seqlock;

/// Two writes beside a read: it finds one of the three states, and never parts of two.
#[test]
fn a_reader_never_finds_parts_of_two_writes() {
    loom::model(|| {
        let note = Arc::new(Seqlock::new([0, 0]));
        let writers = Arc::clone(&note);
        let writer = thread::spawn(move || {
            writers.write(&[1, 1]);
            writers.write(&[2, 2]);
        });
        let [first, second] = note.read();
        assert_eq!(first, second);
        writer.join().unwrap();
        assert_eq!(note.read(), [2, 2]);
    });
}

/// A write that changes only the first word, beside two reads of one thread: the second is not of an older state.
#[test]
fn a_reader_never_goes_back() {
    loom::model(|| {
        let note = Arc::new(Seqlock::new([0, 7]));
        let readers = Arc::clone(&note);
        let reader = thread::spawn(move || {
            let [first, _] = readers.read();
            let [second, rest] = readers.read();
            assert!(first <= second);
            assert_eq!(rest, 7);
        });
        note.write(&[1]);
        assert!(note.begins_with(&[1, 7]));
        reader.join().unwrap();
    });
}
