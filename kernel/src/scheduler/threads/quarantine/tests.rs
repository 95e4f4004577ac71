//! The queue of the quarantine: places, laps, and what is released.

#![allow(unsafe_code)]

use std::{collections::HashSet, ptr};

use super::*;
use crate::{job::testing, scheduler::threads::suspect_records::record::MEMORY};

#[test]
fn a_spare_thread_is_left_for_workers_and_one_runs_quarantined_jobs() {
    let most = [0, 1, 2, 7, 8, 9, 512].map(share_of_spare_threads);
    assert_eq!(most, [0, 1, 1, 6, 7, 7, 448]);
}

/// How many jobs are queued: so many that the last of them are checked in the third round.
const JOBS: usize = 2 * CHECKED_AT_ONCE + 10;

/// A queue of jobs of a suspect kind, and their addresses.
fn full_queue() -> (Quarantine, Suspects, Vec<*mut Header>) {
    let (quarantine, suspects) = (Quarantine::new(), Suspects::default());
    let push = |_| {
        let job = testing::runnable();
        let address = job.ptr().as_raw().as_ptr();
        quarantine.push(job, &suspects);
        address
    };
    let jobs: Vec<_> = (0..JOBS).map(push).collect();
    // SAFETY: the queue keeps the job alive.
    let first = unsafe { &*jobs[0] };
    suspects.note_offence(first, Instant::now());
    (quarantine, suspects, jobs)
}

/// The first jobs of the queue, which are leaked.
fn taken(quarantine: &Quarantine, most: usize) -> Vec<*mut Header> {
    let pop = |_| Some(quarantine.pop()?.into_ptr().as_raw().as_ptr());
    (0..most).map_while(pop).collect()
}

#[test]
fn jobs_that_stay_keep_their_places() {
    for rounds in 1..=8 {
        let (quarantine, suspects, jobs) = full_queue();
        for _ in 0..rounds {
            assert_eq!(quarantine.take_released(&suspects, || true).len(), 0);
            assert_eq!(quarantine.len(), JOBS);
        }
        assert!(taken(&quarantine, JOBS) == jobs, "{rounds} rounds");
        assert_eq!(quarantine.len(), 0);
    }
}

#[test]
fn each_job_is_checked_in_turn_also_while_threads_take_the_first_and_others_come() {
    let (quarantine, suspects, jobs) = full_queue();
    let cancelled = jobs[JOBS - 1];
    // SAFETY: the queue keeps the job alive.
    let cancelled_job = unsafe { &*cancelled };
    let _owes = cancelled_job.state.cancel();
    let mut released = Vec::new();
    for round in 0..3 {
        assert!(released.is_empty(), "round {round}");
        assert!(taken(&quarantine, 1) == jobs[round..=round]);
        quarantine.push(testing::runnable(), &suspects);
        let mut batch = quarantine.take_released(&suspects, || true);
        released.extend(std::iter::from_fn(|| batch.pop()));
    }
    assert!(released == [cancelled]);
    assert!(taken(&quarantine, JOBS - 4) == jobs[3..JOBS - 1]);
    assert_eq!(taken(&quarantine, JOBS).len(), 3, "those that came");
}

#[test]
fn each_job_is_checked_however_many_come_meanwhile() {
    let (quarantine, suspects, jobs) = full_queue();
    let mut expected = jobs.clone();
    let cancelled = expected.remove(0);
    let mut released = Vec::new();
    let mut rounds = 0..JOBS;
    while released.is_empty() {
        // The next lap begins once all that were there have been checked: in round 3.
        let round = rounds.next().expect("a job that is not checked again");
        if round == 1 {
            // SAFETY: the queue keeps the job alive, which has been checked once.
            let _owes = unsafe { &*cancelled }.state.cancel();
        }
        for _ in 0..CHECKED_AT_ONCE {
            let job = testing::runnable();
            expected.push(job.ptr().as_raw().as_ptr());
            quarantine.push(job, &suspects);
        }
        let mut batch = quarantine.take_released(&suspects, || true);
        released.extend(std::iter::from_fn(|| batch.pop()));
    }
    assert!(released == [cancelled]);
    assert!(taken(&quarantine, usize::MAX) == expected, "their places");
}

/// The jobs are leaked.
fn drop_all(mut jobs: JobBatch<Header>) {
    while jobs.pop().is_some() {}
}

#[test]
fn a_lap_takes_no_more_rounds_the_longer_the_queue_is() {
    let (quarantine, suspects, jobs) = full_queue();
    let rest = CHECKED_PART * CHECKED_AT_ONCE * 4;
    (0..rest).for_each(|_| quarantine.push(testing::runnable(), &suspects));
    let len = jobs.len() + rest + 1;
    let last = testing::runnable();
    // Before it is pushed, so that nobody runs it for this.
    let _owes = last.header().state.cancel();
    quarantine.push(last, &suspects);
    let mut rounds = 0;
    while quarantine.len() == len {
        drop_all(quarantine.take_released(&suspects, || true));
        rounds += 1;
    }
    assert!(rounds <= CHECKED_PART + 1, "{rounds}");
    let left = || quarantine.change(|queue| queue.left_of_lap);
    let check = |has_time| drop_all(quarantine.take_released(&suspects, || has_time));
    check(true);
    let before = left();
    check(false);
    assert_eq!(before - left(), CHECKED_AT_ONCE, "without time");
}

/// At the end, among those that this lap has checked, among those that it has not, and among those that come later.
#[test]
fn a_part_that_others_wait_for_goes_before_all_others_and_the_others_keep_their_places() {
    for place in [0, CHECKED_AT_ONCE - 1, CHECKED_AT_ONCE, JOBS - 1] {
        let (quarantine, suspects, mut jobs) = full_queue();
        assert_eq!(quarantine.take_released(&suspects, || true).len(), 0);
        let address = |job: &Header| ptr::from_ref(job).cast_mut();
        let (part, other) = (jobs.remove(place), testing::job());
        // SAFETY: the queue keeps the job alive.
        unsafe { &*part }.set_body_bit(body_bit::PART);
        assert!(!quarantine.has(|job| address(job) == address(other.header())));
        assert!(quarantine.has(|job| address(job) == part));
        assert!(!quarantine.is_relieving());
        quarantine.put_first(|job| address(job) == part);
        assert!(quarantine.is_relieving());
        assert_eq!((quarantine.len(), quarantine.tried()), (JOBS, 1));
        quarantine.put_first(|job| address(job) == address(other.header()));
        // The lap goes on.
        let mut checked = HashSet::new();
        for _ in 0..2 {
            let unchecked = quarantine.change(QuarantineQueue::take_unchecked);
            checked.extend(unchecked.iter());
            quarantine.change(|queue| queue.checked.append(unchecked));
        }
        let rest = &jobs[CHECKED_AT_ONCE - usize::from(place < CHECKED_AT_ONCE)..];
        assert!(checked == rest.iter().copied().collect(), "{place}");
        let first = quarantine.pop_tried().unwrap();
        assert!(first.into_ptr().as_raw().as_ptr() == part);
        assert!(!quarantine.is_relieving());
        assert!(taken(&quarantine, JOBS) == jobs, "{place}");
    }
}

#[test]
fn jobs_that_are_tried_come_first_and_are_released() {
    let (quarantine, suspects) = (Quarantine::new(), Suspects::default());
    let tried = testing::runnable();
    let address = tried.ptr().as_raw().as_ptr();
    quarantine.push(testing::runnable(), &suspects);
    quarantine.change(|queue| {
        // SAFETY: the runnable's right goes into the queue.
        unsafe { queue.tried.push(tried.into_ptr().as_raw().as_ptr()) };
    });
    assert_eq!((quarantine.len(), quarantine.tried()), (2, 1));
    let job = quarantine.pop_tried().unwrap();
    assert!(job.ptr().as_raw().as_ptr() == address);
    assert!(quarantine.pop_tried().is_none());
    quarantine.change(|queue| {
        // SAFETY: as above.
        unsafe { queue.tried.push(job.into_ptr().as_raw().as_ptr()) };
    });
    assert_eq!(quarantine.take_released(&suspects, || true).len(), 2);
    assert_eq!((quarantine.len(), quarantine.tried()), (0, 0));
}

#[test]
fn all_jobs_of_a_kind_that_is_no_longer_suspect_are_released() {
    let (quarantine, suspects, mut jobs) = full_queue();
    assert_eq!(quarantine.take_released(&suspects, || true).len(), 0);
    suspects.expire(Instant::now() + MEMORY);
    let mut released = JobBatch::new();
    for _ in 0..4 {
        released.append(quarantine.take_released(&suspects, || true));
    }
    let mut released: Vec<_> = std::iter::from_fn(|| released.pop()).collect();
    released.sort();
    jobs.sort();
    assert!(released == jobs);
    assert_eq!(quarantine.len(), 0);
}
