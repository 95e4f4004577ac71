//! SQLite with a write-ahead log; a connection for every writer.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior, params};

use super::good;
use crate::store::{Level, Record, Store};

/// How long a writer waits for the others; beyond it the program ends with a sentence.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Sqlite {
    path: PathBuf,
    synchronous: &'static str,
}

impl Sqlite {
    fn connect(&self) -> Connection {
        let connection = good(Connection::open(&self.path));
        good(connection.busy_timeout(PATIENCE));
        good(connection.pragma_update(None, "journal_mode", "WAL"));
        good(connection.pragma_update(None, "synchronous", self.synchronous));
        connection
    }
}

impl Store for Sqlite {
    type Writer<'store> = Connection;

    fn open(directory: &Path, level: Level) -> Option<Self> {
        let store = Self {
            path: directory.join("records.sqlite"),
            synchronous: match level {
                // With a write-ahead log, NORMAL syncs only at checkpoints.
                Level::Buffered => "NORMAL",
                Level::Durable => "FULL",
            },
        };
        let table =
            "CREATE TABLE records (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID";
        good(store.connect().execute(table, []));
        Some(store)
    }

    fn writer(&self) -> Connection {
        self.connect()
    }

    fn commit(writer: &mut Connection, records: &[Record]) {
        let transaction = good(writer.transaction_with_behavior(TransactionBehavior::Immediate));
        {
            let insert = "INSERT INTO records (key, value) VALUES (?1, ?2)";
            let mut insert = good(transaction.prepare_cached(insert));
            for (key, value) in records {
                good(insert.execute(params![key.as_slice(), value.as_slice()]));
            }
        }
        good(transaction.commit());
    }

    fn count(&self) -> usize {
        let count = "SELECT count(*) FROM records";
        good(
            self.connect()
                .query_row(count, [], |row| row.get::<_, i64>(0)),
        ) as usize
    }
}
