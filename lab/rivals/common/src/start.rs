//! Starts a rival in another language, measures it from outside, and prints the metrics:
//! `rival-start PROGRAM ... WORKLOAD key=value ...`.
//!
//! The program is called with the workload as its last argument, and has the keys in its environment. Besides its
//! metrics it prints lines that are answered or judged here:
//!
//! | line | meaning |
//! |---|---|
//! | `at SIZE` | it holds so many things, and waits for a line; meanwhile its memory is read |
//! | `tick AT LATE` | a sleep ended so many nanoseconds after the offenders began, and so late |
//! | `late NS` | so long after it was woken, a unit ran |
//! | `forks COUNT` | it is asked for `serial N`, `forking N`, and answers with the mean nanoseconds of so many runs |
//! | `forks COUNT outlined` | the same, and it has a form `outlined N` |
//!
//! Invariants:
//! - the program waits for an answer only while none of its clocks runs. (A form of a program that forks is asked for
//!   by itself, so the program's threads may sleep between two forms, where those of Weald's own programs find the next
//!   one at once);
//! - the program has ended before this one does, so none disturbs the rows behind its own.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio, exit};
use std::time::{Duration, Instant};

use common::programs::measure::{Figure, Times};
use common::programs::memory::resident_of;
use common::programs::quantile::milliseconds;
use common::programs::slope::slope;
use common::programs::ticks::TickLog;
use common::{Call, all_keys, fail, figures_of_line, print_metrics, split};

/// What the memory of a workload is printed as.
const MEMORY: [(&str, &str); 7] = [
    ("spawn", "bytes_per_process"),
    ("mailbox", "bytes_per_message"),
    ("lifecycle", "bytes_per_link"),
    ("thread", "bytes_per_thread"),
    ("footprint", "bytes_per_object"),
    ("tree-read", "bytes_per_node"),
    ("tree-write", "bytes_per_node"),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (program, call) = split(&arguments);
    let mut started = Started::of(program, call);
    let mut told = Told::default();
    while let Some(line) = started.line() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["at", size] => {
                let memory = resident_of(&started.child.id().to_string());
                let memory = memory.unwrap_or_else(|sentence| started.fail(&sentence));
                told.points.push((started.number(size), memory as f64));
                started.write("");
            }
            ["tick", at, late] => {
                let tick = (started.number(at), started.nanoseconds(late));
                told.ticks.push(tick);
            }
            ["late", late] => told.late.push(started.nanoseconds(late)),
            ["forks", count, ..] => {
                let count = started.number(count);
                told.figures = started.in_turns(call, count, words.len() > 2);
                break;
            }
            _ => println!("{line}"),
        }
    }
    started.end();
    print_metrics(&told.judged(call))
}

fn nanoseconds(count: f64) -> Duration {
    Duration::from_secs_f64(count.max(0.0) / 1e9)
}

/// A program that runs.
struct Started {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// Whether it is measured with forks, too.
    has_forks: bool,
}

impl Started {
    fn of(program: &[String], call: &Call) -> Self {
        let Some((name, arguments)) = program.split_first() else {
            fail("There is no program to start: name it before the workload.");
        };
        // Read here, because a wrong one ends this program.
        let forks = &[("yes", true), ("never", false)];
        let has_forks = call.optional("forking").is_some() && call.word("forking", forks);
        let mut command = Command::new(name);
        // A variable of that name says nothing about this call.
        all_keys().for_each(|key| _ = command.env_remove(key));
        command
            .args(arguments)
            .arg(&call.workload)
            .envs(call.checked())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| {
            fail(&format!("The program `{name}` does not start: {error}."));
        });
        let output = child.stdout.take().expect("its output was asked for");
        Self {
            input: child.stdin.take(),
            output: BufReader::new(output),
            child,
            has_forks,
        }
    }

    /// The next line that it prints; `None` at the end.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.output.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(line.trim_end().to_owned()),
            Err(error) => self.fail(&format!("What the rival prints cannot be read: {error}.")),
        }
    }

    fn number(&mut self, word: &str) -> f64 {
        let number = word.parse();
        number.unwrap_or_else(|_| {
            self.fail(&format!("The rival printed `{word}`, which is no number."))
        })
    }

    fn nanoseconds(&mut self, word: &str) -> Duration {
        nanoseconds(self.number(word))
    }

    /// Ends the program, and then this one, with a sentence.
    fn fail(&mut self, sentence: &str) -> ! {
        // One that cannot be ended has ended.
        _ = self.child.kill();
        _ = self.child.wait();
        fail(sentence)
    }

    fn write(&mut self, line: &str) {
        // One that does not listen any more has ended, which the end of its output shows.
        _ = self.input.as_mut().map(|input| writeln!(input, "{line}"));
    }

    /// Its figures, with forks or without them: the rounds are those of Weald's own programs.
    fn in_turns(&mut self, call: &Call, forks: f64, has_outlined: bool) -> Vec<Figure> {
        let has_forks = self.has_forks;
        // It pauses by itself.
        let mut times = Times::of_runs_like(self.time("serial", 1), Duration::ZERO);
        let repeats = times.repeats();
        if has_forks {
            // The threads and stacks that a first run starts are not part of the cost of a fork.
            self.time("forking", 1);
        }
        let begin = Instant::now();
        while !times.are_enough(begin) {
            let forks_first = times.serial.len() % 2 == 1;
            if has_forks && forks_first {
                times.forking.push(self.time("forking", repeats));
            }
            times.serial.push(self.time("serial", repeats));
            if has_outlined {
                times.outlined.push(self.time("outlined", repeats));
            }
            if has_forks && !forks_first {
                times.forking.push(self.time("forking", repeats));
            }
        }
        match has_forks {
            true => times.figures(call.workers, forks as u64),
            false => times.serial_figures(),
        }
    }

    /// The mean time of so many runs of one form.
    fn time(&mut self, form: &str, repeats: u32) -> Duration {
        self.write(&format!("{form} {repeats}"));
        match self.line() {
            Some(line) => self.nanoseconds(&line),
            None => self.end_early(),
        }
    }

    /// Waits for its end, and passes a failure on.
    fn end(&mut self) {
        drop(self.input.take());
        match self.child.wait() {
            Ok(status) if status.success() => {}
            // It has printed why, unless a signal ended it.
            Ok(status) => match status.code() {
                Some(code) => exit(code),
                None => fail(&format!("The rival ended: {status}.")),
            },
            Err(error) => fail(&format!("The end of the rival cannot be seen: {error}.")),
        }
    }

    fn end_early(&mut self) -> ! {
        self.end();
        fail("The rival ended before its figures were complete.")
    }
}

/// What a program told besides its metrics.
#[derive(Default)]
struct Told {
    points: Vec<(f64, f64)>,
    ticks: Vec<(f64, Duration)>,
    late: Vec<Duration>,
    figures: Vec<Figure>,
}

impl Told {
    fn judged(mut self, call: &Call) -> Vec<Figure> {
        if !self.points.is_empty() {
            let workload = |(name, _): &&(&str, &str)| *name == call.workload;
            match MEMORY.iter().find(workload) {
                Some((_, name)) => self.figures.push((name, slope(&self.points).max(0.0))),
                None => self.figures.extend(figures_of_line(&self.points)),
            }
        }
        if !self.ticks.is_empty() {
            self.figures.extend(judge(&self.ticks, call));
        }
        if !self.late.is_empty() {
            self.late.sort_unstable();
            let late = |share| milliseconds(&self.late, share);
            self.figures.push(("lateness_worst_ms", late(1.0)));
            self.figures.push(("lateness_p50_ms", late(0.5)));
        }
        self.figures
    }
}

fn judge(ticks: &[(f64, Duration)], call: &Call) -> Vec<Figure> {
    let begin = Instant::now();
    let mut log = TickLog::default();
    // Those before the offences count for nothing.
    for (at, late) in ticks.iter().filter(|(at, _)| *at >= 0.0) {
        log.note(begin + nanoseconds(*at), *late);
    }
    let is_burst = call.optional("burst") == Some("yes");
    let figures = log.figures(begin, is_burst);
    figures.unwrap_or_else(|| fail("The ticker never ticked."))
}
