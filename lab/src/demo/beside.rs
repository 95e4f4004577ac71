//! The rival's demo, which runs beside Weald's as a program of its own.
//!
//! It is called with `demo processes=N seconds=S workers=W`, prints a line `AT_MS TICKS WORST_MS` every tenth of a
//! second, and ends by itself. Ticks are counted from the start, the lateness since the line before.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::Pid;

use super::{DemoSize, Pulse, percent};
use crate::descendants;
use crate::error::Error;
use crate::rivals::{Manifest, Places};

/// A rival's demo that runs.
#[derive(Debug)]
pub struct Beside {
    child: Child,
    lines: Receiver<RivalTicks>,
    processes: u32,
    last: RivalTicks,
    worst: Duration,
}

/// What the rival counted so far.
#[derive(Clone, Copy, Debug, Default)]
struct RivalTicks {
    at: Duration,
    ticks: u64,
    worst: Duration,
}

impl Beside {
    /// Starts the demo of the rival with this name, if its program was built.
    ///
    /// # Errors
    /// If it was not built; the sentence says how to.
    pub fn start(name: &str, size: DemoSize, places: &Places) -> Result<Self, Error> {
        let manifest = Manifest::read(&places.sources.join("rivals.toml"))?;
        let rival = manifest.rivals.iter().find(|rival| rival.name == name);
        let rival = rival.ok_or_else(|| Error::Usage(format!("There is no rival {name}.")))?;
        let fill = |word: &String| word.replace("{out}", &places.out.to_string_lossy());
        let program = PathBuf::from(rival.run.first().map(fill).unwrap_or_default());
        if !program.is_file() {
            let steps = rival.build.iter().map(|words| words.iter().map(fill));
            let steps: Vec<String> = steps
                .map(|words| words.collect::<Vec<_>>().join(" "))
                .collect();
            return Err(Error::Usage(format!(
                "The rival {name} is not built. To build it: cd {} && {}",
                places.sources.display(),
                steps.join(" && ")
            )));
        }
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        let mut command = Command::new(&program);
        command
            .arg("demo")
            .arg(format!("processes={}", size.processes))
            .arg(format!("seconds={}", size.length.as_secs().max(1)))
            .arg(format!("workers={workers}"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = descendants::start(&mut command).map_err(Error::file("start", &program))?;
        let stdout = child.stdout.take();
        Ok(Self {
            child,
            lines: read(stdout),
            processes: size.processes,
            last: RivalTicks::default(),
            worst: Duration::ZERO,
        })
    }

    /// The ticks since the last call; none if no line has come.
    pub fn pulse(&mut self) -> Option<Pulse> {
        let newest = self.lines.try_iter().reduce(|old, new| RivalTicks {
            worst: old.worst.max(new.worst),
            ..new
        })?;
        let (elapsed, ticks) = (
            newest.at.saturating_sub(self.last.at),
            newest.ticks.saturating_sub(self.last.ticks),
        );
        self.last = newest;
        self.worst = self.worst.max(newest.worst);
        Some(Pulse {
            at: newest.at,
            percent: percent(self.processes, elapsed, ticks),
            worst: newest.worst,
        })
    }

    /// The share of all ticks that came, and the lateness of the latest one; stops the program.
    pub fn end(mut self) -> (f64, Duration) {
        let _last = self.pulse();
        (
            percent(self.processes, self.last.at, self.last.ticks),
            self.worst,
        )
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if let Ok(pid) = i32::try_from(self.child.id())
            && let Some(pid) = Pid::from_raw(pid)
        {
            descendants::kill_with(pid);
        }
        let _status = self.child.wait();
    }
}

/// Reads lines on a thread of its own, until the program ends.
fn read(stdout: Option<ChildStdout>) -> Receiver<RivalTicks> {
    let (sender, lines) = channel();
    if let Some(stdout) = stdout {
        std::thread::spawn(move || {
            for text in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Some(line) = parse(&text)
                    && sender.send(line).is_err()
                {
                    return;
                }
            }
        });
    }
    lines
}

fn parse(text: &str) -> Option<RivalTicks> {
    let mut words = text.split_whitespace();
    let mut number = || words.next()?.parse::<f64>().ok().filter(|n| *n >= 0.0);
    let (at, ticks, worst) = (number()?, number()?, number()?);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count"
    )]
    let ticks = ticks as u64;
    Some(RivalTicks {
        at: Duration::try_from_secs_f64(at / 1e3).ok()?,
        ticks,
        worst: Duration::try_from_secs_f64(worst / 1e3).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const MANIFEST: &str = "[[rival]]\nname = 'fake'\nbuild = [['make', '{out}/fake']]\n\
                            run = ['{out}/fake']\nworkloads = []\n";

    #[test]
    fn a_rival_runs_beside_once_it_is_built_and_is_stopped_at_the_end() {
        let folder = std::env::temp_dir().join(format!("weald-beside-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let places = Places {
            sources: folder.clone(),
            out: folder.clone(),
        };
        let size = DemoSize {
            processes: 100,
            length: Duration::from_secs(1),
        };
        std::fs::write(folder.join("rivals.toml"), MANIFEST).unwrap();
        let refused = Beside::start("fake", size, &places)
            .unwrap_err()
            .to_string();
        assert!(refused.contains("To build it: cd "), "{refused}");
        assert!(refused.contains("make "), "{refused}");
        assert!(Beside::start("absent", size, &places).is_err());

        // A thousand ticks of 100 units are due in a second.
        let script = "#!/bin/sh\necho 1000 750 250.5\nexec sleep 1000\n";
        let program = folder.join("fake");
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let mut beside = Beside::start("fake", size, &places).unwrap();
        let pulse = loop {
            match beside.pulse() {
                Some(pulse) => break pulse,
                None => std::thread::yield_now(),
            }
        };
        assert_eq!(pulse.percent, 75.0);
        assert_eq!(pulse.worst, Duration::from_micros(250_500));
        let (percent, worst) = beside.end();
        assert_eq!((percent, worst), (75.0, pulse.worst));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_line_holds_time_ticks_and_lateness() {
        let line = parse("1500 149000 2.5").unwrap();
        assert_eq!(line.at, Duration::from_millis(1500));
        assert_eq!(line.ticks, 149_000);
        assert_eq!(line.worst, Duration::from_micros(2500));
        for wrong in ["", "1 2", "a b c", "-1 2 3"] {
            assert!(parse(wrong).is_none(), "{wrong}");
        }
    }
}
