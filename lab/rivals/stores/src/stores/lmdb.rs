//! LMDB through heed: a B-tree in a memory map, copied on write; a transaction at a time.

use std::path::Path;

use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions};

use super::good;
use crate::store::{Level, Record, Store};

/// How large the map may become.
const MAP: usize = 8 << 30;

pub(crate) struct Lmdb {
    environment: Env,
    records: Database<Bytes, Bytes>,
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
