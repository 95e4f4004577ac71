//! What a board is started with.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use weald::Runtime;
use weald::forest::Level;

use crate::model::{DemoClock, Hashed, Store};

use super::origin::Origin;
use super::proxies::Network;

/// Where the boards are.
#[derive(Clone, Debug)]
pub enum Storage {
    /// In memory; they end with the program.
    Memory,
    /// In this directory, which is created if it is missing.
    Directory(PathBuf),
    /// In a forest that is open already, and decides at which level a message is acknowledged.
    Open(Store),
}

/// How often somebody may do something: this many times at once, and once more each time that the interval has
/// passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How many at once.
    pub burst: u32,
    /// When one more is allowed.
    pub every: Duration,
}

/// The settings with which a board is started. The defaults are safe: only the own machine is served.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address to serve at; port 0 for any that is free.
    pub address: SocketAddr,
    /// Where the boards are.
    pub storage: Storage,
    /// Where the times of versions come from, if that is not the system's clock.
    pub clock: Option<DemoClock>,
    /// The level at which a message is acknowledged; with boards in memory it makes no difference.
    pub level: Level,
    /// Under which address browsers know the board; `None` for the one that they ask for.
    pub origin: Option<Origin>,
    /// What the site is called.
    pub title: String,
    /// How often one address may read; `None` for as often as it likes.
    pub reads: Option<Rate>,
    /// How often one address may write; `None` for as often as it likes.
    pub writes: Option<Rate>,
    /// How often one address may be wrong about a passphrase; `None` for as often as it likes.
    pub tries: Option<Rate>,
    /// The hash of the moderators' passphrase; `None` if there are no moderators.
    pub moderator: Option<Hashed>,
    /// Reverse proxies, which are believed about their clients.
    pub proxies: Vec<Network>,
    /// How many requests are worked on at once; more are refused with 503.
    pub most_requests: usize,
    /// How many readers may follow boards at once; more are refused with 503.
    pub most_readers: usize,
    /// How many of them one address may have; more are refused with 429.
    pub most_readers_of_one: usize,
    /// Whether `/metrics` is for everybody, and not only for this machine and for moderators.
    pub has_open_metrics: bool,
    /// Whether boards and messages are also written by GET, for measuring. Any page of the web could write so.
    pub has_get_writes: bool,
    /// Whether the topics of a board as JSON are kept until the board changes, for measuring.
    pub keeps_lists: bool,
    /// The runtime that the page for moderators tells of; `None` for the one of [`weald::block_on`].
    pub runtime: Option<Arc<Runtime>>,
    /// How long requests may take once the board is to stop.
    pub drain: Duration,
}

impl Config {
    /// Whether only this machine reaches the board, and nobody said under which name.
    pub(crate) fn is_local(&self) -> bool {
        self.address.ip().is_loopback() && self.origin.is_none() && self.proxies.is_empty()
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            storage: Storage::Memory,
            clock: None,
            level: Level::Durable,
            origin: None,
            title: "Board".to_owned(),
            reads: Some(Rate {
                burst: 300,
                every: Duration::from_millis(20),
            }),
            writes: Some(Rate {
                burst: 20,
                every: Duration::from_secs(2),
            }),
            tries: Some(Rate {
                burst: 10,
                every: Duration::from_secs(60),
            }),
            moderator: None,
            proxies: Vec::new(),
            most_requests: 4_096,
            most_readers: 10_000,
            most_readers_of_one: 100,
            has_open_metrics: false,
            has_get_writes: false,
            keeps_lists: false,
            runtime: None,
            drain: Duration::from_secs(10),
        }
    }
}
