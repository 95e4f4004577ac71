//! Models of the injector: no job is lost or taken twice, and the length never promises too many jobs.

use std::sync::Arc;

#[cfg(not(loom))]
use crate::models::loom_on_std as loom;
use loom::thread;

use crate::models::made_up::Jobs;
use crate::queue::injector::Injector;

/// Two pushers, one of them with a batch, against a popper: each job is taken once, the jobs of one pusher keep their
/// order, and the length is zero in the end.
#[test]
fn two_pushers_against_a_popper() {
    loom::model(|| {
        let jobs = Arc::new(Jobs::new(3));
        let injector = Arc::new(Injector::new());
        let pushers = [vec![0, 1], vec![2]].map(|numbers| {
            let (jobs, injector) = (jobs.clone(), injector.clone());
            thread::spawn(move || injector.push(jobs.batch(numbers)))
        });
        let mut taken = jobs.take_batch(injector.pop(2));
        for pusher in pushers {
            pusher.join().unwrap();
        }
        assert_eq!(injector.len(), 3 - taken.len());
        taken.extend(jobs.take_batch(injector.pop(usize::MAX)));
        let batch: Vec<_> = taken.iter().copied().filter(|number| *number < 2).collect();
        assert_eq!(batch, [0, 1]);
        assert_eq!(injector.len(), 0);
        jobs.assert_all_taken();
    });
}

/// A pusher against a thread that reads the length and then pops: it finds at least that many jobs, as long as no other
/// thread pops.
#[test]
fn a_popper_finds_as_many_jobs_as_it_saw() {
    loom::model(|| {
        let jobs = Arc::new(Jobs::new(2));
        let injector = Arc::new(Injector::new());
        let pusher = {
            let (jobs, injector) = (jobs.clone(), injector.clone());
            thread::spawn(move || {
                injector.push(jobs.batch([0]));
                injector.push(jobs.batch([1]));
            })
        };
        let seen = injector.len();
        let taken = jobs.take_batch(injector.pop(usize::MAX));
        assert!(
            taken.len() >= seen,
            "{seen} were seen and {taken:?} were found"
        );
        pusher.join().unwrap();
        let rest = jobs.take_batch(injector.pop(usize::MAX));
        assert_eq!([taken, rest].concat(), [0, 1]);
        jobs.assert_all_taken();
    });
}

/// A pusher against two poppers: each job is taken once.
#[test]
fn a_pusher_against_two_poppers() {
    loom::model(|| {
        let jobs = Arc::new(Jobs::new(2));
        let injector = Arc::new(Injector::new());
        injector.push(jobs.batch([0]));
        let poppers = [(); 2].map(|()| {
            let (jobs, injector) = (jobs.clone(), injector.clone());
            thread::spawn(move || jobs.take_batch(injector.pop(1)).len())
        });
        injector.push(jobs.batch([1]));
        let taken: usize = poppers
            .into_iter()
            .map(|popper| popper.join().unwrap())
            .sum();
        assert_eq!(injector.len(), 2 - taken);
        jobs.take_batch(injector.pop(usize::MAX));
        jobs.assert_all_taken();
    });
}
