//! The arguments of `weald board`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

pub(crate) const EXAMPLES: &str = "Examples:
  weald board --demo                          look around; nothing is kept
  weald board /var/lib/board                  boards in a directory, for this machine
  weald board data --addr 0.0.0.0:80          for everybody
  weald board data --proxy 127.0.0.1          behind a reverse proxy on this machine

Every option can also be set by the variable that stands behind it; the option wins.
An interrupt (Ctrl-C) or SIGTERM lets the requests in flight finish, and closes the journal.
/healthz, /readyz and /metrics tell how the board is.";

/// Where the boards are, and how they are served.
#[derive(Debug, clap::Args)]
pub(crate) struct Board {
    /// The directory with the boards, which is created if it is missing
    #[arg(
        value_name = "DIR",
        env = "WEALD_BOARD_DIR",
        required_unless_present = "demo"
    )]
    pub(crate) directory: Option<PathBuf>,
    /// Serve boards with content in a directory that is removed at the end
    #[arg(long, conflicts_with = "directory")]
    pub(crate) demo: bool,
    /// The address to serve at; port 0 for any that is free
    #[arg(
        long,
        value_name = "IP:PORT",
        env = "WEALD_BOARD_ADDR",
        default_value = "127.0.0.1:8080"
    )]
    pub(crate) addr: SocketAddr,
    /// What the site is called
    #[arg(
        long,
        value_name = "TEXT",
        env = "WEALD_BOARD_TITLE",
        default_value = "Board"
    )]
    pub(crate) title: String,
    /// What a message has survived when it is acknowledged
    #[arg(long, value_enum, value_name = "LEVEL", env = "WEALD_BOARD_DURABILITY", default_value_t = Durability::Durable)]
    pub(crate) durability: Durability,
    /// How many requests a second one address may make, six times as many at once; 0 for any number
    #[arg(
        long,
        value_name = "N",
        env = "WEALD_BOARD_READS",
        default_value_t = 50
    )]
    pub(crate) reads: u32,
    /// How many messages a minute one address may write, two thirds as many at once; 0 for any number
    #[arg(
        long,
        value_name = "N",
        env = "WEALD_BOARD_WRITES",
        default_value_t = 30
    )]
    pub(crate) writes: u32,
    /// A reverse proxy, whose X-Forwarded-For and X-Forwarded-Proto are believed; may be given several times
    #[arg(
        long,
        value_name = "IP",
        env = "WEALD_BOARD_PROXY",
        value_delimiter = ','
    )]
    pub(crate) proxy: Vec<IpAddr>,
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
    /// How many requests are answered at once; more get a 503
    #[arg(
        long,
        value_name = "N",
        env = "WEALD_BOARD_REQUESTS",
        default_value_t = 4_096
    )]
    pub(crate) requests: usize,
    /// How many readers may follow boards live at once; more get a 503
    #[arg(
        long,
        value_name = "N",
        env = "WEALD_BOARD_READERS",
        default_value_t = 10_000
    )]
    pub(crate) readers: usize,
    /// How long requests in flight may take after an interrupt, in seconds
    #[arg(long, value_name = "S", env = "WEALD_BOARD_DRAIN", default_value = "10", value_parser = super::seconds)]
    pub(crate) drain: Duration,
    /// What is logged on stderr [default: info; with --demo: warn]
    #[arg(long, value_enum, value_name = "LEVEL", env = "WEALD_BOARD_LOG")]
    pub(crate) log: Option<LogLevel>,
    /// Log a JSON object for each line
    #[arg(long, env = "WEALD_BOARD_LOG_JSON")]
    pub(crate) log_json: bool,
}

/// What a message has survived when it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Durability {
    /// The loss of power
    Durable,
    /// The end of the program, also by kill -9
    Buffered,
    /// Nothing: it is visible
    Accepted,
}

/// What is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
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
