//! Models of the state word's transitions except those of messages: wake, park, cancel, block, complete, join.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

#[cfg(not(loom))]
use crate::models::loom_on_std as loom;
use loom::{cell::Cell, sync::Notify, thread};

use crate::{
    job::{
        state::State,
        transition::{Inbox, Listening, Owes, ParkOutcome, StartAction},
    },
    sys::{AtomicUsize as Watched, Mutex, lock},
};

/// A job that ends after `wanted` events, or when it is cancelled.
struct Job {
    state: State,
    wanted: usize,
    /// The events so far. Relaxed, so the job sees an event only if the wake orders it.
    happened: Watched,
    /// Stands for the body. Only one thread at a time may run the job; loom would find two.
    runs: Cell<usize>,
    ends: AtomicUsize,
    cancels: AtomicUsize,
}

impl Job {
    /// An awake job; the caller has its runnable.
    fn awake(wanted: usize) -> Arc<Job> {
        Arc::new(Job {
            state: State::new(Inbox::None),
            wanted,
            happened: Watched::new(0),
            runs: Cell::new(0),
            ends: AtomicUsize::new(0),
            cancels: AtomicUsize::new(0),
        })
    }

    /// One event, which wakes the job.
    fn happen(&self) {
        self.happened.fetch_add(1, Ordering::Relaxed);
        match self.state.wake() {
            Owes::Nothing => {}
            Owes::Schedule => self.run(),
            Owes::Unblock => panic!("the job never blocks"),
        }
    }

    /// Runs the job until it ends or is parked. The caller has its runnable.
    fn run(&self) {
        loop {
            let start = self.state.start();
            self.runs.set(self.runs.get() + 1);
            if start == StartAction::Cancel {
                self.cancels.fetch_add(1, Ordering::Relaxed);
                return self.complete();
            }
            if self.happened.load(Ordering::Relaxed) >= self.wanted {
                self.ends.fetch_add(1, Ordering::Relaxed);
                return self.complete();
            }
            if self.state.park(Listening::No) == ParkOutcome::Parked {
                return;
            }
        }
    }

    fn complete(&self) {
        let completed = self.state.complete();
        assert!(!completed.wake_joiner && !completed.wake_receiver && !completed.drop_output);
    }

    fn counts(&self) -> (usize, usize) {
        (
            self.ends.load(Ordering::Relaxed),
            self.cancels.load(Ordering::Relaxed),
        )
    }
}

/// A wake against a park: the job sees the event before the wake, and ends.
#[test]
fn a_wake_against_a_park_is_not_lost() {
    loom::model(|| {
        let job = Job::awake(1);
        let waking = {
            let job = job.clone();
            thread::spawn(move || job.happen())
        };
        job.run();
        waking.join().unwrap();
        assert_eq!(job.counts(), (1, 0));
    });
}

/// Two wakes against a park: neither is lost, and the job has one runnable.
#[test]
fn two_wakes_against_a_park_make_one_runnable_at_a_time() {
    loom::model(|| {
        let job = Job::awake(2);
        let waking = [(); 2].map(|()| {
            let job = job.clone();
            thread::spawn(move || job.happen())
        });
        job.run();
        for waking in waking {
            waking.join().unwrap();
        }
        assert_eq!(job.counts(), (1, 0));
    });
}

/// Two wakes of a parked job: exactly one of them creates the runnable.
#[test]
fn of_two_wakes_one_makes_the_runnable() {
    loom::model(|| {
        let job = Job::awake(1);
        assert_eq!(job.state.park(Listening::No), ParkOutcome::Parked);
        let waking = {
            let job = job.clone();
            thread::spawn(move || job.state.wake())
        };
        let here = job.state.wake();
        let there = waking.join().unwrap();
        assert!(
            (here == Owes::Schedule) != (there == Owes::Schedule),
            "{here:?} and {there:?}"
        );
        // The later wake is not lost: the run that the first wake scheduled sees it.
        assert_eq!(job.state.start(), StartAction::Poll);
        assert_eq!(job.state.park(Listening::No), ParkOutcome::Parked);
    });
}

/// A cancel and a wake against a park: the job ends once, as cancelled if the wake came too late.
#[test]
fn a_cancel_against_a_park_ends_the_job_once() {
    loom::model(|| {
        let job = Job::awake(1);
        let cancelling = {
            let job = job.clone();
            thread::spawn(move || {
                if job.state.cancel() == Owes::Schedule {
                    job.run();
                }
            })
        };
        let waking = {
            let job = job.clone();
            thread::spawn(move || job.happen())
        };
        job.run();
        cancelling.join().unwrap();
        waking.join().unwrap();
        let (ends, cancels) = job.counts();
        assert_eq!(ends + cancels, 1);
        assert!(job.state.is_done());
    });
}

/// A cancel against a job that blocks its thread in `wait()`: the thread sees the cancel before it
/// parks, or is unparked.
#[test]
fn a_cancel_against_a_block_unparks_the_thread() {
    loom::model(|| {
        let state = Arc::new(State::new(Inbox::None));
        let blocked = Arc::new(Mutex::new(None::<Arc<Notify>>));
        let cancelling = {
            let (state, blocked) = (state.clone(), blocked.clone());
            thread::spawn(move || match state.cancel() {
                Owes::Unblock => {
                    if let Some(parking) = lock(&blocked).clone() {
                        parking.notify();
                    }
                }
                owes => assert_eq!(owes, Owes::Nothing),
            })
        };
        // As `wait::block::park_thread_in_job`.
        let parking = Arc::new(Notify::new());
        *lock(&blocked) = Some(parking.clone());
        if state.block() {
            while !state.is_cancelled() {
                parking.wait();
            }
            state.unblock();
        }
        assert!(state.is_cancelled());
        cancelling.join().unwrap();
    });
}

/// What a joiner and a completion share: the output, and the place for a waker in the extensions.
struct Joined {
    state: State,
    output: Cell<Option<u32>>,
    joiner: Mutex<Option<Arc<Notify>>>,
    drops: AtomicUsize,
}

impl Joined {
    fn new() -> Arc<Joined> {
        Arc::new(Joined {
            state: State::new(Inbox::None),
            output: Cell::new(None),
            joiner: Mutex::new(None),
            drops: AtomicUsize::new(0),
        })
    }

    /// As `run::finish`.
    fn complete(&self) {
        self.output.set(Some(7));
        let completed = self.state.complete();
        if completed.drop_output {
            self.drop_output();
        }
        if completed.wake_joiner {
            lock(&self.joiner)
                .take()
                .expect("a registered joiner has a waker")
                .notify();
        }
    }

    /// As `JoinHandle::poll`. True if the output is there.
    fn poll_join(&self, waker: &Arc<Notify>) -> bool {
        if !self.state.is_done() && self.state.unregister_joiner() {
            *lock(&self.joiner) = Some(waker.clone());
            return !self.state.register_joiner();
        }
        true
    }

    fn drop_output(&self) {
        assert_eq!(self.output.take(), Some(7));
        self.drops.fetch_add(1, Ordering::Relaxed);
    }
}

/// An end against a joiner that registers one waker and then another: the later waker is woken, or the joiner finds the
/// job done. Either way the joiner sees the output.
#[test]
fn an_end_against_a_registration_wakes_the_joiner() {
    loom::model(|| {
        let job = Joined::new();
        let runner = {
            let job = job.clone();
            thread::spawn(move || job.complete())
        };
        let (former, later) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        if !job.poll_join(&former) {
            while !job.poll_join(&later) {
                later.wait();
            }
        }
        assert_eq!(job.output.take(), Some(7));
        runner.join().unwrap();
    });
}

/// An end against the drop of the join handle: the output is dropped exactly once.
#[test]
fn an_end_against_the_drop_of_the_handle_drops_the_output_once() {
    loom::model(|| {
        let job = Joined::new();
        let runner = {
            let job = job.clone();
            thread::spawn(move || job.complete())
        };
        // As the drop of `JoinHandle`.
        if job.state.drop_handle() {
            job.drop_output();
        }
        runner.join().unwrap();
        assert_eq!(job.drops.load(Ordering::Relaxed), 1);
    });
}
