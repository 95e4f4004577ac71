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

/// The steps that have run so far.
#[derive(Default)]
pub struct Tally {
    passed: usize,
    skipped: usize,
    failed: Vec<String>,
}

impl Tally {
    /// Runs one step and prints how it went and how long it took.
    pub fn step(&mut self, name: &str, work: impl FnOnce() -> Outcome) {
        println!("=== {name}");
        let begin = Instant::now();
        let outcome = work();
        let seconds = begin.elapsed().as_secs_f64();
        match outcome {
            Ok(Verdict::Passed) => {
                self.passed += 1;
                println!("=== {name}: passed in {seconds:.1} s");
            }
            Ok(Verdict::Skipped(sentence)) => {
                self.skipped += 1;
                println!("=== {name}: skipped. {sentence}");
            }
            Err(sentence) => {
                self.failed.push(name.to_owned());
                println!("=== {name}: failed in {seconds:.1} s. {sentence}");
            }
        }
    }

    /// Prints the count of the steps. The routine fails if a step failed or none passed.
    pub fn finish(self) -> ExitCode {
        for name in &self.failed {
            println!("failed: {name}");
        }
        println!("{}", self.count());
        if self.failed.is_empty() && self.passed > 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }

    fn count(&self) -> String {
        let skipped = match self.skipped {
            0 => String::new(),
            skipped => format!(", {skipped} skipped"),
        };
        format!(
            "{} passed, {} failed{skipped}",
            self.passed,
            self.failed.len()
        )
    }
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
        tally.step("one", || Err("Mend it.".to_owned()));
        tally.step("two", || Ok(Verdict::Passed));
        tally.step("three", || {
            Ok(Verdict::Skipped("It needs a thing.".to_owned()))
        });
        assert_eq!(tally.count(), "1 passed, 1 failed, 1 skipped");
        assert_eq!(tally.finish(), ExitCode::FAILURE);
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
