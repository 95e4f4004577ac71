//! The rivals that keep records on disk: redb, fjall, sled, SQLite, LMDB (through heed) and PostgreSQL, and, as their limit,
//! a bare file; one per call.
//!
//! Invariants: the argument before the workload names the store; `--batched` after it puts one committer in front of the
//! store, which writes all records that wait in one transaction. Without it every writer is a thread that commits a
//! transaction of its own, as these libraries are meant to be used.

mod call;
mod committer;
mod store;
mod stores;
mod workload;

use common::{bad_usage, locked_versions};

use call::Call;
use store::Store;
use stores::{Bare, Fjall, Lmdb, Postgresql, Redb, Sled, Sqlite};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((store, rest)) = arguments.split_first() else {
        bad_usage(
            "No store is named: begin with --bare, --redb, --fjall, --sled, --sqlite, --lmdb or --postgresql.",
        )
    };
    let batched = rest.first().is_some_and(|argument| argument == "--batched");
    let rest = &rest[usize::from(batched)..];
    match store.as_str() {
        "--bare" => run::<Bare>(rest, batched, "common"),
        "--redb" => run::<Redb>(rest, batched, "redb"),
        "--fjall" => run::<Fjall>(rest, batched, "fjall"),
        "--sled" => run::<Sled>(rest, batched, "sled"),
        "--sqlite" => run::<Sqlite>(rest, batched, "rusqlite"),
        "--lmdb" => run::<Lmdb>(rest, batched, "heed"),
        "--postgresql" => run::<Postgresql>(rest, batched, "postgres"),
        _ => bad_usage(
            "No store is named: begin with --bare, --redb, --fjall, --sled, --sqlite, --lmdb or --postgresql.",
        ),
    }
}

fn run<S: Store>(arguments: &[String], batched: bool, package: &str) -> ! {
    let call = Call::parse(arguments, &locked_versions(&[package]));
    workload::durable::<S>(&call, batched)
}
