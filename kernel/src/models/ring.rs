//! Models of the ring: every job is taken exactly once, in order.

use std::{ptr, sync::Arc};

#[cfg(not(loom))]
use crate::models::loom_on_std as loom;
use loom::thread;

use crate::models::made_up::{Job, Jobs};
use crate::{
    queue::{
        injector::Injector,
        queue_counts::QueueCounts,
        ring::{self, BATCH, CAPACITY, RingOwner, RingThief},
    },
    sys::{AtomicBool, Ordering},
};

fn push(owner: &mut RingOwner<Job>, jobs: &Jobs, number: usize) {
    assert_eq!(owner.push(jobs.queue(number)), Ok(()));
}

fn steal(thief: &RingThief<Job>, jobs: &Jobs) -> Vec<usize> {
    let mut place = [ptr::null_mut(); BATCH];
    let count = thief.steal(&mut place);
    jobs.take_all(&place[..count])
}

fn pop(owner: &mut RingOwner<Job>, jobs: &Jobs) -> Option<usize> {
    owner.pop().map(|job| jobs.take(job))
}

fn assert_in_order(taken: &[usize]) {
    assert!(taken.is_sorted(), "one consumer took {taken:?}");
}

/// The owner pushes and pops while a thief steals twice: each job is taken once, each side takes jobs in the order of
/// the pushes, and the owner can empty the ring.
#[test]
fn an_owner_against_a_thief() {
    loom::model(|| {
        let jobs = Arc::new(Jobs::new(4));
        let (mut owner, thief) = ring::new();
        push(&mut owner, &jobs, 0);
        let stealing = {
            let jobs = jobs.clone();
            thread::spawn(move || [steal(&thief, &jobs), steal(&thief, &jobs)].concat())
        };
        push(&mut owner, &jobs, 1);
        push(&mut owner, &jobs, 2);
        let mut taken: Vec<_> = pop(&mut owner, &jobs).into_iter().collect();
        push(&mut owner, &jobs, 3);
        taken.extend(std::iter::from_fn(|| pop(&mut owner, &jobs)));
        assert_in_order(&taken);
        assert_in_order(&stealing.join().unwrap());
        assert_eq!(owner.len(), 0);
        jobs.assert_all_taken();
    });
}

/// The owner of a ring from which nobody steals takes its jobs, while another thread counts them.
#[test]
fn an_owner_alone_against_a_count() {
    loom::model(|| {
        let jobs = Arc::new(Jobs::new(3));
        let (mut owner, thief) = ring::alone();
        let counting = thread::spawn(move || {
            let QueueCounts { taken, put } = thief.counts();
            assert!(taken <= put, "{taken} of {put}");
        });
        let mut taken = vec![];
        for number in 0..3 {
            push(&mut owner, &jobs, number);
            if number > 0 {
                taken.extend(pop(&mut owner, &jobs));
            }
        }
        taken.extend(std::iter::from_fn(|| pop(&mut owner, &jobs)));
        assert_eq!(taken, [0, 1, 2]);
        counting.join().unwrap();
        jobs.assert_all_taken();
    });
}

/// A job is prepared, and published after its stack was left, while a thief steals: nobody takes it before.
#[test]
fn a_job_that_is_prepared_against_a_thief() {
    loom::model(|| {
        let jobs = Arc::new(Jobs::new(2));
        let left = Arc::new(AtomicBool::new(false));
        let (mut owner, thief) = ring::new();
        push(&mut owner, &jobs, 0);
        let stealing = {
            let (jobs, left) = (jobs.clone(), left.clone());
            thread::spawn(move || {
                let stolen = [steal(&thief, &jobs), steal(&thief, &jobs)].concat();
                // Relaxed: the ring orders it.
                assert!(!stolen.contains(&1) || left.load(Ordering::Relaxed));
                stolen
            })
        };
        assert!(owner.prepare(jobs.queue(1)));
        let mut taken: Vec<_> = pop(&mut owner, &jobs).into_iter().collect();
        left.store(true, Ordering::Relaxed);
        owner.publish();
        taken.extend(std::iter::from_fn(|| pop(&mut owner, &jobs)));
        assert_in_order(&taken);
        assert_in_order(&stealing.join().unwrap());
        jobs.assert_all_taken();
    });
}

/// Two thieves steal at once while the owner pops: each job is taken once.
#[test]
fn an_owner_against_two_thieves() {
    loom::model(|| {
        let jobs = Arc::new(Jobs::new(3));
        let (mut owner, thief) = ring::new();
        let thief = Arc::new(thief);
        for number in 0..3 {
            push(&mut owner, &jobs, number);
        }
        let stealing = [(); 2].map(|()| {
            let (thief, jobs) = (thief.clone(), jobs.clone());
            thread::spawn(move || steal(&thief, &jobs))
        });
        let taken: Vec<_> = std::iter::from_fn(|| pop(&mut owner, &jobs)).collect();
        assert_in_order(&taken);
        for stealing in stealing {
            assert_in_order(&stealing.join().unwrap());
        }
        jobs.assert_all_taken();
    });
}

/// The owner takes back what it has queued last, while a thief steals: each job is taken once, and what is before it
/// stays in order.
#[test]
fn an_owner_takes_the_last_against_a_thief() {
    loom::model(|| {
        let jobs = Arc::new(Jobs::new(3));
        let (mut owner, thief) = ring::new();
        push(&mut owner, &jobs, 0);
        let stealing = {
            let jobs = jobs.clone();
            thread::spawn(move || [steal(&thief, &jobs), steal(&thief, &jobs)].concat())
        };
        let last = jobs.queue(1);
        assert_eq!(owner.push(last), Ok(()));
        if owner.pop_last(last).is_some() {
            assert_eq!(jobs.take(last), 1);
        }
        push(&mut owner, &jobs, 2);
        let taken: Vec<_> = std::iter::from_fn(|| pop(&mut owner, &jobs)).collect();
        assert_in_order(&taken);
        assert_in_order(&stealing.join().unwrap());
        assert_eq!(owner.len(), 0);
        jobs.assert_all_taken();
    });
}

/// The owner reuses slots that a thief reads at the same time: the thief discards what it read before.
#[test]
fn reused_slots_against_a_thief() {
    loom::model(|| {
        let count = CAPACITY + 2;
        let jobs = Arc::new(Jobs::new(count));
        let (mut owner, thief) = ring::new();
        for number in 0..CAPACITY {
            push(&mut owner, &jobs, number);
        }
        let stealing = {
            let jobs = jobs.clone();
            thread::spawn(move || steal(&thief, &jobs))
        };
        let mut taken = Vec::new();
        for number in CAPACITY..count {
            taken.extend(pop(&mut owner, &jobs));
            push(&mut owner, &jobs, number);
        }
        taken.extend(std::iter::from_fn(|| pop(&mut owner, &jobs)));
        assert_in_order(&taken);
        assert_in_order(&stealing.join().unwrap());
        jobs.assert_all_taken();
    });
}

/// A job that finds the ring full goes to the injector, as in `WorkerCore::push_last`, while a thief steals from the
/// ring: each job is taken once.
#[test]
fn an_overflow_against_a_thief() {
    loom::model(|| {
        let jobs = Arc::new(Jobs::new(CAPACITY + 1));
        let (mut owner, thief) = ring::new();
        for number in 0..CAPACITY {
            push(&mut owner, &jobs, number);
        }
        let stealing = {
            let jobs = jobs.clone();
            thread::spawn(move || steal(&thief, &jobs))
        };
        let injector = Injector::new();
        if let Err(job) = owner.push(jobs.queue(CAPACITY)) {
            injector.push(jobs.rebatch(&[job]));
        }
        assert_in_order(&stealing.join().unwrap());
        assert_in_order(&jobs.take_batch(injector.pop(usize::MAX)));
        let taken: Vec<_> = std::iter::from_fn(|| pop(&mut owner, &jobs)).collect();
        assert_in_order(&taken);
        jobs.assert_all_taken();
    });
}
