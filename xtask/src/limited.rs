//! Commands with a time limit: one that takes too long is ended together with everything that it started.
//!
//! - A command and the programs that it starts are a process group of their own, which the limit ends as a whole.
//! - Control-C and the request to terminate end the command that runs, and every later one at once.
//! - A command that prints nothing for a minute gets a line with the time it has used.
//! - A build has a limit of its own: how long it takes says nothing of what is proved, and much of the machine.
//!
//! `soak` and the steps that it runs call this.

use std::cell::Cell;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::checkout::{judge, not_started, shown};

/// How often a running command is looked at, for its limit and for Control-C.
const LOOK: Duration = Duration::from_millis(200);
/// How long a command may print nothing before the time it has used is printed.
const SILENCE: Duration = Duration::from_secs(60);
/// How long to wait for the output of an ended command, in case one of its programs has left the group.
const LAST_OUTPUT: Duration = Duration::from_secs(5);
/// How long a build may take: that of a crate's tests with the standard library takes ten minutes on two cores at rest.
pub(crate) const BUILD: Duration = Duration::from_secs(60 * 60);

/// Whether the routine was asked to stop.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Is set by Control-C and by the request to terminate, which no longer end this program by themselves.
    pub fn by_signals() -> Self {
        let interrupt = Self::default();
        for signal in [
            signal_hook::consts::SIGINT,
            signal_hook::consts::SIGTERM,
            signal_hook::consts::SIGHUP,
        ] {
            signal_hook::flag::register(signal, Arc::clone(&interrupt.0))
                .expect("these signals may have handlers");
        }
        interrupt
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The time that some commands may take together, without the builds among them.
pub struct Limit {
    begin: Instant,
    /// How long the builds took.
    built: Cell<Duration>,
    length: Duration,
    interrupt: Interrupt,
}

impl Limit {
    /// A limit that begins now.
    pub fn new(length: Duration, interrupt: &Interrupt) -> Self {
        Self {
            begin: Instant::now(),
            built: Cell::default(),
            length,
            interrupt: interrupt.clone(),
        }
    }

    /// As [`run_and_keep`](Limit::run_and_keep), for a build, whose time does not count. It has a limit of its own.
    pub fn build(&self, command: &mut Command) -> Result<String, String> {
        let build = Limit::new(BUILD, &self.interrupt);
        let output = build.run_and_keep(command);
        self.built.set(self.built.get() + build.begin.elapsed());
        output
    }

    /// How much of the time is used up.
    fn used(&self) -> Duration {
        self.begin.elapsed().saturating_sub(self.built.get())
    }

    /// Runs a command, prints its output as it arrives, and returns the output.
    ///
    /// An error is a sentence: the command could not be started, failed, or was ended by the limit or by a signal.
    pub fn run_and_keep(&self, command: &mut Command) -> Result<String, String> {
        self.check(command)?;
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let spawned = command.process_group(0).spawn();
        let mut child = spawned.map_err(|e| not_started(command, &e))?;
        let pieces = pieces(child.stdout.take().expect("the output was asked for"));
        let mut kept = Vec::new();
        let ended = self.follow(command, &pieces, &mut kept);
        if ended.is_err() {
            kill(&mut child);
            while let Ok(piece) = pieces.recv_timeout(LAST_OUTPUT) {
                print(&piece);
            }
        }
        let status = child.wait();
        ended?;
        judge(command, status)?;
        Ok(String::from_utf8_lossy(&kept).into_owned())
    }

    /// Prints and keeps what the command prints, until it has ended or must be ended.
    fn follow(
        &self,
        command: &Command,
        pieces: &Receiver<Vec<u8>>,
        kept: &mut Vec<u8>,
    ) -> Result<(), String> {
        let mut heard = Instant::now();
        loop {
            match pieces.recv_timeout(LOOK) {
                Ok(piece) => {
                    print(&piece);
                    kept.extend(piece);
                    heard = Instant::now();
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.check(command)?;
            if heard.elapsed() >= SILENCE {
                println!("... {}", self.progress());
                heard = Instant::now();
            }
        }
    }

    /// Whether the command may go on; otherwise the sentence that says why not.
    fn check(&self, command: &Command) -> Result<(), String> {
        if self.interrupt.is_set() {
            return Err("It was interrupted.".to_owned());
        }
        if self.used() < self.length {
            return Ok(());
        }
        Err(format!(
            "The command `{}` was ended: the step took longer than {}.",
            shown(command),
            spoken(self.length)
        ))
    }

    fn progress(&self) -> String {
        let used = spoken(self.used());
        format!("running for {used} of at most {}", spoken(self.length))
    }
}

/// The pieces of an output as they arrive.
fn pieces(mut output: ChildStdout) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        loop {
            match output.read(&mut buffer) {
                Ok(0) => return,
                Ok(length) => {
                    if sender.send(buffer[..length].to_vec()).is_err() {
                        return;
                    }
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    });
    receiver
}

/// Ends the process group of a command. The command has not been waited for, so its group has still this number.
fn kill(child: &mut Child) {
    let leader = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(leader) = leader {
        // An error means that all of them have ended.
        let _ = kill_process_group(leader, Signal::KILL);
    }
}

fn print(piece: &[u8]) {
    let mut out = io::stdout();
    // A reader that went away is no reason to end the steps.
    let _ = out.write_all(piece).and_then(|()| out.flush());
}

/// A time as a person writes it: `40 s`, `12 min`.
pub(crate) fn spoken(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn the_output_of_a_command_in_time_is_kept_and_its_failure_is_a_sentence() {
        let limit = Limit::new(LONG, &Interrupt::default());
        let kept = limit.run_and_keep(&mut shell("echo one; printf two"));
        assert_eq!(kept.as_deref(), Ok("one\ntwo"));
        let failed = limit.run_and_keep(&mut shell("exit 3"));
        assert!(failed.is_err_and(|sentence| sentence.contains("failed: exit status: 3")));
        let absent = limit.run_and_keep(&mut Command::new("no-such-program-anywhere"));
        assert!(absent.is_err_and(|sentence| sentence.contains("could not be started")));
    }

    #[test]
    fn a_command_over_its_limit_is_ended_with_what_it_started() {
        let limit = Limit::new(Duration::from_secs(1), &Interrupt::default());
        let (mut alive, held) = io::pipe().unwrap();
        let mut command = shell("sleep 1000 & sleep 1000");
        let ended = limit.run_and_keep(command.stderr(held));
        assert!(ended.is_err_and(|sentence| sentence.contains("took longer than 1 s")));
        drop(command);
        // The pipe ends when the last program that holds it has ended.
        assert_eq!(alive.read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn nothing_starts_after_the_limit_or_an_interrupt() {
        let limit = Limit::new(Duration::ZERO, &Interrupt::default());
        assert!(limit.run_and_keep(&mut shell("exit 0")).is_err());
        let interrupt = Interrupt::default();
        let limit = Limit::new(LONG, &interrupt);
        interrupt.0.store(true, Ordering::Relaxed);
        let ended = limit.run_and_keep(&mut shell("exit 0"));
        assert!(ended.is_err_and(|sentence| sentence == "It was interrupted."));
    }

    #[test]
    fn the_time_of_a_build_does_not_count() {
        let limit = Limit::new(Duration::from_secs(20), &Interrupt::default());
        let built = limit.build(&mut shell("sleep 1; echo built"));
        assert_eq!(built.as_deref(), Ok("built\n"));
        assert!(limit.begin.elapsed() - limit.used() >= Duration::from_secs(1));
        assert!(limit.build(&mut shell("exit 3")).is_err());
    }

    #[test]
    fn an_interrupt_ends_a_command_that_runs() {
        let interrupt = Interrupt::default();
        let limit = Limit::new(LONG, &interrupt);
        let (mut begun, begin) = io::pipe().unwrap();
        let ended = thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(begun.read(&mut [0]).unwrap(), 1);
                interrupt.0.store(true, Ordering::Relaxed);
            });
            limit.run_and_keep(shell("printf x >&2; sleep 1000").stderr(begin))
        });
        assert!(ended.is_err_and(|sentence| sentence == "It was interrupted."));
    }

    #[test]
    fn times_are_spoken() {
        assert_eq!(spoken(Duration::from_secs(119)), "119 s");
        assert_eq!(spoken(Duration::from_secs(750)), "12 min");
    }
}
