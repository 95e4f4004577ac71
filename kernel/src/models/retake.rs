//! Models of retaking a worker: its lease is revoked under the biased lock of its core. One thread holds the lock at
//! a time, and each job is in exactly one place.
//!
//! The core consists of cells that loom watches: a model fails if two threads hold the lock at once, or if one of them
//! does not see what the other did under it.

#![allow(unsafe_code)]

use std::{
    ptr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

#[cfg(not(loom))]
use crate::models::loom_on_std as loom;
use loom::{cell::Cell, thread};

use crate::models::made_up::{Job, Jobs};
use crate::{
    biased_lock::{BiasedLock, Lease, OwnerFence, Revoked},
    queue::{
        injector::Injector,
        ring::{self, BATCH, RingOwner, RingThief},
    },
    sys::AtomicUsize as Watched,
};

/// The run word while nothing runs.
const NONE: usize = 0;

/// The parts of a worker that a retake concerns.
struct Worker {
    core: BiasedLock<Core>,
    /// The run word: the number of the run that the owner is in.
    run: Watched,
    thief: RingThief<Job>,
    injector: Injector<Job>,
    jobs: Jobs,
    /// Stands for the memory of the job that the owner runs.
    running: Cell<&'static str>,
}

struct Core {
    next: Cell<Option<*mut Job>>,
    ring: RingOwner<Job>,
    timers: Cell<usize>,
    /// Counts uses of the ring, which loom does not watch.
    uses: Cell<usize>,
}

impl Core {
    fn ring(&mut self) -> &mut RingOwner<Job> {
        self.uses.set(self.uses.get() + 1);
        &mut self.ring
    }
}

impl Worker {
    /// A worker whose first owner is in run 1, and the owner's lease.
    fn new(jobs: usize) -> (Arc<Worker>, Lease) {
        Worker::with_lock(jobs, BiasedLock::new)
    }

    fn with_lock(
        jobs: usize,
        lock: impl FnOnce(Core) -> (BiasedLock<Core>, Lease),
    ) -> (Arc<Worker>, Lease) {
        let (ring, thief) = ring::new();
        let core = Core {
            next: Cell::new(None),
            ring,
            timers: Cell::new(0),
            uses: Cell::new(0),
        };
        let (core, lease) = lock(core);
        let worker = Worker {
            core,
            run: Watched::new(1),
            thief,
            injector: Injector::new(),
            jobs: Jobs::new(jobs),
            running: Cell::new("running"),
        };
        (Arc::new(worker), lease)
    }

    /// As `ready::ready` inside a job: into the next slot, else to the injector.
    fn send(&self, lease: Lease, number: usize) {
        // SAFETY: *owner*: this thread has the lease, or had it.
        match unsafe { self.core.enter(lease) } {
            Ok(core) => {
                let displaced = core.next.replace(Some(self.jobs.queue(number)));
                assert_eq!(displaced, None);
            }
            Err(Revoked) => self.injector.push(self.jobs.batch([number])),
        }
    }

    /// As `ready::ready_last` inside a job: into the ring, else to the injector.
    fn spawn(&self, lease: Lease, number: usize) {
        // SAFETY: *owner*: this thread has the lease, or had it.
        match unsafe { self.core.enter(lease) } {
            Ok(mut core) => assert_eq!(core.ring().push(self.jobs.queue(number)), Ok(())),
            Err(Revoked) => self.injector.push(self.jobs.batch([number])),
        }
    }

    /// As `monitor::revoke`, if the owner is still in `run`.
    fn retake(&self, run: usize) -> Option<Lease> {
        let mut foreign = self.core.enter_foreign();
        if self.run.load(Ordering::Relaxed) != run {
            return None;
        }
        assert_eq!(self.running.get(), "running");
        self.run.store(NONE, Ordering::Relaxed);
        Some(foreign.revoke())
    }

    /// As `serve::renew_lease`, for an owner that hands its worker off.
    fn renew_lease(&self, lease: Lease) -> Option<Lease> {
        let mut foreign = self.core.enter_foreign();
        if !foreign.is_current(lease) {
            return None;
        }
        self.run.store(NONE, Ordering::Relaxed);
        Some(foreign.revoke())
    }

    /// As `overdue::take_overdue`, if the owner is still in `run`.
    fn take_overdue(&self, run: usize) {
        let foreign = self.core.enter_foreign();
        if self.run.load(Ordering::Relaxed) != run {
            return;
        }
        let slot = foreign.next.take();
        drop(foreign);
        if let Some(job) = slot {
            self.injector.push(self.jobs.rebatch(&[job]));
        }
    }

    /// As `WorkerLoop::take_next`: takes the next job, and names its run.
    fn take_next(&self, lease: Lease, run: usize) -> Result<Option<usize>, Revoked> {
        // SAFETY: *owner*: this thread has the lease, or had it.
        let mut core = unsafe { self.core.enter(lease) }?;
        let job = core.next.take().or_else(|| core.ring().pop());
        let run = if job.is_some() { run } else { NONE };
        self.run.store(run, Ordering::Relaxed);
        Ok(job.map(|job| self.jobs.take(job)))
    }

    /// Takes all jobs from the injector.
    fn injected(&self) -> Vec<usize> {
        self.jobs.take_batch(self.injector.pop(usize::MAX))
    }
}

/// A retake against a send by the old owner: the job ends up in the next slot, from which the new owner takes it, or
/// in the injector.
#[test]
fn a_retake_against_a_send() {
    loom::model(|| {
        let (worker, lease) = Worker::new(1);
        let old = {
            let worker = worker.clone();
            thread::spawn(move || worker.send(lease, 0))
        };
        let new = worker.retake(1).expect("the owner stays in its run");
        let taken = worker.take_next(new, 2).expect("the lease is new");
        old.join().unwrap();
        assert_eq!(
            [taken.into_iter().collect(), worker.injected()].concat(),
            [0]
        );
    });
}

/// A retake against a spawn by the old owner, while a thief steals: the job ends up in the ring, from which the new
/// owner or the thief takes it, or in the injector.
#[test]
fn a_retake_against_a_spawn() {
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
                let mut place = [ptr::null_mut(); BATCH];
                let count = worker.thief.steal(&mut place);
                worker.jobs.take_all(&place[..count]);
            })
        };
        let new = worker.retake(1).expect("the owner stays in its run");
        worker.take_next(new, 2).expect("the lease is new");
        old.join().unwrap();
        thief.join().unwrap();
        worker.take_next(new, 3).expect("the lease was not revoked");
        worker.injected();
        worker.jobs.assert_all_taken();
    });
}

/// A retake against a foreign thread and the old owner, which insert a timer each: the old owner either inserts its
/// timer or gets `Revoked`, and the new owner sees all timers that were inserted.
#[test]
fn a_retake_against_timer_inserts() {
    retake_against_timer_inserts(BiasedLock::new);
}

/// The same where the owner takes a full fence.
#[test]
fn a_retake_against_timer_inserts_with_full_fences() {
    retake_against_timer_inserts(|core| BiasedLock::with_fence(core, OwnerFence::Full));
}

fn retake_against_timer_inserts(lock: fn(Core) -> (BiasedLock<Core>, Lease)) {
    loom::model(move || {
        let (worker, lease) = Worker::with_lock(0, lock);
        let foreign = {
            let worker = worker.clone();
            thread::spawn(move || {
                let core = worker.core.enter_foreign();
                core.timers.set(core.timers.get() + 1);
            })
        };
        let old = {
            let worker = worker.clone();
            thread::spawn(move || {
                // SAFETY: *owner*: this thread has the lease, or had it.
                let core = unsafe { worker.core.enter(lease) }?;
                core.timers.set(core.timers.get() + 1);
                Ok::<_, Revoked>(())
            })
        };
        let new = worker.retake(1).expect("the owner stays in its run");
        // SAFETY: *owner*: this thread has the lease, or had it.
        drop(unsafe { worker.core.enter(new) }.expect("the lease is new"));
        foreign.join().unwrap();
        let inserted = 1 + usize::from(old.join().unwrap().is_ok());
        // SAFETY: *owner*: this thread has the lease, or had it.
        let core = unsafe { worker.core.enter(new) }.expect("the lease was not revoked");
        assert_eq!(core.timers.get(), inserted);
    });
}

/// A retake against the return of the old owner: either the owner takes its next job first and the retake sees another
/// run, or the owner gets `Revoked`, and frees its job only after the other thread has read it.
#[test]
fn a_retake_against_the_return_of_the_owner() {
    loom::model(|| {
        let (worker, lease) = Worker::new(1);
        worker.spawn(lease, 0);
        let old = {
            let worker = worker.clone();
            thread::spawn(move || {
                let took = worker.take_next(lease, 2);
                worker.running.set("freed");
                took.is_ok()
            })
        };
        let new = worker.retake(1);
        let taken = new.map(|new| worker.take_next(new, 2));
        assert!(taken.is_none_or(|taken| taken == Ok(Some(0))));
        let has_taken = old.join().unwrap();
        assert_eq!(new.is_none(), has_taken);
        worker.jobs.assert_all_taken();
    });
}

/// The return of the old owner, after the retake, against the new owner and a foreign thread: the latter two do not
/// hold the lock at once, although the old owner tries to enter.
#[test]
fn the_return_of_an_old_owner_against_the_new_one_and_a_foreign_thread() {
    loom::model(|| {
        let (worker, old) = Worker::new(0);
        let new = worker.retake(1).expect("the owner stays in its run");
        let returning = {
            let worker = worker.clone();
            // SAFETY: *owner*: this thread has the lease, or had it.
            thread::spawn(move || assert!(unsafe { worker.core.enter(old) }.is_err()))
        };
        let foreign = {
            let worker = worker.clone();
            thread::spawn(move || {
                let core = worker.core.enter_foreign();
                core.timers.set(core.timers.get() + 1);
            })
        };
        {
            // SAFETY: *owner*: this thread has the lease, or had it.
            let core = unsafe { worker.core.enter(new) }.expect("the lease was not revoked");
            core.timers.set(core.timers.get() + 1);
        }
        returning.join().unwrap();
        foreign.join().unwrap();
        assert_eq!(worker.core.enter_foreign().timers.get(), 2);
    });
}

/// A retake by the monitor against the owner's own handoff: one of them gets the new lease.
#[test]
fn a_retake_against_a_renewal() {
    loom::model(|| {
        let (worker, lease) = Worker::new(0);
        let owner = {
            let worker = worker.clone();
            thread::spawn(move || worker.renew_lease(lease))
        };
        let taken = worker.retake(1);
        let renewed = owner.join().unwrap();
        let leases: Vec<_> = taken.into_iter().chain(renewed).collect();
        assert_eq!(leases.len(), 1);
        // SAFETY: *owner*: this thread has the lease, or had it.
        assert!(unsafe { worker.core.enter(leases[0]) }.is_ok());
        // SAFETY: *owner*: this thread has the lease, or had it.
        assert!(unsafe { worker.core.enter(lease) }.is_err());
    });
}

/// Two retakes at once, while the owner tries to enter: one of the foreign threads gets the new lease, and only its
/// lease admits a thread.
#[test]
fn a_retake_against_a_retake() {
    loom::model(|| {
        let (worker, lease) = Worker::new(1);
        let other = {
            let worker = worker.clone();
            thread::spawn(move || worker.retake(1))
        };
        let old = {
            let worker = worker.clone();
            thread::spawn(move || worker.send(lease, 0))
        };
        let here = worker.retake(1);
        let there = other.join().unwrap();
        old.join().unwrap();
        let leases: Vec<_> = here.into_iter().chain(there).collect();
        assert_eq!(leases.len(), 1);
        let taken = worker
            .take_next(leases[0], 2)
            .expect("the lease was not revoked again");
        assert_eq!(
            [taken.into_iter().collect(), worker.injected()].concat(),
            [0]
        );
        // SAFETY: *owner*: this thread has the lease, or had it.
        assert!(unsafe { worker.core.enter(lease) }.is_err());
    });
}

/// Taking the overdue job from the next slot against the owner that takes it: the owner runs the job, or the job goes
/// to the injector. If the owner is already in another run, the slot is left alone.
#[test]
fn taking_the_overdue_job_against_the_owner() {
    loom::model(|| {
        let (worker, lease) = Worker::new(2);
        worker.send(lease, 0);
        let taken = Arc::new(AtomicUsize::new(0));
        let owner = {
            let (worker, taken) = (worker.clone(), taken.clone());
            thread::spawn(move || {
                if worker.take_next(lease, 2) == Ok(Some(0)) {
                    taken.fetch_add(1, Ordering::Relaxed);
                    worker.send(lease, 1);
                }
            })
        };
        worker.take_overdue(1);
        owner.join().unwrap();
        let injected = worker.injected();
        assert_eq!(taken.load(Ordering::Relaxed) + injected.len(), 1);
        assert!(!injected.contains(&1), "the slot of a later run was taken");
    });
}

/// A new lease reuses the flag of an ended one, whose thread has only just tried to enter for the last time: the new
/// owner and a foreign thread do not hold the lock at once.
#[test]
fn a_reused_flag_against_a_foreign_thread() {
    loom::model(|| {
        let (worker, first) = Worker::new(0);
        worker.retake(1).expect("the owner stays in its run");
        let returning = {
            let worker = worker.clone();
            thread::spawn(move || {
                // SAFETY: *owner*: this thread has the lease, or had it.
                assert!(unsafe { worker.core.enter(first) }.is_err());
                // SAFETY: *owner*: the lease is revoked, and not used again.
                unsafe { worker.core.end(first) };
            })
        };
        let foreign = {
            let worker = worker.clone();
            thread::spawn(move || {
                let core = worker.core.enter_foreign();
                core.timers.set(core.timers.get() + 1);
            })
        };
        let newest = worker.core.enter_foreign().revoke();
        {
            // SAFETY: *owner*: this thread has the lease, or had it.
            let core = unsafe { worker.core.enter(newest) }.expect("the lease is new");
            core.timers.set(core.timers.get() + 1);
        }
        returning.join().unwrap();
        foreign.join().unwrap();
        assert_eq!(worker.core.enter_foreign().timers.get(), 2);
    });
}
