//! Tests of whole protocols: the same program under many schedules, each drawn from a seed, and with a kill at every
//! wait.
//!
//! A schedule is a function of its seed ([`Runtime::test`]), so a failure is replayed by the numbers that it prints.

use std::{
    env,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::{
    api::{
        spawn::spawn,
        time::{sleep, yield_now},
        unit::{AsUnit, Unit},
    },
    runtime::handle::Runtime,
};

/// A protocol with more waits than this does not come to its end.
const ENDLESS: usize = 10_000;
/// How often all other jobs may run before time may pass, while a unit is watched from outside.
const YIELDS: usize = 16;

/// The seeds of a test: each is a schedule of its own, on a [test runtime](Runtime::test) of its own.
///
/// A run that fails prints its numbers. With these in the environment the test runs that schedule alone: `WEALD_SEED`
/// is the seed, `WEALD_KILL` the place of the kill. `WEALD_SEEDS` is another count of seeds, for a longer test.
///
/// ```
/// use weald::{Seeds, spawn};
///
/// Seeds::new(200).run(async |_seed| {
///     let jobs = [1, 2, 3].map(|n| spawn(async move { n }));
///     let mut sum = 0;
///     for job in jobs {
///         sum += job.await.unwrap();
///     }
///     assert_eq!(sum, 6);
/// });
/// ```
#[derive(Clone, Debug)]
#[must_use = "seeds do nothing until a test runs with them"]
pub struct Seeds {
    seeds: Range<u64>,
    /// The only place of a kill, if it was given.
    kill: Option<usize>,
}

impl Seeds {
    /// The seeds below `count`, unless the environment says otherwise.
    pub fn new(count: u64) -> Seeds {
        let number = |name| env::var(name).ok()?.parse::<u64>().ok();
        let seeds = match (number("WEALD_SEED"), number("WEALD_SEEDS")) {
            (Some(seed), _) => seed..seed.saturating_add(1),
            (None, most) => 0..most.unwrap_or(count),
        };
        let kill = number("WEALD_KILL").and_then(|kill| usize::try_from(kill).ok());
        Seeds { seeds, kill }
    }

    /// Runs `protocol` with each seed, to its end.
    ///
    /// # Panics
    /// If a run panics, or cannot continue because all units wait. Its seed is printed.
    pub fn run<T>(&self, protocol: impl AsyncFn(u64) -> T) {
        self.each(|seed| drop(Runtime::test(seed).block_on(protocol(seed))));
    }

    /// Calls `test` with each seed, for a test that makes its runtimes itself.
    ///
    /// # Panics
    /// If a call panics. Its seed is printed.
    pub fn each(&self, test: impl Fn(u64)) {
        for seed in self.seeds.clone() {
            or_print(|| format!("WEALD_SEED={seed}"), || test(seed));
        }
    }

    /// Runs `protocol` with each seed again and again: in every run, one of the units that it hands to its [`Kills`] is
    /// killed, each time one wait later, until a run has no such wait. In this last run nobody is killed. Each wait has
    /// two kills: one in the wait itself, and one by another job that was spawned then, and so comes at a moment after
    /// it.
    ///
    /// Returns how many places for a kill there were, at most, so that a test can claim that there were some.
    ///
    /// ```
    /// use weald::{JoinError, Seeds, spawn, yield_now};
    ///
    /// let places = Seeds::new(10).kill_at_every_wait(async |kills| {
    ///     let job = spawn(kills.cover(async {
    ///         yield_now().await;
    ///         yield_now().await;
    ///     }));
    ///     let ended = job.await;
    ///     assert!(ended.is_ok() || kills.has_killed());
    /// });
    /// assert_eq!(places, 4);
    /// ```
    ///
    /// # Panics
    /// If a run panics, or cannot continue because all units wait: its seed and the place of its kill are printed. If
    /// the protocol has more than 10,000 places, because it does not end.
    pub fn kill_at_every_wait<T>(&self, protocol: impl AsyncFn(Kills) -> T) -> usize {
        let mut most = 0;
        for seed in self.seeds.clone() {
            let places = match self.kill {
                Some(kill) => kill..kill.saturating_add(1),
                None => 0..ENDLESS + 1,
            };
            for place in places {
                assert!(
                    place < ENDLESS || self.kill.is_some(),
                    "the protocol has no end"
                );
                let kills = Kills::at(place);
                let run = || drop(Runtime::test(seed).block_on(protocol(kills.clone())));
                or_print(|| format!("WEALD_SEED={seed} WEALD_KILL={place}"), run);
                if !kills.has_killed() {
                    break;
                }
                most = most.max(place + 1);
            }
        }
        most
    }
}

/// Calls `test`. If it panics, prints the numbers by which it is run again.
fn or_print(numbers: impl FnOnce() -> String, test: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(test)) {
        eprintln!("failed with {}; set this to run it again", numbers());
        resume_unwind(panic);
    }
}

/// The one kill of a run; see [`Seeds::kill_at_every_wait`]. Clones are the same kill.
#[derive(Clone, Debug)]
pub struct Kills(Arc<PlannedKill>);

#[derive(Debug)]
struct PlannedKill {
    /// How many waits come before it.
    wait: usize,
    is_by_another: bool,
    seen: AtomicUsize,
    was_done: AtomicBool,
}

impl Kills {
    fn at(place: usize) -> Kills {
        Kills(Arc::new(PlannedKill {
            wait: place / 2,
            is_by_another: place % 2 == 1,
            seen: AtomicUsize::new(0),
            was_done: AtomicBool::new(false),
        }))
    }

    /// The body of a unit that may be killed at each of its waits, to be spawned. It must be all that the unit runs.
    pub fn cover<F: Future>(&self, body: F) -> impl Future<Output = F::Output> + use<F> {
        let kills = self.clone();
        async move {
            let mut body = pin!(body);
            std::future::poll_fn(|cx| {
                let polled = body.as_mut().poll(cx);
                if polled.is_pending()
                    && let Some(unit) = Unit::current()
                {
                    kills.may_kill(unit);
                }
                polled
            })
            .await
        }
    }

    /// A unit whose body is not at hand, such as a server, a supervisor or a thread. It may be killed after each of
    /// many runs of other jobs, and after pauses, as long as it lives.
    pub fn target(&self, unit: &impl AsUnit) {
        let Some(unit) = unit.as_unit() else { return };
        let kills = self.clone();
        drop(spawn(async move {
            let mut pause = Duration::from_micros(100);
            while !unit.has_ended() && !kills.has_killed() {
                for _ in 0..YIELDS {
                    kills.may_kill(unit.clone());
                    yield_now().await;
                }
                // Time passes only when nothing can run. The pauses get ever longer: otherwise a unit that waits for
                // days would have countless places.
                sleep(pause).await;
                pause = pause.saturating_mul(2);
            }
        }));
    }

    /// Whether the kill has come.
    pub fn has_killed(&self) -> bool {
        self.0.was_done.load(Ordering::Relaxed)
    }

    /// The unit is at a wait.
    fn may_kill(&self, unit: Unit) {
        // A unit that has ended is no place for a kill: counted, it would look as if there were no further place.
        // Relaxed: all of it runs on one thread.
        if unit.has_ended() || self.0.seen.fetch_add(1, Ordering::Relaxed) != self.0.wait {
            return;
        }
        self.0.was_done.store(true, Ordering::Relaxed);
        match self.0.is_by_another {
            true => drop(spawn(async move { unit.kill() })),
            false => unit.kill(),
        }
    }
}
