//! `work=2us`: what a unit does with each message or in each round, outside all locks.
//!
//! It is a number of steps and not a time, so that a unit that has to wait for its processor does not work less. How
//! many steps fit is measured once, before the row: the fastest of several tries.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::params::Params;

const LENGTH: Duration = Duration::from_micros(2);
const TRIES: usize = 20;
const STEPS_OF_A_TRY: u32 = 2_000;

/// The work of one message or round.
#[derive(Clone, Copy)]
pub(super) struct Work {
    steps: u32,
}

impl Work {
    /// What the key `work` says; without it, there is none.
    pub(super) fn read(params: &Params) -> Result<Self, Error> {
        match params.get("work") {
            None | Some("none") => Ok(Self { steps: 0 }),
            Some("2us") => Ok(Self { steps: fitting() }),
            Some(other) => Err(Error::Usage(format!(
                "work={other} is neither none nor 2us."
            ))),
        }
    }

    /// Does it.
    #[inline]
    pub(super) fn run(self) {
        compute(self.steps);
    }
}

/// How many steps fit into the length.
fn fitting() -> u32 {
    let tries = (0..TRIES).map(|_| {
        let clock = Instant::now();
        compute(STEPS_OF_A_TRY);
        clock.elapsed()
    });
    let fastest = tries.min().unwrap_or(LENGTH).as_nanos().max(1);
    let steps = u128::from(STEPS_OF_A_TRY) * LENGTH.as_nanos() / fastest;
    u32::try_from(steps).unwrap_or(u32::MAX).max(1)
}

fn compute(steps: u32) {
    let mut value = 1_u64;
    for _ in 0..steps {
        value = black_box(value.wrapping_mul(6_364_136_223_846_793_005) + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_is_no_step_and_two_microseconds_are_some() {
        let steps =
            |words: &[&str]| Work::read(&Params::parse(words).unwrap()).map(|work| work.steps);
        assert_eq!(steps(&[]).unwrap(), 0);
        assert_eq!(steps(&["work=none"]).unwrap(), 0);
        assert!(steps(&["work=2us"]).unwrap() > 1);
        assert!(matches!(steps(&["work=3us"]), Err(Error::Usage(_))));
    }
}
