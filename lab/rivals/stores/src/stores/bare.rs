//! A bare file, filled with zeros before: what the medium allows. It keeps records one after the other and finds none.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::good;
use crate::store::{Level, Record, Store};

/// How much of the file is filled before anything is measured.
const ROOM: usize = 64 << 20;

/// How much is filled at once.
const PIECE: usize = 1 << 20;

pub(crate) struct Bare {
    file: File,
    level: Level,
    /// How many records have a place. Each is taken by one writer, so nothing else depends on the order.
    taken: AtomicUsize,
}

impl Store for Bare {
    type Writer<'store> = (&'store Self, Vec<u8>);

    fn open(directory: &Path, level: Level) -> Option<Self> {
        let file = good(File::create_new(directory.join("records")));
        let zeros = vec![0; PIECE];
        for at in (0..ROOM).step_by(PIECE) {
            good(file.write_all_at(&zeros, at as u64));
        }
        good(file.sync_all());
        Some(Self {
            file,
            level,
            taken: AtomicUsize::new(0),
        })
    }

    fn writer(&self) -> (&Self, Vec<u8>) {
        (self, Vec::new())
    }

    fn commit((store, bytes): &mut (&Self, Vec<u8>), records: &[Record]) {
        bytes.clear();
        for (key, value) in records {
            bytes.extend_from_slice(key);
            bytes.extend_from_slice(value);
        }
        let at = store.taken.fetch_add(records.len(), Ordering::Relaxed) * size_of::<Record>();
        good(store.file.write_all_at(bytes, at as u64));
        if store.level == Level::Durable {
            good(store.file.sync_data());
        }
    }

    fn count(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
}
