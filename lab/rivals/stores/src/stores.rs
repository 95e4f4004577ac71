//! The stores that are libraries, and the bare file.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fjall::{Keyspace, KeyspaceCreateOptions, PersistMode};
use heed::types::Bytes;
use heed::{Env, EnvFlags, EnvOpenOptions};
use redb::{Durability, ReadableDatabase, ReadableTableMetadata, TableDefinition};
use rusqlite::{Connection, TransactionBehavior, params};
use sled::{Batch, Db};

use crate::{Level, Record, Store, good};

/// How much of the file is filled before anything is measured.
const ROOM: usize = 64 << 20;

/// How much is filled at once.
const PIECE: usize = 1 << 20;

/// A bare file, filled with zeros before: what the medium allows. It keeps records one after the other and finds none.
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

const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("records");

/// redb: a B-tree in one file, copied on write; a transaction at a time.
pub(crate) struct Redb(redb::Database);

impl Store for Redb {
    type Writer<'store> = &'store redb::Database;

    fn open(directory: &Path, level: Level) -> Option<Self> {
        // A commit of redb that is not immediate may be lost with the program.
        (level == Level::Durable).then(|| {
            let store = Self(good(redb::Database::create(directory.join("records.redb"))));
            Self::commit(&mut &store.0, &[]);
            store
        })
    }

    fn writer(&self) -> &redb::Database {
        &self.0
    }

    fn commit(writer: &mut &redb::Database, records: &[Record]) {
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

/// fjall: a log-structured merge tree with a journal.
pub(crate) struct Fjall {
    database: fjall::Database,
    records: Keyspace,
    mode: PersistMode,
}

impl Store for Fjall {
    type Writer<'store> = &'store Self;

    fn open(directory: &Path, level: Level) -> Option<Self> {
        let database = good(fjall::Database::builder(directory.join("fjall")).open());
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

/// sled: a B-link tree over a log; a flush serves all who wait for it.
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

/// How long a writer waits for the others; beyond it the program ends with a sentence.
const PATIENCE: Duration = Duration::from_secs(120);

/// SQLite with a write-ahead log; a connection for every writer.
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

/// How large the map may become.
const MAP: usize = 8 << 30;

/// LMDB through heed: a B-tree in a memory map, copied on write; a transaction at a time.
pub(crate) struct Lmdb {
    environment: Env,
    records: heed::Database<Bytes, Bytes>,
}

impl Store for Lmdb {
    type Writer<'store> = &'store Self;

    #[expect(
        unsafe_code,
        reason = "heed asks for it: the directory is new, and no other process has it"
    )]
    fn open(directory: &Path, level: Level) -> Option<Self> {
        let mut options = EnvOpenOptions::new();
        options.map_size(MAP);
        if level == Level::Buffered {
            // SAFETY: without a sync the file may be broken after the loss of power, which this level allows.
            unsafe { options.flags(EnvFlags::NO_SYNC) };
        }
        // SAFETY: nobody else opens or changes the file while the map exists.
        let environment = good(unsafe { options.open(directory) });
        let mut transaction = good(environment.write_txn());
        let records = good(environment.create_database(&mut transaction, None));
        good(transaction.commit());
        Some(Self {
            environment,
            records,
        })
    }

    fn writer(&self) -> &Self {
        self
    }

    fn commit(writer: &mut &Self, records: &[Record]) {
        let mut transaction = good(writer.environment.write_txn());
        for (key, value) in records {
            good(writer.records.put(&mut transaction, key, value));
        }
        good(transaction.commit());
    }

    fn count(&self) -> usize {
        let transaction = good(self.environment.read_txn());
        good(self.records.len(&transaction)) as usize
    }
}
