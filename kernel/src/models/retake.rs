//! Models of the take-over of a worker's right through its gate: one thread is inside at a time, and
//! what lies inside is in exactly one place.
//!
//! What is inside lies in cells that loom watches: a model fails if two threads are inside at once, or
//! if one of them does not see what the other did there.

use std::{
    ptr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use loom::{cell::Cell, thread};

use crate::models::made_up::{Job, Jobs};
use crate::{
    biased_lock::{BiasedLock, Lease, Revoked},
    queue::{
        injector::Injector,
        ring::{self, CAPACITY, RingOwner, RingThief},
    },
    sys::AtomicUsize as Watched,
};

/// What the run word says when nothing runs.
const NONE: usize = 0;

/// A worker, by the parts that a take-over concerns.
struct Worker {
    gate: BiasedLock<Inside>,
    /// The run word: the number of the run that the holder is in.
    run: Watched,
    thief: RingThief<Job>,
    injector: Injector<Job>,
    jobs: Jobs,
    /// Stands for the memory of the job that the holder runs.
    running: Cell<&'static str>,
}

struct Inside {
    next: Cell<Option<*mut Job>>,
    ring: RingOwner<Job>,
    timers: Cell<usize>,
    /// Counted by those who use the ring, which loom does not watch itself.
    visits: Cell<usize>,
}

impl Inside {
    fn ring(&mut self) -> &mut RingOwner<Job> {
        self.visits.set(self.visits.get() + 1);
        &mut self.ring
    }
}

impl Worker {
    /// A worker whose first holder is in run 1, and the holder's epoch.
    fn new(jobs: usize) -> (Arc<Worker>, Lease) {
        let (ring, thief) = ring::new();
        let inside = Inside {
            next: Cell::new(None),
            ring,
            timers: Cell::new(0),
            visits: Cell::new(0),
        };
        let (gate, lease) = BiasedLock::new(inside);
        let worker = Worker {
            gate,
            run: Watched::new(1),
            thief,
            injector: Injector::new(),
            jobs: Jobs::new(jobs),
            running: Cell::new("running"),
        };
        (Arc::new(worker), lease)
    }

    /// As `ready::ready` does it inside a job: into the next slot, else to the injector.
    fn send(&self, lease: Lease, number: usize) {
        match self.gate.enter(lease) {
            Ok(inside) => {
                let displaced = inside.next.replace(Some(self.jobs.queue(number)));
                assert_eq!(displaced, None);
            }
            Err(Revoked) => self.injector.push(self.jobs.batch([number])),
        }
    }

    /// As `ready::ready_last` does it inside a job: into the ring, else to the injector.
    fn spawn(&self, lease: Lease, number: usize) {
        match self.gate.enter(lease) {
            Ok(mut inside) => assert_eq!(inside.ring().push(self.jobs.queue(number)), Ok(())),
            Err(Revoked) => self.injector.push(self.jobs.batch([number])),
        }
    }

    /// As `monitor::take_over` does it, if the holder is still in `run`.
    fn take_over(&self, run: usize) -> Option<Lease> {
        let mut foreign = self.gate.enter_foreign();
        if self.run.load(Ordering::Relaxed) != run {
            return None;
        }
        assert_eq!(self.running.get(), "running");
        self.run.store(NONE, Ordering::Relaxed);
        Some(foreign.revoke())
    }

    /// As `pool::renew` does it for a holder that gives its right up.
    fn renew(&self, lease: Lease) -> Option<Lease> {
        let mut foreign = self.gate.enter_foreign();
        if !foreign.is_current(lease) {
            return None;
        }
        self.run.store(NONE, Ordering::Relaxed);
        Some(foreign.revoke())
    }

    /// As `monitor::take_overdue` does it, if the holder is still in `run`.
    fn rob(&self, run: usize) {
        let foreign = self.gate.enter_foreign();
        if self.run.load(Ordering::Relaxed) != run {
            return;
        }
        let slot = foreign.next.take();
        drop(foreign);
        if let Some(job) = slot {
            self.injector.push(self.jobs.rebatch(&[job]));
        }
    }

    /// As `Tenure::pass` does it: takes the next job, and names its run.
    fn pass(&self, lease: Lease, run: usize) -> Result<Option<usize>, Revoked> {
        let mut inside = self.gate.enter(lease)?;
        let job = inside.next.take().or_else(|| inside.ring().pop());
        let run = if job.is_some() { run } else { NONE };
        self.run.store(run, Ordering::Relaxed);
        Ok(job.map(|job| self.jobs.take(job)))
    }

    /// What lies in the injector.
    fn injected(&self) -> Vec<usize> {
        self.jobs.take_batch(self.injector.pop(usize::MAX))
    }
}

/// A take-over against a send of the old holder: the job ends up in the next slot, from which the new
/// holder takes it, or in the injector.
#[test]
fn a_take_over_against_a_send() {
    loom::model(|| {
        let (worker, lease) = Worker::new(1);
        let old = {
            let worker = worker.clone();
            thread::spawn(move || worker.send(lease, 0))
        };
        let new = worker.take_over(1).expect("the holder stays in its run");
        let taken = worker.pass(new, 2).expect("the right was just given");
        old.join().unwrap();
        assert_eq!(
            [taken.into_iter().collect(), worker.injected()].concat(),
            [0]
        );
    });
}

/// A take-over against a spawn of the old holder, while a thief steals: the job ends up in the ring,
/// from which the new holder or the thief takes it, or in the injector.
#[test]
fn a_take_over_against_a_spawn() {
    loom::model(|| {
        let (worker, lease) = Worker::new(2);
        worker.spawn(lease, 0);
        let old = {
            let worker = worker.clone();
            thread::spawn(move || worker.spawn(lease, 1))
        };
        let thief = {
            let worker = worker.clone();
            thread::spawn(move || {
                let mut place = [ptr::null_mut(); CAPACITY / 2];
                let count = worker.thief.steal(&mut place);
                worker.jobs.take_all(&place[..count]);
            })
        };
        let new = worker.take_over(1).expect("the holder stays in its run");
        worker.pass(new, 2).expect("the right was just given");
        old.join().unwrap();
        thief.join().unwrap();
        worker.pass(new, 3).expect("the right was not given on");
        worker.injected();
        worker.jobs.assert_all_taken();
    });
}

/// A take-over against an foreign that inserts a timer, and the old holder that inserts one: the new
/// holder sees all that were inserted, and the old one is inside or told that it lost.
#[test]
fn a_take_over_against_timer_inserts() {
    loom::model(|| {
        let (worker, lease) = Worker::new(0);
        let foreign = {
            let worker = worker.clone();
            thread::spawn(move || {
                let inside = worker.gate.enter_foreign();
                inside.timers.set(inside.timers.get() + 1);
            })
        };
        let old = {
            let worker = worker.clone();
            thread::spawn(move || {
                let inside = worker.gate.enter(lease)?;
                inside.timers.set(inside.timers.get() + 1);
                Ok::<_, Revoked>(())
            })
        };
        let new = worker.take_over(1).expect("the holder stays in its run");
        drop(worker.gate.enter(new).expect("the right was just given"));
        foreign.join().unwrap();
        let inserted = 1 + usize::from(old.join().unwrap().is_ok());
        let inside = worker.gate.enter(new).expect("the right was not given on");
        assert_eq!(inside.timers.get(), inserted);
    });
}

/// A take-over against the return of the old holder: either the holder passes first and the take-over
/// sees another run, or the holder is told that it lost, and frees its job only after the other thread
/// has read it.
#[test]
fn a_take_over_against_the_return_of_the_holder() {
    loom::model(|| {
        let (worker, lease) = Worker::new(1);
        worker.spawn(lease, 0);
        let old = {
            let worker = worker.clone();
            thread::spawn(move || {
                let passed = worker.pass(lease, 2);
                worker.running.set("freed");
                passed.is_ok()
            })
        };
        let new = worker.take_over(1);
        let taken = new.map(|new| worker.pass(new, 2));
        assert!(taken.is_none_or(|taken| taken == Ok(Some(0))));
        let has_passed = old.join().unwrap();
        assert_eq!(new.is_none(), has_passed);
        worker.jobs.assert_all_taken();
    });
}

/// The return of an old holder, after the take-over, against the new holder and an foreign: the two
/// are not inside at once, although the old holder knocks at the gate.
#[test]
fn the_return_of_an_old_holder_against_the_new_one_and_an_foreign() {
    loom::model(|| {
        let (worker, old) = Worker::new(0);
        let new = worker.take_over(1).expect("the holder stays in its run");
        let returning = {
            let worker = worker.clone();
            thread::spawn(move || assert!(worker.gate.enter(old).is_err()))
        };
        let foreign = {
            let worker = worker.clone();
            thread::spawn(move || {
                let inside = worker.gate.enter_foreign();
                inside.timers.set(inside.timers.get() + 1);
            })
        };
        {
            let inside = worker.gate.enter(new).expect("the right was not given on");
            inside.timers.set(inside.timers.get() + 1);
        }
        returning.join().unwrap();
        foreign.join().unwrap();
        assert_eq!(worker.gate.enter_foreign().timers.get(), 2);
    });
}

/// A take-over by the monitor against the holder that gives its right up itself: one of them gets it.
#[test]
fn a_take_over_against_a_renewal() {
    loom::model(|| {
        let (worker, lease) = Worker::new(0);
        let holder = {
            let worker = worker.clone();
            thread::spawn(move || worker.renew(lease))
        };
        let taken = worker.take_over(1);
        let renewed = holder.join().unwrap();
        let rights: Vec<_> = taken.into_iter().chain(renewed).collect();
        assert_eq!(rights.len(), 1);
        assert!(worker.gate.enter(rights[0]).is_ok());
        assert!(worker.gate.enter(lease).is_err());
    });
}

/// Two take-overs at once, while the holder wants in: one of the foreigns gets the right, and of the
/// three who think that they may enter only one may.
#[test]
fn a_take_over_against_a_take_over() {
    loom::model(|| {
        let (worker, lease) = Worker::new(1);
        let other = {
            let worker = worker.clone();
            thread::spawn(move || worker.take_over(1))
        };
        let old = {
            let worker = worker.clone();
            thread::spawn(move || worker.send(lease, 0))
        };
        let here = worker.take_over(1);
        let there = other.join().unwrap();
        old.join().unwrap();
        let rights: Vec<_> = here.into_iter().chain(there).collect();
        assert_eq!(rights.len(), 1);
        let taken = worker
            .pass(rights[0], 2)
            .expect("nobody took it over again");
        assert_eq!(
            [taken.into_iter().collect(), worker.injected()].concat(),
            [0]
        );
        assert!(worker.gate.enter(lease).is_err());
    });
}

/// The robbing of an overdue next slot against the holder that takes it: the job is run by the holder,
/// or goes to the injector. If the holder is in another run already, it is left alone.
#[test]
fn a_robbing_of_the_next_slot_against_the_holder() {
    loom::model(|| {
        let (worker, lease) = Worker::new(2);
        worker.send(lease, 0);
        let taken = Arc::new(AtomicUsize::new(0));
        let holder = {
            let (worker, taken) = (worker.clone(), taken.clone());
            thread::spawn(move || {
                if worker.pass(lease, 2) == Ok(Some(0)) {
                    taken.fetch_add(1, Ordering::Relaxed);
                    worker.send(lease, 1);
                }
            })
        };
        worker.rob(1);
        holder.join().unwrap();
        let injected = worker.injected();
        assert_eq!(taken.load(Ordering::Relaxed) + injected.len(), 1);
        assert!(!injected.contains(&1), "the slot of a later run was robbed");
    });
}

/// The flag of a tenure that is over serves a new one, while its former thread has only just knocked for
/// the last time: the new holder and an foreign are not inside at once.
#[test]
fn a_flag_that_is_used_again_against_an_foreign() {
    loom::model(|| {
        let (worker, first) = Worker::new(0);
        worker.take_over(1).expect("the holder stays in its run");
        let returning = {
            let worker = worker.clone();
            thread::spawn(move || {
                assert!(worker.gate.enter(first).is_err());
                worker.gate.end(first);
            })
        };
        let foreign = {
            let worker = worker.clone();
            thread::spawn(move || {
                let inside = worker.gate.enter_foreign();
                inside.timers.set(inside.timers.get() + 1);
            })
        };
        let newest = worker.gate.enter_foreign().revoke();
        {
            let inside = worker.gate.enter(newest).expect("the right was just given");
            inside.timers.set(inside.timers.get() + 1);
        }
        returning.join().unwrap();
        foreign.join().unwrap();
        assert_eq!(worker.gate.enter_foreign().timers.get(), 2);
    });
}
