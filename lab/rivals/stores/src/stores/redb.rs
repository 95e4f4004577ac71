//! redb: a B-tree in one file, copied on write; a transaction at a time.

use std::path::Path;

use redb::{Database, Durability, ReadableDatabase, ReadableTableMetadata, TableDefinition};

use super::good;
use crate::store::{Level, Record, Store};

const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("records");

pub(crate) struct Redb(Database);

impl Store for Redb {
    type Writer<'store> = &'store Database;

    fn open(directory: &Path, level: Level) -> Option<Self> {
        // A commit of redb that is not immediate may be lost with the program.
        (level == Level::Durable).then(|| {
            let store = Self(good(Database::create(directory.join("records.redb"))));
            Self::commit(&mut &store.0, &[]);
            store
        })
    }

    fn writer(&self) -> &Database {
        &self.0
    }

    fn commit(writer: &mut &Database, records: &[Record]) {
        let mut transaction = good(writer.begin_write());
        good(transaction.set_durability(Durability::Immediate));
        {
            let mut table = good(transaction.open_table(TABLE));
            for (key, value) in records {
                good(table.insert(key.as_slice(), value.as_slice()));
            }
        }
        good(transaction.commit());
    }

    fn count(&self) -> usize {
        let transaction = good(self.0.begin_read());
        let table = good(transaction.open_table(TABLE));
        good(table.len()) as usize
    }
}
