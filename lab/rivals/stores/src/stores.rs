//! The stores.

mod bare;
mod fjall;
mod lmdb;
mod postgresql;
mod redb;
mod sled;
mod sqlite;

use std::fmt::Display;

use common::fail;

pub(crate) use bare::Bare;
pub(crate) use fjall::Fjall;
pub(crate) use lmdb::Lmdb;
pub(crate) use postgresql::Postgresql;
pub(crate) use redb::Redb;
pub(crate) use sled::Sled;
pub(crate) use sqlite::Sqlite;

/// A result of the store, whose failure ends the program.
fn good<T, E: Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| fail(&format!("The store failed: {error}.")))
}
