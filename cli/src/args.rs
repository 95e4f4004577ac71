//! The command-line arguments.

pub(crate) mod board;
pub(crate) mod forest;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};

/// The whole command line. The commands share no options except clap's own.
#[derive(Debug, Parser)]
#[command(name = "weald", version = VERSION.as_str(), propagate_version = true, about, long_about = None)]
#[command(about = "Shows and measures the Weald runtime, alone or beside other systems")]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The version with the commit, built once because clap keeps a reference to it.
static VERSION: std::sync::LazyLock<String> =
    std::sync::LazyLock::new(weald_lab::build_info::version);

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure Weald, and on request other systems beside it
    #[command(after_help = EXAMPLES)]
    Bench(Bench),
    /// Serve a bulletin board, with every version of everything that was written
    #[command(after_help = board::EXAMPLES)]
    Board(board::Board),
    /// See in ten seconds that no unit stops another, and that Weald names the one that tried
    Demo(Demo),
    /// Look into a forest on disk, or bring trees in and out
    Forest(forest::Forest),
    /// Run one workload once and print its metrics
    #[command(hide = true)]
    BenchOne(BenchOne),
}

const EXAMPLES: &str = "Examples:
  weald bench                          a dozen figures and a verdict on each, within a minute
  weald bench --rivals=tokio,go        the same, judged by Tokio and Go
  weald bench --only ring,spawn        two workloads at all their sizes
  weald bench --quick                  small sizes of all workloads that two minutes have time for
  weald bench --full                   all workloads at all sizes; it tells how long it will take
  weald bench --full --rivals --report report.html
  weald bench --json | jq .median      one record per line

A row is one workload with one set of parameters, such as ring n=1000 m=100 tokens=1.";

/// What to measure, and where the results go.
#[derive(Debug, clap::Args)]
pub(crate) struct Bench {
    /// Measure every workload at small sizes with few runs
    #[arg(long, conflicts_with = "full")]
    pub(crate) quick: bool,
    /// Measure every workload at all sizes (hours with rivals)
    #[arg(long)]
    pub(crate) full: bool,
    /// Run only these workloads, at all sizes unless --quick is given, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(crate) only: Vec<String>,
    /// Use only this number of workers [default: 1, and the number of available cores]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) workers: Option<usize>,
    /// Run every row this many times [default: 5 with --full, fewer for long rows; else 3 or 1]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) runs: Option<usize>,
    /// Measure rivals too: all that can be built here, or only those named
    #[arg(long, value_name = "NAMES", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "", value_delimiter = ',')]
    pub(crate) rivals: Option<Vec<String>>,
    /// The folder with the rivals' sources [default: lab/rivals in the checkout]
    #[arg(long, value_name = "DIR")]
    pub(crate) rivals_dir: Option<PathBuf>,
    /// The folder to build the rivals in [default: target/rivals in the checkout]
    #[arg(long, value_name = "DIR")]
    pub(crate) rivals_out: Option<PathBuf>,
    /// Print one JSON record per line instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Also write the results to this file, as an HTML page
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// The time limit for one run of one system, in seconds
    #[arg(long, value_name = "S", default_value = "120", value_parser = seconds)]
    pub(crate) timeout: Duration,
    /// The time limit for the whole, in seconds; a row that it leaves no time for is named
    /// [default: 55 for the table, 115 with --quick, none with --full or --only]
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub(crate) within: Option<Duration>,
    /// When to use colours on stderr
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Colour::Auto)]
    pub(crate) color: Colour,
}

/// How to show the demo.
#[derive(Debug, clap::Args)]
pub(crate) struct Demo {
    /// Print plain lines, as in a pipe, instead of lines that are redrawn
    #[arg(long)]
    pub(crate) plain: bool,
    /// How long it takes, in seconds
    #[arg(long, value_name = "N", default_value = "10", value_parser = seconds)]
    pub(crate) seconds: Duration,
    /// How many processes tick
    #[arg(long, value_name = "N", default_value_t = 10_000, hide = true)]
    pub(crate) processes: u32,
    /// Run the same on a rival beside it
    #[arg(long, value_enum, value_name = "RIVAL")]
    pub(crate) beside: Option<Rival>,
}

/// The rivals that have a demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rival {
    /// Tokio, runtime multi_thread
    Tokio,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The arguments of a measured program.
#[derive(Debug, clap::Args)]
pub(crate) struct BenchOne {
    /// The workload
    pub(crate) workload: String,
    /// Its parameters as key=value
    pub(crate) words: Vec<String>,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err("it must be a whole number above zero".to_owned()),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let value: f64 = text
        .parse()
        .map_err(|_| "it must be a number of seconds".to_owned())?;
    board::duration(value).map_err(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn bench(words: &[&str]) -> Bench {
        let words = ["weald", "bench"].iter().chain(words);
        match Args::try_parse_from(words).unwrap().command {
            Command::Bench(bench) => bench,
            Command::BenchOne(_) | Command::Board(_) | Command::Demo(_) | Command::Forest(_) => {
                unreachable!("the words say bench")
            }
        }
    }

    #[test]
    fn the_definition_holds_together() {
        Args::command().debug_assert();
    }

    #[test]
    fn the_rivals_option_takes_names_or_none() {
        assert_eq!(bench(&[]).rivals, None);
        assert_eq!(bench(&["--rivals"]).rivals, Some(vec![String::new()]));
        let named = bench(&["--rivals=go,erlang", "--json"]).rivals.unwrap();
        assert_eq!(named, ["go", "erlang"]);
    }

    #[test]
    fn senseless_numbers_are_refused() {
        for words in [["--runs", "0"], ["--workers", "-1"], ["--timeout", "0"]] {
            let words = ["weald", "bench"].iter().chain(&words);
            assert_eq!(Args::try_parse_from(words).unwrap_err().exit_code(), 2);
        }
    }
}
