//! The board as a server that another process measures; the other half of `workload::board`.
//!
//! It is the board of `weald board`, through the crate's public face, without limits for an address.
//!
//! Invariant: the calling thread is not a worker. It waits for the end of its input and then ends the server.

mod large;

use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use weald::Runtime;
use weald::forest::Level;
use weald_board::{Config, Storage};

use crate::error::Error;
use crate::params::Params;

/// The name of the server.
pub const NAME: &str = "serve-board";

/// How long the server may take to end.
const STOP: Duration = Duration::from_secs(2);

/// Serves boards until stdin ends: in memory, or in the directory `dir`, where `durability` says what a message has
/// reached when it is acknowledged. `kept=yes` keeps the topics of a board as JSON until the board changes. With
/// `messages` the board `bench` is there, and has so many.
///
/// # Errors
/// A usage error for words that it does not know; a sentence, if the board does not start.
pub fn run(params: &Params) -> Result<(), Error> {
    let (storage, level) = storage(params)?;
    let runtime = Runtime::builder().workers(params.count("workers")?).build();
    let runtime =
        runtime.map_err(|error| Error::workload(format!("Cannot start the runtime: {error}.")))?;
    let config = Config {
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        storage,
        level,
        reads: None,
        writes: None,
        most_requests: usize::MAX,
        most_readers: 1 << 20,
        most_readers_of_one: 1 << 20,
        keeps_lists: keeps_lists(params)?,
        drain: STOP,
        ..Config::default()
    };
    let board = runtime.block_on(weald_board::serve(config));
    let board = board.map_err(|error| Error::workload(format!("The board: {error}.")))?;
    if params.get("messages").is_some() {
        let messages = params.count("messages")? as u64;
        let made = runtime.block_on(large::import(&board, "bench", messages));
        made.map_err(|error| Error::workload(format!("The board cannot be made: {error}.")))?;
    }
    println!("port {}", board.address().port());
    let ended = io::stdin().read_to_end(&mut Vec::new());
    runtime.shutdown(STOP);
    let ended = ended.map(|_count| ());
    ended.map_err(|error| Error::workload(format!("Its input cannot be read: {error}.")))
}

fn keeps_lists(params: &Params) -> Result<bool, Error> {
    match params.get("kept") {
        None | Some("no") => Ok(false),
        Some("yes") => Ok(true),
        Some(other) => Err(Error::Usage(format!("kept={other} is neither yes nor no."))),
    }
}

fn storage(params: &Params) -> Result<(Storage, Level), Error> {
    let level = match params.get("durability") {
        None | Some("none") => return Ok((Storage::Memory, Level::Buffered)),
        Some("buffered") => Level::Buffered,
        Some("durable") => Level::Durable,
        Some(other) => {
            let sentence = format!("durability={other} is neither none, buffered nor durable.");
            return Err(Error::Usage(sentence));
        }
    };
    let directory = PathBuf::from(params.text("dir")?);
    Ok((Storage::Directory(directory), level))
}
