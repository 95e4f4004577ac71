//! `weald`: the program of the project. It shows what Weald promises, and measures Weald and its rivals.
//!
//! It also looks into forests on disk. Results go to stdout, everything else to stderr. Exit codes: 0 all went well, 1
//! a failure, 2 a usage error, 3 to 5 those of `weald forest`. `bench` ends with 130 if interrupted, 143 if terminated,
//! and `demo` with 130 in both cases; `board` then ends with 0. If the reader of stdout goes away, the program ends
//! quietly with 0.

// What comes in and what goes out.
mod allocator;
mod args;
mod output;

// Beside a running bench.
mod interrupt;
mod progress;

// The commands.
mod bench;
mod board;
mod demo;
mod forest;

use std::process::ExitCode;

use clap::Parser;
use weald_lab::bench_one;
use weald_lab::error::Error;

use args::{Args, BenchOne, Command};

fn main() -> ExitCode {
    weald_lab::serve::return_memory_with(allocator::collect);
    let args = Args::parse();
    let result = match args.command {
        Command::Bench(bench) => bench::run(&bench),
        Command::Board(board) => {
            allocator::take_small_pages();
            board::run(board)
        }
        Command::Demo(demo) => demo::run(&demo),
        Command::Forest(args) => forest::run(&args),
        Command::BenchOne(one) => measure(&one).map(|()| ExitCode::SUCCESS),
    };
    match result {
        Ok(code) => code,
        Err(Error::Closed) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&error.to_string());
            ExitCode::from(exit_code(&error))
        }
    }
}

/// Runs one workload once, by the protocol of `weald_lab::bench_one`.
fn measure(one: &BenchOne) -> Result<(), Error> {
    if one.workload == weald_lab::serve_board::NAME {
        // As `weald board` does.
        allocator::take_small_pages();
    }
    let metrics = bench_one::run(&one.workload, &one.words)?;
    bench_one::print(&metrics, &mut std::io::stdout().lock()).map_err(output::closed_or_failed)
}

fn exit_code(error: &Error) -> u8 {
    match error {
        Error::Usage(_) => 2,
        _ => 1,
    }
}
