//! Runs one measured program once as a child process, with a deadline, and reads what it prints.
//!
//! Invariants:
//! - the measuring side sleeps in one `poll` until the child has ended, so it takes no time from the child;
//! - a child that misses its deadline is killed with everything it has started;
//! - whatever a child does, the result is its metrics or one sentence.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::descendants;
use crate::metric::Metric;

/// The limit on the size of a child's output, for all its lines together.
const OUTPUT_LIMIT: u64 = 64 << 10;
/// The exit code for arguments that a program does not accept.
const USAGE: i32 = 2;
/// How long the output of a dead child may take to arrive.
const DRAIN: Duration = Duration::from_secs(2);

/// A program with its arguments and environment.
#[derive(Clone, Debug, Default)]
pub struct Invocation {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Variables set for it in addition to the inherited ones.
    pub environment: Vec<(String, String)>,
    /// Where it runs; `None` for the current folder.
    pub folder: Option<PathBuf>,
}

/// Why a child gave no figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It was still running at its deadline; another attempt would take just as long.
    Late(String),
    /// It does not accept these arguments; another attempt would be refused again.
    Refused(String),
    /// It ended with an error, or printed something that is not a metric.
    Wrong(String),
}

impl Failure {
    /// The sentence for the user.
    #[must_use]
    pub fn sentence(&self) -> &str {
        match self {
            Self::Late(sentence) | Self::Refused(sentence) | Self::Wrong(sentence) => sentence,
        }
    }
}

/// The remains of a child that has ended.
struct Ended {
    status: ExitStatus,
    stdout: String,
    stderr: String,
}

impl Ended {
    /// Returns itself unless the exit code reports a failure.
    fn successful(self) -> Result<Self, Failure> {
        match self.status.code() {
            Some(0) => Ok(self),
            Some(USAGE) => Err(Failure::Refused(failure_sentence(&self))),
            _ => Err(Failure::Wrong(failure_sentence(&self))),
        }
    }
}

/// Runs a measured program and reads its metrics; only those named in `known` are allowed.
pub fn measure(
    invocation: &Invocation,
    known: &[&str],
    limit: Duration,
) -> Result<Vec<Metric>, Failure> {
    let ended = run(invocation, limit)?.successful()?;
    parse(&ended.stdout, known).map_err(Failure::Wrong)
}

/// Runs a program and returns the first line it prints, such as its version.
pub fn first_line(invocation: &Invocation, limit: Duration) -> Result<String, Failure> {
    let ended = run(invocation, limit)?.successful()?;
    match ended.stdout.lines().next().map(str::trim) {
        Some(line) if !line.is_empty() => Ok(line.to_owned()),
        _ => Err(Failure::Wrong("It printed nothing.".to_owned())),
    }
}

fn run(invocation: &Invocation, limit: Duration) -> Result<Ended, Failure> {
    let wrong = |sentence: String| Failure::Wrong(sentence);
    let mut child = start(invocation).map_err(wrong)?;
    let stdout = collect(child.stdout.take());
    let stderr = collect(child.stderr.take());
    if !ends_within(&child, limit).map_err(wrong)? {
        descendants::kill_with(pid_of(&child));
        let reaped = child.wait();
        let seconds = limit.as_secs_f64();
        debug_assert!(reaped.is_ok(), "a killed child can be reaped");
        return Err(Failure::Late(format!(
            "It had not ended after {seconds} s and was stopped."
        )));
    }
    let status = child
        .wait()
        .map_err(|error| wrong(format!("It cannot be awaited: {error}.")))?;
    descendants::ended(status);
    let text = |from: Receiver<String>| from.recv_timeout(DRAIN).unwrap_or_default();
    Ok(Ended {
        status,
        stdout: text(stdout),
        stderr: text(stderr),
    })
}

fn start(invocation: &Invocation) -> Result<Child, String> {
    let (program, arguments) = invocation
        .argv
        .split_first()
        .ok_or("There is no program to run.".to_owned())?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .envs(invocation.environment.iter().map(|(k, v)| (k, v)));
    if let Some(folder) = &invocation.folder {
        command.current_dir(folder);
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    descendants::start(&mut command).map_err(|error| format!("Cannot start '{program}': {error}."))
}

/// Reads a pipe to its end on a thread of its own, so that a full pipe never blocks the child.
/// A child that prints too much finds the pipe closed at the limit.
fn collect(pipe: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = channel();
    let pipe = pipe.expect("both outputs were asked to be pipes");
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // A read error ends the text; whatever is missing then shows as a missing metric.
        let _end = pipe.take(OUTPUT_LIMIT).read_to_end(&mut bytes);
        // Nothing receives this any longer if the child missed its deadline.
        let _listener = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

/// Sleeps until the child has ended or the limit has passed; returns whether the child has ended.
fn ends_within(child: &Child, limit: Duration) -> Result<bool, String> {
    let handle: OwnedFd = pidfd_open(pid_of(child), PidfdFlags::empty())
        .map_err(|error| format!("It cannot be watched: {error}."))?;
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(|_| "The timeout is too long.".to_owned())?;
        let mut watched = [PollFd::new(&handle, PollFlags::IN)];
        match poll(&mut watched, Some(&left)) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(format!("It cannot be watched: {error}.")),
        }
    }
}

fn pid_of(child: &Child) -> Pid {
    let raw = i32::try_from(child.id()).expect("the kernel's pids are positive and fit an i32");
    Pid::from_raw(raw).expect("a child's pid is not zero")
}

/// What a failed program said, or how it ended if it said nothing.
fn failure_sentence(ended: &Ended) -> String {
    match ended
        .stderr
        .lines()
        .map(str::trim)
        .rfind(|line| !line.is_empty())
    {
        Some(line) => line.chars().take(300).collect(),
        None => format!("It ended without an error message ({}).", ended.status),
    }
}

/// Reads lines of `METRIC VALUE`.
fn parse(text: &str, known: &[&str]) -> Result<Vec<Metric>, String> {
    let mut metrics: Vec<Metric> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let shown: String = line.chars().take(60).collect();
        let odd = || format!("It printed '{shown}', which is not a metric and its value.");
        let (name, value) = line.trim().split_once(' ').ok_or_else(odd)?;
        let value: f64 = value.trim().parse().map_err(|_| odd())?;
        if !value.is_finite() || !known.contains(&name) {
            return Err(odd());
        }
        if metrics.iter().any(|metric| metric.name == name) {
            return Err(format!("It printed the metric '{name}' twice."));
        }
        metrics.push(Metric::new(name, value));
    }
    if metrics.is_empty() {
        return Err("It printed no metric.".to_owned());
    }
    Ok(metrics)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[&str] = &["ns_per_hop", "ms_with_setup"];

    #[test]
    fn reads_metric_lines() {
        let metrics = parse("ns_per_hop 13.5\nms_with_setup 62\n\n", KNOWN).unwrap();
        assert_eq!(
            metrics,
            [
                Metric::new("ns_per_hop", 13.5),
                Metric::new("ms_with_setup", 62.0)
            ]
        );
    }

    #[test]
    fn refuses_everything_else() {
        for wrong in [
            "",
            "hello",
            "ns_per_hop",
            "ns_per_hop fast",
            "ns_per_hop NaN",
            "ns_per_hop inf",
            "ns_per_spawn 3",
            "ns_per_hop 1\nns_per_hop 2",
        ] {
            assert!(parse(wrong, KNOWN).is_err(), "{wrong:?}");
        }
    }
}
