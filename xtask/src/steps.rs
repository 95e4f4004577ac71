//! The steps of a routine. Each is run, timed and counted; a failed step does not stop the next.

use std::process::ExitCode;
use std::time::Instant;

/// How a step succeeded.
pub enum Verdict {
    /// The step did its work.
    Passed,
    /// The step cannot run here; the sentence says what it needs.
    Skipped(String),
}

/// How a step ended; an error is a sentence that says what to do.
pub type Outcome = Result<Verdict, String>;

/// Which steps may be skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skips {
    /// Each whose program or data cannot be had.
    Any,
    /// None: where everything can be had, a step that is skipped would be a check that never runs.
    None,
}

impl Skips {
    /// The outcome of a step, or a failure if it was skipped and may not be.
    pub fn judge(self, outcome: Outcome) -> Outcome {
        match outcome {
            Ok(Verdict::Skipped(why)) if self == Skips::None => {
                Err(format!("It was skipped, which --strict forbids. {why}"))
            }
            outcome => outcome,
        }
    }
}

/// The steps that have run so far.
#[derive(Default)]
pub struct Tally {
    steps: Vec<Step>,
}

/// A step that has run.
struct Step {
    name: String,
    seconds: f64,
    ending: &'static str,
    /// Why the step failed.
    failure: Option<String>,
}

const PASSED: &str = "passed";
const SKIPPED: &str = "skipped";
const FAILED: &str = "failed";

impl Tally {
    /// Runs one step and prints how it went and how long it took.
    pub fn step(&mut self, name: &str, work: impl FnOnce() -> Outcome) {
        println!("=== {name}");
        let begin = Instant::now();
        let outcome = work();
        let seconds = begin.elapsed().as_secs_f64();
        let failure = outcome.as_ref().err().cloned();
        let ending = match outcome {
            Ok(Verdict::Passed) => {
                println!("=== {name}: passed in {seconds:.1} s");
                PASSED
            }
            Ok(Verdict::Skipped(sentence)) => {
                println!("=== {name}: skipped. {sentence}");
                SKIPPED
            }
            Err(sentence) => {
                println!(
                    "=== {name}: failed in {seconds:.1} s. {}",
                    first_line(&sentence)
                );
                FAILED
            }
        };
        let name = name.to_owned();
        self.steps.push(Step {
            name,
            seconds,
            ending,
            failure,
        });
    }

    /// Prints a line for each step, their count, and then why steps failed. The routine fails if a step failed or none
    /// passed.
    pub fn finish(self) -> ExitCode {
        println!("=== summary");
        print!("{}", self.lines());
        println!("{}", self.count());
        print!("{}", self.failures());
        if self.number(FAILED) == 0 && self.number(PASSED) > 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }

    fn lines(&self) -> String {
        let lines = self.steps.iter().map(|step| {
            let Step {
                name,
                seconds,
                ending,
                ..
            } = step;
            format!("{ending:7} {seconds:7.1} s  {name}\n")
        });
        lines.collect()
    }

    fn failures(&self) -> String {
        let failed = self.steps.iter().filter_map(|step| {
            let sentence = step.failure.as_ref()?;
            Some(format!("=== {} failed. {sentence}\n", step.name))
        });
        failed.collect()
    }

    fn count(&self) -> String {
        let skipped = match self.number(SKIPPED) {
            0 => String::new(),
            skipped => format!(", {skipped} skipped"),
        };
        let (passed, failed) = (self.number(PASSED), self.number(FAILED));
        format!("{passed} passed, {failed} failed{skipped}")
    }

    fn number(&self, ending: &str) -> usize {
        let steps = self.steps.iter();
        steps.filter(|step| step.ending == ending).count()
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_routine_succeeds_if_every_step_passes() {
        let mut tally = Tally::default();
        tally.step("one", || Ok(Verdict::Passed));
        tally.step("two", || Ok(Verdict::Passed));
        assert_eq!(tally.count(), "2 passed, 0 failed");
        assert_eq!(tally.finish(), ExitCode::SUCCESS);
    }

    #[test]
    fn a_failed_step_fails_the_routine_and_the_next_step_still_runs() {
        let mut tally = Tally::default();
        tally.step("one", || Err("Mend it.\n  a line".to_owned()));
        tally.step("two", || Ok(Verdict::Passed));
        tally.step("three", || {
            Ok(Verdict::Skipped("It needs a thing.".to_owned()))
        });
        assert_eq!(tally.count(), "1 passed, 1 failed, 1 skipped");
        assert_eq!(tally.failures(), "=== one failed. Mend it.\n  a line\n");
        let lines = tally.lines();
        let endings = lines.lines().map(|line| line.split_whitespace().next());
        assert!(endings.eq([Some("failed"), Some("passed"), Some("skipped")]));
        assert!(lines.lines().all(|line| line.contains(" s  ")));
        assert_eq!(tally.finish(), ExitCode::FAILURE);
    }

    #[test]
    fn a_step_without_its_program_fails_where_none_may_be_missing() {
        let skipped = || Ok(Verdict::Skipped("It needs a thing.".to_owned()));
        assert!(Skips::Any.judge(skipped()).is_ok());
        let why = Skips::None.judge(skipped()).err().unwrap_or_default();
        assert!(why.ends_with("It needs a thing."), "{why}");
        assert!(Skips::None.judge(Ok(Verdict::Passed)).is_ok());
    }

    #[test]
    fn a_routine_that_ran_nothing_fails() {
        let mut tally = Tally::default();
        tally.step("one", || {
            Ok(Verdict::Skipped("It needs a thing.".to_owned()))
        });
        assert_eq!(tally.finish(), ExitCode::FAILURE);
    }
}
