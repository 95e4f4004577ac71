//! `weald board`: serves boards until it is interrupted, and then lets the requests in flight finish.
//!
//! The address goes to stdout, when the board can be reached; the log to stderr.

mod moderator;
mod settings;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt;
use weald::forest::Level;
use weald_board::model::DemoClock;
use weald_board::{Config, Rate, Running, StartError, Storage, serve};
use weald_lab::error::Error;

use crate::args::board::{Board, Durability, LogLevel};
use crate::output::{complain, print};

pub(crate) fn run(args: Board) -> Result<ExitCode, Error> {
    let file = settings::read(args.config.as_deref())?;
    let args = &args.or(file);
    log(args);
    let demo = match args.demo {
        true => Some(
            tempfile::tempdir()
                .map_err(Error::file("create a directory in", std::env::temp_dir()))?,
        ),
        false => None,
    };
    let place = match (&demo, &args.directory) {
        (Some(directory), _) => directory.path().join("board"),
        (None, Some(directory)) => directory.clone(),
        (None, None) => return Err(Error::Usage("Name a directory, or use --demo.".to_owned())),
    };
    let config = Config {
        moderator: moderator::hash(args.moderator.as_deref(), args.moderator_hash.as_deref())?,
        ..config(args, place)
    };
    let outcome = weald::block_on(serve_until_interrupted(args, config));
    match outcome {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(Stop::Print(error)) => Err(error),
        Err(Stop::Board(error)) => {
            complain(&error.to_string());
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Why the board stopped, or did not start.
enum Stop {
    Print(Error),
    Board(StartError),
}

impl<E: Into<StartError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Board(error.into())
    }
}

fn config(args: &Board, directory: std::path::PathBuf) -> Config {
    let usual = Config::default();
    let per = |count: u32, time: Duration, burst: u32| {
        (count > 0).then(|| Rate {
            burst: burst.max(1),
            every: time / count,
        })
    };
    let a_second = |count: u32| per(count, Duration::from_secs(1), count.saturating_mul(6));
    let a_minute = |count: u32| per(count, Duration::from_secs(60), count.saturating_mul(2) / 3);
    Config {
        address: args.addr.unwrap_or(usual.address),
        storage: Storage::Directory(directory),
        clock: args.demo.then(DemoClock::default),
        origin: args.origin.clone(),
        level: match args.durability.unwrap_or(Durability::Durable) {
            Durability::Durable => Level::Durable,
            Durability::Buffered => Level::Buffered,
            Durability::Accepted => Level::Accepted,
        },
        title: args.title.clone().unwrap_or(usual.title),
        reads: args.reads.map_or(usual.reads, a_second),
        writes: args.writes.map_or(usual.writes, a_minute),
        tries: usual.tries,
        moderator: None,
        proxies: args.proxy.clone(),
        most_requests: match args.requests {
            None => usual.most_requests,
            Some(0) => usize::MAX,
            Some(most) => most,
        },
        most_readers: args.readers.unwrap_or(usual.most_readers),
        most_readers_of_one: args
            .readers_per_address
            .unwrap_or(usual.most_readers_of_one),
        has_open_metrics: args.metrics_open.unwrap_or(usual.has_open_metrics),
        has_get_writes: args.get_writes.unwrap_or(false),
        keeps_lists: false,
        runtime: None,
        drain: args.drain.unwrap_or(usual.drain),
    }
}

async fn serve_until_interrupted(args: &Board, config: Config) -> Result<(), Stop> {
    let address = config.address;
    let listen = |error| StartError::Listen { address, error };
    let mut interrupt = weald::signal::interrupt().map_err(listen)?;
    let mut terminate = weald::signal::terminate().map_err(listen)?;
    let clock = config.clock.clone().unwrap_or_default();
    let board = start(args, config).await?;
    if args.demo {
        weald_board::demo::fill(board.boards(), &clock).await?;
    }
    let ready = match args.demo {
        true => format!(
            "http://{}  a demo, nothing is kept; Ctrl-C ends it\n",
            board.address()
        ),
        false => format!("http://{}\n", board.address()),
    };
    print(&ready).map_err(Stop::Print)?;
    weald::sync::select! {
        _ = interrupt.came() => {}
        _ = terminate.came() => {}
    }
    tracing::info!("draining");
    let drained = board.stop().await?;
    for request in drained.not_stopped {
        complain(&format!("stopped: {request}"));
    }
    Ok(())
}

/// A demo takes another port, if its own is taken.
async fn start(args: &Board, config: Config) -> Result<Running, StartError> {
    let mut elsewhere = config.clone();
    elsewhere.address.set_port(0);
    match serve(config).await {
        Err(StartError::Listen { error, .. })
            if args.demo && error.kind() == std::io::ErrorKind::AddrInUse =>
        {
            serve(elsewhere).await
        }
        outcome => outcome,
    }
}

fn log(args: &Board) {
    let usual = if args.demo {
        LogLevel::Warn
    } else {
        LogLevel::Info
    };
    let level = match args.log.unwrap_or(usual) {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    let has_colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let lines = fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(has_colours);
    // Another subscriber can only be one that was set before, which then stays.
    let _ = match args.log_json {
        Some(true) => lines.json().try_init(),
        Some(false) | None => lines.try_init(),
    };
}
