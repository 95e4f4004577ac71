//! The arguments of `weald board`, which may also stand in a file.
//!
//! Invariant: `Board` knows no defaults, so that what a file says can be told from what an option says.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use weald_board::{Network, Origin};

pub(crate) const EXAMPLES: &str = "Examples:
  weald board --demo                          look around; nothing is kept
  weald board /var/lib/board                  boards in a directory, for this machine
  weald board data --addr 0.0.0.0:80          for everybody
  weald board data --proxy 127.0.0.1          behind a reverse proxy on this machine
  weald board --config /etc/weald-board.toml  all of it from a file

Every option can also be set by the variable that stands behind it, or in the file that --config names: one line of
TOML for each, such as addr = \"0.0.0.0:80\" or proxy = [\"127.0.0.1\"]. An option wins over a variable, and a
variable over the file.
An interrupt (Ctrl-C) or SIGTERM lets the requests in flight finish, and closes the journal.
/healthz and /readyz tell everybody how the board is, /metrics only this machine and moderators.";

/// Where the boards are, and how they are served.
#[derive(Debug, Default, PartialEq, Eq, clap::Args, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Board {
    /// The directory with the boards, which is created if it is missing
    #[arg(value_name = "DIR", env = "WEALD_BOARD_DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Serve sample boards from a directory that is removed at the end
    #[arg(long, conflicts_with = "directory")]
    #[serde(skip)]
    pub(crate) demo: bool,
    /// A file with settings, whose keys are the names of these options (TOML)
    #[arg(long, value_name = "FILE", env = "WEALD_BOARD_CONFIG")]
    #[serde(skip)]
    pub(crate) config: Option<PathBuf>,
    /// The address to serve at; port 0 for any that is free [default: 127.0.0.1:8080]
    #[arg(long, value_name = "IP:PORT", env = "WEALD_BOARD_ADDR")]
    pub(crate) addr: Option<SocketAddr>,
    /// The address by which browsers reach the board, such as https://board.example.org [default: the one they ask for]
    #[arg(long, value_name = "URL", env = "WEALD_BOARD_ORIGIN")]
    #[serde(deserialize_with = "origin")]
    pub(crate) origin: Option<Origin>,
    /// What the site is called [default: Board]
    #[arg(long, value_name = "TEXT", env = "WEALD_BOARD_TITLE", value_parser = title_of)]
    #[serde(deserialize_with = "title")]
    pub(crate) title: Option<String>,
    /// What a message has survived when it is acknowledged [default: durable]
    #[arg(long, value_enum, value_name = "LEVEL", env = "WEALD_BOARD_DURABILITY")]
    pub(crate) durability: Option<Durability>,
    /// How many requests a second one address may make, six times as many at once; 0 for any number [default: 50]
    #[arg(long, value_name = "N", env = "WEALD_BOARD_READS")]
    pub(crate) reads: Option<u32>,
    /// How many messages a minute one address may write, two thirds as many at once; 0 for any number [default: 30]
    #[arg(long, value_name = "N", env = "WEALD_BOARD_WRITES")]
    pub(crate) writes: Option<u32>,
    /// A reverse proxy, or a network of them such as 10.0.0.0/8, whose X-Forwarded-For and X-Forwarded-Proto are
    /// believed; may be given several times
    #[arg(
        long,
        value_name = "IP|NETWORK",
        env = "WEALD_BOARD_PROXY",
        value_delimiter = ','
    )]
    #[serde(deserialize_with = "networks")]
    pub(crate) proxy: Vec<Network>,
    /// A file with the moderators' passphrase, which nobody else can read, or with its hash
    #[arg(long, value_name = "FILE", env = "WEALD_BOARD_MODERATOR")]
    pub(crate) moderator: Option<PathBuf>,
    /// The hash itself (argon2id, as a PHC string)
    #[arg(
        long,
        value_name = "HASH",
        env = "WEALD_BOARD_MODERATOR_HASH",
        hide_env_values = true,
        conflicts_with = "moderator"
    )]
    pub(crate) moderator_hash: Option<String>,
    /// How many requests are answered at once; more get a 503; 0 for any number [default: 4096]
    #[arg(long, value_name = "N", env = "WEALD_BOARD_REQUESTS")]
    pub(crate) requests: Option<usize>,
    /// How many readers may follow boards live at once; more get a 503 [default: 10000]
    #[arg(long, value_name = "N", env = "WEALD_BOARD_READERS")]
    pub(crate) readers: Option<usize>,
    /// How many of them one address may have; more get a 429 [default: 100]
    #[arg(long, value_name = "N", env = "WEALD_BOARD_READERS_PER_ADDRESS")]
    pub(crate) readers_per_address: Option<usize>,
    /// How long requests in flight may take after an interrupt, in seconds [default: 10]
    #[arg(long, value_name = "S", env = "WEALD_BOARD_DRAIN", value_parser = super::seconds)]
    #[serde(deserialize_with = "seconds")]
    pub(crate) drain: Option<Duration>,
    /// Show /metrics to everybody, and not only to this machine itself and to moderators with a key
    #[arg(
        long,
        env = "WEALD_BOARD_METRICS_OPEN",
        value_name = "true|false",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    pub(crate) metrics_open: Option<bool>,
    /// Also write by GET, for measuring: /get/create, /get/write, /get/edit. Any page of the web could write so
    #[arg(
        long,
        env = "WEALD_BOARD_GET_WRITES",
        value_name = "true|false",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    pub(crate) get_writes: Option<bool>,
    /// What is logged on stderr [default: info; with --demo: warn]
    #[arg(long, value_enum, value_name = "LEVEL", env = "WEALD_BOARD_LOG")]
    pub(crate) log: Option<LogLevel>,
    /// Log a JSON object for each line
    #[arg(
        long,
        env = "WEALD_BOARD_LOG_JSON",
        value_name = "true|false",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    pub(crate) log_json: Option<bool>,
}

impl Board {
    /// The same, with what `file` says where this says nothing.
    pub(crate) fn or(self, file: Self) -> Self {
        // One of the two says who the moderators are, and then the other is not asked.
        let says_moderator = self.moderator.is_some() || self.moderator_hash.is_some();
        let says_place = self.demo || self.directory.is_some();
        Self {
            directory: self.directory.or(file.directory.filter(|_| !says_place)),
            demo: self.demo,
            config: self.config,
            addr: self.addr.or(file.addr),
            origin: self.origin.or(file.origin),
            title: self.title.or(file.title),
            durability: self.durability.or(file.durability),
            reads: self.reads.or(file.reads),
            writes: self.writes.or(file.writes),
            proxy: match self.proxy.is_empty() {
                true => file.proxy,
                false => self.proxy,
            },
            moderator: self
                .moderator
                .or(file.moderator.filter(|_| !says_moderator)),
            moderator_hash: self
                .moderator_hash
                .or(file.moderator_hash.filter(|_| !says_moderator)),
            requests: self.requests.or(file.requests),
            readers: self.readers.or(file.readers),
            readers_per_address: self.readers_per_address.or(file.readers_per_address),
            drain: self.drain.or(file.drain),
            metrics_open: self.metrics_open.or(file.metrics_open),
            get_writes: self.get_writes.or(file.get_writes),
            log: self.log.or(file.log),
            log_json: self.log_json.or(file.log_json),
        }
    }
}

/// What a message has survived when it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Durability {
    /// The loss of power
    Durable,
    /// The end of the program, even by kill -9
    Buffered,
    /// Nothing: it is visible
    Accepted,
}

/// What is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogLevel {
    /// Nothing
    Off,
    /// What failed
    Error,
    /// What needs a look
    Warn,
    /// Also each request
    Info,
    /// Also what helps to find a mistake
    Debug,
}

/// A time that somebody may want to wait: up to 30 years.
pub(super) fn duration(seconds: f64) -> Result<Duration, &'static str> {
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() && seconds <= 1e9 => Ok(duration),
        _ => Err("it must be a number of seconds above zero, and at most 1000000000"),
    }
}

/// A number of seconds in a file, whole or not.
fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let seconds = duration(f64::deserialize(from)?);
    seconds.map(Some).map_err(D::Error::custom)
}

/// What the site is called in a file.
fn title<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let title = title_of(&String::deserialize(from)?);
    title.map(Some).map_err(D::Error::custom)
}

/// What the site is called: a line that is not too long for the top of a page.
fn title_of(text: &str) -> Result<String, String> {
    let length = text.trim().chars().count();
    match (1..=60).contains(&length) && !text.chars().any(char::is_control) {
        true => Ok(text.trim().to_owned()),
        false => Err("a title is one line of 1 to 60 characters".to_owned()),
    }
}

fn networks<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Network>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    let networks = texts.iter().map(|text| text.parse());
    networks.collect::<Result<_, _>>().map_err(D::Error::custom)
}

fn origin<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Origin>, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map(Some).map_err(D::Error::custom)
}
