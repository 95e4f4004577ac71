//! Progress on stderr: one line that is redrawn in place, and only on a terminal.
//!
//! The line is redrawn only between runs, so that it takes no time from what is measured.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use weald_lab::alternate::Turn;

use crate::args::Colour;

/// A line on stderr, or nothing.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    colour: bool,
}

impl Progress {
    /// A progress line if stderr is a terminal; else nothing is drawn.
    pub(crate) fn new(colour: Colour) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = ProgressBar::no_length();
        let target = if terminal {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        bar.set_draw_target(target);
        let colour = match colour {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => terminal && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()),
        };
        Self { bar, colour }
    }

    /// Shows what is being prepared.
    pub(crate) fn step(&self, words: &str) {
        self.bar.set_style(style("{msg}"));
        self.bar.set_message(words.to_owned());
        self.bar.tick();
    }

    /// Sets the number of children that will run.
    pub(crate) fn planned(&self, children: usize) {
        let bar = if self.colour {
            "{wide_bar:.green}"
        } else {
            "{wide_bar}"
        };
        self.bar
            .set_style(style(&format!("{{pos}}/{{len}} {bar} {{msg}}")));
        self.bar.set_length(children as u64);
        self.bar.set_position(0);
    }

    /// Shows which child is about to run.
    pub(crate) fn turn(&self, turn: Turn<'_>) {
        let (row, lane) = (turn.row, turn.lane);
        self.bar.set_message(format!(
            "{} left; {} {}: {} on {}, run {} of {}",
            about(turn.left),
            row.workload.name,
            row.params,
            lane.system.name,
            lane.workers,
            turn.round,
            turn.rounds
        ));
        self.bar.inc(1);
        self.bar.tick();
    }

    /// Hides the line while something else is printed.
    pub(crate) fn hide_while<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Removes the line for good.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// A duration in words, as in "about 12 min".
pub(crate) fn about(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..100 => format!("about {seconds} s"),
        100..6_000 => format!("about {} min", (seconds + 30) / 60),
        _ => format!("about {} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the templates of this file are valid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_the_unit_that_fits() {
        let words = [5, 100, 600, 7_300].map(|seconds| about(Duration::from_secs(seconds)));
        assert_eq!(
            words,
            [
                "about 5 s",
                "about 2 min",
                "about 10 min",
                "about 2 h 1 min"
            ]
        );
    }
}
