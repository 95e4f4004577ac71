//! fjall: a log-structured merge tree with a journal.

use std::path::Path;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::good;
use crate::store::{Level, Record, Store};

pub(crate) struct Fjall {
    database: Database,
    records: Keyspace,
    mode: PersistMode,
}

impl Store for Fjall {
    type Writer<'store> = &'store Self;

    fn open(directory: &Path, level: Level) -> Option<Self> {
        let database = good(Database::builder(directory.join("fjall")).open());
        let records = good(database.keyspace("records", KeyspaceCreateOptions::default));
        let mode = match level {
            Level::Buffered => PersistMode::Buffer,
            Level::Durable => PersistMode::SyncData,
        };
        Some(Self {
            database,
            records,
            mode,
        })
    }

    fn writer(&self) -> &Self {
        self
    }

    fn commit(writer: &mut &Self, records: &[Record]) {
        let mut batch = writer.database.batch().durability(Some(writer.mode));
        for (key, value) in records {
            batch.insert(&writer.records, key.as_slice(), value.as_slice());
        }
        good(batch.commit());
    }

    fn count(&self) -> usize {
        good(self.records.len())
    }
}
