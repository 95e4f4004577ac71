//! sled: a B-link tree over a log; a flush serves all who wait for it.

use std::path::Path;

use sled::{Batch, Db};

use super::good;
use crate::store::{Level, Record, Store};

pub(crate) struct Sled(Db);

impl Store for Sled {
    type Writer<'store> = &'store Db;

    fn open(directory: &Path, level: Level) -> Option<Self> {
        // What is not flushed lies in the memory of the program.
        let config = sled::Config::new()
            .path(directory.join("sled"))
            .flush_every_ms(None);
        (level == Level::Durable).then(|| Self(good(config.open())))
    }

    fn writer(&self) -> &Db {
        &self.0
    }

    fn commit(writer: &mut &Db, records: &[Record]) {
        let mut batch = Batch::default();
        for (key, value) in records {
            batch.insert(key.as_slice(), value.as_slice());
        }
        good(writer.apply_batch(batch));
        good(writer.flush());
    }

    fn count(&self) -> usize {
        self.0.len()
    }
}
