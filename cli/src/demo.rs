//! `weald demo`: the promise, to be seen in ten seconds.
//!
//! On a terminal: a live line for the ticks (one more for the rival, with `--beside`), and below it what happens and
//! what Weald says of it. In a pipe, or with `--plain`: the same as lines, the ticks once a second.

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use weald_lab::build_info;
use weald_lab::demo::beside::Beside;
use weald_lab::demo::{self, Audience, DemoSize, Outcome, Pulse};
use weald_lab::error::Error;
use weald_lab::programs::scenes::Scene;
use weald_lab::rivals::Places;

use crate::args::{Demo, Rival};
use crate::output::print;

/// The exit code after Ctrl-C, as a shell reports it.
const INTERRUPTED: u8 = 130;
/// How many pulses, a tenth of a second each, make one line of ticks that is not redrawn.
const PER_LINE: usize = 10;
/// More reports than this are counted, but not shown, unless they are of a scene: on a busy machine also units that the
/// system interrupts are reported, and would leave no room.
const MOST_SHOWN: usize = 20;

pub(crate) fn run(args: &Demo) -> Result<ExitCode, Error> {
    let size = DemoSize {
        processes: args.processes,
        length: args.seconds,
    };
    let stop = listen()?;
    let beside = match args.beside {
        Some(Rival::Tokio) => Some(Beside::start("tokio", size, &Places::usual())?),
        None => None,
    };
    let is_live = !args.plain && std::io::stdout().is_terminal();
    let mut screen = Screen {
        live: is_live.then(|| Live::new(beside.is_some())),
        beside,
        stop: Arc::clone(&stop),
        second: [Vec::new(), Vec::new()],
        told: 0,
    };
    screen.line(&format!(
        "{} processes tick ten times a second each.",
        size.processes
    ))?;
    if !build_info::is_optimised() {
        screen.line(
            "This program is not optimised, so ticks come late: use `cargo run --release -- demo`.",
        )?;
    }
    let summary = demo::run(size, &mut screen)?;
    screen.end(&summary)?;
    Ok(match stop.load(Ordering::Relaxed) {
        true => ExitCode::from(INTERRUPTED),
        false => ExitCode::SUCCESS,
    })
}

/// A flag that the first Ctrl-C sets; the second one ends the program at once.
fn listen() -> Result<Arc<AtomicBool>, Error> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let registered =
            flag::register_conditional_shutdown(signal, i32::from(INTERRUPTED), Arc::clone(&stop))
                .and_then(|_| flag::register(signal, Arc::clone(&stop)));
        registered.map_err(Error::file("listen to", "signals"))?;
    }
    Ok(stop)
}

/// Where the demo is shown.
struct Screen {
    live: Option<Live>,
    beside: Option<Beside>,
    stop: Arc<AtomicBool>,
    /// The pulses since the last line of ticks in plain mode, of Weald and of the rival.
    second: [Vec<Pulse>; 2],
    /// How many reports came that are of no scene.
    told: usize,
}

/// The lines that are redrawn in place.
struct Live {
    all: MultiProgress,
    weald: ProgressBar,
    rival: Option<ProgressBar>,
}

impl Live {
    fn new(has_rival: bool) -> Self {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stdout());
        let add = || all.add(ProgressBar::no_length().with_style(style("{msg}")));
        let rival = has_rival.then(add);
        let weald = all.insert(
            0,
            ProgressBar::no_length().with_style(style("{msg:.green}")),
        );
        Self { all, weald, rival }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the templates of this file are valid")
}

impl Screen {
    /// Shows a line for good, below what is redrawn.
    fn line(&self, text: &str) -> Result<(), Error> {
        let Some(live) = &self.live else {
            return print(&format!("{text}\n"));
        };
        let bar = live
            .all
            .add(ProgressBar::no_length().with_style(style("{msg}")));
        bar.abandon_with_message(text.to_owned());
        Ok(())
    }

    /// Whether a report is shown.
    fn shows(&mut self, about: Option<Scene>) -> bool {
        if about.is_none() {
            self.told += 1;
        }
        about.is_some() || self.told <= MOST_SHOWN
    }

    fn end(mut self, summary: &Outcome) -> Result<(), Error> {
        let hidden = self.told.saturating_sub(MOST_SHOWN);
        if hidden > 0 {
            self.line(&format!("         and {hidden} more reports"))?;
        }
        if let Some(live) = &self.live {
            live.weald.abandon();
            live.rival.iter().for_each(ProgressBar::abandon);
        }
        let mut text = format!(
            "\nWeald: {:.1} % of the ticks kept, the latest {} late.\n",
            summary.percent,
            milliseconds(summary.worst)
        );
        if let Some(beside) = self.beside.take() {
            let (percent, worst) = beside.end();
            let worst = milliseconds(worst);
            writeln!(
                text,
                "Tokio: {percent:.1} % of the ticks kept, the latest {worst} late."
            )
            .expect("a String takes any text");
        }
        for (scene, named) in &summary.named {
            let named = if *named { "named" } else { "not named" };
            writeln!(text, "  {named:9}  {}", of(*scene)).expect("a String takes any text");
        }
        print(&text)
    }
}

impl Audience for Screen {
    fn pulse(&mut self, pulse: Pulse) -> Result<(), Error> {
        let rival = self.beside.as_mut().and_then(Beside::pulse);
        if let Some(live) = &self.live {
            live.weald.set_message(shown("Weald", pulse));
            live.weald.tick();
            if let (Some(bar), Some(pulse)) = (&live.rival, rival) {
                bar.set_message(shown("Tokio", pulse));
                bar.tick();
            }
            return Ok(());
        }
        self.second[0].push(pulse);
        self.second[1].extend(rival);
        if self.second[0].len() < PER_LINE {
            return Ok(());
        }
        for (system, pulses) in ["Weald", "Tokio"].into_iter().zip(&mut self.second) {
            if let Some(pulse) = merge(&std::mem::take(pulses)) {
                print(&format!("{}\n", shown(system, pulse)))?;
            }
        }
        Ok(())
    }

    fn scene(&mut self, at: Duration, scene: Scene) -> Result<(), Error> {
        self.line(&format!("{:4.1} s   {}", at.as_secs_f64(), of(scene)))
    }

    fn told(&mut self, sentence: &str, about: Option<Scene>) -> Result<(), Error> {
        match self.shows(about) {
            true => self.line(&format!("         Weald says: {sentence}")),
            false => Ok(()),
        }
    }

    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }
}

/// Several pulses as one; none if there are none.
fn merge(pulses: &[Pulse]) -> Option<Pulse> {
    let sum: f64 = pulses.iter().map(|pulse| pulse.percent).sum();
    Some(Pulse {
        at: pulses.last()?.at,
        percent: sum / pulses.len() as f64,
        worst: pulses.iter().map(|pulse| pulse.worst).max()?,
    })
}

fn of(scene: Scene) -> &'static str {
    match scene {
        Scene::Blocks => "a unit blocks its thread",
        Scene::Computes => "a unit computes without a wait",
        Scene::Panics => "a unit panics",
        Scene::Deadlock => "two units wait for each other's lock",
    }
}

/// One moment, as in " 1.0 s   Weald ██████████ 100.0 % of the ticks, the latest 1.2 ms late".
fn shown(system: &str, pulse: Pulse) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share from 0 to 100"
    )]
    let full = (pulse.percent / 5.0).round() as usize;
    let (at, percent, worst) = (
        pulse.at.as_secs_f64(),
        pulse.percent,
        milliseconds(pulse.worst),
    );
    let bar = "█".repeat(full) + &"·".repeat(20 - full.min(20));
    format!("{at:4.1} s   {system} {bar} {percent:5.1} % of the ticks, the latest {worst} late")
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_a_scene_is_shown_however_many_others_came() {
        let mut screen = Screen {
            live: None,
            beside: None,
            stop: Arc::default(),
            second: [Vec::new(), Vec::new()],
            told: 0,
        };
        let shown = (0..2 * MOST_SHOWN).filter(|_| screen.shows(None)).count();
        assert_eq!(shown, MOST_SHOWN);
        assert!(screen.shows(Some(Scene::Deadlock)));
        assert_eq!(screen.told, 2 * MOST_SHOWN);
    }
}
