//! Rows (jobs that come from the next slot without a look at the other fields) change only the cost: a core that grants
//! rows hands out the same jobs as one that asks at every step.

use std::{
    task::Waker,
    time::{Duration, Instant},
};

use super::{turns::DueLook, *};
use crate::job::testing;

/// How many jobs there are; each is in at most one queue of its core.
const JOBS: usize = 24;
const STREAK_LIMIT: u32 = 4;

/// What a core answers, with a number for each job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Job(usize),
    Callbacks,
    Look,
    Empty,
}

/// A core with the jobs that only it knows.
struct Tested {
    core: WorkerCore,
    pinned: PinnedQueue,
    injector: Injector<Header>,
    jobs: Vec<JobPtr>,
    /// Whether the last take by a row was that of a direct switch.
    is_direct: bool,
}

impl Tested {
    fn new() -> Tested {
        let (ring, _thief) = ring::new();
        Tested {
            core: WorkerCore::new(ring),
            pinned: PinnedQueue::new(),
            injector: Injector::new(),
            jobs: (0..JOBS).map(|_| testing::runnable().into_ptr()).collect(),
            is_direct: false,
        }
    }

    fn number(&self, job: JobPtr) -> usize {
        let same = |known: &JobPtr| *known == job;
        self.jobs.iter().position(same).unwrap()
    }

    /// As `ready` does.
    fn wake(&mut self, job: usize) {
        if let Some(displaced) = self.core.next.replace(self.jobs[job]) {
            let full = self.core.push_last(displaced, Behind::Ring);
            assert!(full.is_none());
        }
    }

    fn queue(&mut self, job: usize) {
        let full = self.core.push_last(self.jobs[job], Behind::Ring);
        assert!(full.is_none());
    }

    fn pin(&mut self, job: usize) {
        // SAFETY: the test never runs its jobs; this one is in no queue.
        self.pinned
            .push_own(unsafe { Runnable::new(self.jobs[job]) });
    }

    fn start_callback(&mut self) {
        let entry = EntryPtr::new(0, READY_NOW, Waker::noop().clone());
        self.core.callbacks.push(entry);
    }

    fn run_callback(&mut self) {
        let entry = self.core.callbacks.pop().unwrap();
        // SAFETY: the entry has left the queue, and nothing else knows it.
        unsafe { entry.free() };
    }

    /// As `take_next` does, or always by its slow path, after which no row is left.
    fn take(&mut self, in_rows: bool) -> (Answer, bool) {
        let in_row = match in_rows {
            true => {
                // As a direct switch, every other time.
                self.is_direct = !self.is_direct;
                let direct = match self.is_direct {
                    true => {
                        (self.core).take_fitting_in_row(&self.pinned, STREAK_LIMIT, |_| Some(()))
                    }
                    false => None,
                };
                let job = direct.map(|(job, ())| job);
                let job = job.or_else(|| self.core.take_in_row(&self.pinned));
                job.or_else(|| self.core.take_behind_in_row(&self.pinned, STREAK_LIMIT))
            }
            false => None,
        };
        if let Some(job) = in_row {
            return (Answer::Job(self.number(job.into_ptr())), false);
        }
        let pick = self.core.take(&self.pinned, STREAK_LIMIT, &self.injector);
        if !in_rows {
            self.core.end_row();
        }
        let answer = match pick {
            Pick::Job(job) => Answer::Job(self.number(job.into_ptr())),
            Pick::Callbacks => Answer::Callbacks,
            Pick::Look => Answer::Look,
            Pick::Empty => Answer::Empty,
        };
        (answer, self.core.made_work_visible())
    }

    /// As a joiner that runs the next job itself.
    fn take_if_next(&mut self) -> Option<usize> {
        let job = self.core.next?;
        self.core.take_if_next(job).then(|| self.number(job))
    }
}

/// Numbers that look random, from a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

#[test]
fn a_row_hands_out_what_single_steps_would() {
    // With few pinned jobs rows get long; with many, turns begin in the middle of a streak.
    for pinned in [Pinned::Few, Pinned::Many] {
        compare(pinned);
    }
}

/// How many of the jobs of a comparison are pinned.
#[derive(Clone, Copy, PartialEq)]
enum Pinned {
    Few,
    Many,
}

fn compare(pinned: Pinned) {
    let mut cores = [true, false].map(|in_rows| (in_rows, Tested::new()));
    let mut idle: Vec<usize> = (0..JOBS).collect();
    let mut chance = Chance(1);
    for step in 0..50_000 {
        let what = chance.below(16);
        if what < 6 {
            // Mostly wakes, so that rows get long.
            let Some(job) = idle.pop() else { continue };
            for (_, tested) in &mut cores {
                match what {
                    0 => tested.queue(job),
                    1 if step % 8 == 0 || pinned == Pinned::Many => tested.pin(job),
                    _ => tested.wake(job),
                }
            }
        } else if what == 6 && step % 8 == 0 {
            for (_, tested) in &mut cores {
                tested.start_callback();
            }
        } else if what == 6 {
            // An idle worker looks before a look is due.
            let jobs = u32::try_from(1 + chance.below(12)).unwrap();
            for (_, tested) in &mut cores {
                tested.core.set_until_look(jobs);
            }
        } else if what == 7 {
            let [rows, steps] = cores.each_mut().map(|(_, tested)| tested.take_if_next());
            assert_eq!(rows, steps, "step {step}");
            idle.extend(rows);
        } else {
            let answers = cores
                .each_mut()
                .map(|(in_rows, tested)| tested.take(*in_rows));
            let [rows, steps] = answers;
            assert_eq!(rows, steps, "step {step}");
            let jobs = u32::try_from(1 + chance.below(12)).unwrap();
            for (_, tested) in &mut cores {
                match rows.0 {
                    Answer::Look => tested.core.set_until_look(jobs),
                    Answer::Callbacks => tested.run_callback(),
                    Answer::Job(_) | Answer::Empty => {}
                }
            }
            if let Answer::Job(job) = rows.0 {
                idle.push(job);
            }
        }
        let [rows, steps] = cores.each_ref().map(|(_, tested)| tested.core.polls());
        assert_eq!(rows, steps, "polls, step {step}");
    }
    for (_, mut tested) in cores {
        while !tested.core.callbacks.is_empty() {
            tested.run_callback();
        }
    }
}

/// A core that answers by rows, and one that answers by single steps, in the same state.
fn both(prepare: impl Fn(&mut Tested)) -> [(bool, Tested); 2] {
    [true, false].map(|in_rows| {
        let mut tested = Tested::new();
        prepare(&mut tested);
        (in_rows, tested)
    })
}

#[test]
fn a_joiner_does_not_run_the_next_job_while_a_look_is_due() {
    let mut tested = Tested::new();
    tested.wake(0);
    assert_eq!(tested.take_if_next(), None);
    assert_eq!(tested.take(true).0, Answer::Look);
    tested.core.set_until_look(2);
    assert_eq!(tested.take_if_next(), Some(0));
    tested.wake(1);
    assert_eq!(tested.take(true).0, Answer::Job(1));
    // The row has used up what was left.
    tested.wake(2);
    assert_eq!(tested.take_if_next(), None);
    assert_eq!(tested.take(true).0, Answer::Look);
}

#[test]
fn direct_switches_go_on_until_the_next_look_unless_a_job_waits_behind_a_streak() {
    let direct = |tested: &mut Tested| {
        let taken = (tested.core).take_fitting_in_row(&tested.pinned, STREAK_LIMIT, |_| Some(()));
        taken.map(|(job, ())| tested.number(job.into_ptr()))
    };
    let runs = 3 * STREAK_LIMIT;
    for is_pinned in [false, true] {
        let mut tested = Tested::new();
        tested.core.set_until_look(runs);
        for _ in 0..runs {
            match is_pinned {
                true => tested.pin(0),
                false => tested.queue(0),
            }
            let taken = match is_pinned {
                true => {
                    let job = (tested.core).take_pinned_in_row(&tested.pinned, STREAK_LIMIT);
                    job.map(|job| tested.number(job.into_ptr()))
                }
                false => direct(&mut tested),
            };
            assert_eq!(taken, Some(0));
        }
        tested.queue(0);
        assert_eq!(tested.take(true).0, Answer::Look);
        assert_eq!(tested.core.polls(), u64::from(runs));
    }
    let mut tested = Tested::new();
    tested.core.set_until_look(runs);
    tested.queue(2);
    // From the ring, so a streak begins.
    assert_eq!(direct(&mut tested), Some(2));
    tested.queue(0);
    for _ in 0..STREAK_LIMIT {
        tested.wake(1);
        assert_eq!(direct(&mut tested), Some(1));
    }
    tested.wake(1);
    assert_eq!(direct(&mut tested), None, "the other one has the turn");
    assert_eq!(tested.take(true).0, Answer::Job(0));
}

#[test]
fn a_turn_of_pinned_jobs_begins_while_they_are_alone_and_lasts_as_long_as_any_other() {
    let cores = both(|tested| {
        tested.core.set_until_look(100);
        // A turn of one job, which ends with it.
        tested.pin(0);
    });
    for (in_rows, mut tested) in cores {
        assert_eq!(tested.take(in_rows).0, Answer::Job(0));
        for job in [1, 2, 3] {
            tested.pin(job);
        }
        // The first of a turn of three.
        assert_eq!(tested.take(in_rows).0, Answer::Job(1));
        tested.queue(4);
        tested.queue(5);
        tested.pin(6);
        let order = [(); 5].map(|()| tested.take(in_rows).0);
        assert_eq!(order, [2, 3, 4, 5, 6].map(Answer::Job), "{in_rows}");
    }
}

#[test]
fn a_runner_goes_on_while_no_job_could_have_the_turn_and_no_look_is_due() {
    let goes_on = |prepare: fn(&mut Tested)| {
        let mut tested = Tested::new();
        tested.start_callback();
        prepare(&mut tested);
        let goes_on = tested
            .core
            .give_callbacks_another_turn(&tested.pinned, DueLook::First);
        if !tested.core.callbacks.is_empty() {
            tested.run_callback();
        }
        (goes_on, tested)
    };
    let (alone, mut tested) = goes_on(|tested| tested.core.set_until_look(2));
    assert!(alone);
    assert_eq!(tested.core.polls(), 0, "a turn is no poll");
    // The last job before the look, and the turn of the jobs.
    tested.start_callback();
    tested.queue(0);
    assert_eq!(tested.take(true).0, Answer::Job(0));
    assert_eq!(tested.take(true).0, Answer::Look);
    tested.run_callback();

    tested.start_callback();
    let goes_on_driven = tested
        .core
        .give_callbacks_another_turn(&tested.pinned, DueLook::MayWait);
    assert!(goes_on_driven);
    tested.run_callback();

    let refusals: [fn(&mut Tested); 5] = [
        |tested| tested.core.set_until_look(0),
        |tested| {
            tested.core.set_until_look(2);
            tested.wake(0);
        },
        |tested| {
            tested.core.set_until_look(2);
            tested.queue(0);
        },
        |tested| {
            tested.core.set_until_look(2);
            tested.pin(0);
        },
        |tested| {
            tested.core.set_until_look(2);
            tested.run_callback();
        },
    ];
    for refusal in refusals {
        assert!(!goes_on(refusal).0);
    }
}

#[test]
fn a_look_is_put_off_for_half_a_millisecond_or_for_eight_if_only_jobs_wait() {
    for (is_urgent, most) in [(true, 500), (false, 8_000)] {
        let mut tested = Tested::new();
        tested.core.set_until_look(1);
        let begin = Instant::now();
        let mut asked = 0;
        let mut put_off = |microseconds| {
            tested
                .core
                .put_off(begin + Duration::from_micros(microseconds), |_| {
                    asked += 1;
                    is_urgent
                })
        };
        assert!([0, 100, 499, most - 1].into_iter().all(&mut put_off));
        assert!(!put_off(most));
        // Not before half a millisecond, and not after eight.
        assert_eq!(asked, 1);
    }
}
