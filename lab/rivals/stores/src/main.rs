//! The rivals that keep records on disk: redb, fjall, sled, SQLite, LMDB (through heed) and PostgreSQL, and, as their
//! limit, a bare file; one per call.
//!
//! Invariants: the argument before the workload names the store; `batched` after it puts one committer in front of the
//! store, which writes all records that wait in one transaction. Without it every writer is a thread that commits a
//! transaction of its own, as these libraries are meant to be used.

mod committer;
mod postgresql;
mod stores;
mod workload;

use std::fmt::Display;
use std::path::Path;

use common::{Call, bad_usage, fail, locked_versions};

use postgresql::Postgresql;
use stores::{Bare, Fjall, Lmdb, Redb, Sled, Sqlite};

/// What is written: a key and a hundred bytes.
type Record = ([u8; 12], [u8; 100]);

/// What a commit survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    /// The end of the program.
    Buffered,
    /// The loss of power.
    Durable,
}

/// A store of records. A failure ends the program with a sentence.
trait Store: Sized + Sync {
    /// What a thread that writes has of its own, such as a connection.
    type Writer<'store>
    where
        Self: 'store;

    /// A new store in this directory, or nothing if it has no such level.
    fn open(directory: &Path, level: Level) -> Option<Self>;

    /// What a thread that writes needs.
    fn writer(&self) -> Self::Writer<'_>;

    /// Commits these records in one transaction, at the level of the store.
    fn commit(writer: &mut Self::Writer<'_>, records: &[Record]);

    /// How many records are stored.
    fn count(&self) -> usize;
}

/// A result of the store, whose failure ends the program.
fn good<T, E: Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| fail(&format!("The store failed: {error}.")))
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let batched = arguments.get(1).is_some_and(|second| second == "batched");
    let rest = arguments.get(1 + usize::from(batched)..).unwrap_or(&[]);
    match arguments.first().map_or("", String::as_str) {
        "bare-file" => run::<Bare>(rest, batched, "common"),
        "redb" => run::<Redb>(rest, batched, "redb"),
        "fjall" => run::<Fjall>(rest, batched, "fjall"),
        "sled" => run::<Sled>(rest, batched, "sled"),
        "sqlite" => run::<Sqlite>(rest, batched, "rusqlite"),
        "lmdb" => run::<Lmdb>(rest, batched, "heed"),
        "postgresql" => run::<Postgresql>(rest, batched, "postgres"),
        _ => bad_usage(
            "No store is named: begin with bare-file, redb, fjall, sled, sqlite, lmdb or postgresql.",
        ),
    }
}

fn run<S: Store>(arguments: &[String], batched: bool, package: &str) -> ! {
    let call = Call::parse(arguments, &locked_versions(&[package]));
    workload::durable::<S>(call, batched)
}
